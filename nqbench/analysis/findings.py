"""The most important findings in sentences, each with its basis.

A sentence is made only where the interval allows it. The most extreme of several estimates has to
clear an interval widened for that choice (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from nqbench.analysis.data.dataset import Dataset, PointResult, load_dataset, point_ratio
from nqbench.analysis.data.estimate import NOTEWORTHY, Estimate
from nqbench.analysis.data.quantities import Quantity, quantity
from nqbench.analysis.factorial.effects import (
    FactorEffect,
    effects,
    interactions,
    swept_factors,
)
from nqbench.analysis.limits.bottleneck import bottlenecks, verdict_text
from nqbench.analysis.wording import describe, does, interval_note, number, ratio, time
from nqbench.errors import AnalysisError
from nqbench.point import PART
from nqbench.system.suggest import many

WANTED: Final = 3
"""Number of findings shown: as many as can be read at a glance."""

REPORTED_COUNTERS: Final = (
    "lane_efficiency",
    "bank_conflicts",
    "warp_instructions",
    "off_chip_sectors",
)
"""Counters that findings of a simulated run are about: how full warps are, conflicts, work,
traffic. One sentence each, because no single one is the cost."""

NEARLY_ALL: Final = 0.01
"""Below this ratio of counts, the percentage that is gone reads better than the ratio."""

NO_CHANGE: Final = ("system", "seed")
"""Factors that do not change a kernel: a system is many changes at once, a seed is chance."""

Maker = Callable[[Dataset, str, Quantity], str | None]


def findings(run: Dataset | Path | str, wanted: int = WANTED) -> list[str]:
    """The ``wanted`` most important findings about a run, in sentences.

    A run that supports none gets one sentence that says so.
    """
    data = run if isinstance(run, Dataset) else load_dataset(run)
    whole = tuple(p for p in data.points if PART not in p.levels)
    if data.points and not whole:  # parts are no alternatives to compare
        return [verdict_text(found) for found in bottlenecks(data)]
    data = replace(data, points=whole)
    sentences: list[str] = []
    for sentence in _candidates(data):
        if sentence not in sentences:
            sentences.append(sentence)
        if len(sentences) == wanted:
            break
    if sentences:
        return sentences
    ok = [p for p in data.points if p.ok]
    counted = f"{len(ok)} of {many(len(data.points), 'point')} finished"
    return [f"No finding: {counted}{_nothing_found(data, ok)}."]


def _nothing_found(data: Dataset, ok: Sequence[PointResult]) -> str:
    """Why points that finished support no finding."""
    if len(ok) < 2:
        return ""
    if all(p.cpu for p in ok):
        return (
            "; none of them is a kernel, and findings compare kernels only; the tables have the"
            " times"
        )
    if data.rounds == 1 and not data.simulated:
        return "; with one round no time has an interval, so that findings need `rounds: 2` or more"
    return ", and none of their differences exceeds its interval"


def _candidates(data: Dataset) -> Iterator[str]:
    """Sentences in order of interest: the richest factorial first. A list of systems is none."""
    crossed = {s: sum(f not in NO_CHANGE for f in swept_factors(data, s)) for s in data.sweeps}
    ranked = sorted(crossed, key=lambda s: -crossed[s])
    asked: list[tuple[Maker, str, str]] = []
    first, rest = REPORTED_COUNTERS[:2], REPORTED_COUNTERS[2:]
    for sweep in ranked:
        if data.simulated:
            asked += [(strongest_factor, sweep, name) for name in first]
            asked.append((strongest_interaction, sweep, "lane_efficiency"))
            asked += [(strongest_factor, sweep, name) for name in rest]
            asked += [(extremes, sweep, name) for name in REPORTED_COUNTERS]
        else:
            makers: list[Maker] = [extremes, strongest_factor, strongest_interaction]
            if sweep == ranked[0]:
                makers = [strongest_factor, extremes, strongest_interaction]
            asked += [(make, sweep, "time") for make in makers]
    for make, sweep, name in asked:
        try:
            sentence = make(data, sweep, quantity(name))
        except AnalysisError:
            continue  # this sweep does not support this sentence; others may
        if sentence:
            yield sentence


def strongest_factor(data: Dataset, sweep: str, what: Quantity) -> str | None:
    """The factor with the largest main effect at the largest size that has it."""
    found = [e for e in effects(data, sweep, what) if e.factor not in NO_CHANGE]
    largest = max((e.n for e in found), default=0)
    # A count that starts from 0 has no ratio: the base level lacks the mechanism.
    here = [e for e in found if e.n == largest and math.isfinite(e.ratio.value)]
    clear = [e for e in here if _is_clear(e.ratio, len(here))]
    if any(e.method == "totals" for e in here):
        # From nearly zero any growth looks huge; what removes the count is worth reporting.
        clear = [e for e in clear if e.ratio.value < 1]
    where = _where(data, sweep, largest)
    if not clear:
        if not here or not here[0].ratio.bounded:
            return None
        return (
            f"No factor clearly changes the {what.label} by {NOTEWORTHY - 1:.0%} or more"
            f" ({where}; {many(len(here), 'effect')} compared; {interval_note(here[0].ratio)})."
        )
    best = max(clear, key=lambda e: e.ratio.distance)
    pairs = many(best.pairs, "otherwise equal pair")
    over = "all combinations" if best.method == "least squares" else pairs
    return (
        f"Strongest factor for {what.label}: {best.factor}. {best.level} instead of {best.base}"
        f" {_effect_says(best)}{_elsewhere(best, found)} ({where}; {best.method} over {over};"
        f" {interval_note(best.ratio)})."
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


def extremes(data: Dataset, sweep: str, what: Quantity) -> str | None:
    """The best point of a sweep against the worst, the runner-up and the CPU baseline."""
    factors = swept_factors(data, sweep)
    ranked = best_first(data.select(sweep, cpu=False), what)
    if len(ranked) < 2:
        return None
    best, second, worst = ranked[0], ranked[1], ranked[-1]
    if what.kind == "counter" and 0 in (best.value(what), worst.value(what)):
        return None  # the strongest factor says what brings a counter to zero
    gap = point_ratio(*((worst, best) if what.better == "lower" else (best, worst)), what)
    if not _is_clear(gap, len(ranked)):
        return None
    value = best.value(what)
    winner = f"{describe(best, factors)} with {time(value) if what.unit == 's' else number(value)}"
    last = describe(worst, factors)
    basis = f"({_where(data, sweep, best.n)}; {interval_note(gap)})"
    points = f"{what.label} of {len(ranked)} points"
    if what.kind == "counter":  # of which none is the cost: no value of it is "best"
        if what.better == "higher":
            return f"Highest {points}: {winner}, {ratio(gap)} times the lowest ({last}) {basis}."
        return (
            f"Lowest {points}: {winner}; the highest ({last}) is {ratio(gap)} times that {basis}."
        )
    rank, runner_up = "other", ""
    if len(ranked) > 2:
        lead, name = point_ratio(second, best, what), describe(second, factors)
        runner_up = f"; not distinguishable from the next ({name}: {ratio(lead)})"
        if lead.differs_from(1):
            runner_up = f"; the next ({name}) takes {ratio(lead)} times as long"
        rank = "worst"
    return (
        f"Best {points}: {winner}, {ratio(gap)} times as fast as the {rank} ({last})"
        f"{runner_up}{_baseline(data, best, what)} {basis}."
    )


def _baseline(data: Dataset, best: PointResult, what: Quantity) -> str:
    """Against the fastest CPU program at the same size."""
    baselines = [p for p in data.select(cpu=True) if p.ok and p.n == best.n and p.values(what)]
    if not baselines:
        return ""
    fastest = min(baselines, key=lambda p: p.value(what))
    gain = point_ratio(fastest, best, what)
    return (
        f"; {fastest.system} on the CPU {does(gain, what)} (the whole computation, against the"
        " kernel alone)"
    )


def strongest_interaction(data: Dataset, sweep: str, what: Quantity) -> str | None:
    """A reversal if there is one, else the strongest interaction, at the largest size."""
    factors = [f for f in swept_factors(data, sweep) if f not in NO_CHANGE]
    found = interactions(data, sweep, what, factors=factors)
    found += interactions(data, sweep, what, factors=factors[::-1])  # the same, seen from the other
    if not found:
        return None
    n = max(i.n for i in found)
    here = [
        i
        for i in found
        if i.n == n and all(0 < e.value < math.inf for e in (i.ratio, i.at_base, i.at_level))
    ]
    clear = [i for i in here if _is_clear(i.ratio, len(here))]
    if not clear:
        return None
    reversals = [
        i
        for i in clear
        if i.factor in i.reversed and i.at_base.noteworthy and i.at_level.noteworthy
    ]
    best = max(reversals or clear, key=lambda i: i.ratio.distance)
    change = f"{best.factor} {best.level} instead of {best.base}"
    verb = "reverses with" if best.factor in best.reversed else "depends on"
    return (
        f"The effect of {change} on the {what.label} {verb} {best.other}: it is a factor of"
        f" {ratio(best.at_base)} with {best.other} {best.other_base}, but of"
        f" {ratio(best.at_level)} with {best.other} {best.other_level}"
        f" ({_where(data, sweep, n)}; {interval_note(best.ratio)})."
    )


def _is_clear(estimate: Estimate, comparisons: int) -> bool:
    """Whether a ratio is both clear and large enough to report."""
    return estimate.differs_from(1, comparisons) and estimate.noteworthy


def _where(data: Dataset, sweep: str, n: int) -> str:
    return f"N={n}, sweep {sweep}, {data.device_short}, {data.provenance}"


def _elsewhere(best: FactorEffect, found: Sequence[FactorEffect]) -> str:
    """What the same change does at the other sizes; unclear is not opposite."""
    change = (best.factor, best.base, best.level)
    sizes: dict[str, list[str]] = {}
    for effect in found:
        if effect.n == best.n or (effect.factor, effect.base, effect.level) != change:
            continue
        if not effect.ratio.differs_from(1):
            kind = "without a clear effect"
        elif (effect.ratio.value - 1) * (best.ratio.value - 1) > 0:
            kind = "and in the same direction"
        else:
            kind = "but in the opposite direction"
        sizes.setdefault(kind, []).append(str(effect.n))
    return "".join(f", {kind} at N={', '.join(where)}" for kind, where in sizes.items())


def _effect_says(effect: FactorEffect) -> str:
    """``is 2.310 times as fast`` or ``multiplies the bank conflicts by 0.4300``."""
    estimate, what = effect.ratio, effect.quantity
    if estimate.value == 0:
        return f"brings the {what.label} to 0"
    if what.kind == "counter" and estimate.value < NEARLY_ALL:
        return f"removes {100 * (1 - estimate.value):.6g}% of the {what.label}"
    return does(estimate, what)
