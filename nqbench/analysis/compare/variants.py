"""The fastest variant of a kernel on each side of a comparison, and variants that swap places.

Variants are kernels of one size with the same answer. Where no answer was recorded, nothing says
that two points do the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from nqbench.analysis.compare import match
from nqbench.analysis.compare.match import Matched
from nqbench.analysis.data import statistics
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial.effects import NOTEWORTHY


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """The fastest of several variants on one side, and the next.

    ``lead``   time of the next over that of the fastest
    ``clear``  whether its interval, widened for the number of variants, excludes 1
    """

    point: PointResult
    value: Estimate
    next: PointResult
    lead: Estimate
    clear: bool


@dataclass(frozen=True, slots=True, eq=False)
class BestVariant:
    """The fastest of ``variants`` of one size, on each side.

    ``same``    whether it is the same variant
    ``called``  what the variants are called, on both sides
    """

    n: int
    variants: int
    leaders: tuple[Leader, Leader]
    same: bool
    called: Mapping[PointResult, str]


@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """Two variants whose order clearly changes: ``ratios`` of ``other``'s time to ``one``'s."""

    one: PointResult
    other: PointResult
    ratios: tuple[Estimate, Estimate]


@dataclass(frozen=True, slots=True)
class OrderChanges:
    """Pairs of variants of one sweep and size: how many, and which change their order.

    ``unsure``  pairs whose values change order, within their intervals or by too little to report
    """

    pairs: int
    swaps: tuple[Swap, ...]
    unsure: int


def best_variants(
    sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], what: Quantity
) -> Iterable[BestVariant]:
    """The best of each size (and answer) that has several variants, the largest size first."""
    groups = _same_work(pairs, by_sweep=False)
    for group in sorted(groups, key=lambda g: (-g[0].first.n, -len(g))):
        seen: dict[tuple[Any, ...], Matched] = {}
        for pair in group:  # a configuration may stand in several sweeps: it is one variant
            levels = tuple(sorted((k, str(v)) for k, v in pair.first.levels.items()))
            seen.setdefault((pair.first.system, levels), pair)
        if len(seen) < 2:
            continue
        found: list[tuple[Matched, Leader]] = []
        for side, data in enumerate(sides):
            ranked = sorted(seen.values(), key=lambda p: p[side].value(what))
            first, second = (pair[side] for pair in ranked[:2])
            lead = _contrast(data, first, second, what).estimate()
            value = first.estimate(what)
            assert value is not None
            clear = lead.differs_from(1, len(seen))
            found.append((ranked[0], Leader(first, value, second, lead, clear)))
        (one, left), (two, right) = found
        called = match.variants([p.first for p in seen.values()])
        called |= {p.second: called[p.first] for p in seen.values()}
        yield BestVariant(group[0].first.n, len(seen), (left, right), one is two, called)


def order_changes(
    sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], what: Quantity
) -> OrderChanges:
    """Which variants of one sweep and size change places between the two sides.

    Both ratios of such a pair must be clear and large enough to report, in opposite directions. Its
    p is the larger of the two (an intersection-union test), corrected for the number of pairs.
    """
    tested: list[tuple[Matched, Matched, list[statistics.Contrast]]] = []
    count = unsure = 0
    for group in _same_work(pairs, by_sweep=True):
        times = [[pair[side].value(what) for pair in group] for side in (0, 1)]
        for i, j in combinations(range(len(group)), 2):
            count += 1
            if (times[0][j] - times[0][i]) * (times[1][j] - times[1][i]) >= 0:
                continue
            contrasts = [
                _contrast(data, group[i][side], group[j][side], what)
                for side, data in enumerate(sides)
            ]
            if min(abs(c.log_ratio) for c in contrasts) < math.log(NOTEWORTHY):
                unsure += 1
            else:
                tested.append((group[i], group[j], contrasts))
    p_values = [max(c.p_different() for c in contrasts) for _, _, contrasts in tested]
    # Pairs in the same order on both sides count as tests too: each could have been reported.
    p_values = statistics.adjusted([*p_values, *[1.0] * (count - len(p_values))])
    swaps = [
        Swap(one.first, other.first, (first.estimate(), second.estimate()))
        for (one, other, (first, second)), p in zip(tested, p_values, strict=False)
        if p <= statistics.ALPHA
    ]
    swaps.sort(key=lambda s: -min(abs(math.log(r.value)) for r in s.ratios))
    return OrderChanges(count, tuple(swaps), unsure + len(tested) - len(swaps))


def _contrast(
    data: Dataset, one: PointResult, two: PointResult, what: Quantity
) -> statistics.Contrast:
    """Of two variants of one run: the time of the second over that of the first."""
    return statistics.paired(one.values(what), two.values(what), step_s=data.event_step_s)


def _same_work(pairs: Iterable[Matched], *, by_sweep: bool) -> list[list[Matched]]:
    """Pairs of one size and answer, and in one sweep if asked for; where there are several."""
    groups: dict[tuple[Any, ...], list[Matched]] = {}
    for pair in pairs:
        answer = pair.first.detail("answer")
        if answer is not None:
            sweep = pair.first.sweep if by_sweep else ""
            groups.setdefault((pair.first.n, answer, sweep), []).append(pair)
    return [group for group in groups.values() if len(group) > 1]
