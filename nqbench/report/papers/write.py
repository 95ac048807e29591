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

from nqbench.analysis.claims.judge import ENUMERATED, LACKING, Verdict, judge
from nqbench.analysis.claims.robust import by_chance
from nqbench.analysis.claims.scorecard import Scorecard, scorecard
from nqbench.analysis.data import for_papers
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers import load_paper, paper_names
from nqbench.papers.schema import Paper, PaperFigure, PaperTable
from nqbench.report.figures.style import Drawing, styled
from nqbench.report.page import FORMATS, Bullets, Page, Paragraph
from nqbench.report.papers import figures, tables
from nqbench.report.table import Source, Table, joint, slug, source_of
from nqbench.runs.reading import KINDS, PLOTS, RESULTS, recorded_runs
from nqbench.system.suggest import listing

PAGE: Final = "paper"
CPU_BASELINE: Final = "cpu_baseline"
"""The study of the sequential program at the papers' sizes."""
TRUST: Final = (
    "modelled: what the simulator makes of counters and the facts of a chip, neither measured nor"
    " exact; effects below 5% are not told apart. On 24 kernels at N = 15 to 18, an H100 and an"
    " H200, the median error is 3 to 11%, 40 of 40 effects have the measured sign, and Spearman's"
    " rank correlation is 0.94 to 0.99 (results/reference/h200/ablation/README.md)",
    "simulated: counters, exact for today's code under the rules of that chip",
)
"""What modelled times are, and the record of how far to trust them."""
NO_RUN: Final = "there is no run of {} under {}; `nqbench reproduce {}` makes one"
FIGURES: Final = {"curves": figures.curves, "stacked": figures.bars, "grid": figures.bars}
"""By the word that ``published.yaml`` uses. A figure is drawn within ``style.styled()``."""


@dataclass(frozen=True, slots=True)
class PaperReport:
    """The files written, the page first, the verdicts, and the scorecard also as a table."""

    paths: tuple[Path, ...]
    verdicts: tuple[Verdict, ...]
    card: Scorecard
    scores: Table


def write_paper(
    paper: Paper,
    runs: Sequence[Dataset],
    out: Path,
    formats: Sequence[str] = FORMATS,
    *,
    beside: Sequence[Dataset] = (),
    home: str = "",
) -> PaperReport:
    """Write everything for one paper from its runs, one per device: the scorecard and the two best
    figures, then closed all claims, figures and tables.

    Tables are made once per run, figures and verdicts over all of them. What the runs lack becomes
    a sentence on the page, which names what is missing and the command that would measure it.
    ``beside`` are recorded ones that the scorecard shows beside them; ``home`` is the page's link
    to the one that leads here.
    Raises ``StudyError`` for an unknown format, ``StoreError`` if the folder cannot be written.
    """
    own = [run for run in runs if for_papers.of_own_gpu(paper, run)]
    shown = [run for run in runs if run not in own or len(own) == len(runs)]
    runs = [for_papers.in_times_of(paper, run) for run in shown]
    page = Page(out, formats, home=home)
    source = joint_source(runs)
    judged = judge(paper, runs)
    card = scorecard(paper, runs, beside)
    timed = joint_source([run for run in runs if not run.simulated] or runs)
    scores = about_runs(tables.scorecard_table(card, timed), runs)
    page.heading(paper.title, 1)
    page.add(Paragraph(card.outcome))
    page.table(scores, level=0)
    drawn, lacking = _figures(paper, runs, [for_papers.modelled(run) for run in own])
    others = [drawing for figure, drawing in drawn if not figure.headline]
    for drawing in (drawing for figure, drawing in drawn if figure.headline):
        page.drawing(drawing, timed)
    if own:
        add_own(page, paper, own)
    page.heading("Every claim", folded=True)
    page.add(Bullets((*tables.counted(judged), *by_chance(paper, runs, judged))))
    claims = about_runs(tables.claims_table(paper, judged, source), runs)
    page.table(claims, level=0, said=tables.counted(judged))
    page.table(tables.details_table(paper, judged, source), level=0, inline=False)
    if others:
        page.heading("Other figures", folded=True)
    for drawing in others:
        page.drawing(drawing, timed, level=3)
    _tables(page, paper, runs, lacking)
    page.heading("What is not reproduced, and why", folded=True)
    for kind, parts in (("Figure", paper.figures), ("Table", paper.tables)):
        for part in parts:
            form = part.draw if isinstance(part, PaperFigure) else part.reproduce
            if form == "none" and part.number != "none":
                lacking.setdefault(part.note, []).append(f"{kind} {part.number}: {part.title}")
    page.add(Bullets(tuple(f"{'; '.join(names)}: {why}" for why, names in lacking.items())))
    page.heading("What the paper leaves open or gets wrong", folded=True)
    page.add(Bullets(tuple(c.text for c in paper.caveats)))
    page.heading("The paper and the runs", folded=True)
    of, baselines = paper.source, {r.baseline.path: r.baseline for r in runs if r.baseline}
    cited = f"{', '.join(of.authors)}: {of.venue}, {of.year}. {of.url}".rstrip()
    sources = (*runs, *(other for run in runs for other in run.again), *baselines.values())
    page.add(Bullets((cited, *(str(source_of(run)) for run in sources))))
    return PaperReport(tuple(page.write(PAGE)), tuple(judged), card, scores)


def write_own(
    paper: Paper, runs: Sequence[Dataset], out: Path, formats: Sequence[str] = FORMATS
) -> PaperReport:
    """Write the page of runs on models of the paper's own GPUs. Raises as :func:`write_paper`."""
    page = Page(out, formats)
    page.heading(paper.title, 1)
    judged, card, scores = add_own(page, paper, runs)
    return PaperReport(tuple(page.write("own")), judged, card, scores)


def add_own(
    page: Page, paper: Paper, runs: Sequence[Dataset]
) -> tuple[tuple[Verdict, ...], Scorecard, Table]:
    """Put on a page what runs on models of the paper's own GPUs say of its claims, in its own
    form: the scorecard, how far to trust it, every claim."""
    runs = [for_papers.modelled(run) for run in runs]
    source = replace(joint_source(runs), provenance="simulated counters, modelled times")
    judged, card = judge(paper, runs), scorecard(paper, runs)
    scores = replace(tables.scorecard_table(card, source), name=slug("own-scorecard", paper.id))
    page.heading("On models of the paper's own GPUs")
    if card.names:  # a main claim can be judged by what the models tell
        page.add(Paragraph(card.outcome))
        page.table(scores, level=0)
    page.add(Bullets(TRUST))
    if times := tables.against_print(paper, runs, source):
        page.table(times, level=3)
    page.heading("Every claim on these models", folded=True)
    told = tables.counted(judged)
    page.add(Bullets(told))
    found = [verdict for verdict in judged if verdict.word != LACKING]
    claims = tables.claims_table(paper, found, source)
    page.table(replace(claims, name=slug("own-claims", paper.id)), level=0, said=told)
    return tuple(judged), card, scores


def _figures(
    paper: Paper, runs: Sequence[Dataset], models: Sequence[Dataset]
) -> tuple[list[tuple[PaperFigure, Drawing]], dict[str, list[str]]]:
    """The paper's own figures over all runs, bars of times also over ``models`` of its own GPUs,
    and what could not be drawn, by the reason."""
    models = [run for run in models if any(p.values(TIME) for p in run.points)]
    drawn: list[tuple[PaperFigure, Drawing]] = []
    lacking: dict[str, list[str]] = {}
    with styled():
        for figure in (figure for figure in paper.figures if figure.draw != "none"):
            with _noted(lacking, _named("figure", figure)):
                every = [*runs, *models] if figure.draw == "stacked" else runs
                made = FIGURES[figure.draw](paper, figure, every)
                drawn += [(figure, drawing) for drawing in made]
    return drawn, lacking


def _tables(
    page: Page, paper: Paper, runs: Sequence[Dataset], lacking: dict[str, list[str]]
) -> None:
    """Each table per run; one that is the same for every device, once."""
    written: set[tuple[object, ...]] = set()
    chips = [run.chip for run in runs]
    for run, chip, device in zip(runs, chips, for_papers.device_names(runs), strict=True):
        made, name = [], chip if chips.count(chip) == 1 else device
        for table in (table for table in paper.tables if table.reproduce != "none"):
            with _noted(lacking, f"{_named('table', table)} ({name})"):
                made.append(tables.reproduced_table(paper, table, run))
        # What is as printed or counted stands with the first device.
        own = source_of(run).device
        made = [t for t in made if t.source.device == own or (t.title, t.rows) not in written]
        written |= {(t.title, t.rows) for t in made}
        notes = Counter(note for t in made for note in t.notes)
        shared = (tables.COMPARE_RATIOS, *tables.intervals(paper, run), tables.IN_BRACKETS)
        general = [note for note in shared if notes[note] > 1]
        if made:
            page.heading(f"Tables, {name}", folded=True)
            page.add(Bullets(tuple(general)))
        for shown in made:
            suffix = slug(run.device_id) if len(runs) > 1 else ""
            page.table(shown, level=3, suffix=suffix, said=general, folded=True)


def _named(kind: str, part: PaperTable | PaperFigure) -> str:
    """A table or figure by its number and title; ours have no number."""
    return part.title if part.number == "none" else f"{kind} {part.number}: {part.title}"


def joint_source(runs: Sequence[Dataset]) -> Source:
    """Device, provenance and command of several runs together."""
    return joint([source_of(run) for run in runs])


@contextmanager
def _noted(lacking: dict[str, list[str]], name: str) -> Iterator[None]:
    """Keep the reason where a table or figure cannot be made."""
    try:
        yield
    except AnalysisError as error:
        lacking.setdefault(str(error), []).append(name)


def claims_tables(
    runs: Sequence[Path], paper: str | None, *, cpu: Path | None = None
) -> dict[str, Table]:
    """The verdict tables of runs, by paper: one for each that they are about.

    ``cpu`` is a run whose CPU programs stand in the place of the runs' own. Raises ``StudyError``
    (no paper's run, unknown paper, runs that have nothing of the paper asked for) and
    ``StoreError`` (not a run).
    """
    read = for_papers.load_all(runs, cpu)
    found = {}
    for one in for_papers.papers_of(read, paper):
        mine = read if paper else [r for r in read if r.name == one.id]
        found_here = judge(one, mine)
        table = about_runs(tables.claims_table(one, found_here, joint_source(mine)), mine)
        table = replace(table, notes=(*by_chance(one, mine, found_here), *table.notes))
        judged = (v for v in found_here if v.word != LACKING)
        if all(v.device == ENUMERATED for v in judged):
            paths = ", ".join(str(run.path) for run in mine)
            command = f"`nqbench reproduce {one.id}` measures it as the paper did"
            raise StudyError(f"{paths} has nothing that {one.id} speaks of; {command}")
        found[one.id] = table
    return found


def about_runs(table: Table, runs: Sequence[Dataset]) -> Table:
    """The table with notes on the run that the CPU programs' times come from, and on runs that are
    older than a change of what they measure."""
    notes = set()
    for what in dict.fromkeys(what for run in runs for what in run.older_than):
        old = {r.chip: r.again for r in runs if what in r.older_than}
        first = {c: " (its first run)" * any(what not in o.older_than for o in old[c]) for c in old}
        names = listing([chip + said for chip, said in first.items()], "and")
        notes.add(f"older than a change of what is measured, {names}: now {what}")
    for data in (run.baseline for run in runs if run.baseline):
        said = "; intervals of speed-ups are those of the GPU's rounds" if data.rounds == 1 else ""
        where = f"{data.cpu}, {data.cpu_provenance}, for all devices ({data.command})"
        notes.add(f"CPU programs: {where}{said}")
    return replace(table, notes=(*table.notes, *sorted(notes)))


def report_recorded(
    names: Sequence[str], out: Path | None = None, *, cpu: Path | None = None
) -> list[PaperReport]:
    """Write papers from every run of them under ``results``.

    ``cpu`` defaults to the recorded run of the study ``cpu_baseline``, if there is one. ``out`` is
    for one paper; if it has runs of both kinds, each kind gets a folder there. Papers without a run
    are left out. Raises ``StudyError`` if no paper has one.
    """
    reports = []
    for name in names:
        for runs, folder, baseline in recorded([name], f"papers/{name}", out, cpu):
            reports.append(write_paper(load_paper(name), with_repeated(runs, baseline), folder))
    if not reports:
        raise StudyError(NO_RUN.format(", ".join(names), RESULTS, names[0]))
    return reports


def recorded(
    names: Sequence[str], place: str = "", out: Path | None = None, cpu: Path | None = None
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


def with_repeated(runs: Sequence[Path], cpu: Path | None) -> list[Dataset]:
    """Runs, those of a paper with its runs on other GPUs of the model: in folders beside their own
    that are called ``STUDY_...``."""
    found = []
    for run in for_papers.load_all(runs, cpu):
        beside = for_papers.load_all(sorted(run.path.parent.glob(f"{run.path.name}_*")), cpu)
        others = (other for other in beside if other.name == run.name in paper_names())
        found.append(for_papers.with_others(run, others))
    return found


def recorded_beside(name: str, own: Path) -> list[Dataset]:
    """The project's GPU runs of a paper, but for one's own."""
    runs = [run for run in recorded_runs(name, "reference") if run.resolve() != own.resolve()]
    cpu = next(iter(recorded_runs(CPU_BASELINE, "reference")), None)
    return [run for run in with_repeated(runs, cpu) if not run.simulated]


def recorded_scorecard(name: str, cpu: Path | None = None) -> tuple[Scorecard, Table]:
    """The scorecard of a paper from all its recorded runs, the project's if there are any.

    Raises ``StudyError`` for an unknown paper, and where there is no run of it.
    """
    paper = load_paper(name)
    for paths, _, baseline in recorded([name], cpu=cpu):
        runs = with_repeated(paths, baseline)
        card = scorecard(paper, runs)
        return card, about_runs(tables.scorecard_table(card, joint_source(runs)), runs)
    raise StudyError(NO_RUN.format(name, RESULTS, name))
