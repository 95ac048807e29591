"""Writes a report: every table and figure of the study's list, and a page that links them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.findings import findings
from nqbench.errors import AnalysisError, StudyError
from nqbench.report.figures import FIGURES
from nqbench.report.figures.style import styled
from nqbench.report.items import items_of
from nqbench.report.page import FIGURE_FORMATS, FORMATS, Bullets, Origin, Page, Paragraph
from nqbench.report.table import slug, source_of
from nqbench.report.tables import TABLES
from nqbench.study.report_items import ReportItem

INLINE_ROWS: Final = 30
"""Tables with more rows are linked, not shown on the page."""


@dataclass(frozen=True, slots=True)
class Report:
    """The files written, the page first, and the findings in sentences.

    ``not_made`` has a sentence for each table or figure that could not be made.
    """

    paths: tuple[Path, ...]
    not_made: tuple[str, ...]
    findings: tuple[str, ...]


def write_report(
    runs: Sequence[Path],
    out: Path,
    formats: Sequence[str] = FORMATS,
    figure_formats: Sequence[str] = FIGURE_FORMATS,
) -> Report:
    """Write the tables and figures that the runs' studies ask for, and ``report.md``.

    With ``html`` among ``formats`` there is a ``report.html`` too. Several runs get a folder each:
    different devices never share a table or an axis. Raises ``StoreError`` (a run cannot be read,
    the folder cannot be written) and ``StudyError`` (an unknown format). An item whose data are
    missing becomes a sentence on the page.
    """
    page = Page(out, formats, figure_formats, inline_rows=INLINE_ROWS)
    if not runs:
        raise StudyError("a report needs at least one run folder")
    not_made: list[str] = []
    found: list[str] = []
    for run in runs:
        data = load_dataset(run)
        if len(runs) > 1:
            page.enter(slug(data.name, data.device))
        sentences = findings(data)
        found += sentences
        not_made += _section(data, page, sentences)
    return Report(tuple(page.write("report")), tuple(not_made), tuple(found))


def _section(data: Dataset, page: Page, sentences: Sequence[str]) -> list[str]:
    """One run on the page. Returns a sentence for each item that could not be made."""
    page.heading(f"{data.name}: {data.device}", 1)
    about = str(data.study.get("about") or "").strip()
    if about:
        page.add(Paragraph(about if about[-1] in ".!?" else f"{about}."))
    ok = sum(p.ok for p in data.points)
    page.add(Origin(source_of(data), f"{ok} of {len(data.points)} points ok"))
    page.heading("Findings")
    page.add(Bullets(tuple(sentences)))
    not_made = []
    for item in items_of(data):
        try:
            _write(data, item, page)
        except AnalysisError as error:
            name = f"{item.form}: {item.name}{f' of {item.of}' if item.of else ''}"
            why = f"Not made: {error}{_hint(data, item)}."
            page.heading(name)
            page.add(Paragraph(why))
            not_made.append(f"{name}. {why}")
    return not_made


def prepare(data: Dataset, item: ReportItem) -> list[Any]:
    """The tables of an item, or the functions that draw its figures.

    Raises ``AnalysisError`` where data are missing.
    """
    known: Mapping[str, Callable[..., list[Any]]] = TABLES if item.form == "table" else FIGURES
    if item.name not in known:
        raise AnalysisError(f"no {item.form} is called {item.name!r}; known: {', '.join(known)}")
    return known[item.name](data, item)


def _write(data: Dataset, item: ReportItem, page: Page) -> None:
    prepared = prepare(data, item)
    if item.form == "table":
        for table in prepared:
            page.table(table, size=f"{table.size}: ")
        return
    with styled():
        drawings = [draw() for draw in prepared]
    for drawing in drawings:
        page.drawing(drawing, source_of(data))


def _hint(data: Dataset, item: ReportItem) -> str:
    if data.simulated and item.value and not any(p.timed for p in data.points):
        return " (a simulator counts, it does not time)"
    return ""


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
