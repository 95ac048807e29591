"""Devices against each other: do they rank the same points alike, and does anything that helps on
one hurt on another?

Two kinds of change are looked at: a factor's main effect in a sweep, and the step from one version
of a paper's system to the next. A change reverses where its ratio lies clearly below 1 on one
device and clearly above on another: intervals exclude 1 after correction for the number of changes,
and both ratios are large enough to report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations
from typing import Final

from nqbench.analysis.compare.match import Matched, match_runs
from nqbench.analysis.data.dataset import Dataset, Level, PointResult
from nqbench.analysis.data.estimate import CONFIDENCE, Estimate, quantile
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.data.statistics import ALPHA, adjusted, between, paired
from nqbench.analysis.factorial.effects import NOTEWORTHY, effects
from nqbench.errors import AnalysisError, StudyError

MIN_RANKED: Final = 4
"""With fewer points a rank correlation has only a handful of possible values."""
MAX_EXACT_RANKED: Final = 8
"""Points up to which all their orders (40,320) are looked at for a p value."""
ROUNDING: Final = 1e-9
"""Sums of ranks are multiples of a quarter: what differs by less is equal."""


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """How alike two devices order the points of one size.

    ``spearman`` and ``kendall`` (tau-b) are 1 for the same order, -1 for the opposite one; the p
    values are of the hypothesis that the orders are unrelated.
    """

    names: tuple[str, str]
    quantity: Quantity
    of: str
    n: int
    points: int
    spearman: float
    spearman_p: float
    kendall: float
    kendall_p: float


@dataclass(frozen=True, slots=True)
class Reversal:
    """A change that helps on one device and hurts on the other.

    ``change``  in words; ``ratios``  what it multiplies the quantity by, per device
    """

    names: tuple[str, str]
    quantity: Quantity
    n: int
    change: str
    ratios: tuple[Estimate, Estimate]


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
class Differing:
    """The change whose effect differs most between two devices, of ``compared`` changes.

    ``ratios``  what it multiplies the quantity by, per device; ``ratio`` the second over the first
    ``clear``   whether the difference is significant, corrected for the number of changes, and
                large enough to report
    """

    quantity: Quantity
    change: Change
    ratios: tuple[Estimate, Estimate]
    ratio: Estimate
    compared: int
    clear: bool


def shared(sides: tuple[Dataset, Dataset], pairs: Iterable[Matched]) -> tuple[Dataset, Dataset]:
    """The two runs with the points of ``pairs`` alone: their effects are those of the same points,
    also where one run was cut short or lacks what did not fit its device."""
    both = [(pair.first, pair.second) for pair in pairs]
    one, two = sides
    return (
        replace(one, points=tuple(first for first, _ in both)),
        replace(two, points=tuple(second for _, second in both)),
    )


def most_differing(
    sides: tuple[Dataset, Dataset], pairs: Iterable[Matched], what: Quantity
) -> Differing | None:
    """The largest clear difference of an effect on the points of ``pairs``, else the largest.

    ``None`` without effects.
    """
    one, two = (dict(changes(data, what)) for data in shared(sides, pairs))
    both = [c for c in one if c in two and all(0 < d[c].value < math.inf for d in (one, two))]
    if not both:
        return None
    contrasts = [between(one[c], two[c]) for c in both]
    p_values = adjusted([c.p_different() for c in contrasts])
    clear = [
        (p <= ALPHA or one[c].exact) and abs(k.log_ratio) >= math.log(NOTEWORTHY)
        for c, k, p in zip(both, contrasts, p_values, strict=True)
    ]
    best = max(range(len(both)), key=lambda i: (clear[i], abs(contrasts[i].log_ratio)))
    change, ratio = both[best], contrasts[best].estimate()
    if one[change].exact:
        ratio = Estimate(ratio.value, exact=True)
    pair = (one[change], two[change])
    return Differing(what, change, pair, ratio, len(both), clear[best])


def rank_correlations(
    runs: Sequence[Dataset], names: Sequence[str], what: Quantity
) -> list[RankCorrelation]:
    """Of every two runs, sweep by sweep and size by size.

    Short sweeps are left out, and counters that are equal at every point of a sweep.
    """
    found = []
    for i, j in combinations(range(len(runs)), 2):
        pair = (names[i], names[j])
        matching = match_runs(runs[i], runs[j], pair)
        groups: dict[tuple[str, int], list[tuple[float, float]]] = {}
        for matched in matching.pairs:
            values = [p.estimate(what) for p in (matched.first, matched.second)]
            if matched.first.cpu or values[0] is None or values[1] is None:
                continue
            place = (matched.first.sweep, matched.first.n)
            groups.setdefault(place, []).append((values[0].value, values[1].value))
        for (sweep, n), both in sorted(groups.items()):
            if what.kind == "counter" and all(a == b for a, b in both):
                continue  # equal everywhere: a test of unrelated orders would say nothing
            one = _rank(pair, what, sweep, n, both)
            if one is not None:
                found.append(one)
    return found


def _rank(
    names: tuple[str, str], what: Quantity, of: str, n: int, both: Sequence[tuple[float, float]]
) -> RankCorrelation | None:
    ones, twos = [b[0] for b in both], [b[1] for b in both]
    if len(both) < MIN_RANKED or len(set(ones)) == 1 or len(set(twos)) == 1:
        return None
    from scipy.stats import kendalltau, spearmanr

    spearman, kendall = spearmanr(ones, twos), kendalltau(ones, twos)
    return RankCorrelation(
        names,
        what,
        of,
        n,
        len(both),
        float(spearman.statistic),
        _spearman_p(ones, twos, float(spearman.pvalue)),
        float(kendall.statistic),
        float(kendall.pvalue),
    )


def _spearman_p(ones: Sequence[float], twos: Sequence[float], by_t: float) -> float:
    """Of few points exactly, over all their orders; of more by Student's t (``by_t``).

    The t distribution gives 0 to points in one order, which two orders of n! have by chance.
    """
    import numpy as np
    from scipy.stats import rankdata

    if len(ones) > MAX_EXACT_RANKED:
        return max(by_t, 2 / math.factorial(len(ones)))
    one, two = rankdata(ones), rankdata(twos)
    centred = one - one.mean()
    sums = np.array(list(permutations(two))) @ centred
    return float(np.mean(np.abs(sums) >= abs(centred @ two) - ROUNDING))


def reversals(runs: Sequence[Dataset], names: Sequence[str], what: Quantity) -> list[Reversal]:
    """Every change that reverses between two devices, the strongest first."""
    if not what.better:
        return []  # neither direction is good by itself
    found = []
    for i, j in combinations(range(len(runs)), 2):
        pairs = match_runs(runs[i], runs[j], (names[i], names[j])).pairs
        first, second = (
            _clear(list(changes(data, what))) for data in shared((runs[i], runs[j]), pairs)
        )
        for key in first:
            if key not in second:
                continue
            one, two = first[key], second[key]
            if (one.value - 1) * (two.value - 1) < 0:
                found.append(Reversal((names[i], names[j]), what, key.n, str(key), (one, two)))
    return sorted(found, key=lambda r: -min(abs(math.log(e.value)) for e in r.ratios))


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
                    found = paired(*values).estimate()
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
    paper = [s.partition(".")[0] for s in ordered]
    return [pair for pair, (a, b) in zip(pairwise(ordered), pairwise(paper), strict=True) if a == b]


def _clear(changes: Sequence[tuple[Change, Estimate]]) -> dict[Change, Estimate]:
    """Changes that are significant, corrected for their number, and large enough to report."""
    p_values = adjusted([_p_of_one(ratio) for _, ratio in changes])
    return {
        change: ratio
        for (change, ratio), p in zip(changes, p_values, strict=True)
        if (p <= ALPHA or ratio.exact)
        and 0 < ratio.value < math.inf
        and abs(math.log(ratio.value)) >= math.log(NOTEWORTHY)
    }


def _p_of_one(estimate: Estimate) -> float:
    """p of the hypothesis that the value is 1, from a t interval over rounds."""
    if estimate.low is None or estimate.high is None or estimate.rounds < 2:
        return math.nan
    from scipy.special import stdtr

    half = (math.log(estimate.high) - math.log(estimate.low)) / 2
    if half == 0:
        return float(estimate.value == 1)
    t = abs(math.log(estimate.value)) / half * quantile(estimate.rounds, CONFIDENCE)
    return float(2 * stdtr(estimate.rounds - 1, -t))
