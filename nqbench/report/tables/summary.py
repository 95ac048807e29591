"""A run at a glance: the best point of every sweep, and what each change is worth.

Both tables are of the largest size of each sweep, and short enough for a terminal.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence, Sized
from functools import partial
from typing import Final, NamedTuple

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import CPU_TIME, TIME, Quantity, quantity
from nqbench.analysis.factorial.effects import FactorEffect, effects
from nqbench.analysis.findings import REPORTED_COUNTERS, best_first
from nqbench.analysis.wording import describe
from nqbench.errors import AnalysisError
from nqbench.point import PART
from nqbench.report.items import columns_of
from nqbench.report.table import Column, Table, cell_text, source_of, tabulate
from nqbench.system.suggest import many

MAX_ROWS: Final = 12
"""Rows that leave room for the rest on a screen."""
SHORT: Final = {
    "lane_efficiency": "lane eff.",
    "bank_conflicts": "bank confl.",
    "warp_instructions": "warp instr.",
    "off_chip_sectors": "off-chip sectors",
}
"""Headings of four columns that share a line of 80 characters."""
WIDE: Final = 1.2
"""Upper over lower bound from which an interval is written with both."""


class Best(NamedTuple):
    """The best of the points that a sweep has at its largest size.

    ``gap``  how many times the worst is from it, above 1; ``None`` for a single point
    """

    sweep: str
    n: int
    what: Quantity
    name: str
    value: Estimate
    gap: float | None


def best_points(data: Dataset) -> list[Table]:
    """The best point of each sweep; none without values.

    A simulated run has a row for each counter, because none of them is the cost, and its CPU
    programs have a table of their own, because they are timed.
    """
    kernels, programs = _best(data, _shown(data)), _best(data, [CPU_TIME])
    if data.simulated:
        return [*_best_table(data, kernels, cpu=False), *_best_table(data, programs, cpu=True)]
    return _best_table(data, [*kernels, *programs], cpu=False)


def _best_table(data: Dataset, found: Sequence[Best], *, cpu: bool) -> list[Table]:
    if not found:
        return []
    shown = found[:MAX_ROWS]
    several = len({one.what.label for one in shown}) > 1
    times = all(one.what.kind == "time" for one in shown)
    value = Column("value", "number", spread=True)
    if times:
        value = Column("time" if several else shown[0].what.label, "time", spread=True)
    columns, rows = tabulate(
        shown,
        (Column("sweep"), lambda one: one.sweep),
        (Column("N", "number"), lambda one: one.n),
        *([(Column("quantity"), lambda one: one.what.label)] if several else []),
        (Column("best point"), lambda one: one.name),
        (value, lambda one: one.value),
        (Column("worst / best", "ratio"), lambda one: one.gap),
    )
    title = "Best points at the largest N"
    if not times:
        title += ", by counter (a lower count is not always faster)"
    return [
        Table(
            "best-cpu" if cpu else "best",
            title,
            columns,
            rows,
            source_of(data, cpu=cpu),
            _rest(found),
        )
    ]


def strongest_effects(data: Dataset) -> list[Table]:
    """The main effects at the largest size of each sweep, strongest first; none without any.

    Of many, the strongest of each factor.
    """
    found: dict[tuple[str, str, str, str], dict[str, Estimate]] = {}
    for sweep in data.sweeps:
        for what in _shown(data):
            for effect in _effects(data, sweep, what):
                change = (sweep, effect.factor, str(effect.base), str(effect.level))
                found.setdefault(change, {})[what.label] = effect.ratio
    if not found:
        return []
    order = list(data.sweeps)
    ranked = sorted(found.items(), key=lambda one: (order.index(one[0][0]), -_strength(one[1])))
    notes: tuple[str, ...] = ()
    if len(ranked) > MAX_ROWS:
        notes = ("The strongest change of each factor; the report has all of them",)
        strongest = {change[:2]: change for change, _ in reversed(ranked)}
        ranked = [one for one in ranked if one[0] in strongest.values()]
    several = len({change[0] for change in found}) > 1
    columns, rows = tabulate(
        ranked[:MAX_ROWS],
        *([(Column("sweep"), lambda one: one[0][0])] if several else []),
        (Column("factor"), lambda one: one[0][1]),
        (Column("change"), lambda one: _change(*one[0][2:])),
        *(
            (Column(SHORT.get(what.name, what.label)), partial(_ratio, label=what.label))
            for what in _shown(data)
        ),
    )
    title = "Effects at the largest N: what each change multiplies these by"
    notes += _rest(ranked)
    return [Table("strongest-effects", title, columns, rows, source_of(data), notes)]


def _change(base: str, level: str) -> str:
    """Two levels; of two systems of one paper, without the paper's name."""
    family, dot, _ = base.partition(".")
    family += dot
    if dot and level.startswith(family):
        base, level = base.removeprefix(family), level.removeprefix(family)
    return f"{base} → {level}"


def _ratio(change: tuple[object, Mapping[str, Estimate]], label: str) -> str | None:
    """A ratio with the half-width of its interval, which is shorter than its bounds."""
    found = change[1].get(label)
    if found is None:
        return None
    if found.exact and 0 < found.value < math.inf:
        return f"{found.value:.3g}"
    if found.low is None or found.high is None or found.high > WIDE * found.low:
        return cell_text(found, Column(label, "ratio"))
    half = math.sqrt(found.high / found.low) - 1
    return f"{cell_text(found.value, Column(label, 'ratio'))} ±{100 * half:.2g}%"


def _effects(data: Dataset, sweep: str, what: Quantity) -> list[FactorEffect]:
    """Those of a sweep at the largest size that has any."""
    try:
        found = effects(data, sweep, what)
    except AnalysisError:  # nothing varies, or nothing can be compared
        return []
    n = max(effect.n for effect in found)
    return [e for e in found if e.n == n and e.factor not in (PART, "seed")]


def _strength(ratios: Mapping[str, Estimate]) -> float:
    """The largest change of a quantity, by any factor up or down."""
    values = [one.value for one in ratios.values()]
    return max(
        (abs(math.log(v)) if 0 < v < math.inf else math.inf for v in values if not math.isnan(v)),
        default=0.0,
    )


def _shown(data: Dataset) -> list[Quantity]:
    if data.simulated:
        return [quantity(name) for name in REPORTED_COUNTERS]
    return [TIME]


def _rest(found: Sized) -> tuple[str, ...]:
    rest = len(found) - MAX_ROWS
    verb = "is" if rest == 1 else "are"
    return (f"{many(rest, 'more row')} {verb} in the tables of the report",) * (rest > 0)


def _best(data: Dataset, quantities: Sequence[Quantity]) -> list[Best]:
    """The best point of each sweep by each quantity; no counter that is 0 or equal everywhere."""
    found = []
    for sweep, what in itertools.product(data.sweeps, quantities):
        points = data.select(sweep, cpu=what is CPU_TIME)
        ranked = best_first((p for p in points if PART not in p.levels), what)
        if not ranked or (value := ranked[0].estimate(what)) is None:
            continue
        best, worst = ranked[0], ranked[-1]
        if what.kind == "counter" and value.value in (0, worst.value(what)):
            continue
        low, high = sorted((best.value(what), worst.value(what)))
        gap = None if best is worst else high / low
        name = describe(best, columns_of(data, sweep))
        found.append(Best(sweep, best.n, what, name, value, gap))
    return found
