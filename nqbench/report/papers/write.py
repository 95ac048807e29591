"""Writes a paper's tables, figures and verdicts, and ``paper.md`` that ties them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nqbench.analysis.claims.judge import Verdict, judge
from nqbench.analysis.data.observed import Observed, in_times_of, timed_runs
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.report.figures.style import styled
from nqbench.report.page import FIGURE_FORMATS, FORMATS, Bullets, Page, Paragraph
from nqbench.report.papers.reproduced import FIGURES, OF_TIMES, reproduced_table
from nqbench.report.papers.verdicts import claims_table, details_table, forest
from nqbench.report.table import Source, joint, slug, source_of

PAGE: Final = "paper"


@dataclass(frozen=True, slots=True)
class PaperReport:
    """What was written: files (the page first) and the verdicts."""

    paths: tuple[Path, ...]
    verdicts: tuple[Verdict, ...]


def write_paper(
    paper: Paper,
    runs: Sequence[Observed],
    out: Path,
    formats: Sequence[str] = FORMATS,
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
    page = _PaperPage(out, formats, figure_formats)
    source = joint_source(runs)
    verdicts = judge(paper, runs, full=full)
    page.heading(paper.title, 1)
    page.add(Paragraph(_cited(paper)))
    page.add(Bullets(tuple(str(source_of(run.data)) for run in runs)))
    page.section("Verdicts")
    page.table(claims_table(paper, verdicts, source), level=3)
    page.table(details_table(paper, verdicts, source), level=3, inline=False)
    _figures(page, paper, runs, verdicts)
    _tables(page, paper, runs)
    page.section("What the paper leaves open or gets wrong")
    page.add(Bullets(tuple(c.text for c in paper.caveats)))
    return PaperReport(tuple(page.write(PAGE)), tuple(verdicts))


def _figures(
    page: _PaperPage, paper: Paper, runs: Sequence[Observed], verdicts: Sequence[Verdict]
) -> None:
    """A forest plot per device, then the paper's own figures over all of them."""
    devices = list(dict.fromkeys(run.data.device for run in runs))
    source, timed = joint_source(runs), joint_source(timed_runs(runs) or runs)
    with styled():
        for device in devices:
            with page.attempt(f"claims against published values, {device}"):
                own = joint_source([run for run in runs if run.data.device == device])
                found = forest(paper, verdicts, device, own)
                for drawing in found:
                    page.drawing(drawing, own, level=3, of=f", {device}" * (len(devices) > 1))
        page.section("Figures")
        for figure in paper.figures:
            if figure.draw != "none":
                with page.attempt(f"figure {figure.number}: {figure.title}"):
                    seen = timed if figure.draw in OF_TIMES else source
                    for drawing in FIGURES[figure.draw](paper, figure, runs, seen):
                        page.drawing(drawing, seen, level=3)


def _tables(page: _PaperPage, paper: Paper, runs: Sequence[Observed]) -> None:
    """Each table per run; one that is the same for every device, once."""
    made: set[tuple[object, ...]] = set()
    for run in runs:
        many = f", {run.data.device}" if len(runs) > 1 else ""
        page.section(f"Tables{many}")
        for table in paper.tables:
            with page.attempt(f"table {table.number}: {table.title}"):
                own = reproduced_table(paper, table, run)
                content = (own.title, own.rows, own.notes)
                measured = own.source.device == source_of(run.data).device
                if content in made and not measured:  # as printed or counted: it stands above
                    page.above.append(f"table {table.number}: {table.title}")
                    continue
                made.add(content)
                page.table(own, level=3, suffix=slug(run.device_id) if len(runs) > 1 else "")


def joint_source(runs: Sequence[Observed]) -> Source:
    """Device, provenance and command of several runs together."""
    return joint([source_of(run.data) for run in runs])


def _cited(paper: Paper) -> str:
    where = ", ".join(str(part) for part in (paper.source.venue, paper.source.year) if part)
    if not paper.source.authors:
        return paper.source.note[:1].upper() + paper.source.note[1:]
    return f"{', '.join(paper.source.authors)}{f': {where}' if where else ''}"


class _PaperPage(Page):
    """A page whose sections say at their end what could not be made."""

    def __init__(self, out: Path, formats: Sequence[str], figure_formats: Sequence[str]) -> None:
        super().__init__(out, formats, figure_formats)
        self._missing: dict[str, list[str]] = {}
        self.above: list[str] = []

    def section(self, text: str) -> None:
        """A section; what was not made in the one before is said at its end."""
        for reason, names in self._missing.items():
            self.add(Paragraph(f"Not made ({'; '.join(names)}): {reason}."))
        self._missing.clear()
        if self.above:
            self.add(Paragraph(f"Identical on this device: {'; '.join(self.above)}."))
        self.above.clear()
        self.heading(text)

    @contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Write one thing, or say on the page why it is not there."""
        try:
            yield
        except AnalysisError as error:
            self._missing.setdefault(str(error), []).append(name)
