"""Writes a paper's tables, figures and verdicts, and ``paper.md`` that ties them together.

From given runs, or from every recorded run there is. Nothing is measured here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nqbench.analysis.claims.judge import ENUMERATED, Verdict, judge
from nqbench.analysis.data.observed import (
    Observed,
    device_names,
    in_times_of,
    observe,
    papers_of,
    with_baseline,
)
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers import load_paper
from nqbench.papers.schema import Paper, PaperFigure, PaperTable
from nqbench.report.figures.style import styled
from nqbench.report.page import FORMATS, Bullets, Page, Paragraph
from nqbench.report.papers import bars, curves
from nqbench.report.papers.common import general_notes
from nqbench.report.papers.tables import reproduced_table
from nqbench.report.papers.verdicts import claims_table, counted, details_table
from nqbench.report.table import Source, Table, joint, slug, source_of
from nqbench.runs.reading import KINDS, PLOTS, RESULTS, recorded_runs

PAGE: Final = "paper"
CPU_BASELINE: Final = "cpu_baseline"
"""The study of the sequential program at the papers' sizes."""


FIGURES: Final = {
    "curves": curves.curves,
    "stacked": bars.bars,
    "grid": bars.bars,
}
"""By the word that ``published.yaml`` uses. A figure is drawn within ``style.styled()``."""


@dataclass(frozen=True, slots=True)
class PaperReport:
    """The files written, the page first, and the verdicts, also as their table."""

    paths: tuple[Path, ...]
    verdicts: tuple[Verdict, ...]
    claims: Table


def write_paper(
    paper: Paper,
    runs: Sequence[Observed],
    out: Path,
    formats: Sequence[str] = FORMATS,
    *,
    full: bool = False,
    home: str = "",
) -> PaperReport:
    """Write everything for one paper from its runs, one per device.

    Tables are made once per run, figures and verdicts over all of them. What the runs lack becomes
    a sentence on the page, which names what is missing and the command that would measure it.
    ``home`` is the page's link to the one that leads here.
    Raises ``StudyError`` for an unknown format, ``StoreError`` if the folder cannot be written.
    """
    runs = [in_times_of(paper, run) for run in runs]
    page = _PaperPage(out, formats, home)
    source = joint_source(runs)
    verdicts = judge(paper, runs, full=full)
    page.heading(paper.title, 1)
    of = paper.source
    cited = f"{', '.join(of.authors)}: {of.venue}, {of.year}"
    page.add(Paragraph(f"{cited}. {of.url}" if of.url else cited))
    baselines = {run.baseline.path: run.baseline for run in runs if run.baseline}
    page.add(Bullets(tuple(str(source_of(run.data)) for run in (*runs, *baselines.values()))))
    page.section("Verdicts")
    claims = with_cpu(claims_table(paper, verdicts, source), runs)
    counts = counted(verdicts)
    page.add(Bullets(counts))
    page.table(claims, level=3, said=counts)
    page.table(details_table(paper, verdicts, source), level=3, inline=False)
    _figures(page, paper, runs)
    _tables(page, paper, runs)
    page.section("What the paper leaves open or gets wrong")
    page.add(Bullets(tuple(c.text for c in paper.caveats)))
    return PaperReport(tuple(page.write(PAGE)), tuple(verdicts), claims)


def _figures(page: _PaperPage, paper: Paper, runs: Sequence[Observed]) -> None:
    """The paper's own figures over all devices."""
    with_times = [run for run in runs if any(p.values(TIME) for p in run.data.points)]
    source, timed = joint_source(runs), joint_source(with_times or runs)
    with styled():
        page.section("Figures")
        for figure in paper.figures:
            if figure.draw != "none":
                with page.attempt(_named("figure", figure)):
                    seen = source if figure.draw == "grid" else timed
                    for drawing in FIGURES[figure.draw](paper, figure, runs, seen):
                        page.drawing(drawing, seen, level=3)
        for figure in paper.figures:
            if figure.draw == "none" and figure.number != "none":
                page.left_out("Figure", figure)


def _tables(page: _PaperPage, paper: Paper, runs: Sequence[Observed]) -> None:
    """Each table per run; one that is the same for every device, once."""
    written: set[tuple[object, ...]] = set()
    for run, device in zip(runs, device_names(runs), strict=True):
        page.section(f"Tables, {device}" if len(runs) > 1 else "Tables")
        made: list[tuple[str, Table]] = []
        for table in paper.tables:
            if table.reproduce == "none" and run is runs[0]:
                page.left_out("Table", table)
            elif table.reproduce != "none":
                with page.attempt(_named("table", table)):
                    made.append((_named("table", table), reproduced_table(paper, table, run)))
        notes = Counter(note for _, own in made for note in own.notes)
        general = [note for note in general_notes(paper, run) if notes[note] > 1]
        if general:
            page.add(Paragraph("On the tables below:"), Bullets(tuple(general)))
        for name, own in made:
            content = (own.title, own.rows, own.notes)
            measured = own.source.device == source_of(run.data).device
            if content in written and not measured:  # as printed or counted: shown above
                page.above.append(name)
                continue
            written.add(content)
            suffix = slug(run.device_id) if len(runs) > 1 else ""
            page.table(own, level=3, suffix=suffix, said=general)


def _named(kind: str, part: PaperTable | PaperFigure) -> str:
    """A table or figure by its number and title; ours have no number."""
    return part.title if part.number == "none" else f"{kind} {part.number}: {part.title}"


def joint_source(runs: Sequence[Observed]) -> Source:
    """Device, provenance and command of several runs together."""
    return joint([source_of(run.data) for run in runs])


class _PaperPage(Page):
    """A page that lists at the end of each section what could not be made."""

    def __init__(self, out: Path, formats: Sequence[str], home: str) -> None:
        super().__init__(out, formats, home=home)
        self._missing: dict[str, list[str]] = {}
        self.above: list[str] = []

    def section(self, text: str) -> None:
        """Start a section; the one before ends with what was not made."""
        for reason, names in self._missing.items():
            self.add(Paragraph(f"Not made ({'; '.join(names)}): {reason}."))
        self._missing.clear()
        if self.above:
            self.add(Paragraph(f"Identical on this device: {'; '.join(self.above)}."))
        self.above.clear()
        self.heading(text)

    def left_out(self, kind: str, part: PaperTable | PaperFigure) -> None:
        """Say why a table or figure of the paper is not reproduced."""
        said = f"{kind} {part.number} ({part.title}) is not reproduced: {part.note}."
        self.add(Paragraph(said))

    @contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Write a table or figure, or explain on the page why it is missing."""
        try:
            yield
        except AnalysisError as error:
            self._missing.setdefault(str(error), []).append(name)


def claims_tables(
    runs: Sequence[Path], paper: str | None, *, full: bool = False, cpu: Path | None = None
) -> dict[str, Table]:
    """The verdict tables of runs, by paper: one for each that they are about.

    ``cpu`` is a run whose CPU programs stand in the place of the runs' own. ``full`` lets
    deterministic counts walk large trees. Raises ``StudyError`` (no paper's run, unknown paper,
    runs that have nothing of the paper asked for) and ``StoreError`` (not a run).
    """
    observed = observe_all(runs, cpu)
    found = {}
    for one in papers_of(observed, paper):
        mine = observed if paper else [r for r in observed if r.data.name == one.id]
        verdicts = judge(one, mine, full=full)
        table = with_cpu(claims_table(one, verdicts, joint_source(mine)), mine)
        foreign = [note for run in mine if (note := _of_another_study(one, run))]
        judged = (v for v in verdicts if v.word != "not measured")
        if len(foreign) == len(mine) and all(v.device == ENUMERATED for v in judged):
            raise StudyError("; ".join(foreign))
        found[one.id] = replace(table, notes=(*foreign, *table.notes))
    return found


def with_cpu(table: Table, runs: Sequence[Observed]) -> Table:
    """The table with a note on the run that the CPU programs' times come from."""
    notes = set()
    for data in (run.baseline.data for run in runs if run.baseline):
        said = "; intervals of speed-ups are those of the GPU's rounds" if data.rounds == 1 else ""
        where = f"{data.cpu}, {data.cpu_provenance}, for all devices ({data.command})"
        notes.add(f"CPU programs: {where}{said}")
    return replace(table, notes=(*table.notes, *sorted(notes)))


def _of_another_study(paper: Paper, run: Observed) -> str:
    """How much of a paper a run of another study covers; empty for the paper's own run."""
    if run.data.name == paper.id:
        return ""
    named = {paper.system(system.id) for system in paper.systems if system.system}
    there = len(named & {point.system for point in run.data.points})
    many = "all" if there == len(named) else there or "none"
    return (
        f"{run.path} is a run of study '{run.data.name}' and has {many} of the"
        f" {len(named)} systems that {paper.id} names; `nqbench reproduce {paper.id}`"
        " measures them as the paper did"
    )


def observe_all(runs: Sequence[Path], cpu: Path | None) -> list[Observed]:
    """Runs, with the CPU programs of the run ``cpu``.

    Raises ``StudyError`` if that has none, or where a run is given twice.
    """
    for i, run in enumerate(runs):
        if run.resolve() in {other.resolve() for other in runs[:i]}:
            raise StudyError(f"{run} is given twice; name each run once")
    return with_programs([observe(run) for run in runs], cpu)


def with_programs(runs: Sequence[Observed], cpu: Path | None) -> list[Observed]:
    """Runs with the CPU programs of the run ``cpu`` in the place of their own.

    Raises ``StudyError`` if that has none.
    """
    baseline = observe(cpu) if cpu is not None else None
    if baseline and not any(p.cpu and p.ok for p in baseline.data.points):
        raise StudyError(
            f"--cpu {cpu}: the run has no CPU program; `nqbench run cpu_baseline --device cpu`"
            " measures one"
        )
    return [with_baseline(run, baseline) for run in runs]


def report_recorded(
    names: Sequence[str],
    out: Path | None = None,
    *,
    full: bool = False,
    cpu: Path | None = None,
) -> list[PaperReport]:
    """Write papers from every run of them under ``results``.

    ``cpu`` defaults to the recorded run of the study ``cpu_baseline``, if there is one. ``out`` is
    for one paper; if it has runs of both kinds, each kind gets a folder there. Papers without a run
    are left out. Raises ``StudyError`` if no paper has one.
    """
    reports = [
        write_paper(load_paper(name), observe_all(runs, baseline), folder, full=full)
        for name in names
        for runs, folder, baseline in recorded([name], f"papers/{name}", out, cpu)
    ]
    if not reports:
        raise StudyError(
            f"there is no run of {', '.join(names)} under {RESULTS}; `nqbench reproduce {names[0]}`"
            " makes one"
        )
    return reports


def recorded(
    names: Sequence[str], place: str, out: Path | None, cpu: Path | None
) -> Iterator[tuple[list[Path], Path, Path | None]]:
    """The runs of some studies under ``results``, the project's and a user's apart: each with the
    folder of its page (``place`` under ``plots``, else in ``out``) and with the run that has the
    CPU programs: ``cpu``, else the recorded ``cpu_baseline``."""
    kinds = {kind: [run for name in names for run in recorded_runs(name, kind)] for kind in KINDS}
    kinds = {kind: runs for kind, runs in kinds.items() if runs}
    for kind, runs in kinds.items():
        folder = PLOTS / kind / place
        if out is not None:
            folder = out / kind if len(kinds) > 1 else out
        yield runs, folder, cpu or next(iter(recorded_runs(CPU_BASELINE, kind)), None)


def never_run(names: Sequence[str]) -> list[str]:
    """Papers without a run under ``results``."""
    return [name for name in names if not any(recorded_runs(name, kind) for kind in KINDS)]
