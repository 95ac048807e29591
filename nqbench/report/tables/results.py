"""Tables of a run: its points with values and status, systems side by side, effects and
interactions, the kernels' resources, and what did not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import combine
from nqbench.analysis.data.quantities import CPU_TIME, TIME, Quantity, quantity
from nqbench.analysis.factorial import effects as factorial
from nqbench.analysis.wording import describe
from nqbench.errors import AnalysisError
from nqbench.report.items import columns_of, sweep_of, sweeps_of, title_of
from nqbench.report.table import Cell, Column, Table, slug, source_of, tabulate
from nqbench.report.tables import common
from nqbench.runs.frame import RESOURCES
from nqbench.study.report_items import ReportItem

_PHASES: Final = (
    *("split", "allocate", "transfer", "evaluation", "apply", "reduce", "free", "other", "total"),
)
_RESOURCES: Final = {
    "registers": Column("registers per thread", "number"),
    "stack_bytes": Column("stack per thread", "number", "B"),
    "spill_bytes": Column("spills per thread", "number", "B"),
    "static_shared_bytes": Column("static shared per block", "number", "B"),
    "dynamic_shared_bytes": Column("dynamic shared per block", "number", "B"),
    "shared_bytes": Column("shared per block", "number", "B"),
    "occupancy": Column("theoretical occupancy", "number"),
    "limiter": Column("occupancy limit"),
    "threads": Column("threads", "number"),
    "blocks": Column("blocks", "number"),
    "jobs": Column("jobs", "number"),
}


def results(data: Dataset, item: ReportItem) -> list[Table]:
    """One table per sweep; times of CPU baselines never share one with simulated counters."""
    tables: list[Table] = []
    for sweep in sweeps_of(data, item):
        points = data.select(sweep, item.n)
        if data.simulated:
            tables += _results(data, item, sweep, [p for p in points if not p.cpu], "")
            tables += _results(data, item, sweep, [p for p in points if p.cpu], "cpu")
        else:
            tables += _results(data, item, sweep, points, "")
    if not tables:
        raise AnalysisError("the run has no points of the sizes asked for")
    return tables


def _results(
    data: Dataset,
    item: ReportItem,
    sweep: str,
    points: Sequence[PointResult],
    part: str,
    form: str = "results",
) -> list[Table]:
    if not points:
        return []
    timed = part == "cpu" or not data.simulated
    phases = [quantity(name) for name in _PHASES] if timed and not item.value else []
    phases = [p for p in phases if any(s > 0 for one in points for s in one.values(p).values())]
    metrics = [m for m in data.metrics.values() if any(p.values(m) for p in points)]
    metrics = [] if item.value else metrics

    columns, rows = tabulate(
        points,
        *common.factor_fields(columns_of(data, sweep)),
        (Column("N", "number"), lambda p: p.n),
        *common.value_fields([*((CPU_TIME,) if part else data.quantities(item.value)), *metrics]),
        *((Column(one.label, "time"), lambda p, one=one: _phase(p, one)) for one in phases),
        *([(Column("rounds", "number"), lambda p: len(p.measurements) or None)] if timed else []),
        *([(Column("samples", "number"), _samples)] if timed else []),
        (Column("status"), lambda p: p.status),
    )
    title = title_of(data, item, f"{form.capitalize()} of sweep {sweep}")
    notes = [common.interval_note(not timed, data.rounds), *common.timing_notes(points)]
    if any(not p.ok for p in points):
        notes.append("Points that are not ok have no value: they are never plotted or compared")
    heading = f"{title}: CPU baselines, measured times" if part else title
    source = source_of(data, cpu=bool(part))
    keys = tuple(p.key for p in points)
    name = slug(form, sweep, item.value or "", part)
    return [Table(name, heading, columns, rows, source, tuple(notes), keys)]


def _phase(point: PointResult, phase: Quantity) -> float | None:
    values = [v for v in point.values(phase).values() if v > 0]
    return combine(values).value if values else None


def _samples(point: PointResult) -> int | None:
    return sum(int(row.get("samples") or 0) for row in point.measurements.values()) or None


def systems(data: Dataset, item: ReportItem) -> list[Table]:
    """Times with a column per N; counters with a column each and a row per N."""
    sweep = sweep_of(data, item)
    points = data.select(sweep, item.n)
    if not any(p.ok for p in points):
        raise AnalysisError(f"sweep {sweep!r} has no finished point")
    kernels = [p for p in points if not p.cpu]
    baselines = [p for p in points if p.cpu]
    if not data.simulated:
        return [_by_size(data, item, sweep, [*kernels, *baselines])]
    tables = _results(data, item, sweep, kernels, "", "systems")
    if any(p.ok for p in baselines):
        tables.append(_by_size(data, item, sweep, baselines))
    return tables


def _by_size(data: Dataset, item: ReportItem, sweep: str, points: Sequence[PointResult]) -> Table:
    factors = columns_of(data, sweep)
    baselines = data.simulated  # in a simulated run only CPU baselines have times
    what = CPU_TIME if baselines else data.quantity(item.value) if item.value else TIME
    sizes = sorted({p.n for p in points})
    rows: dict[tuple[Cell, ...], dict[int, Cell]] = {}
    for point in points:
        value = point.estimate(what) if point.ok else point.status
        rows.setdefault(tuple(str(point.level(name)) for name in factors), {})[point.n] = value
    columns = (*map(Column, factors), *(Column(f"N={n}", "time", spread=True) for n in sizes))
    cells = tuple((*key, *(found.get(n) for n in sizes)) for key, found in rows.items())
    interval = f"{what.label}; {common.interval_note(False, data.rounds)}"
    notes = (interval, *common.timing_notes(points))
    name = slug("systems", sweep, item.value or "", "cpu" if baselines else "")
    title = title_of(data, item, f"Systems of sweep {sweep}")
    heading = f"{title}: CPU baselines, measured times" if baselines else title
    return Table(name, heading, columns, cells, source_of(data, cpu=baselines), notes)


def effects(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per quantity, size, factor and level."""
    sweep = sweep_of(data, item)
    found = [
        effect
        for what in data.quantities(item.value)
        for effect in factorial.effects(data, sweep, what, sizes=item.n)
    ]
    columns, rows = tabulate(
        found,
        (Column("quantity"), lambda e: e.quantity.label),
        (Column("N", "number"), lambda e: e.n),
        (Column("factor"), lambda e: e.factor),
        (Column("from"), lambda e: str(e.base)),
        (Column("to"), lambda e: str(e.level)),
        (Column("ratio", "ratio", spread=True), lambda e: e.ratio),
        (Column("pairs", "number"), lambda e: e.pairs),
        (Column("mean"), lambda e: e.method),
    )
    notes = [
        "Each ratio compares points that differ in this factor only, within the same round, and"
        " averages over all such pairs",
        "Below 1 means less (for times: faster), above 1 more",
        common.interval_note(data.simulated, data.rounds),
    ]
    methods = {effect.method for effect in found}
    if "totals" in methods:
        notes.append("Where a count is zero there is no geometric mean, so totals are compared")
    if "least squares" in methods:
        notes.append(
            "least squares: combinations are missing, so too few pairs exist; a model of main"
            " effects without interactions was fitted to all points"
        )
    title = title_of(data, item, f"Main effects of sweep {sweep}")
    name = slug("effects", sweep, item.value or "")
    return [Table(name, title, columns, rows, source_of(data), tuple(notes))]


def interactions(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per quantity, size and pair of changes."""
    sweep = sweep_of(data, item)
    found = []
    for what in data.quantities(item.value):
        try:
            found += factorial.interactions(data, sweep, what, sizes=item.n)
        except AnalysisError:
            if not data.simulated:
                raise
            # Another counter may have interactions.
    if not found:
        raise AnalysisError(f"sweep {sweep!r} has no two factors that were varied together")
    columns, rows = tabulate(
        found,
        (Column("quantity"), lambda i: i.quantity.label),
        (Column("N", "number"), lambda i: i.n),
        (Column("change"), lambda i: f"{i.factor}: {i.base} → {i.level}"),
        (Column("other factor"), lambda i: f"{i.other}: {i.other_base} → {i.other_level}"),
        (Column("effect before", "ratio", spread=True), lambda i: i.at_base),
        (Column("effect after", "ratio", spread=True), lambda i: i.at_level),
        (Column("interaction", "ratio", spread=True), lambda i: i.ratio),
        (Column("squares", "number"), lambda i: i.pairs),
        (Column("reversed"), lambda i: " and ".join(i.reversed)),
    )
    notes = (
        "The effect of the change before and after the other factor changes; the interaction is"
        " their ratio, and 1 means no interaction",
        "reversed: a factor whose effect changes direction with the level of the other (both"
        " intervals exclude 1)",
        common.interval_note(data.simulated, data.rounds),
    )
    title = title_of(data, item, f"Two-way interactions of sweep {sweep}")
    name = slug("interactions", sweep, item.value or "")
    return [Table(name, title, columns, rows, source_of(data), notes)]


def resources(data: Dataset, item: ReportItem) -> list[Table]:
    """One table per sweep; sizes that share every number share a row."""
    tables = [t for sweep in sweeps_of(data, item) if (t := _resources(data, item, sweep))]
    if not tables:
        raise AnalysisError(
            f"{data.device} recorded no registers or occupancy; `nqbench static` lists them for"
            " any architecture, without a GPU"
        )
    return tables


def _resources(data: Dataset, item: ReportItem, sweep: str) -> Table | None:
    points = [p for p in data.select(sweep, item.n, cpu=False) if p.ok]
    if not any(p.detail(name) is not None for p in points for name in RESOURCES):
        return None
    factors = columns_of(data, sweep)
    shown = [name for name in _RESOURCES if name not in factors]  # a level has its column already
    present = [name for name in shown if any(p.detail(name) is not None for p in points)]
    rows: dict[tuple[tuple[Cell, ...], tuple[Cell, ...]], list[int]] = {}
    for point in points:
        levels = tuple(str(point.level(name)) for name in factors)
        found = tuple(common.plain(point.detail(name)) for name in present)
        rows.setdefault((levels, found), []).append(point.n)
    cells = tuple(
        (*levels, ", ".join(map(str, sizes)), *found) for (levels, found), sizes in rows.items()
    )
    columns = (*map(Column, factors), Column("N"), *(_RESOURCES[name] for name in present))
    notes = ("Registers come from the compiled cubin; occupancy is theoretical, not achieved",)
    title = item.title or f"Resources of the kernels of sweep {sweep}"
    return Table(slug("resources", sweep), title, columns, cells, source_of(data), notes)


def skipped(data: Dataset, item: ReportItem) -> list[Table]:
    """Every point without a value, and every point that lost measurements."""
    found = [
        (sweep, columns_of(data, sweep), point)
        for sweep in sweeps_of(data, item)
        for point in data.select(sweep, item.n)
        if not point.ok or point.reason
    ]
    columns, rows = tabulate(
        found,
        (Column("sweep"), lambda one: one[0]),
        (Column("point"), lambda one: describe(one[2], one[1])),
        (Column("N", "number"), lambda one: one[2].n),
        (Column("status"), lambda one: one[2].status),
        (Column("reason"), lambda one: one[2].reason),
    )
    note = f"{len(rows)} of {len(data.points)} points" if rows else "Every planned point ran"
    title = item.title or "What did not run, and why"
    name = slug("skipped", item.of or "")
    keys = tuple(point.key for _, _, point in found)
    return [Table(name, title, columns, rows, source_of(data), (note,), keys)]
