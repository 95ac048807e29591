"""The histogram scheme and the coarse one, and how close each comes to its device's limits.

Bytes and operations are those that the workload states (docs/fitness.md), summed over the threads,
whether caches or memory serve them. The limits are measured if a run of ``configs/ceilings.yaml``
is next to the run, else taken from data sheets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.analysis.limits.ceilings import bytes_per_s, ceilings_beside, integers_per_s
from nqbench.papers.schema import Paper, PaperFigure, PaperTable
from nqbench.report.figures.axes import sizes_axis, value_axis
from nqbench.report.figures.style import Drawing, interval_curve, new_figure
from nqbench.report.papers.common import (
    FULL,
    GIGA,
    KERNEL,
    finished,
    found_points,
    found_runs,
    plain_ticks,
    ratio_line,
    refuse,
    reproduced,
    short,
    sizes_of,
    speedup,
    timed_point,
)
from nqbench.report.papers.fitness_schemes import COARSE, drawn_systems, style_of
from nqbench.report.table import Cell, Column, Source, Table
from nqbench.report.tables.common import interval_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes


HISTOGRAM: Final = "fitness.histogram"
MOVED: Final = ("bytes_moved", "operations")
"""What an evaluation moves and computes, as the workload states it (docs/fitness.md)."""
CEILINGS_OF: Final = {MOVED[0]: "copy", MOVED[1]: "logic"}
"""The ceiling of each. For integers that of logic instructions, which do not fuse two operations:
of a pair's four operations, three are not additions with three operands."""


BATCHES: Final = "batch"


def limits(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Kernel and call times of both schemes against N; shares of the limits where known.

    Raises ``NotMeasured`` where no run timed either scheme.
    """
    systems = (paper.system(COARSE), HISTOGRAM)
    ours = found_runs(runs, systems, "no time of either scheme")
    drawing = new_figure(1.2 + 3.2 * len(ours))
    grid = drawing.subplots(len(ours), 2, squeeze=False)
    for (left, right), (run, found) in zip(grid, ours, strict=True):
        _panels(left, right, paper, run, found)
    alt = "Times of the coarse and the histogram scheme, and shares of the device's limits."
    subtitle = (
        "not in the paper. Bytes and operations are those of the algorithm; caches serve many"
    )
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle, ours=True)


def _panels(left: Axes, right: Axes, paper: Paper, run: Observed, found: Mapping[str, Any]) -> None:
    """Times and shares of one run, in the colours of the schemes."""
    times: list[float] = []
    shares: list[float] = []
    drawn = drawn_systems(paper)
    for system, points in found.items():
        look: dict[str, Any] = style_of(drawn, system).keywords | {"markersize": 4}
        times += _times(left, points, short(system), look)
        shares += _shares(right, points, peaks(run), short(system), look)
    value_axis(left, "y", times, TIME, log=True)
    left.set_ylabel("time of one evaluation")
    left.set_title(run.name, fontsize=8)
    right.set_ylabel("% of the device's limit, kernels only")
    if shares:
        right.set_yscale("log")
        plain_ticks(right)
        ratio_line(right, FULL)
    else:
        right.text(0.5, 0.5, "limits of this device unknown", ha="center",
                   transform=right.transAxes)  # fmt: skip
    for ax in (left, right):
        sizes_axis(ax)
        if ax.get_legend_handles_labels()[1]:
            place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, -0.16)}
            ax.legend(
                **place, fontsize=6.5, ncols=2, columnspacing=1, handlelength=3.2
            )  # dashes beside the marker


def _times(
    ax: Axes, points: Mapping[int, PointResult], name: str, look: Mapping[str, Any]
) -> list[float]:
    """Lines of the kernels and of the whole calls; the seconds shown."""
    shown: list[float] = []
    for what, style, part in ((KERNEL, "-", "the kernels"), (TIME, ":", "the whole call")):
        found = _estimates(points, what)
        curve = {**look, "linestyle": style, "capsize": None}
        interval_curve(ax, found, curve, f"{name}: {part}")
        shown += [e.value for e in found.values()]
    return shown


def _shares(
    ax: Axes,
    points: Mapping[int, PointResult],
    known: Mapping[str, float],
    name: str,
    look: Mapping[str, Any],
) -> list[float]:
    """Lines of the percent of each known limit; the percents shown."""
    shown: list[float] = []
    for limit, peak in known.items():
        share = {n: FULL * v / peak for n, v in _rates(points, limit, KERNEL).items()}
        if share:
            line = {**look, "linestyle": "-" if limit == MOVED[0] else "--"}
            label = f"{name}: {'memory bandwidth' if limit == MOVED[0] else 'integer units'}"
            ax.plot(list(share), list(share.values()), label=label, **line)
            shown += share.values()
    return shown


def peaks(run: Observed) -> dict[str, float]:
    """Peak bytes and integer operations per second of a GPU, as far as known.

    Measured if a run of the ceilings of that GPU is next to the run, else from data sheets.
    """
    found = {MOVED[0]: bytes_per_s(run.data), MOVED[1]: integers_per_s(run.data)}
    return measured_peaks(run) or {name: value for name, value in found.items() if value}


def measured_peaks(run: Observed) -> dict[str, float]:
    """The peaks out of measured ceilings; empty unless all of them were measured."""
    measured = ceilings_beside(run.path, run.data.device)
    if measured is None or not set(CEILINGS_OF.values()) <= set(measured.found):
        return {}
    return {name: measured.found[of].per_s.value for name, of in CEILINGS_OF.items()}


def _rates(points: Mapping[int, PointResult], what: str, kernel: Quantity) -> dict[int, float]:
    """The rate of the kernels per second, by N."""
    found = {}
    for n, point in points.items():
        done, value = point.detail(what), point.estimate(kernel)
        if done is not None and value is not None and value.value > 0:
            found[n] = float(done) / value.value
    return found


def _estimates(points: Mapping[int, PointResult], what: Quantity) -> dict[int, Estimate]:
    values = {n: p.estimate(what) for n, p in points.items()}
    return {n: v for n, v in values.items() if v is not None and v.value > 0}


def shares(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A row per system of the table's series and size. Raises ``NotMeasured`` without any time."""
    known = peaks(run)
    coarse = found_points(run.data, paper.system(COARSE))
    rows: list[tuple[Cell, ...]] = []
    for system, n, point in _points(paper, table, run):
        what = TIME if point.cpu else KERNEL
        here = point.estimate(what)
        if here is None or here.value <= 0:
            continue
        amounts = [_amount(point, name) for name in MOVED]
        row: list[Cell] = [system, n, here, _gain(coarse.get(n), point, what)]
        for name, amount in zip(MOVED, amounts, strict=True):
            rate = None if amount is None else amount / here.value
            limit = None if point.cpu else known.get(name)
            row += [amount, None if rate is None else rate / GIGA]
            row.append(None if rate is None or limit is None else FULL * rate / limit)
        rows.append(tuple(row))
    if not rows:
        refuse(run, paper.system(COARSE), "no time of a scheme")
    columns = (
        *(Column("system"), Column("N", "number"), Column("kernels", "time", spread=True)),
        Column("speed-up over the coarse scheme", "ratio", spread=True),
        *(Column("bytes moved", "number"), Column("moved", "number", "GB/s")),
        Column("of memory bandwidth", "number", "%"),
        *(Column("operations", "number"), Column("done", "number", "Gop/s")),
        Column("of integer units", "number", "%"),
    )
    notes = (
        _limits_note(run),
        "bytes and operations as the algorithm states them, summed over all threads, without the"
        " atomic additions of conflicts found. Above 100%, caches serve them",
        "kernels: the sum of a call's kernels, without allocation and transfers; for CPU programs"
        " the whole call, compared with the whole call of the coarse scheme",
        interval_note(run.data.simulated, run.data.rounds),
        table.note,
    )
    return reproduced(paper, table, run, columns, rows, notes)


def _points(
    paper: Paper, table: PaperTable, run: Observed
) -> Iterator[tuple[str, int, PointResult]]:
    """The rows: of every system the sizes that the table asks for, and its largest."""
    for series in table.series:
        system = paper.system(series.system)
        found = _found(run, system, series.levels)
        if found:
            for n in sorted({*table.n, max(found)} & set(found)):
                batch = found[n].level(BATCHES)
                many = f", {batch} boards" if isinstance(batch, int) and batch > 1 else ""
                levels = "".join(f", {k} {v}" for k, v in series.levels.items() if v != "1")
                yield f"{system}{many}{levels}", n, found[n]


def _found(run: Observed, system: str, levels: Mapping[str, str]) -> dict[int, PointResult]:
    """The timed points of a system by size, with the given levels if there are any."""
    if not levels:
        return found_points(run.data, system)
    sizes = sizes_of(run.data, system)
    return {n: p for n in sizes if (p := timed_point(run.data, system, n, levels))}


def _amount(point: PointResult, name: str) -> float | None:
    value = point.detail(name)
    return None if value is None else float(value)


def _gain(coarse: PointResult | None, point: PointResult, what: Quantity) -> Estimate | None:
    """Kernels against kernels; a CPU program against the whole call."""
    several = isinstance(batch := point.level(BATCHES), int) and batch > 1
    own = coarse is not None and coarse.system == point.system
    return None if several or own else speedup(coarse, point, what)


def _limits_note(run: Observed) -> str:
    known = peaks(run)
    if not known:
        return "the limits of this device are unknown"
    bounds = ", ".join(
        f"{known[name] / 1e12:.3g} {unit}"
        for name, unit in zip(MOVED, ("TB/s", "Top/s (32-bit)"), strict=True)
        if name in known
    )
    measured = bool(measured_peaks(run))
    how = (
        "measured (configs/ceilings.yaml: copy; 32-bit logic)"
        if measured
        else "from the data sheet"
    )
    return f"limits of the GPU, {how}: {bounds}"
