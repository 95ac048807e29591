"""Writes a paper's tables, figures and verdicts, and ``paper.md`` that ties them together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nqbench.analysis.claims.judge import Verdict, judge
from nqbench.analysis.data.observed import Observed, in_times_of, timed_runs
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure
from nqbench.report.exporters import exporter
from nqbench.report.exporters.markdown import body, escape
from nqbench.report.figures.style import Drawing, save, styled
from nqbench.report.items import slug, source_of
from nqbench.report.papers.annealing import annealing, evaluation_share
from nqbench.report.papers.annealing_seeds import distribution
from nqbench.report.papers.bars import bars
from nqbench.report.papers.curves import kernels, pool, speedup
from nqbench.report.papers.forest import forest
from nqbench.report.papers.level_curves import best_threads, thread_curves, thresholds
from nqbench.report.papers.limits import limits
from nqbench.report.papers.mapping_figure import mapping
from nqbench.report.papers.phase_bars import phases
from nqbench.report.papers.profile_figures import parts, requests
from nqbench.report.papers.scheme_curves import boards, speedups, times
from nqbench.report.papers.twins import twin
from nqbench.report.papers.verdict_table import claims_table, details_table
from nqbench.report.papers.version_rates import versions
from nqbench.report.table import Source, Table
from nqbench.report.writer import FIGURE_FORMATS, Folder

PAGE: Final = "paper.md"
DrawFigure = Callable[[Paper, PaperFigure, Sequence[Observed], Source], list[Drawing]]
DRAW: Final[dict[str, DrawFigure]] = {
    "bars": bars,
    "pool": pool,
    "kernels": kernels,
    "speedup": speedup,
    "times": times,
    "speedups": speedups,
    "thread_curves": thread_curves,
    "best_threads": best_threads,
    "thresholds": thresholds,
    "boards": boards,
    "annealing": annealing,
    "distribution": distribution,
    "evaluation_share": evaluation_share,
    "limits": limits,
    "parts": parts,
    "phases": phases,
    "requests": requests,
    "mapping": mapping,
    "versions": versions,
}


OF_TIMES: Final = ("bars", "pool", "kernels", "speedup")
"""Figures of kernel times: simulated runs are not in them, nor in the line that says whence."""


@dataclass(frozen=True, slots=True)
class PaperReport:
    """What was written: files (the page first) and the verdicts."""

    paths: tuple[Path, ...]
    verdicts: tuple[Verdict, ...]


def write_paper(
    paper: Paper,
    runs: Sequence[Observed],
    out: Path,
    formats: Sequence[str] = ("md", "csv", "tex"),
    figure_formats: Sequence[str] = FIGURE_FORMATS,
    *,
    full: bool = False,
) -> PaperReport:
    """Write everything for one paper from its runs, one per device.

    Tables are made once per run, figures and verdicts over all of them. What the runs lack becomes
    a sentence on the page, which names what is missing and the command that would measure it.
    Raises ``StudyError`` for an unknown format and ``StoreError`` where the folder refuses.
    """
    runs = [in_times_of(paper, run) for run in runs]
    page = _Page(Folder(out), formats, figure_formats)
    source = joint_source(runs)
    verdicts = judge(paper, runs, full=full)
    page.lines += [f"# {escape(paper.title)}", "", escape(_cited(paper)), ""]
    page.lines += [*(f"- {escape(str(source_of(run.data)))}" for run in runs), ""]
    page.heading("Verdicts")
    page.table(claims_table(paper, verdicts, source))
    page.table(details_table(paper, verdicts, source), inline=False)
    _figures(page, paper, runs, verdicts)
    _tables(page, paper, runs)
    page.heading("What the paper leaves open or gets wrong")
    page.lines += [*(f"- {escape(c.text)}" for c in paper.caveats), ""]
    written = page.folder.page(PAGE, "\n".join(page.lines).rstrip() + "\n")
    paths = [written, *(p for p in page.folder.written if p != written)]
    return PaperReport(tuple(paths), tuple(verdicts))


def _figures(
    page: _Page, paper: Paper, runs: Sequence[Observed], verdicts: Sequence[Verdict]
) -> None:
    """A forest plot per device, then the paper's own figures over all of them."""
    devices = list(dict.fromkeys(run.data.device for run in runs))
    source, timed = joint_source(runs), joint_source(timed_runs(runs) or runs)
    with styled():
        for device in devices:
            with page.attempt(f"claims against published values, {device}"):
                own = joint_source([run for run in runs if run.data.device == device])
                found = forest(paper, verdicts, device, own)
                page.drawings(found, own, of=f", {device}" if len(devices) > 1 else "")
        page.heading("Figures")
        for figure in paper.figures:
            if figure.draw != "none":
                with page.attempt(f"figure {figure.number}: {figure.title}"):
                    seen = timed if figure.draw in OF_TIMES else source
                    page.drawings(DRAW[figure.draw](paper, figure, runs, seen), seen)


def _tables(page: _Page, paper: Paper, runs: Sequence[Observed]) -> None:
    """Each table per run; one that is the same for every device, once."""
    made: set[tuple[object, ...]] = set()
    for run in runs:
        many = f", {run.data.device}" if len(runs) > 1 else ""
        page.heading(f"Tables{many}")
        for table in paper.tables:
            with page.attempt(f"table {table.number}: {table.title}"):
                own = twin(paper, table, run)
                content = (own.title, own.rows, own.notes)
                measured = own.source.device == source_of(run.data).device
                if content in made and not measured:  # as printed or counted: it stands above
                    page.above.append(f"table {table.number}: {table.title}")
                    continue
                made.add(content)
                page.table(own, slug(run.device_id) if len(runs) > 1 else "")


def joint_source(runs: Sequence[Observed]) -> Source:
    """Device, manner and command of several runs together."""
    sources = [source_of(run.data) for run in runs]
    return Source(
        "; ".join(dict.fromkeys(s.device for s in sources)),
        "; ".join(dict.fromkeys(s.manner for s in sources)),
        "; ".join(dict.fromkeys(s.command for s in sources)),
    )


def _cited(paper: Paper) -> str:
    where = ", ".join(str(part) for part in (paper.source.venue, paper.source.year) if part)
    if not paper.source.authors:
        return paper.source.note[:1].upper() + paper.source.note[1:]
    return f"{', '.join(paper.source.authors)}{f': {where}' if where else ''}"


class _Page:
    """The page under way, and the folder of the files it links."""

    def __init__(
        self, folder: Folder, formats: Sequence[str], figure_formats: Sequence[str]
    ) -> None:
        self.folder = folder
        self.exporters = [exporter(name) for name in formats]
        self.figure_formats = figure_formats
        self.lines: list[str] = []
        self._missing: dict[str, list[str]] = {}
        self.above: list[str] = []

    def heading(self, text: str) -> None:
        """A section; what was not made in the one before is said at its end."""
        for reason, names in self._missing.items():
            self.lines += [f"Not made ({escape('; '.join(names))}): {escape(reason)}.", ""]
        self._missing.clear()
        if self.above:
            self.lines += [f"The same on this device: {escape('; '.join(self.above))}.", ""]
        self.above.clear()
        self.lines += [f"## {escape(text)}", ""]

    @contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Write one thing, or say on the page why it is not there."""
        try:
            yield
        except AnalysisError as error:
            self._missing.setdefault(str(error), []).append(name)

    def table(self, table: Table, suffix: str = "", *, inline: bool = True) -> None:
        """Write a table in every format, show it and link the files."""
        name = self.folder.name("-".join(part for part in (f"table-{table.name}", suffix) if part))
        files = [self.folder.text(name + e.suffix, e.render(table)) for e in self.exporters]
        self.lines += [f"### {escape(table.title)}", ""]
        if inline:
            self.lines += [body(table), ""]
        self._links(files)

    def drawings(self, drawings: Sequence[Drawing], source: Source, of: str = "") -> None:
        """Write figures in every format and show them; ``of`` ends their headings."""
        for drawing in drawings:
            name = self.folder.name(f"figure-{drawing.name}")
            files = []
            for form in self.figure_formats:
                put = _saver(drawing, source)
                files.append(self.folder.put(f"{name}.{form}", put))
            self.lines += [f"### {escape(drawing.title + of)}", ""]
            if files:
                self.lines += [f"![{escape(drawing.alt)}](<{files[0].name}>)", ""]
            self._links(files)

    def _links(self, files: Sequence[Path]) -> None:
        links = " · ".join(f"[{file.suffix[1:]}](<{file.name}>)" for file in files)
        self.lines += [links, ""] if links else []


def _saver(drawing: Drawing, source: Source) -> Callable[[Path], None]:
    return lambda path: save(drawing, path, source)
