"""Zhang et al. 2011: kernels against N, job pools, divergence and the granularity of work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from nqbench.analysis.claims.bootstrap import Resamples
from nqbench.analysis.claims.functions import Values, count
from nqbench.analysis.data.dataset import Dataset, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed, probe_value, timed_runs
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured, best_point, no_time, timed_points
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper, PaperFigure, PaperTable, Series
from nqbench.report.figures.axes import axis_label, value_axis
from nqbench.report.figures.style import GREY, HATCH, Drawing, new_figure, panels, series_style
from nqbench.report.papers.common import (
    Reader,
    finished,
    measured,
    plain_ticks,
    printed_ratio,
    published,
    ratio_line,
    reproduced,
    short,
    span,
)
from nqbench.report.table import Cell, Column, Source, Table, tabulate
from nqbench.report.tables.common import interval_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes


STATISTICS: Final = ("min", "max", "mean", "variance", "sd")
"""In the order of the paper's columns."""
UTILIZATIONS: Final = {"clocks": "clock cycles", "iterations": "iterations"}
"""By kind of instrument. Equation 1 of the paper is in clock cycles."""
POOLED: Final = "pool_distributed"
COMMON_BLOCK: Final = (128,)
"""Threads per block of all kernels in the study's first sweep."""
POOL_BLOCK = 32
"""Threads per block of the pool sweep: a pool of 64 jobs needs blocks smaller than that."""


def kernels(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """All kernels against N: the published panel, then one per run."""
    series = [s for t in paper.tables for s in t.series if s.quantity == "time"]
    printed = {
        s.system: {n: float(t.printed(s.label, n)) for n in t.sizes}
        for t in paper.tables
        for s in t.series
        if s.quantity == "time"
    }
    times_of = [(run, _times(paper, run, series, figure.n)) for run in runs]
    ours = [(run, found) for run, found in times_of if any(found.values())]
    if not ours:
        _refuse(paper, runs, series[0], figure.n[0])
    drawing, axes = panels(len(ours) + 1, 1.2, 3.4)
    for i, (system, found) in enumerate(printed.items()):
        published(axes[0], found, short(system), i)
    _finish_panel(axes[0], [v for f in printed.values() for v in f.values()], figure.n)
    axes[0].set_title(f"{paper.device(figure.hardware[0]).name} (published)", fontsize=8)
    for ax, (run, times) in zip(axes[1:], ours, strict=True):
        for i, system in enumerate(printed):
            measured(ax, times[system], short(system), i)
        _finish_panel(
            ax, [v for f in times.values() for e in f.values() for v in span(e)], figure.n
        )
        ax.set_title(f"{run.name} (measured)", fontsize=8)
    axes[0].legend(loc="upper left", fontsize=7)
    alt = f"Times of {len(printed)} kernels against N, published and measured."
    subtitle = "hollow: published. Each panel has its own axis: compare order and spacing"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def pool(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time against pool size: ours in seconds, and all relative to the kernel without a pool."""
    from matplotlib.ticker import NullLocator

    n = figure.n[0]
    reference = next(k for k in figure.known if k.value)
    pooled = next(k.system for k in figure.known if k.pool_size)
    drawing = new_figure(4.8)
    left, right = drawing.subplots(1, 2)
    values, relative, sizes = [], [1.0], set()
    timed = _timed(runs)
    for i, run in enumerate(timed):
        base = best_point(run.data, reference.system, n, {"block_size": POOL_BLOCK})
        points = timed_points(run.data, pooled, n, {"block_size": POOL_BLOCK})
        points = [p for p in points if isinstance(p.level("pool_size"), int)]
        # Devices of similar speed overlap: the larger marker shows beneath the smaller.
        size, name = max(3, 8 - 3 * i), run.name
        times = {_pool_size(p): p.estimate(TIME) for p in points}
        measured(left, {k: v for k, v in sorted(times.items()) if v}, name, i, markersize=size)
        base_s = base.estimate(TIME)
        assert base_s is not None  # best_point takes timed points only
        # The dashes of one device fall into the gaps of the others, which may overlap too.
        dashes = (3 * i, (2, 3 * len(timed) - 2))
        label = f"{name}, no pool"
        colour = series_style(i).colour
        left.axhline(base_s.value, color=colour, linestyle=dashes, label=label)
        ratios = {_pool_size(p): point_ratio(p, base, TIME) for p in points}
        sizes |= set(ratios)
        measured(right, dict(sorted(ratios.items())), name, i, markersize=size)
        values += [e.value for e in times.values() if e] + [base_s.value]
        relative += [r.value for r in ratios.values()]
    ticks = sorted({*sizes, *(k.pool_size for k in figure.known if k.pool_size)})
    relative += _published_pool(paper, figure, right, n, 2 * ticks[-1])
    for ax, label in ((left, axis_label(TIME)), (right, "time / time without a pool")):
        ax.set_xscale("log", base=2)
        ax.set_xlim(ticks[0] / 1.4, ticks[-1] * 1.4)
        ax.set_xticks(ticks, [str(t) for t in ticks], rotation=60)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("jobs per pool")
        ax.set_ylabel(label)
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.3), fontsize=7, borderaxespad=0)
    value_axis(left, "y", values, TIME, log=True)
    value_axis(right, "y", relative, TIME, log=True)
    plain_ticks(right)
    ratio_line(right)
    alt = "Time of the distributed job pool against its size."
    subtitle = (
        f"{POOL_BLOCK} threads per block; shaded: pool sizes of which the paper says only whether"
        " they pay"
    )
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def _published_pool(paper: Paper, figure: PaperFigure, ax: Axes, n: int, end: int) -> list[float]:
    """Shade the pool sizes of which the text says whether they pay; a line at the ratio of table 7,
    whose pool size is not stated. Returns the ratios drawn."""
    drawn: list[float] = []
    sizes = {pays: [k.pool_size for k in figure.known
                    if k.pool_size and ("not" not in k.relation) == pays]
             for pays in (True, False)}  # fmt: skip
    low, high = min(sizes[True]), max(sizes[True])
    words = f"published: pays from {low} to {high}"
    ax.axvspan(low, high, color=GREY, alpha=0.15, linewidth=0, label=words)
    words = f"published: does not pay from {min(sizes[False])} on"
    ax.axvspan(min(sizes[False]), end, facecolor="none", edgecolor=GREY, alpha=0.4, hatch=HATCH,
               linewidth=0, label=words)  # fmt: skip
    pooled = next(k.system for k in figure.known if k.pool_size)
    for table in paper.tables:
        for series in table.series:
            if series.system == pooled and series.ratio is not None:
                ratio = printed_ratio(paper, table, series, n)
                label = f"published, table {table.number} (pool size not stated)"
                ax.axhline(1 / float(ratio), color=GREY, linestyle="--", label=label)
                drawn.append(1 / float(ratio))
    return drawn


def _times(
    paper: Paper, run: Observed, series: Sequence[Series], sizes: Sequence[int]
) -> dict[str, dict[int, Estimate]]:
    reader = Reader(paper, run.data)
    found: dict[str, dict[int, Estimate]] = {}
    for one in series:
        own = found.setdefault(one.system, {})
        for n in sizes:
            try:
                value = reader.point(one, n).estimate(TIME)
            except NotMeasured:
                continue
            if value is not None:
                own[n] = value
    return found


def _refuse(paper: Paper, runs: Sequence[Observed], series: Series, n: int) -> None:
    """Raise the first run's reason for having nothing to draw."""
    Reader(paper, runs[0].data).point(series, n)
    raise NotMeasured("the runs have nothing to draw", runs[0].data.command)


def _timed(runs: Sequence[Observed]) -> list[Observed]:
    timed = timed_runs(runs)
    if not timed:
        raise NotMeasured(no_time(runs[0].data))
    return timed


def _pool_size(point: PointResult) -> int:
    size = point.level("pool_size")
    assert isinstance(size, int)  # picked by the caller
    return size


def _finish_panel(ax: Axes, values: Sequence[float], sizes: Sequence[int]) -> None:
    value_axis(ax, "y", values, TIME, log=True)
    ax.set_ylabel(axis_label(TIME))
    ax.set_xticks(list(sizes))
    ax.set_xlabel("N")


def divergence(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Share of divergent branches of each kernel, in percent.

    A simulated run has smaller boards than the paper: its largest one that was counted is taken.
    Raises ``AnalysisError`` if the run counted none of these.
    """
    values = Values(paper, (run,), Resamples.of([run.data]))
    sizes = list(reversed(run.sizes)) if run.data.simulated else list(table.sizes)
    rows = []
    reasons: dict[str, None] = {}
    for series, cells in zip(table.series, table.rows, strict=True):
        branches, n = _first(values, sizes, series.system, _branches, reasons)
        split, at = _first(values, sizes, series.system, _split, reasons)
        where = [f"N={size}" for size in dict.fromkeys((n, at)) if size is not None]
        rows.append((series.label, str(cells[1]), branches, split, ", ".join(where)))
    if all(row[2] is None and row[3] is None for row in rows):
        raise AnalysisError("; ".join(reasons))
    columns = (
        *(Column("kernel"), Column("divergent branches, paper", unit="%")),
        Column("divergent branches, here", "number", unit="%"),
        *(Column("split iterations, here", "number", unit="%"), Column("counted at")),
    )
    notes = (
        "divergent branches: of all conditional branches of the compiled kernel, as the simulator"
        " or Nsight Compute counts them; the paper's are those of its profiler",
        "split iterations: passes of the loop in which a warp's lanes both place and step back,"
        " counted inside the kernel",
        *([table.note] if table.note else []),
        *(f"not counted: {reason}" for reason in reasons),
    )
    return reproduced(paper, table, run, columns, rows, notes, number=table.number)


def _branches(values: Values, system: str) -> float:
    return values.counter(system, "divergent_branches") / values.counter(system, "branches")


def _split(values: Values, system: str) -> float:
    return values.counter(system, "split_iteration_share")


def _first(
    values: Values,
    sizes: Sequence[int],
    system: str,
    share: Callable[[Values, str], float],
    reasons: dict[str, None],
) -> tuple[Cell, int | None]:
    """The share in percent at the first size that has it, and that size."""
    missing = ""
    for n in sizes:
        values.n = n
        try:
            return 100 * share(values, system), n
        except NotMeasured as error:
            missing = missing or error.what
    reasons[missing] = None
    return None, None


def pools(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Times of the distributed pool by size, threads per block (rows) and jobs per pool (columns),
    beside the kernel without a pool and the one pool for all blocks.

    Raises ``NotMeasured`` where the run timed no pool at these sizes.
    """
    data = run.data
    found: dict[tuple[int, int], dict[int, PointResult]] = {}
    for n in table.sizes:
        for point in timed_points(data, paper.system(POOLED), n):
            if isinstance(point.level("pool_size"), int):
                block = int(point.level("block_size"))
                found.setdefault((n, block), {}).setdefault(_pool_size(point), point)
    sizes = sorted({size for row in found.values() for size in row})
    others = ("low_divergence", "pool_monolithic")
    columns, rows = tabulate(
        sorted(found),
        (Column("N", "number"), lambda key: key[0]),
        (Column("block size", "number", "threads"), lambda key: key[1]),
        *((Column(f"pools of {size}", "time", spread=True),
           lambda key, size=size: p.estimate(TIME) if (p := found[key].get(size)) else None)
          for size in sizes),
        (Column("fastest pools", "number", "jobs"),
         lambda key: min(found[key], key=lambda size: found[key][size].value(TIME))),
        *((Column(name, "time", spread=True),
           lambda key, name=name: _at_block(data, paper.system(name), *key)) for name in others),
    )  # fmt: skip
    notes = [interval_note(data.simulated, data.rounds), table.note]
    if not {block for _, block in found} - {POOL_BLOCK, *COMMON_BLOCK}:
        notes.append(f"the run has no sweep of both together; `{data.command}` measures it")
    return reproduced(paper, table, run, columns, rows, notes, number="")


def _at_block(data: Dataset, system: str, n: int, block: int) -> Estimate | None:
    try:
        return best_point(data, system, n, {"block_size": block}).estimate(TIME)
    except NotMeasured:
        return None


def granularity(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Work per thread: the printed rows, the counted iterations, the measured clock cycles."""
    n = table.sizes[0]
    head = f"{table.columns[0]} ({table.unit})"
    columns = (Column(head), *(Column(c, "number") for c in table.columns[1:]))
    rows: list[tuple[Cell, ...]] = []
    notes = [table.note] if table.note else []
    for series, cells in zip(table.series, table.rows, strict=True):
        rows.append((f"{series.label}, paper", *map(str, cells[1:])))
        own, note = _statistics(series.quantity, series.system, n, run)
        rows.append((f"{series.label}, here", *own))
        notes.append(note)
        if series.quantity == "iterations" and all(isinstance(v, int | float) for v in own):
            same = all(_digits(v) == p for v, p in zip(own, cells[1:], strict=True))
            notes.append(
                "the iterations are exactly as printed"
                if same
                else "the iterations differ from the printed ones"
            )
    if all(cell is None for row in rows[1::2] for cell in row[1:]):
        raise AnalysisError(notes[-1])
    rows.append(_printed_utilization(paper, len(columns)))
    system = table.series[0].system
    utilized = [_utilization(system, n, run, len(columns), probe) for probe in UTILIZATIONS]
    rows += utilized
    if any(row[1] is not None for row in utilized):
        notes.append("warp utilization: of all warps here, of 100 sampled warps in the paper")
    after = ", with warp utilization (equation 1)"
    return reproduced(paper, table, run, columns, rows, notes, after=after)


def _statistics(what: str, system: str, n: int, run: Observed) -> tuple[tuple[Cell, ...], str]:
    found = [probe_value(run, system, n, f"{what}_per_job_{s}", "own") for s in STATISTICS]
    if all(value is not None for value in found):
        return tuple(found), f"{what}: counted inside the kernel on {run.data.device_short}"
    command = run.data.command
    if n not in run.sizes:  # the study has other sizes for this device
        command = f"nqbench reproduce {run.data.name} --device cuda:0"
    missing = f"{what} at N={n}: no instrumented kernel was run; `{command}` runs one"
    if what != "iterations":
        return (None,) * len(STATISTICS), missing
    try:
        given = {"N": n, "system": system}
        counted = [count("iterations_per_job", {**given, "stat": s}, (run,)) for s in STATISTICS]
    except NotMeasured as error:
        return (None,) * len(STATISTICS), error.what
    return tuple(value for value, _ in counted), "iterations: counted by enumeration"


def _digits(value: Cell) -> str:
    assert isinstance(value, int | float)
    return f"{value:.2E}"


def _printed_utilization(paper: Paper, width: int) -> tuple[Cell, ...]:
    """The paper's utilization of sampled warps, from its text."""
    claim = next((c for c in paper.claims if c.id == "utilization"), None)
    printed = claim.paper_value if claim and isinstance(claim.paper_value, dict) else {}
    cells: list[Cell] = [
        "Warp utilization in clock cycles, paper (%)",
        *(printed.get(s) for s in STATISTICS[:3]),
    ]
    return (*cells, *(None,) * (width - len(cells)))


def _utilization(system: str, n: int, run: Observed, width: int, probe: str) -> tuple[Cell, ...]:
    """Warp utilization in percent in the columns of least, most and mean."""
    names = [f"warp_utilization_{s}" for s in STATISTICS[:3]]
    found = [probe_value(run, system, n, name, "own", probe) for name in names]
    cells: list[Cell] = [f"Warp utilization in {UTILIZATIONS[probe]}, here (%)"]
    cells += [None if value is None else 100 * value for value in found]
    return (*cells, *(None,) * (width - len(cells)))
