"""Every sentence of a comparison: the verdict first, then what changes order, then the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from nqbench.analysis import wording
from nqbench.analysis.answer import MODELLED
from nqbench.analysis.compare import changes, match
from nqbench.analysis.compare.request import Findings
from nqbench.analysis.compare.runs import Comparison
from nqbench.analysis.data.estimate import NOTEWORTHY
from nqbench.runs.frame import json_rows
from nqbench.system.suggest import many

LIMIT: Final = f"{NOTEWORTHY - 1:.0%}"
"""Smallest difference worth a sentence."""


def as_json(findings: Findings) -> dict[str, Any]:
    """A comparison as ``nqbench compare --json`` has it."""
    points = json_rows(findings.table())
    return {"findings": sentences(findings), "points": points, "notes": list(findings.notes)}


def sentences(findings: Findings) -> list[str]:
    """The results in words: the verdict, then what changes order, then what is missing."""
    return [*verdicts(findings), *turned(findings), *missing(findings)]


def verdicts(findings: Findings) -> list[str]:
    """Who is faster, and whether the same variant is the fastest on each side; of counters what is
    better and what worse, and why they are equal. One sentence, or one for each pair of sides."""
    if findings.standings:
        ahead = groupby(findings.standings, lambda c: c.names[1])
        told = [_standing(list(own)) for _, own in ahead]
        told += [_fastest(r) for r in findings.rankings if r.best]
        return [f"{'; '.join(dict.fromkeys(told))}."]
    equal = [c for c in findings.comparisons if c.equal_everywhere]
    told = [_counted(c) for c in findings.comparisons if c not in equal]
    return [*told, *([_equal(equal)] if equal else [])]


def side(name: str) -> str:
    """A side in a sentence: a system needs no word before its name."""
    return name.removeprefix("system ")


def _standing(found: Sequence[Comparison]) -> str:
    """One side against others: ``A is 1.9x faster ±2% than B and 2.4x faster ±1% than C``."""
    ahead, alike = [], []
    for one in found:
        section, other = one.sections[0], side(one.names[0])
        text = wording.effect(section.difference.ratio, section.quantity)
        counts = ", ".join(f"{n} {verdict}" for verdict, n in section.counts.items() if n)
        points = f"{many(len(section.rows), 'point')}: {counts}"
        if text.startswith("unclear"):
            alike.append(f"{other} ({text.removeprefix('unclear').strip(' ()')}; {points})")
        else:
            ahead.append(f"{'as fast as' if text == 'same' else f'{text} than'} {other} ({points})")
    told = [f"is {' and '.join(ahead)}"] * bool(ahead)
    told += [f"cannot be told apart from {' and '.join(alike)}"] * bool(alike)
    return f"{side(found[0].names[1])} {' and '.join(told)}"


def _fastest(ranking: changes.Ranking) -> str:
    """Whether the same variant is the fastest on both sides, at the largest size."""
    top, names = ranking.best[0], ranking.names
    called = [wording.short(best.name) for best in top]
    if top[0].name == top[1].name:
        told = f"the same is fastest on both: {called[0]}"
    elif not any(best.ahead for best in top):
        told = "none is clearly fastest on either"
    else:
        each = " and ".join(f"{c} on {side(n)}" for c, n in zip(called, names, strict=True))
        told = f"another is fastest on each: {each}"
    return f"of {top[0].of} variants {told} (N = {top[0].n:,})"


def _counted(comparison: Comparison) -> str:
    """What is better and worse by the counts of a simulated side, and what is about the same."""
    told: dict[str, list[str]] = {}
    for section in comparison.sections:
        what, found = section.quantity, section.difference
        if what.kind == "time":
            continue
        small = not found.ratio.noteworthy or section.equal_everywhere
        sign = "=" if small else wording.mark(found.ratio, what)
        text = what.plain if small else wording.named(found.ratio, what, found.totals)
        told.setdefault(sign, []).append(text)
    words = {"+": "better", "-": "worse", "": "different", "=": f"within {LIMIT}"}
    parts = [f"{word}: {', '.join(told[sign])}" for sign, word in words.items() if sign in told]
    points = many(len(comparison.sections[0].rows), "point")
    first, second = map(side, comparison.names)
    return f"{second} against {first}, mean of {points}: {'; '.join(parts)}."


def _equal(comparisons: Sequence[Comparison]) -> str:
    """That counts are equal, why, and what to ask in order to see a difference."""
    first = comparisons[0]
    reference, own = first.names[0], first.sides
    others = " and ".join(side(c.names[1]) for c in comparisons)
    count = "counts" if len(comparisons) == 1 else "count"
    points = many(len(first.sections[0].rows), "point")
    head = f"{others} {count} exactly as {side(reference)} in every one of {points}"
    if own[0] is own[1] or own[0].spec == own[1].spec:
        return f"{head}."
    rules = [one.about_device("identity").get("memory") for one in own]
    why = "no point meets a rule in which the models differ"
    if rules[0] == rules[1]:
        why = "a model counts by its rules of memory, and these are the same"
    modes = {"cache": "caches", "time": "modelled times"}
    if "caches" in own[1].about_device("identity"):
        del modes["cache"]
    if any(section.quantity.name == MODELLED for section in first.sections):
        del modes["time"]
    if modes:
        asked = " or ".join(f"{own[1].spec}:{mode}" for mode in modes)
        why += f". Their {' and '.join(modes.values())} differ: ask {asked}"
    return f"{head}: {why}."


def turned(findings: Findings) -> Iterator[str]:
    """What turns: differences of the clock alone, pairs of variants, changes that reverse."""
    yield from dict.fromkeys(c.cycles for c in findings.comparisons if c.cycles)
    for ranking in findings.rankings:
        if ranking.pairs:
            yield _order(ranking)
    reversed_ = [one for one in findings.effects if one.turns]
    yield from map(reversal, reversed_)
    if findings.several_devices and findings.effects and not reversed_:
        yield "No change clearly helps on one device and hurts on another."


def _order(found: changes.Ranking) -> str:
    swaps, pairs = found.swaps, f"{found.pairs:,} pair{'' if found.pairs == 1 else 's'}"
    if not swaps:
        return f"The order clearly changes in none of {pairs} of variants."
    one, other, *ratios = swaps[0]
    called = {p: wording.short(c) for p, c in match.variants([one, other]).items()}
    first, second = (wording.effect(ratio, found.quantity) for ratio in ratios)
    return (
        f"The order clearly changes in {len(swaps)} of {pairs} of variants; most of all,"
        f" {called[other]} is {first} than {called[one]} on {side(found.names[0])}, but {second}"
        f" on {side(found.names[1])} (N = {one.n:,}, sweep {one.sweep})."
    )


def reversal(found: changes.SharedEffect) -> str:
    """A change that helps on one side and hurts on another."""
    change, names = found.change, zip(found.effects, found.names, strict=True)
    known = sorted(((e, side(name)) for e, name in names if e), key=lambda one: one[0].ratio.value)
    told = [f"{wording.named(e.ratio, found.quantity)} on {on}" for e, on in known]
    what = f"{change.factor} {change.level} instead of {change.base} (sweep {change.sweep})"
    return f"{what}: {told[0]}, but {told[-1]} (N = {change.n:,})."


def missing(findings: Findings) -> Iterator[str]:
    """How many points could not be compared, and why the first could not."""
    for comparison in findings.comparisons:
        if comparison.missing:
            first = comparison.missing[0]
            why = first.reason.partition(";")[0]  # what to do about it stands in the table
            yield (
                f"{many(len(comparison.missing), 'point')} could not be compared with"
                f" {comparison.names[1]}; e.g. {first.label} (in {first.where}): {why}."
            )
