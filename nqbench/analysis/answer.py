"""The answer of a run: which variant is best, what each change is worth, and why.

Everything that opens with an answer (the end of ``run``, a report page, ``--json``) shows this one,
so that they agree. All of it is about the largest size of a sweep that has values.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

from nqbench.analysis import wording
from nqbench.analysis.data.dataset import Dataset, Level, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import CPU_TIME, Quantity, quantity
from nqbench.analysis.factorial import effects as factorial
from nqbench.errors import AnalysisError
from nqbench.point import PART
from nqbench.system.suggest import listing

ANSWERING: Final = ("off_chip_sectors", "warp_instructions", "lane_efficiency", "bank_conflicts")
"""Counters that answer for a simulated run: traffic, work, how full the warps are, conflicts. No
single one is the cost, so all of them are shown."""
MODELLED: Final = "modelled_ms"
NO_CHANGE: Final = ("system", "seed", PART)
"""Factors that change no kernel: a system is many changes at once, a seed is chance."""
REASONS: Final = (
    ("off_chip_sectors", "dram_bytes", "l1_miss_sectors"),
    ("warp_instructions",),
    ("lane_efficiency", "divergent_branches"),
    ("bank_conflicts", "shared_replays"),
)
"""Why one point is better than another, each by the counters that tell the same of it."""


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
    next_name: str = ""
    over_worst: Estimate | None = None
    over_next: Estimate | None = None
    over_default: Estimate | None = None

    @property
    def clear(self) -> bool:
        """Whether it is clearly better than the worst, even as the most extreme of all."""
        worst = self.over_worst
        if worst is None or not (worst.bounded or worst.exact):
            return True
        return worst.noteworthy and worst.differs_from(1, self.of)

    def differs_little(self) -> bool:
        """Whether it is by a counter in which the points differ little."""
        most, worst = math.log(factorial.DECISIVE), self.over_worst
        return self.what.name in ANSWERING and bool(worst and worst.distance < most)

    @property
    def ahead(self) -> bool:
        """Whether it is clearly better than the next, with an interval widened for the number."""
        return self.over_next is not None and self.over_next.differs_from(1, self.of)


@dataclass(frozen=True, slots=True)
class FactorStep:
    """One step of a factor and what it does to each quantity, everything else equal.

    ``sizes``  the effects by size and name of the quantity; ``effects`` those at ``n``
    """

    sweep: str
    n: int
    factor: str
    base: Level
    level: Level
    sizes: Mapping[int, Mapping[str, factorial.FactorEffect]]

    @property
    def effects(self) -> Mapping[str, factorial.FactorEffect]:
        """By the name of the quantity, at the largest size of the sweep."""
        return self.sizes[self.n]

    def by_size(self, what: Quantity) -> dict[int, factorial.FactorEffect]:
        """What it does to a quantity at each size."""
        return {n: own[what.name] for n, own in self.sizes.items() if what.name in own}


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
            s: sum(f not in NO_CHANGE for f in factorial.swept_factors(self.data, s))
            for s in self.data.sweeps
        }
        return max(crossed, key=lambda s: crossed[s], default="")

    @cached_property
    def question(self) -> str:
        """The study's question; else, of what its answering sweep varies. Empty if it varies
        nothing."""
        about = " ".join(str(self.data.study.get("about") or "").split())
        if about.endswith("?"):
            return about
        varied = list(factorial.swept_factors(self.data, self.sweep)) if self.sweep else []
        worth = ", and what is each change worth" if set(varied) - {*NO_CHANGE} else ""
        verb = "are" if varied[1:] else "is"
        return f"Which {listing(varied, 'and')} {verb} best{worth}?" if varied else ""

    @cached_property
    def best(self) -> list[Best]:
        """The best point of the answering sweep by each quantity in which the points clearly
        differ, counters that differ little last; if there is none, by the first."""
        found = self.best_of(self.sweep, self.quantities)
        clear = [best for best in found if best.clear]
        return sorted(clear, key=Best.differs_little) or found[:1]

    @cached_property
    def telling(self) -> tuple[Quantity, ...]:
        """The quantities, those first that tell the points of the answering sweep apart."""
        return tuple(dict.fromkeys([*(best.what for best in self.best), *self.quantities]))

    @cached_property
    def ranked(self) -> list[PointResult]:
        """The points of the answering sweep at its largest size, the best first."""
        points = [p for p in self.whole if p.sweep == self.sweep]
        points = [p for p in points if p.cpu == self.data.programs_only]
        return best_first(points, self.telling[0], self.telling) if self.telling else []

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

    def matters(self, effect: factorial.FactorEffect) -> bool:
        """Whether an effect is large enough to report, and clear even as the most extreme of all
        those of its size (Bonferroni)."""
        every = (e for found in self._effects.values() for e in found)
        beside = sum((e.n, e.quantity) == (effect.n, effect.quantity) for e in every)
        return effect.ratio.noteworthy and effect.ratio.differs_from(1, beside)

    def strength(self, change: FactorStep) -> float:
        """Weight of the largest effect that matters."""
        found = filter(self.matters, change.effects.values())
        return max((wording.weight(e.ratio, e.quantity, e.totals) for e in found), default=0.0)

    def steps(self, sweep: str) -> list[FactorStep]:
        """Every step from a factor's first level, at the largest size of a sweep."""
        found: dict[tuple[str, Level, Level], dict[int, dict[str, factorial.FactorEffect]]] = {}
        for e in self._effects[sweep]:
            sizes = found.setdefault((e.factor, e.base, e.level), {})
            sizes.setdefault(e.n, {})[e.quantity.name] = e
        n = max((e.n for e in self._effects[sweep]), default=0)
        return [FactorStep(sweep, n, *step, sizes) for step, sizes in found.items() if n in sizes]

    @cached_property
    def _effects(self) -> Mapping[str, list[factorial.FactorEffect]]:
        """By sweep; a sweep in which nothing varies, or nothing can be compared, has none."""
        found: dict[str, list[factorial.FactorEffect]] = defaultdict(list)
        for sweep, what in product(self.data.sweeps, self.quantities):
            with suppress(AnalysisError):
                made = factorial.effects(self.data, sweep, what)
                found[sweep] += [e for e in made if e.factor not in NO_CHANGE]
        return found

    def best_of(self, sweep: str, quantities: Sequence[Quantity]) -> list[Best]:
        """The best point of a sweep by each quantity that tells its points apart."""
        made = (self._best(sweep, what) for what in quantities)
        return [one for one in made if one is not None]

    def _best(self, sweep: str, what: Quantity) -> Best | None:
        points = [p for p in self.whole if p.sweep == sweep and p.cpu == (what is CPU_TIME)]
        ranked = best_first(points, what, self.quantities if self.data.simulated else ())
        if not ranked or (value := ranked[0].estimate(what)) is None:
            return None
        first, last = ranked[0], ranked[-1]
        swept = factorial.swept_factors(self.data, sweep)
        factors = factorial.distinct_factors(self.data, sweep, swept)
        name = wording.describe(first, factors)
        if first is last:
            return Best(sweep, first.n, what, first, name, value, 1)
        if what.exact and first.value(what) == last.value(what):
            return None
        usual = {f: self.data.order(sweep, f)[0] for f in swept}
        plain = (p for p in ranked if all(p.level(f) == v for f, v in usual.items()))
        others = last, ranked[1], next(plain, None)
        over = [_gain(first, one, what) if one else None for one in others]
        called = wording.describe(ranked[1], factors)
        return Best(sweep, first.n, what, first, name, value, len(ranked), last, called, *over)

    @cached_property
    def interaction(self) -> factorial.Interaction | None:
        """The strongest interaction that changes a decision: with one level of the other factor the
        change is better, with the other level it is worse."""
        factors = [f for f in factorial.swept_factors(self.data, self.sweep) if f not in NO_CHANGE]
        found: list[factorial.Interaction] = []
        for order in (factors, factors[::-1]):
            with suppress(AnalysisError):  # each pair is seen from both of its factors
                found += factorial.interactions(self.data, self.sweep, self.quantities, order)
        decides = [
            i
            for i in factorial.clear_interactions(found)
            if i.factor in i.reversed and i.at_base.noteworthy and i.at_level.noteworthy
        ]
        return max(decides, key=lambda i: i.ratio.distance, default=None)

    @cached_property
    def turns(self) -> str:
        """Of the changes that matter, the first that is better at one size and worse at another."""
        for change, what in product(self.changes, self.quantities):
            known = {n: e for n, e in change.by_size(what).items() if self.matters(e)}
            signs = {n: wording.mark(e.ratio, what) for n, e in known.items()}
            now = signs.get(change.n)
            against = [n for n, sign in signs.items() if now and sign not in ("", now)]
            if against:
                since = min(n for n in signs if n > max(against) or n == change.n)
                effect = known[change.n]
                more, verb = effect.ratio.value > 1, "is" if what.kind == "time" else "has"
                here, there = (wording.direction(side, what) for side in (more, not more))
                return (
                    f"Not at every N: {effect.level} instead of {effect.base} {verb} {there} at"
                    f" N = {', '.join(map(str, against))}, and {here} from N = {since} on."
                )
        return ""

    @property
    def limits(self) -> str:
        """Why the best point is best, as a sentence."""
        told = " and ".join(self.reasons)
        return f"Why: against the worst, the best has {told}." if told else ""

    @cached_property
    def reasons(self) -> list[str]:
        """The two things in which the best point differs most from the worst."""
        if not self.best or self.best[0].worst is None:
            return []
        first, worst = self.best[0].point, self.best[0].worst
        gains: list[tuple[float, str]] = []
        for names in REASONS:
            told = []
            for what in (quantity(name) for name in names if name != self.best[0].what.name):
                rows = (next(iter(p.measurements.values()), {}) for p in (first, worst))
                own, other = map(what.of, rows)  # also of timed points that were profiled
                gain = Estimate(own / other if own > 0 and other > 0 else 1.0, exact=True)
                less = what.better == "lower"
                if (gain.value < 1) == less and gain.distance >= math.log(factorial.DECISIVE):
                    told.append((gain.distance, wording.named(gain, what)))
            gains += [max(told)] if told else []
        return [text for _, text in sorted(gains, reverse=True)[:2]]


def best_first(
    points: Iterable[PointResult], what: Quantity, ties: Sequence[Quantity] = ()
) -> list[PointResult]:
    """Those of the largest size that have a value, the best first, of equal ones the better by
    ``ties``; none of a quantity of which neither more nor less is better."""
    valued = [p for p in points if p.ok and p.values(what)]
    if not valued or not what.better:
        return []
    largest = max(p.n for p in valued)
    signs = [(-1 if q.better == "higher" else 1, q) for q in (what, *ties)]
    ranked = [p for p in valued if p.n == largest]
    return sorted(ranked, key=lambda p: [sign * p.value(q) for sign, q in signs if p.values(q)])


def _gain(best: PointResult, other: PointResult, what: Quantity) -> Estimate | None:
    """How many times better the best point is; ``None`` where one of the two counts is 0."""
    if what.exact and 0 in (best.value(what), other.value(what)):
        return None
    pair = (other, best) if what.better == "lower" else (best, other)
    return point_ratio(*pair, what)
