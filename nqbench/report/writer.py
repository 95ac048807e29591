"""Writes a report: every table and figure of the study's list, and a page that links them."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.findings import findings
from nqbench.errors import AnalysisError, StoreError, StudyError
from nqbench.report.exporters import exporter
from nqbench.report.figures import FIGURES
from nqbench.report.figures.style import Drawing, save, styled
from nqbench.report.items import items_of, slug, source_of
from nqbench.report.table import Source, Table
from nqbench.report.tables import TABLES
from nqbench.study.report_items import ReportItem

FIGURE_FORMATS: Final = ("svg", "pdf", "png")
LINKED: Final = re.compile(r"\(<((?:table|figure)-[^<>/]+)>\)")
"""A file of ours in the page's own folder, as pages link it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing on the index page: a table or a figure with its files, or why it is not there."""

    title: str
    files: tuple[Path, ...] = ()
    table: Table | None = None
    drawing: Drawing | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One run on the index page."""

    title: str
    about: str
    source: Source
    counts: str
    findings: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(slots=True)
class Folder:
    """Writes files of one folder, each at once or not at all; keeps names apart."""

    path: Path
    written: list[Path] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def name(self, wanted: str) -> str:
        """A name not used yet in this report: a second heat map of one sweep is ``...-2``."""
        candidates = (wanted if i == 1 else f"{wanted}-{i}" for i in itertools.count(1))
        chosen = next(c for c in candidates if c not in self.names)
        self.names.add(chosen)
        return chosen

    def text(self, name: str, text: str) -> Path:
        """Write a text file."""
        return self.put(name, lambda path: _write_text(path, text))

    def page(self, name: str, text: str) -> Path:
        """Write the page that links the other files, last.

        What the page of this name linked before, and nobody wrote now in any format, is removed:
        else a table that is not made any more would stay beside the new ones, with old numbers.
        """
        old = self.path / name
        with _folder_errors(self.path):
            linked = set(LINKED.findall(old.read_text(encoding="utf-8"))) if old.exists() else set()
            made = {path.stem for path in self.written}
            for link in linked:
                if Path(link).stem not in made:
                    (self.path / link).unlink(missing_ok=True)
        return self.text(name, text)

    def put(self, name: str, write: Callable[[Path], None]) -> Path:
        """Let ``write`` make a temporary file and put it in place."""
        target = self.path / name
        # The ending stays: it says which format a figure is saved in.
        temporary = self.path / f".{os.getpid()}-{name}"
        with _folder_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                write(temporary)
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
        self.written.append(target)
        return target


@contextmanager
def _folder_errors(path: Path) -> Iterator[None]:
    """Turn a folder that refuses into one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(
            f"the report cannot be written to {path}: {reason}; give another folder with --out"
        ) from error


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def write_report(
    runs: Sequence[Path],
    out: Path,
    formats: Sequence[str] = ("md", "csv", "tex"),
    figure_formats: Sequence[str] = FIGURE_FORMATS,
) -> list[Path]:
    """Write the tables and figures that the runs' studies ask for, and ``report.md``.

    With ``html`` among ``formats`` there is a ``report.html`` too. Several runs get a folder each:
    different devices never share a table or an axis. Returns the paths, the index first. Raises
    ``StoreError`` (a run cannot be read, the folder cannot be written) and ``StudyError`` (an
    unknown format); what a run lacks the data for becomes a sentence on the index page.
    """
    from nqbench.report.index import html_page, markdown_page

    for name in formats:
        exporter(name)
    for name in figure_formats:
        if name not in FIGURE_FORMATS:
            known = ", ".join(FIGURE_FORMATS)
            raise StudyError(f"no figure format is called {name!r}; known: {known}")
    if not runs:
        raise StudyError("a report needs at least one run folder")
    sections = []
    written: list[Path] = []
    folders: set[str] = set()
    for run in runs:
        data = load_dataset(run)
        folder = Folder(out / _own_name(data, folders) if len(runs) > 1 else out)
        sections.append(_section(data, folder, formats, figure_formats))
        written += folder.written
    index = Folder(out, written=[path for path in written if path.parent == out])
    inside = len(index.written)
    index.page("report.md", markdown_page(sections, out))
    if "html" in formats:
        index.text("report.html", html_page(sections, out))
    return [*index.written[inside:], *written]


def _own_name(data: Dataset, taken: set[str]) -> str:
    base = slug(data.name, data.device)
    name = next(
        n for i in itertools.count(1) if (n := base if i == 1 else f"{base}-{i}") not in taken
    )
    taken.add(name)
    return name


def _section(
    data: Dataset, folder: Folder, formats: Sequence[str], figure_formats: Sequence[str]
) -> Section:
    entries: list[Entry] = []
    for item in items_of(data):
        try:
            if item.form == "table":
                entries += _tables(data, item, folder, formats)
            else:
                entries += _figures(data, item, folder, figure_formats)
        except AnalysisError as error:
            what = f"{item.name} of {item.of}" if item.of else item.name
            entries.append(Entry(f"{item.form}: {what}", missing=_sentence(data, item, error)))
    ok = sum(p.ok for p in data.points)
    counts = f"{ok} of {len(data.points)} points ok"
    about = str(data.study.get("about") or "").strip()
    if about and about[-1] not in ".!?":
        about += "."
    told = tuple(findings(data))
    return Section(data.name, about, source_of(data), counts, told, tuple(entries))


def _sentence(data: Dataset, item: ReportItem, error: AnalysisError) -> str:
    hint = ""
    if data.simulated and item.value and not any(p.timed for p in data.points):
        hint = " (a simulator counts, it does not time)"
    return f"Not made: {error}{hint}."


def _tables(data: Dataset, item: ReportItem, folder: Folder, formats: Sequence[str]) -> list[Entry]:
    if item.name not in TABLES:
        raise AnalysisError(f"no table is called {item.name!r}; known: {', '.join(TABLES)}")
    entries = []
    for table in TABLES[item.name](data, item):
        name = folder.name(f"table-{table.name}")
        chosen = [exporter(form) for form in formats]
        files = [folder.text(name + e.suffix, e.render(table)) for e in chosen]
        entries.append(Entry(table.title, tuple(files), table=table))
    return entries


def _figures(
    data: Dataset, item: ReportItem, folder: Folder, formats: Sequence[str]
) -> list[Entry]:
    if item.name not in FIGURES:
        raise AnalysisError(f"no figure is called {item.name!r}; known: {', '.join(FIGURES)}")
    source = source_of(data)
    entries = []
    with styled():
        for drawing in FIGURES[item.name](data, item):
            name = folder.name(f"figure-{drawing.name}")
            files = []
            for form in formats:
                save_to = _saver(drawing, source)
                files.append(folder.put(f"{name}.{form}", save_to))
            entries.append(Entry(drawing.title, tuple(files), drawing=drawing))
    return entries


def _saver(drawing: Drawing, source: Source) -> Callable[[Path], None]:
    return lambda path: save(drawing, path, source)


def default_out(run: Path) -> Path:
    """Where the report of a run goes.

    ``results/local/DEVICE/STUDY`` -> ``plots/local/DEVICE/STUDY``, the same under
    ``results/reference``; any other run folder -> ``RUN/report``.
    """
    run = Path(run)
    for path in (run, run.resolve()):
        parts = path.parts
        for i in range(len(parts) - 2, -1, -1):
            if parts[i] == "results" and parts[i + 1] in {"local", "reference"}:
                return Path(*parts[:i], "plots", *parts[i + 1 :])
    return run / "report"


def findings_of(runs: Sequence[Path]) -> list[str]:
    """The findings of each run, in words."""
    return [sentence for run in runs for sentence in findings(load_dataset(run))]
