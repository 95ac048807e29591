"""What the pages of papers share: names, titles, notes, published and measured curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from nqbench import expressions
from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.observed import TOTALS, Observed
from nqbench.analysis.data.select import Asked, NotMeasured
from nqbench.papers.formula import CELLS
from nqbench.papers.schema import Known, Paper, PaperFigure, PaperTable
from nqbench.report.figures.style import GREY, HATCH, Drawing, finish
from nqbench.report.table import Cell, Column, Source, Table, slug, source_of
from nqbench.report.tables.common import interval_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IN_BRACKETS: Final = "in brackets: quotients of the printed numbers; the paper gives none"
COMPARE_RATIOS: Final = (
    "Compare the ratios: times from the paper and times measured here are not comparable"
)
QUOTIENT_DIGITS: Final = 3
"""Digits of a quotient of printed numbers; no printed time has more significant ones."""


def short(system: str) -> str:
    """A system without the name of its paper."""
    return system.partition(".")[2]


def cpu_name(run: Observed) -> str:
    """The CPU of a run."""
    return run.cpu.removesuffix(" (cpu)")


def timed_on(run: Observed, points: Sequence[PointResult]) -> str:
    """The device behind times, for a title: the CPU if no point ran on the GPU."""
    return cpu_name(run) if points and all(point.cpu for point in points) else run.name


def bracketed(quotient: float) -> str:
    """A quotient of printed numbers, in brackets."""
    digits = f"{quotient:#.{QUOTIENT_DIGITS}g}"
    return f"({digits.removesuffix('.')})"


def printed_on(paper: Paper, figure: PaperFigure) -> str:
    """Whose numbers a figure's published ones are: its data file's, or its device's."""
    if figure.data in {part.id for part in paper.data}:
        return paper.series(figure.data).origin
    return next((paper.device(name).name for name in figure.hardware), "the paper")


def finished(
    figure: PaperFigure,
    drawing: Figure,
    source: Source,
    *,
    alt: str,
    runs: Sequence[Observed] = (),
) -> list[Drawing]:
    """The figure with its title, the paper's number and what explains it."""
    cpus = ", ".join(dict.fromkeys(cpu_name(run) for run in runs))
    subtitle = figure.subtitle.replace("{cpu}", cpus)
    title = f"Figure {figure.number}: {figure.title}"
    name = slug("paper", figure.id)
    return [finish(drawing, name, title, source, alt=alt, subtitle=subtitle)]


def reproduced(
    paper: Paper,
    table: PaperTable,
    run: Observed,
    columns: Sequence[Column],
    rows: Iterable[Iterable[Cell]],
    notes: Iterable[str],
    *,
    source: Source | None = None,
) -> Table:
    """A reproduced table of a paper; empty and repeated notes are dropped.

    Its title has the paper's number and words for it, and what is added to them.
    """
    number = table.number if table.number.startswith("section") else f"table {table.number}"
    place = "" if table.number == "none" else f", {number}"
    title = f"{paper.title}{place}: {table.title}{table.after}"
    kept = tuple(dict.fromkeys(note for note in notes if note))
    source = source or source_of(run.data)
    return Table(
        slug("paper", table.id), title, tuple(columns), tuple(map(tuple, rows)), source, kept
    )


def general_notes(paper: Paper, run: Observed) -> tuple[str, ...]:
    """The notes that most tables of a run share, for the page to say once."""
    notes = [COMPARE_RATIOS, interval_note(run.data.simulated, run.data.rounds), IN_BRACKETS]
    return (*notes, TOTALS) if paper.timed == "total" else tuple(notes)


def refuse(run: Observed, system: str, what: str) -> NoReturn:
    """Raise ``NotMeasured`` with the reason why a run has no times of a system, else ``what``.

    A simulated run has no times; a skipped point has its own reason.
    """
    sizes = [p.n for p in run.data.points if p.system == system]
    if sizes:
        Asked(run.data, system, max(sizes)).best()
    raise NotMeasured(f"the run has {what if sizes else f'no {system}'}")


def mark(ax: Axes, known: Known, end: float = 0.0) -> float | None:
    """Draw what the text states of a figure; its height, if it has one."""
    label = f"published: {known.label}"
    if not known.label:
        return None
    if known.pool_size:
        hatched = known.until is None
        look: dict[str, Any] = {"facecolor": GREY, "alpha": 0.15}
        if hatched:
            look = {"facecolor": "none", "edgecolor": GREY, "alpha": 0.4, "hatch": HATCH}
        ax.axvspan(known.pool_size, known.until or 2 * end, linewidth=0, label=label, **look)
        return None
    if known.at:
        height = float(expressions.evaluate(expressions.parse(known.at, CELLS), CELLS, {}, {}))
        ax.axhline(height, color=GREY, linestyle="--", label=label)
        return height
    star: dict[str, Any] = {"marker": "*", "markersize": 11, "markerfacecolor": "white"}
    ax.plot([known.n or 0], [known.value or 0.0], color=GREY, linestyle="", label=label, **star)
    return known.value
