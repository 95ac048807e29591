"""Effects on two sides of a comparison: which differs most, and which reverse between devices.

Two kinds of change are looked at: a factor's main effect in a sweep, and the step from one version
of a paper's system to the next. A change reverses where its ratio lies clearly below 1 on one
device and clearly above on another: intervals exclude 1 after correction for the number of changes,
and both ratios are large enough to report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from nqbench.analysis.compare.match import Matched, Names, match_runs
from nqbench.analysis.data import statistics
from nqbench.analysis.data.dataset import Dataset, Level, PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial.effects import NOTEWORTHY, effects
from nqbench.errors import AnalysisError, StudyError


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
class Reversal:
    """A change that helps on one device and hurts on the other.

    ``ratios``  what the change multiplies the quantity by, per device
    """

    names: Names
    quantity: Quantity
    change: Change
    ratios: tuple[Estimate, Estimate]


@dataclass(frozen=True, slots=True)
class EffectDifference:
    """The change whose effect differs most between two sides, of ``compared`` changes.

    ``ratios``  what it multiplies the quantity by, per side; ``ratio`` the second over the first
    ``clear``   whether the difference is significant, corrected for the number of changes, and
                large enough to report
    """

    names: Names
    quantity: Quantity
    change: Change
    ratios: tuple[Estimate, Estimate]
    ratio: Estimate
    compared: int
    clear: bool


def most_different(
    sides: tuple[Dataset, Dataset], names: Names, pairs: Sequence[Matched], what: Quantity
) -> EffectDifference | None:
    """The largest clear difference of an effect on the points of ``pairs``, else the largest.

    ``None`` without effects.
    """
    one, two = map(dict, _changes_of_both(sides, pairs, what))
    both = [c for c in one if c in two and all(0 < d[c].value < math.inf for d in (one, two))]
    if not both:
        return None
    contrasts = [statistics.between(one[c], two[c]) for c in both]
    p_values = statistics.adjusted([c.p_different() for c in contrasts])
    clear = [
        (p <= statistics.ALPHA or one[c].exact) and abs(k.log_ratio) >= math.log(NOTEWORTHY)
        for c, k, p in zip(both, contrasts, p_values, strict=True)
    ]
    best = max(range(len(both)), key=lambda i: (clear[i], abs(contrasts[i].log_ratio)))
    change, ratio = both[best], contrasts[best].estimate()
    if one[change].exact:
        ratio = Estimate(ratio.value, exact=True)
    ratios = (one[change], two[change])
    return EffectDifference(names, what, change, ratios, ratio, len(both), clear[best])


def reversals(runs: Sequence[Dataset], names: Sequence[str], what: Quantity) -> list[Reversal]:
    """Every change that reverses between two devices, the strongest first."""
    if not what.better:
        return []  # neither direction is good by itself
    found: list[Reversal] = []
    for i, j in combinations(range(len(runs)), 2):
        sides, called = (runs[i], runs[j]), (names[i], names[j])
        pairs = match_runs(*sides, called).pairs
        first, second = map(_clear, _changes_of_both(sides, pairs, what))
        found += [
            Reversal(called, what, change, (one, second[change]))
            for change, one in first.items()
            if change in second and (one.value - 1) * (second[change].value - 1) < 0
        ]
    return sorted(found, key=lambda r: -min(abs(math.log(e.value)) for e in r.ratios))


def _changes_of_both(
    sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], what: Quantity
) -> Iterable[list[tuple[Change, Estimate]]]:
    """The changes of the two runs on the points of ``pairs`` alone: their effects are those of the
    same points, also where one run was cut short or lacks what did not fit its device."""
    for side, data in enumerate(sides):
        points = tuple(pair[side] for pair in pairs)
        yield list(changes(replace(data, points=points), what))


def changes(data: Dataset, what: Quantity) -> Iterable[tuple[Change, Estimate]]:
    """Every main effect of a factor, and every step from one version of a system to the next."""
    for sweep in data.sweeps:
        try:
            found = effects(data, sweep, what)
        except AnalysisError:
            continue  # a sweep without factors, or with nothing to compare, has no effects
        for effect in found:
            if effect.factor != "system":
                change = Change(sweep, effect.n, effect.factor, effect.base, effect.level)
                yield change, effect.ratio
        yield from _steps(data, sweep, what)


def _steps(data: Dataset, sweep: str, what: Quantity) -> Iterable[tuple[Change, Estimate]]:
    """From each version of a paper's system to the next, where both were measured once per size."""
    by_size: dict[int, dict[str, list[PointResult]]] = {}
    for point in data.select(sweep, cpu=False):
        if point.ok and point.system and point.values(what):
            by_size.setdefault(point.n, {}).setdefault(point.system, []).append(point)
    for n, systems in by_size.items():
        for one, two in _consecutive(data, list(systems)):
            if len(systems[one]) == len(systems[two]) == 1:
                values = [systems[s][0].values(what) for s in (one, two)]
                if what.kind == "time":
                    found = statistics.paired(*values).estimate()
                else:
                    first, second = (next(iter(v.values())) for v in values)
                    if not first or not second:
                        continue
                    found = Estimate(second / first, exact=True)
                yield Change(sweep, n, "system", one, two), found


def _consecutive(data: Dataset, present: Sequence[str]) -> list[tuple[str, str]]:
    """Neighbours in the workload's own list of systems, within one paper."""
    from nqbench.workloads import of_study

    try:
        listed = list(of_study(data.study).systems)
    except StudyError:  # a user's own workload, which is not here
        listed = list(present)
    ordered = sorted((s for s in present if s in listed), key=listed.index)
    return [(a, b) for a, b in pairwise(ordered) if a.partition(".")[0] == b.partition(".")[0]]


def _clear(changes: Sequence[tuple[Change, Estimate]]) -> dict[Change, Estimate]:
    """Changes that are significant, corrected for their number, and large enough to report."""
    p_values = statistics.adjusted([statistics.p_different(ratio) for _, ratio in changes])
    return {
        change: ratio
        for (change, ratio), p in zip(changes, p_values, strict=True)
        if (p <= statistics.ALPHA or ratio.exact)
        and 0 < ratio.value < math.inf
        and abs(math.log(ratio.value)) >= math.log(NOTEWORTHY)
    }
