"""What changes between sides: the fastest variant, the order of variants, and effects.

Variants are kernels of one size with the same answer. Where no answer was recorded, nothing says
that two points do the same.

Effects are of two kinds: a factor's main effect in a sweep, and the step from one version of a
paper's system to the next. One reverses where its ratio lies clearly below 1 on one device and
clearly above on another: intervals exclude 1 after correction for the number of effects, and both
ratios are large enough to report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

from nqbench.analysis import wording
from nqbench.analysis.answer import Answer
from nqbench.analysis.compare import match
from nqbench.analysis.compare.match import Matched
from nqbench.analysis.compare.runs import Comparison
from nqbench.analysis.data import estimate
from nqbench.analysis.data.dataset import Dataset, Level, PointResult, point_ratio
from nqbench.analysis.data.quantities import CPU_TIME, Quantity
from nqbench.analysis.factorial.effects import effects
from nqbench.analysis.wording import Difference
from nqbench.errors import AnalysisError
from nqbench.point import PART


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """The fastest of several variants on one side, and the next.

    ``lead``  the fastest against the next: ``unclear`` if its interval, widened for the number of
              variants, has 1
    """

    name: str
    value: estimate.Estimate
    next: str
    lead: Difference


@dataclass(frozen=True, slots=True, eq=False)
class BestVariant:
    """The fastest of ``variants`` of one size, on each side."""

    n: int
    variants: int
    leaders: tuple[Leader, Leader]

    @property
    def same(self) -> bool:
        """Whether it is the same variant."""
        return self.leaders[0].name == self.leaders[1].name


Swap = tuple[PointResult, PointResult, estimate.Estimate, estimate.Estimate]
"""Two variants, and on each side the ratio of the second's time to the first's."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The kernels of two sides by their times.

    ``best``    the fastest variant of each size that has several, the largest size first
    ``pairs``   number of pairs of variants of one sweep and size
    ``swaps``   those whose order clearly changes, the clearest first
    ``unsure``  how many values change order, within their intervals or by too little to report
    """

    names: match.Names
    quantity: Quantity
    best: tuple[BestVariant, ...]
    pairs: int
    swaps: tuple[Swap, ...]
    unsure: int


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
        called = match.variants([p.first for p in seen.values()])
        leaders = []
        for side, data in enumerate(sides):
            one, two = sorted(seen.values(), key=lambda p: p[side].value(what))[:2]
            ratio = _contrast(data, one[side], two[side], what).estimate()
            value = one[side].estimate(what)
            assert value is not None
            word = "" if ratio.differs_from(1, len(seen)) else "unclear"
            lead = Difference(ratio.inverse(), what, verdict=word)
            leaders.append(Leader(called[one.first], value, called[two.first], lead))
        yield BestVariant(group[0].first.n, len(seen), (leaders[0], leaders[1]))


def _order_changes(
    sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], what: Quantity
) -> tuple[int, tuple[Swap, ...], int]:
    """Which variants of one sweep and size change places between the two sides; see ``Ranking``.

    Both ratios of such a pair must be clear and large enough to report, in opposite directions. Its
    p is the larger of the two (an intersection-union test), corrected for the number of pairs.
    """
    tested: list[tuple[Matched, Matched, list[estimate.Contrast]]] = []
    count = unsure = 0
    for group in _same_work(pairs, by_sweep=True):
        times = [[pair[side].value(what) for pair in group] for side in (0, 1)]
        for i, j in combinations(range(len(group)), 2):
            count += 1
            if (times[0][j] - times[0][i]) * (times[1][j] - times[1][i]) >= 0:
                continue
            both = zip(sides, group[i], group[j], strict=True)
            contrasts = [_contrast(data, one, two, what) for data, one, two in both]
            if min(abs(c.log_ratio) for c in contrasts) < math.log(estimate.NOTEWORTHY):
                unsure += 1
            else:
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
    return count, tuple(swaps), unsure + len(tested) - len(swaps)


def _contrast(
    data: Dataset, one: PointResult, two: PointResult, what: Quantity
) -> estimate.Contrast:
    """Of two variants of one run: the time of the second over that of the first."""
    return estimate.paired(one.values(what), two.values(what), step_s=data.event_step_s)


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
class Change:
    """From one level of a factor to another, in one sweep at one size: the same on every device.

    Of the factor ``system`` it is the step from one version of a paper's system to the next.
    """

    sweep: str
    n: int
    factor: str
    base: Level
    level: Level

    def __str__(self) -> str:
        """In words, without the size."""
        if self.factor == "system":
            what = f"{self.level} instead of {str(self.base).partition('.')[2]}"
        else:
            what = f"{self.factor} {self.level} instead of {self.base}"
        return f"{what} (sweep {self.sweep})"


@dataclass(frozen=True, slots=True)
class SharedEffect:
    """What one change does to a quantity on each side; ``None`` where that is not known."""

    names: tuple[str, ...]
    quantity: Quantity
    change: Change
    effects: tuple[Difference | None, ...]

    @property
    def turns(self) -> bool:
        """Whether it is better on one side and worse on another."""
        what, known = self.quantity, [e for e in self.effects if e and e.ratio.noteworthy]
        told = [e.ratio for e in known if not wording.is_few(e.totals, what)]
        return {"+", "-"} <= {wording.mark(ratio, what) for ratio in told}


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
            if alike or not any(a.matters(e) for a, e in zip(answers, own, strict=True) if e):
                continue
            change = Change(sweep, step.n, *key)
            told = tuple(Difference(e.ratio, what, e.totals) if e else None for e in own)
            found.append((weight, SharedEffect(tuple(names), what, change, told)))
    return [one for _, one in sorted(found, key=lambda item: -item[0])]


def reversals(runs: Sequence[Dataset], names: Sequence[str], what: Quantity) -> list[SharedEffect]:
    """Every change that clearly helps on one device and hurts on another, the strongest first."""
    found: list[tuple[float, SharedEffect]] = []
    for i, j in combinations(range(len(runs)), 2) if what.better else ():
        sides, called = (runs[i], runs[j]), (names[i], names[j])
        pairs = match.match_runs(*sides, called).pairs
        # Of points that both have: one run may be cut short, or lack what did not fit its device.
        first, second = (
            _clear(replace(data, points=tuple(pair[side] for pair in pairs)), what)
            for side, data in enumerate(sides)
        )
        for change in first.keys() & second.keys():
            own = first[change], second[change]
            if (own[0].value - 1) * (own[1].value - 1) < 0:
                told = tuple(Difference(ratio, what) for ratio in own)
                weight = min(ratio.distance for ratio in own)
                found.append((weight, SharedEffect(called, what, change, told)))
    return [one for _, one in sorted(found, key=lambda item: (-item[0], str(item[1].change)))]


def _clear(data: Dataset, what: Quantity) -> dict[Change, estimate.Estimate]:
    """The changes that are significant, corrected for their number, and large enough to report."""
    found = list(_changes(data, what))
    p_values = estimate.adjusted([estimate.p_different(ratio) for _, ratio in found])
    return {
        change: ratio
        for (change, ratio), p in zip(found, p_values, strict=True)
        if (p <= estimate.ALPHA or ratio.exact) and ratio.noteworthy and 0 < ratio.value < math.inf
    }


def _changes(data: Dataset, what: Quantity) -> Iterable[tuple[Change, estimate.Estimate]]:
    """Every main effect of a factor, and every step from one version of a paper's system to the
    next in the study, where both were measured once per size."""
    for sweep in data.sweeps:
        with suppress(AnalysisError):  # it has no factors, or nothing to compare
            for effect in effects(data, sweep, what):
                if effect.factor != "system":
                    change = Change(sweep, effect.n, effect.factor, effect.base, effect.level)
                    yield change, effect.ratio
        by_size: dict[int, dict[str, list[PointResult]]] = {}
        for point in data.select(sweep, cpu=False):
            if point.ok and point.system and point.values(what):
                by_size.setdefault(point.n, {}).setdefault(point.system, []).append(point)
        for n, systems in by_size.items():
            for (one, before), (two, after) in pairwise(systems.items()):
                same_paper = one.partition(".")[0] == two.partition(".")[0]
                single = len(before) == len(after) == 1
                if same_paper and single and before[0].value(what) and after[0].value(what):
                    ratio = point_ratio(after[0], before[0], what)
                    yield Change(sweep, n, "system", one, two), ratio
