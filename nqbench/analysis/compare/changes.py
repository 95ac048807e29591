"""What changes between sides: the fastest variant, the order of variants, and effects.

Variants are kernels of one size with the same answer. Where no answer was recorded, nothing says
that two points do the same.

An effect of a factor turns where it is better on one side and worse on another: both intervals
exclude 1 after correction for the number of effects, and both are large enough to report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from nqbench.analysis import wording
from nqbench.analysis.answer import Answer, Best, FactorStep
from nqbench.analysis.compare import match
from nqbench.analysis.compare.match import Matched
from nqbench.analysis.compare.runs import Comparison
from nqbench.analysis.data import estimate
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.quantities import CPU_TIME, Quantity
from nqbench.analysis.wording import Difference
from nqbench.point import PART

Swap = tuple[PointResult, PointResult, estimate.Estimate, estimate.Estimate]
"""Two variants, and on each side the ratio of the second's time to the first's."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The kernels of two sides by their times.

    ``best``    the fastest variant on each side, of each size that has several, the largest first
    ``pairs``   number of pairs of variants of one sweep and size
    ``swaps``   those whose order clearly changes, the clearest first
    """

    names: match.Names
    quantity: Quantity
    best: tuple[tuple[Best, Best], ...]
    pairs: int
    swaps: tuple[Swap, ...]


def ranking(comparison: Comparison) -> Iterator[Ranking]:
    """The ranking of the kernels by the first quantity that is a time of theirs, if there is one.

    Of a kernel that was measured in parts only the whole is ranked.
    """
    sides, timed = comparison.sides, [s for s in comparison.sections if s.quantity.kind == "time"]
    for section in [section for section in timed if section.quantity != CPU_TIME][:1]:
        what, every = section.quantity, [row.pair for row in section.rows]
        pairs = [p for p in every if p.first.levels.get(PART, "full") == "full"]
        best = tuple(_best_variants(sides, pairs, what))
        yield Ranking(comparison.names, what, best, *_order_changes(sides, pairs, what))


def _best_variants(
    sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], what: Quantity
) -> Iterable[tuple[Best, Best]]:
    """The best of each size (and answer) that has several variants, the largest size first."""
    groups = _same_work(pairs, by_sweep=False)
    for group in sorted(groups, key=lambda g: (-g[0].first.n, -len(g))):
        seen: dict[tuple[Any, ...], Matched] = {}
        for pair in group:  # a configuration may stand in several sweeps: it is one variant
            levels = tuple(sorted((k, str(v)) for k, v in pair.first.levels.items()))
            seen.setdefault((pair.first.system, levels), pair)
        if len(seen) < 2:
            continue
        called = match.variants([p.first for p in seen.values()])
        found = []
        for side, data in enumerate(sides):
            one, two = sorted(seen.values(), key=lambda p: p[side].value(what))[:2]
            point, value = one[side], one[side].estimate(what)
            assert value is not None
            times = point.values(what), two[side].values(what)
            lead = estimate.paired(*times, step_s=data.event_step_s).estimate()
            names = {"name": called[one.first], "next_name": called[two.first]}
            kept: dict[str, Any] = {"value": value, "of": len(seen), "over_next": lead, **names}
            found.append(Best(point.sweep, point.n, what, point, **kept))
        yield found[0], found[1]


def _order_changes(
    sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], what: Quantity
) -> tuple[int, tuple[Swap, ...]]:
    """Which variants of one sweep and size change places between the two sides; see ``Ranking``.

    Both ratios of such a pair must be clear and large enough to report, in opposite directions. Its
    p is the larger of the two (an intersection-union test), corrected for the number of pairs.
    """
    tested: list[tuple[Matched, Matched, list[estimate.Contrast]]] = []
    count = 0
    for group in _same_work(pairs, by_sweep=True):
        times = [[pair[side].value(what) for pair in group] for side in (0, 1)]
        for i, j in combinations(range(len(group)), 2):
            count += 1
            if (times[0][j] - times[0][i]) * (times[1][j] - times[1][i]) >= 0:
                continue
            both = zip(sides, group[i], group[j], strict=True)
            contrasts = [
                estimate.paired(one.values(what), two.values(what), step_s=data.event_step_s)
                for data, one, two in both
            ]
            if min(abs(c.log_ratio) for c in contrasts) >= math.log(estimate.NOTEWORTHY):
                tested.append((group[i], group[j], contrasts))
    p_values = [max(c.p_different() for c in contrasts) for _, _, contrasts in tested]
    # Pairs in the same order on both sides count as tests too: each could have been reported.
    p_values = estimate.adjusted([*p_values, *[1.0] * (count - len(p_values))])
    swaps = [
        (one.first, other.first, first.estimate(), second.estimate())
        for (one, other, (first, second)), p in zip(tested, p_values, strict=False)
        if p <= estimate.ALPHA
    ]
    swaps.sort(key=lambda swap: -min(ratio.distance for ratio in swap[2:]))
    return count, tuple(swaps)


def _same_work(pairs: Iterable[Matched], *, by_sweep: bool) -> list[list[Matched]]:
    """Pairs of one size and answer, and in one sweep if asked for; where there are several."""
    groups: dict[tuple[Any, ...], list[Matched]] = {}
    for pair in pairs:
        answer = pair.first.detail("answer")
        if answer is not None:
            sweep = pair.first.sweep if by_sweep else ""
            groups.setdefault((pair.first.n, answer, sweep), []).append(pair)
    return [group for group in groups.values() if len(group) > 1]


@dataclass(frozen=True, slots=True)
class SharedEffect:
    """What one step of a factor does to a quantity on each side; ``None`` where that is not known.

    ``turns``  whether it clearly is better on one side and worse on another
    """

    names: tuple[str, ...]
    quantity: Quantity
    change: FactorStep
    effects: tuple[Difference | None, ...]
    turns: bool


def side_by_side(answers: Sequence[Answer], names: Sequence[str]) -> list[SharedEffect]:
    """The effects that matter on some side, the strongest first: of the sweep that answers on the
    first, at its largest size. Of counters only those that are not the same on every side."""
    sweep = answers[0].sweep
    steps = [{(s.factor, s.base, s.level): s for s in a.steps(sweep)} for a in answers]
    found: list[tuple[float, SharedEffect]] = []
    for key, step in steps[0].items():
        sides = [own.get(key) for own in steps]
        weight = max(a.strength(s) for a, s in zip(answers, sides, strict=True) if s)
        for what in answers[0].quantities:
            own = [s.effects.get(what.name) if s else None for s in sides]
            ratios = [e.ratio.value for e in own if e]
            alike = what.exact and len(set(ratios)) == 1 and len(ratios) == len(own)
            clear = [e for a, e in zip(answers, own, strict=True) if e and a.matters(e)]
            if alike or not clear:
                continue
            told = tuple(Difference(e.ratio, what, e.totals) if e else None for e in own)
            large = (e for e in clear if not wording.is_few(e.totals, what))
            turns = {"+", "-"} <= {wording.mark(e.ratio, what) for e in large}
            found.append((weight, SharedEffect(tuple(names), what, step, told, turns)))
    return [one for _, one in sorted(found, key=lambda item: -item[0])]
