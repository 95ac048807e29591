"""What the pages of papers share: printed and measured cells, titles, curves.

A published curve is hollow, a measured one filled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from nqbench.analysis.data.dataset import Dataset, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.observed import TOTALS, Observed
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import (
    NotMeasured,
    best_point,
    check_timed,
    launch_text,
    main_point,
)
from nqbench.papers.schema import Paper, PaperFigure, PaperTable, Ratio, Series
from nqbench.report.figures.style import GREY, Drawing, finish, interval_curve, series_style
from nqbench.report.table import Cell, Column, Source, Table, slug, source_of
from nqbench.report.tables.common import interval_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IN_BRACKETS: Final = "in brackets: quotients of the printed numbers; the paper gives none"
QUOTIENT_DIGITS: Final = 3
"""Digits of a quotient of printed numbers; no printed time has more significant ones."""
TUNED: Final = ("cpu_threads",)
"""Systems of which the paper shows the best configuration."""
COMPARE_TIMES: Final = "times from the paper and times measured here are not comparable"
COMPARE_RATIOS: Final = f"Compare the ratios: {COMPARE_TIMES}"
KERNEL: Final = quantity("kernel")
FULL: Final = 100.0
"""Percent."""
GIGA: Final = 1e9
_CPU: Final = " (cpu)"


def short(system: str) -> str:
    """A system without the name of its paper."""
    return system.partition(".")[2]


def cpu_name(run: Observed) -> str:
    """The CPU of a run."""
    return run.cpu.removesuffix(_CPU)


def host(run: Observed, runs: Sequence[Observed]) -> str:
    """The CPU of a run; one of several runs is told apart by the GPU beside it."""
    return f"CPU beside {run.name}" if len(runs) > 1 else cpu_name(run)


def timed_on(run: Observed, points: Iterable[PointResult]) -> str:
    """The device behind times, for a title: the CPU if no point ran on the GPU."""
    return cpu_name(run) if all(point.cpu for point in points) else run.name


def finished(
    figure: PaperFigure,
    drawing: Figure,
    source: Source,
    *,
    alt: str,
    subtitle: str,
    ours: bool = False,
    name: str = "",
) -> list[Drawing]:
    """The figure with its title; ``ours`` marks a figure that the paper does not have."""
    title = f"Figure {figure.number}: {figure.title}"
    title = figure.title[0].upper() + figure.title[1:] if ours else title
    name = name or slug("paper", figure.id)
    return [finish(drawing, name, title, source, alt=alt, subtitle=subtitle)]


def reproduced(
    paper: Paper,
    table: PaperTable,
    run: Observed,
    columns: Sequence[Column],
    rows: Iterable[tuple[Cell, ...]],
    notes: Iterable[str],
    *,
    number: str | None = None,
    after: str = "",
    source: Source | None = None,
) -> Table:
    """A reproduced table of a paper; empty and repeated notes are dropped.

    Its title has the paper's ``number`` and words for it, and ends with ``after``.
    """
    place = f"table {table.number}" if number is None else number
    title = f"{paper.title}{f', {place}' if place else ''}: {table.title}{after}"
    kept = tuple(dict.fromkeys(note for note in notes if note))
    source = source or source_of(run.data)
    return Table(slug("paper", table.id), title, tuple(columns), tuple(rows), source, kept)


def general_notes(paper: Paper, run: Observed) -> tuple[str, ...]:
    """The notes that most tables of a run share, for the page to say once."""
    notes = [COMPARE_RATIOS, interval_note(run.data.simulated, run.data.rounds), IN_BRACKETS]
    return (*notes, TOTALS) if paper.timed == "total" else tuple(notes)


# Curves.


def published(
    ax: Axes, found: Mapping[int, float], label: str, index: int | None = None, **look: Any
) -> None:
    """A published curve, hollow: in the style of series ``index``, or else in grey."""
    grey = {"color": GREY, "marker": "o", "markersize": 3, "linewidth": 0.8}
    style = grey if index is None else series_style(index).keywords
    shown: dict[str, Any] = {**style, "markerfacecolor": "white", **look}
    ax.plot(list(found), list(found.values()), label=label, **shown)


def measured(ax: Axes, found: Mapping[int, Estimate], label: str, index: int, **look: Any) -> None:
    """A curve of ours with its intervals."""
    interval_curve(ax, found, {**series_style(index).keywords, **look}, label)


def ratio_line(ax: Axes, value: float = 1.0) -> None:
    """A line at the ratio that means no difference."""
    ax.axhline(value, color="#333333", linewidth=0.9)


def plain_ticks(ax: Axes) -> None:
    """Plain numbers along a logarithmic axis of ratios."""
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")


def span(found: Estimate) -> tuple[float, float]:
    """The bounds that an axis has to show of a value: all of its interval."""
    low = found.value if found.low is None else found.low
    return low, found.value if found.high is None else found.high


# Points.


def timed_point(
    data: Dataset, system: str, n: int, levels: Mapping[str, object] | None = None
) -> PointResult | None:
    """The configuration of a system that a paper's page shows; ``None`` if it has no time."""
    choose = best_point if short(system) in TUNED else main_point
    try:
        point = choose(data, system, n, levels)
    except NotMeasured:
        return None
    return point if point.values(TIME) else None


def speedup(base: PointResult | None, point: PointResult, what: Quantity) -> Estimate | None:
    """How many times as fast as ``base``; ``None`` for the base itself and without both times."""
    if base is None or base is point or not (base.values(what) and point.values(what)):
        return None
    return point_ratio(base, point, what)


def sizes_of(data: Dataset, system: str) -> list[int]:
    """The sizes at which a run has a system."""
    return sorted({p.n for p in data.points if p.system == system})


def found_points(data: Dataset, system: str, sizes: Sequence[int] = ()) -> dict[int, PointResult]:
    """The timed points of a system by size; empty if it has none."""
    every = sizes or sizes_of(data, system)
    return {n: point for n in every if (point := timed_point(data, system, n))}


def found_runs(
    runs: Sequence[Observed], systems: Sequence[str], what: str
) -> list[tuple[Observed, dict[str, dict[int, PointResult]]]]:
    """Each run that timed one of the systems, with their timed points by system and size.

    Raises ``NotMeasured`` where none did, see :func:`refuse`.
    """
    ours = [(run, {s: found_points(run.data, s) for s in systems}) for run in runs]
    ours = [(run, points) for run, points in ours if any(points.values())]
    if not ours:
        refuse(runs[0], systems[0], what)
    return ours


def refuse(run: Observed, system: str, what: str) -> NoReturn:
    """Raise ``NotMeasured`` with the reason why a run has no times of a system, else ``what``.

    A simulated run has no times; a skipped point has its own reason.
    """
    sizes = sizes_of(run.data, system)
    if sizes:
        best_point(run.data, system, sizes[-1])
    raise NotMeasured(f"the run has {what if sizes else f'no {system}'}")


# Printed cells.


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A printed cell and what was measured for it. Empty texts: the paper prints none."""

    series: Series
    n: int
    printed: str
    printed_ratio: str
    here: Estimate | float | None
    ratio: Estimate | None
    launch: str = ""
    missing: str = ""


@dataclass(eq=False)
class Reader:
    """Makes the cells of one paper from one run; ``commands`` would measure missing ones."""

    paper: Paper
    data: Dataset
    commands: dict[str, None] = field(default_factory=dict)

    def cell(self, table: PaperTable, series: Series, n: int) -> ComparedCell:
        """The cell of a series at a size."""
        printed = table.printed(series.label, n)
        ratio = printed_ratio(self.paper, table, series, n)
        if series.quantity == "jobs":
            return ComparedCell(series, n, printed, ratio, _jobs(series, n), None)
        here = own = None
        launch = missing = ""
        try:
            point = self.point(series, n)
            launch = launch_text(self.data, point)
            here = None if series.quantity == "ratio" else point.estimate(_what(series))
            own = self.ratio(point, series, n) if series.ratio else None
        except NotMeasured as error:
            missing = error.what
            if error.command:
                self.commands[error.command] = None
        return ComparedCell(series, n, printed, ratio, here, own, launch, missing)

    def point(self, series: Series, n: int) -> PointResult:
        """The point that a series is about. Raises :class:`NotMeasured`."""
        check_timed(self.data, series.system)
        choose = best_point if series.choose == "best" else main_point
        return choose(self.data, series.system, n, series.levels)

    def ratio(self, point: PointResult, series: Series, n: int) -> Estimate | None:
        """Our quotient where the paper draws one. Raises :class:`NotMeasured`."""
        assert series.ratio is not None
        if series.ratio.form == "share":
            return share(point, quantity(series.ratio.of or series.quantity))
        base = self.base(series.ratio)
        if base == series:
            return None
        return point_ratio(self.point(base, n), point, TIME)

    def base(self, ratio: Ratio) -> Series:
        """The series that a quotient refers to."""
        table = self.paper.table(ratio.table)
        return next(s for s in table.series if s.label == ratio.series)


def printed_ratio(paper: Paper, table: PaperTable, series: Series, n: int) -> str:
    """The paper's quotient: printed, or (in brackets) worked out from the printed values."""
    ratio = series.ratio
    if ratio is None:
        return ""
    if series.quantity == "ratio":
        return table.printed(series.label, n)
    if ratio.printed:
        where = paper.table(ratio.printed_in) if ratio.printed_in else table
        return where.printed(ratio.printed, n)
    if (ratio.table, ratio.series) == (table.id, series.label):
        return ""
    own = table.printed(series.label, n)
    base = paper.table(ratio.table).printed(ratio.series, n)
    return quotient(float(base), float(own)) if own and base else ""


def quotient(above: float | None, below: float | None) -> str:
    """A quotient of printed numbers, in brackets; empty where one is missing."""
    if not (above and below):
        return ""
    digits = f"{above / below:#.{QUOTIENT_DIGITS}g}"
    return f"({digits.removesuffix('.')})"


def share(point: PointResult, part: Quantity, unit: float = 1.0) -> Estimate | None:
    """A phase's share of the total, over the rounds, in units of ``1 / unit``."""
    parts, totals = point.values(part), point.values(quantity("total"))
    shares = [unit * parts[r] / totals[r] for r in sorted(set(parts) & set(totals)) if parts[r] > 0]
    return combine(shares) if shares else None


def _what(series: Series) -> Quantity:
    return TIME if series.quantity == "time" else quantity(series.quantity)


def _jobs(series: Series, n: int) -> float:
    """Number of jobs, by enumeration: no run is needed."""
    from nqbench.workloads import get

    value = get("counting").count(
        "jobs", n=n, system=series.system, depth=int(series.levels["depth"])
    )
    assert isinstance(value, int)
    return value
