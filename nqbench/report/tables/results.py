"""Tables of a run: its points with values and status, effects and interactions, the kernels'
resources, and what did not run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nqbench import vocabulary
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.quantities import CPU_TIME, Quantity, quantity
from nqbench.analysis.factorial import effects as factorial
from nqbench.analysis.factorial.effects import FactorEffect, Interaction
from nqbench.analysis.wording import Difference, describe
from nqbench.errors import AnalysisError
from nqbench.report.items import columns_of, quantities_of, sweep_of, sweeps_of, title_of
from nqbench.report.table import Column, Field, Table, slug, source_of, tabulate
from nqbench.report.tables import common
from nqbench.runs.frame import RESOURCES
from nqbench.study.report_items import ReportItem

_PHASES: Final = (
    *("split", "allocate", "transfer", "evaluation", "apply", "reduce", "free", "other", "total"),
)
_QUANTITY: Final[Field[FactorEffect]] = (Column("quantity"), lambda e: e.quantity.label)
_SIZE: Final[Field[FactorEffect]] = (Column("N", "number"), lambda e: e.n)


def results(data: Dataset, item: ReportItem) -> list[Table]:
    """One table per sweep; times of CPU baselines never share one with simulated counters."""
    parts = {"": False, "cpu": True} if data.simulated else {"": None}
    return [
        _results(data, item, sweep, points, part)
        for sweep in sweeps_of(data, item)
        for part, cpu in parts.items()
        if (points := data.select(sweep, cpu=cpu))
    ]


def _results(
    data: Dataset, item: ReportItem, sweep: str, points: Sequence[PointResult], part: str
) -> Table:
    timed = part == "cpu" or not data.simulated
    phases = [quantity(name) for name in _PHASES] if timed and not item.value else []
    phases = [p for p in phases if any(s > 0 for one in points for s in one.values(p).values())]
    metrics = [m for m in data.metrics.values() if any(p.values(m) for p in points)]
    shown = (CPU_TIME,) if part else quantities_of(data, item)
    shown = tuple(dict.fromkeys((*shown, *([] if item.value else metrics))))
    points = sorted(points, key=lambda p: _place(p, shown[0]))
    taken = {
        p.key: sum(int(r.get("samples") or 0) for r in p.measurements.values()) for p in points
    }
    columns, rows = tabulate(
        points,
        *common.factor_fields(columns_of(data, sweep)),
        (Column("N", "number"), lambda p: p.n),
        *common.value_fields(shown),
        *((Column(one.label, "time"), lambda p, one=one: _phase(p, one)) for one in phases),
        *([(Column("rounds", "number"), lambda p: len(p.measurements) or None)] if timed else []),
        *([(Column("samples", "number"), lambda p: taken[p.key] or None)] if timed else []),
        (Column("status"), lambda p: p.status),
    )
    title = title_of(data, item, f"Results of sweep {sweep}")
    notes = [common.interval_note(not timed, data.rounds, shown), *common.timing_notes(points)]
    if any(not p.ok for p in points):
        notes.append("Points that are not ok have no value: they are never plotted or compared")
    heading = f"{title}: CPU baselines, measured times" if part else title
    source = source_of(data, cpu=bool(part))
    keys = tuple(p.key for p in points)
    name = slug("results", sweep, item.value or "", part)
    return Table(name, heading, columns, rows, source, tuple(notes), keys)


def _place(point: PointResult, what: Quantity) -> tuple[bool, int, float]:
    """What points are sorted by: the largest size first, its best on top, no value last."""
    found = point.estimate(what) if point.ok else None
    if found is None or math.isnan(found.value):
        return True, -point.n, 0.0
    return False, -point.n, -found.value if what.better == "higher" else found.value


def _phase(point: PointResult, phase: Quantity) -> float | None:
    values = [v for v in point.values(phase).values() if v > 0]
    return combine(values).value if values else None


def effects(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per quantity, size, factor and level; pages show them as changes."""
    sweep, shown = sweep_of(data, item), quantities_of(data, item)
    found = [e for q in shown for e in factorial.effects(data, sweep, q)]
    worth = (_difference("effect", "ratio_level_over_base"), lambda e: e.difference)
    pairs = (Column("pairs", "number"), lambda e: e.pairs)
    columns, rows = tabulate(
        found,
        *(_QUANTITY, _SIZE),
        (Column("factor"), lambda e: e.factor),
        (Column("from"), lambda e: str(e.base)),
        (Column("to"), lambda e: str(e.level)),
        *(worth, pairs),
        (Column("mean"), lambda e: e.method),
    )
    notes = [
        "What the change does, everything else equal: a mean over the pairs of points that differ"
        " in this factor only; + better, - worse",
        common.interval_note(data.simulated, data.rounds, shown),
    ]
    if any(e.method == "least squares" for e in found):
        notes.append(
            "Combinations are missing, so too few pairs exist: a model of main effects without"
            " interactions was fitted to all points (least squares)"
        )
    title = title_of(data, item, f"Main effects of sweep {sweep}")
    name = slug("effects", sweep, item.value or "")
    table = Table(name, title, columns, rows, source_of(data), tuple(notes))
    several = [_QUANTITY] if len({e.quantity for e in found}) > 1 else []
    found.sort(key=lambda e: -e.n)
    page = tabulate(found, (Column("change"), _change), worth, _SIZE, *several, pairs)
    return [replace(table, shown=replace(table, columns=page[0], rows=page[1]))]


def _difference(name: str, plain: str) -> Column:
    return Column(name, "ratio", spread=True, plain=plain)


def _change(effect: FactorEffect) -> str:
    return f"{effect.factor}: {effect.base} → {effect.level}"


def interactions(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per quantity, size and pair of changes; pages show those that matter."""
    sweep, shown = sweep_of(data, item), quantities_of(data, item)
    found = factorial.interactions(data, sweep, shown)
    fields: list[Field[Interaction]] = [
        (Column("change"), _change),
        (Column("other factor"), lambda i: f"{i.other}: {i.other_base} → {i.other_level}"),
        (_difference("effect before", "ratio_with_other_base"), lambda i: _part(i, i.at_base)),
        (_difference("effect after", "ratio_with_other_level"), lambda i: _part(i, i.at_level)),
        (_difference("interaction", "ratio_after_over_before"), lambda i: _part(i, i.ratio)),
    ]
    turned = (Column("reversed"), lambda i: " and ".join(i.reversed))
    squares = (Column("squares", "number"), lambda i: i.pairs)
    columns, rows = tabulate(found, _QUANTITY, _SIZE, *fields, squares, turned)
    notes = (
        "The effect of the change before and after the other factor changes; the interaction is"
        " how much the second differs from the first",
        "reversed: a factor whose effect changes direction with the level of the other (both"
        " intervals exclude 1)",
        common.interval_note(data.simulated, data.rounds, shown),
    )
    title = title_of(data, item, f"Two-way interactions of sweep {sweep}")
    name = slug("interactions", sweep, item.value or "")
    table = Table(name, title, columns, rows, source_of(data), notes)
    several = [_QUANTITY] if len(shown) > 1 else []
    strong = tabulate(factorial.strongest(found), *fields, *several, turned)
    return [replace(table, shown=replace(table, columns=strong[0], rows=strong[1]))]


def _part(found: Interaction, ratio: Estimate) -> Difference:
    return Difference(ratio, found.quantity)


def resources(data: Dataset, item: ReportItem) -> list[Table]:
    """One table per sweep."""
    tables = [t for sweep in sweeps_of(data, item) if (t := _resources(data, item, sweep))]
    if not tables:
        raise AnalysisError(
            f"{data.device} recorded no registers or occupancy; `nqbench static` lists them for"
            " any architecture, without a GPU"
        )
    return tables


def _resources(data: Dataset, item: ReportItem, sweep: str) -> Table | None:
    points = [p for p in data.select(sweep, cpu=False) if p.ok]
    factors = columns_of(data, sweep)
    shown = [name for name in vocabulary.RESOURCES if name not in factors]  # levels have columns
    present = [name for name in shown if any(p.detail(name) is not None for p in points)]
    if not {*RESOURCES} & {*present}:
        return None
    columns, rows = tabulate(
        points,
        *common.factor_fields(factors),
        (Column("N", "number"), lambda p: p.n),
        *((_resource(name), lambda p, name=name: p.detail(name)) for name in present),
    )
    notes = ("Registers come from the compiled cubin; occupancy is theoretical, not achieved",)
    title = item.title or f"Resources of the kernels of sweep {sweep}"
    keys = tuple(p.key for p in points)
    return Table(slug("resources", sweep), title, columns, rows, source_of(data), notes, keys)


def _resource(name: str) -> Column:
    unit = "B" if name.endswith("_bytes") else ""
    return Column(vocabulary.RESOURCES[name], "text" if name == "limiter" else "number", unit)


def skipped(data: Dataset, item: ReportItem) -> list[Table]:
    """Every point without a value, and every point that lost measurements; no table without any."""
    found = [
        (sweep, columns_of(data, sweep), point)
        for sweep in sweeps_of(data, item)
        for point in data.select(sweep)
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
    if not found:
        return []
    note = f"{len(rows)} of {len(data.points)} points"
    title = item.title or "What did not run, and why"
    name = slug("skipped", item.of or "")
    keys = tuple(point.key for _, _, point in found)
    return [Table(name, title, columns, rows, source_of(data), (note,), keys)]
