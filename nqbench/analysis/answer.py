"""The answer of a run: which variant is best, what each change is worth, and why.

Everything that opens with an answer (the end of ``run``, a report page, ``--json``) shows this one,
so that they agree. All of it is about the largest size of a sweep that has values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from nqbench.analysis import wording
from nqbench.analysis.data.dataset import Dataset, Level, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import CPU_TIME, Quantity, quantity
from nqbench.analysis.factorial.effects import (
    FactorEffect,
    Interaction,
    distinct_factors,
    effects,
    interactions,
    swept_factors,
)
from nqbench.errors import AnalysisError
from nqbench.point import PART
from nqbench.vocabulary import BETTER

ANSWERING: Final = ("off_chip_sectors", "warp_instructions", "lane_efficiency", "bank_conflicts")
"""Counters that answer for a simulated run: traffic, work, how full the warps are, conflicts. No
single one is the cost, so all of them are shown."""
MODELLED: Final = "modelled_ms"
NO_CHANGE: Final = ("system", "seed", PART)
"""Factors that change no kernel: a system is many changes at once, a seed is chance."""
DECISIVE: Final = 1.1
"""Smallest interaction worth a sentence."""
EXPLAINING: Final = ("divergent_branches", "shared_replays", "l1_miss_sectors", "dram_bytes")
"""Further counters that say why one point is better than another."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best point of a sweep by one quantity, at the largest size.

    ``over_worst``, ``over_next``  ratio to the worst point and to the runner-up, above 1 where the
                    best is better; ``None`` for a single point
    ``over_default``  the same against the point that has the first level of every factor
    """

    sweep: str
    n: int
    what: Quantity
    point: PointResult
    name: str
    value: Estimate
    of: int
    worst: PointResult | None = None
    over_worst: Estimate | None = None
    next_name: str = ""
    over_next: Estimate | None = None
    over_default: Estimate | None = None

    @property
    def clear(self) -> bool:
        """Whether it is clearly better than the worst, even as the most extreme of all."""
        worst = self.over_worst
        if worst is None or not worst.bounded:
            return True
        return worst.noteworthy and worst.differs_from(1, self.of)


@dataclass(frozen=True, slots=True)
class FactorStep:
    """One step of a factor and what it does to each quantity, everything else equal."""

    sweep: str
    n: int
    factor: str
    base: Level
    level: Level
    effects: Mapping[str, FactorEffect]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a run says, worked out when it is first asked for; ``value`` names the quantity that it
    answers in instead of the usual ones."""

    data: Dataset
    value: str = ""

    @cached_property
    def whole(self) -> tuple[PointResult, ...]:
        """The points that are alternatives: a part of a kernel is none."""
        return tuple(p for p in self.data.points if PART not in p.levels)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """What the run answers in, the most telling first."""
        if self.value:
            return (self.data.quantity(self.value),)
        if not self.data.simulated:
            return self.data.quantities()
        names = [MODELLED, *self.data.metrics, *ANSWERING]
        found = [self.data.quantity(name) for name in names]
        valued = [q for q in found if any(p.values(q) for p in self.whole)]
        return tuple(q for q in valued if q.better)

    @cached_property
    def sweep(self) -> str:
        """The sweep that answers: the one that crosses most factors, the first of several."""
        crossed = {
            s: sum(f not in NO_CHANGE for f in swept_factors(self.data, s))
            for s in self.data.sweeps
        }
        return max(crossed, key=lambda s: crossed[s], default="")

    @cached_property
    def best(self) -> list[Best]:
        """The best point of the answering sweep by each quantity."""
        return self.best_of(self.sweep, self.quantities)

    @cached_property
    def elsewhere(self) -> list[Best]:
        """The best point of each other sweep by the first quantity that says something."""
        found = (self.best_of(s, self.quantities) for s in self.data.sweeps if s != self.sweep)
        return [one[0] for one in found if one]

    @cached_property
    def changes(self) -> list[FactorStep]:
        """The strongest step of each factor of the answering sweep, the strongest first."""
        strongest: dict[str, FactorStep] = {}
        for step in sorted(self.steps(self.sweep), key=self.strength, reverse=True):
            strongest.setdefault(step.factor, step)
        return list(strongest.values())

    def matters(self, effect: FactorEffect) -> bool:
        """Whether an effect is large enough to report, and clear even as the most extreme of all
        those of its size (Bonferroni)."""
        beside = [
            e
            for effects in self._all_effects.values()
            for e in effects
            if (e.n, e.quantity) == (effect.n, effect.quantity)
        ]
        return effect.ratio.noteworthy and effect.ratio.differs_from(1, len(beside))

    def strength(self, change: FactorStep) -> float:
        """Weight of the largest effect that matters."""
        found = filter(self.matters, change.effects.values())
        return max((wording.weight(e.ratio, e.quantity, e.totals) for e in found), default=0.0)

    def by_size(self, change: FactorStep) -> dict[int, FactorEffect]:
        """What a change does to the first quantity at each size."""
        return {
            e.n: e
            for e in self._effects(change.sweep)
            if e.quantity == self.quantities[0]
            and (e.factor, e.base, e.level) == (change.factor, change.base, change.level)
        }

    def steps(self, sweep: str) -> list[FactorStep]:
        """Every step from a factor's first level, at the largest size of a sweep."""
        found: dict[tuple[str, Level, Level], dict[str, FactorEffect]] = {}
        n = max((e.n for e in self._effects(sweep)), default=0)
        for effect in self._effects(sweep):
            if effect.n == n:
                change = (effect.factor, effect.base, effect.level)
                found.setdefault(change, {})[effect.quantity.name] = effect
        return [FactorStep(sweep, n, *change, by) for change, by in found.items()]

    def _effects(self, sweep: str) -> list[FactorEffect]:
        return self._all_effects.get(sweep, [])

    @cached_property
    def _all_effects(self) -> dict[str, list[FactorEffect]]:
        found: dict[str, list[FactorEffect]] = {}
        for sweep in self.data.sweeps:
            for what in self.quantities:
                try:
                    made = effects(self.data, sweep, what)
                except AnalysisError:
                    continue  # nothing varies, or nothing can be compared
                found.setdefault(sweep, []).extend(e for e in made if e.factor not in NO_CHANGE)
        return found

    def best_of(self, sweep: str, quantities: Sequence[Quantity]) -> list[Best]:
        """The best point of a sweep by each quantity that tells its points apart."""
        made = (self._best(sweep, what) for what in quantities)
        return [one for one in made if one is not None]

    def _best(self, sweep: str, what: Quantity) -> Best | None:
        points = [p for p in self.whole if p.sweep == sweep and p.cpu == (what is CPU_TIME)]
        ranked = best_first(points, what)
        if not ranked or (value := ranked[0].estimate(what)) is None:
            return None
        first, last = ranked[0], ranked[-1]
        if what.exact and first.value(what) == last.value(what) and first is not last:
            return None
        factors = distinct_factors(self.data, sweep, swept_factors(self.data, sweep))
        made = Best(
            sweep, first.n, what, first, wording.describe(first, factors), value, len(ranked)
        )
        if first is last:
            return made
        default = self._default(sweep, ranked)
        return replace(
            made,
            worst=last,
            over_worst=_gain(first, last, what),
            next_name=wording.describe(ranked[1], factors),
            over_next=_gain(first, ranked[1], what),
            over_default=_gain(first, default, what) if default else None,
        )

    def _default(self, sweep: str, ranked: Sequence[PointResult]) -> PointResult | None:
        """The point with the first level of every factor that the sweep varies."""
        factors = swept_factors(self.data, sweep)
        first = {f: self.data.order(sweep, f)[0] for f in factors}
        return next((p for p in ranked if all(p.level(f) == v for f, v in first.items())), None)

    @cached_property
    def interaction(self) -> Interaction | None:
        """The strongest interaction that changes a decision: with one level of the other factor the
        change is better, with the other level it is worse."""
        factors = [f for f in swept_factors(self.data, self.sweep) if f not in NO_CHANGE]
        found: list[Interaction] = []
        for what in self.quantities:
            for order in (factors, factors[::-1]):  # each pair is seen from both of its factors
                try:
                    found += interactions(self.data, self.sweep, what, factors=order)
                except AnalysisError:
                    continue
        n = max((i.n for i in found), default=0)
        here = [i for i in found if i.n == n and 0 < i.ratio.value < math.inf]
        decides = [
            i
            for i in here
            if i.factor in i.reversed
            and i.at_base.noteworthy
            and i.at_level.noteworthy
            and i.ratio.distance >= math.log(DECISIVE)
            and i.ratio.differs_from(1, len(here))
        ]
        return max(decides, key=lambda i: i.ratio.distance, default=None)

    @cached_property
    def turns(self) -> str:
        """Of the changes that matter, the first that is better at one size and worse at another."""
        for change in self.changes:
            for what in self.quantities:
                now = change.effects.get(what.name)
                if now is None or not self.matters(now) or not wording.mark(now.ratio, what):
                    continue
                signs = {
                    e.n: wording.mark(e.ratio, what)
                    for e in self._effects(self.sweep)
                    if e.quantity == what
                    and (e.factor, e.base, e.level) == (now.factor, now.base, now.level)
                    and self.matters(e)
                }
                against = [n for n, sign in signs.items() if sign not in ("", signs[now.n])]
                if against:
                    same = min(n for n in signs if n > max(against) or n == now.n)
                    return _turn(now, against, same)
        return ""

    @property
    def limits(self) -> str:
        """Why the best point is best, as a sentence."""
        told = " and ".join(self.reasons)
        return f"Why: against the worst, the best has {told}." if told else ""

    @cached_property
    def reasons(self) -> list[str]:
        """The two counters in which the best point differs most from the worst."""
        if not self.best or self.best[0].worst is None:
            return []
        first, worst = self.best[0].point, self.best[0].worst
        found = []
        for name in (*ANSWERING, *EXPLAINING):
            better = BETTER.get(name, "lower")
            what = quantity(name)
            pair = [_recorded(point, what) for point in (first, worst)]
            if what == self.best[0].what or not all(pair):
                continue
            gain = Estimate(pair[0] / pair[1], exact=True)
            if (gain.value < 1) == (better == "lower") and gain.distance >= math.log(DECISIVE):
                found.append((gain.distance, wording.named(gain, what)))
        return [text for _, text in sorted(found, reverse=True)[:2]]


def _turn(effect: FactorEffect, against: Sequence[int], since: int) -> str:
    """What an effect is at the sizes where it has the other direction, and since when it has its
    own."""
    more, what = effect.ratio.value > 1, effect.quantity
    here, there = (wording.direction(side, what) for side in (more, not more))
    verb = "is" if what.kind == "time" else "has"
    return (
        f"Not at every N: {effect.level} instead of {effect.base} {verb} {there} at"
        f" N = {', '.join(map(str, against))}, and {here} from N = {since} on."
    )


def best_first(points: Iterable[PointResult], what: Quantity) -> list[PointResult]:
    """Those of the largest size that have a value, the best first; none of a quantity of which
    neither more nor less is better."""
    valued = [p for p in points if p.ok and p.values(what)]
    if not valued or not what.better:
        return []
    largest = max(p.n for p in valued)
    ranked = sorted(valued, key=lambda p: p.value(what), reverse=what.better == "higher")
    return [p for p in ranked if p.n == largest]


def _recorded(point: PointResult, what: Quantity) -> float:
    """A counter of a point, also of a timed one that was profiled; 0 where it was not recorded."""
    row = next(iter(point.measurements.values()), {})
    value = what.of(row)
    return value if math.isfinite(value) else 0.0


def _gain(best: PointResult, other: PointResult, what: Quantity) -> Estimate | None:
    """How many times better the best point is; ``None`` where one of the two counts is 0."""
    if what.exact and 0 in (best.value(what), other.value(what)):
        return None
    pair = (other, best) if what.better == "lower" else (best, other)
    return point_ratio(*pair, what)
