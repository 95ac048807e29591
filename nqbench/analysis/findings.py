"""What a run found, in at most five sentences, the most important first.

A sentence is made only where the interval allows it; device, rounds and method are said once where
the sentences are shown.
"""

from __future__ import annotations

from typing import Final

from nqbench.analysis import wording
from nqbench.analysis.answer import Answer, Best, FactorStep, best_first
from nqbench.analysis.compare.request import compare_datasets
from nqbench.analysis.compare.wording import verdicts
from nqbench.analysis.data.dataset import Dataset, point_ratio
from nqbench.analysis.data.estimate import NOTEWORTHY
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.limits.bottleneck import bottlenecks, verdict_text
from nqbench.errors import AnalysisError, StudyError
from nqbench.point import PART
from nqbench.system.suggest import listing, many

WANTED: Final = 5
"""Sentences that are read at a glance."""

MOST_BESIDE: Final = 2
"""Sentences beside those of factors, where there are factors to fill the rest."""


def findings(answer: Answer) -> list[str]:
    """The most important findings about a run. One that supports none gets a sentence that says
    why."""
    data = answer.data
    spread = [
        f"Sweep {sweep} N={n} was measured on several GPUs: comparisons within it include how these"
        " GPUs differ."
        for sweep, n in data.spread
    ]
    if data.points and all(PART in p.levels for p in data.points):
        return [*(verdict_text(found) for found in bottlenecks(data)), *spread]
    if not answer.best or len(answer.whole) < 2:
        ok = sum(point.ok for point in data.points)
        counted = f"{ok} of {many(len(data.points), 'point')} finished"
        return [f"No finding: {counted}, and none has an alternative to compare with."]
    rest = [s for s in (programs(answer), interaction(answer), answer.turns, answer.limits) if s]
    changed = [c for c in answer.changes if any(map(answer.matters, c.effects.values()))]
    rest = rest[: max(WANTED - 1 - len(changed), MOST_BESIDE)]
    told = [_change(answer, change) for change in changed[: WANTED - 1 - len(rest)]]
    if answer.changes and not changed:
        told = [f"No change matters: every effect is below {NOTEWORTHY - 1:.0%} or unclear."]
    if data.rounds == 1 and not data.simulated:
        told = ["One round has no intervals, so no change is judged: `rounds: 2` or more."]
    return [opening(answer), *told, *rest, *throttled(data), *spread]


def throttled(data: Dataset) -> list[str]:
    """The rounds in which the GPU slowed itself down, which no interval shows: what was measured
    then is left out."""
    if not data.throttled:
        return []
    rounds = sorted({record.round for record in data.throttled})
    named = f"Round{'s' * (len(rounds) > 1)} {listing(list(map(str, rounds)), 'and')}"
    lost = many(len(data.throttled), "measurement")
    why = data.throttled[0].reason.partition(")")[0]
    why = f": {why})" if why else ""
    return [f"{named} {'was' if len(rounds) == 1 else 'were'} throttled; {lost} left out{why}."]


def opening(answer: Answer) -> str:
    """The best variant and what it gains; of a run of counters the best by each count."""
    best = answer.best[0]
    where = f"N = {best.n}" + (f", sweep {best.sweep}" if answer.data.sweeps[1:] else "")
    names = {one.name for one in answer.best}
    if best.what.kind == "counter" and len(names) > 1:
        each = "; ".join(
            f"{superlative(one)} ({wording.amount(one.value.value, one.what)}): {one.name}"
            for one in answer.best[:3]
        )
        return f"No variant is best in every count ({where}). {wording.capital(each)}."
    if best.over_worst and not best.clear:
        return f"No variant is clearly best ({where}): {undecided(best)}."
    value = wording.amount(best.value.value, best.what)
    head = wording.capital(superlative(best))
    told = ", ".join([f"{head} of {best.of} ({where}): {best.name}, {value}", *gains(best)])
    if best.over_next and best.of > 2 and not best.over_next.differs_from(1):
        alike = "the same as" if best.over_next.value == 1 else "not distinguishable from"
        told += f"; {alike} {best.next_name}"
    return f"{told}."


def undecided(best: Best) -> str:
    """Why none of several points is clearly the best: they are alike, or too little is known."""
    assert best.over_worst is not None
    if not best.over_worst.noteworthy:
        return f"{best.of} points lie within {wording.percent(best.over_worst.value - 1)}"
    value = wording.amount(best.value.value, best.what)
    return (
        f"{best.name} ({value}) leads {best.next_name}, but the intervals of {best.of} points"
        " overlap; more rounds would narrow them"
    )


def programs(answer: Answer) -> str:
    """Which program is faster than which, over all points; of kernels beside programs, how much
    faster the best kernel is than each program at its fastest, or how long these take."""
    if not answer.data.programs_only:
        return _beside_kernels(answer)
    systems = dict.fromkeys(p.system for p in answer.whole if p.ok)
    if len(systems) < 2:
        return ""
    try:
        return verdicts(compare_datasets([answer.data], by=f"system={','.join(systems)}"))[0]
    except (AnalysisError, StudyError):  # no two of them have a point in common
        return ""


def _beside_kernels(answer: Answer) -> str:
    if not answer.best or not (answer.data.simulated or answer.best[0].what is TIME):
        return ""
    best = answer.best[0]
    ranked = best_first(answer.data.select(best.sweep, (best.n,), cpu=True), TIME)
    fastest, told = {p.name: p for p in reversed(ranked)}, []
    for name, point in reversed(fastest.items()):
        if answer.data.simulated:
            told.append(f"{name} {wording.amount(point.value(TIME), TIME)}")
            continue
        gain = point_ratio(point, best.point, TIME)
        if gain.value > 1 and gain.differs_from(1):
            told.append(f"{wording.better_by(gain, TIME)} than {name}")
    said = "Measured on the CPU:" if answer.data.simulated else "The fastest kernel is"
    return f"{said} {listing(told, 'and')} (N = {best.n})." if told else ""


def superlative(best: Best) -> str:
    """``fastest``, ``least off-chip data``, ``most busy lanes``."""
    if best.what.kind == "time":
        return "fastest"
    if best.what.better == "higher":
        return f"most {best.what.plain}"
    return f"{'fewest' if best.what.countable else 'least'} {best.what.plain}"


def gains(best: Best) -> list[str]:
    """What the best point gains over the default and the worst: ``6.4x faster than the worst``."""
    if best.of == 2:
        found = [(best.over_worst, "the other")]
    else:
        found = [(best.over_default, "the default"), (best.over_worst, "the worst")]
    told: dict[str, list[str]] = {}
    for ratio, name in found:
        if ratio is not None and ratio.noteworthy:
            told.setdefault(wording.better_by(ratio, best.what), []).append(name)
    return [f"{size} than {' and '.join(names)}" for size, names in told.items()]


def _change(answer: Answer, change: FactorStep) -> str:
    """One step of a factor: what it improves, and what that costs."""
    found = [(q, change.effects[q.name]) for q in answer.telling if q.name in change.effects]
    told: dict[str, list[str]] = {"+": [], "-": [], "": []}
    for what, effect in found:
        if answer.matters(effect):
            text = wording.named(effect.ratio, what, effect.totals)
            told[wording.mark(effect.ratio, what)].append(text)
    good, bad = [", ".join(told[sign]) for sign in "+-"]
    trade = f"{good}, for {bad}" if good and bad else good or bad or ", ".join(told[""])
    return f"{change.factor}: {change.level} instead of {change.base} is {trade}."


def interaction(answer: Answer) -> str:
    """One change that is better with one level of another factor and worse with the other."""
    found = answer.interaction
    if found is None:
        return ""
    base, level = (wording.effect(e, found.quantity) for e in (found.at_base, found.at_level))
    of = "" if found.quantity.kind == "time" else f" {found.quantity.plain}"
    return (
        f"{found.factor} {found.level} instead of {found.base} depends on {found.other}:"
        f" {level}{of} with {found.other_level}, but {base}{of} with {found.other_base}."
    )
