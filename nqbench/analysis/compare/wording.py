"""Every sentence of a comparison: the answers first, then what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nqbench.analysis.compare.answer import (
    BANDWIDTH,
    CAPABILITY,
    NVRTC,
    SOURCES,
    Answer,
    Best,
    Causes,
    Fact,
    Leader,
)
from nqbench.analysis.compare.devices import Differing, RankCorrelation, Reversal
from nqbench.analysis.compare.match import variants
from nqbench.analysis.compare.rates import Rated
from nqbench.analysis.compare.request import Findings
from nqbench.analysis.compare.runs import Comparison, Group, Section
from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial.effects import NOTEWORTHY
from nqbench.analysis.wording import does, ratio, time
from nqbench.system.suggest import many

LIMIT: Final = f"{NOTEWORTHY - 1:.0%}"
"""Smallest difference worth a sentence."""
CODE: Final = {
    CAPABILITY: ": the SASS differs",
    NVRTC: ": the PTX may differ",
    SOURCES: ": so may the kernels",
}
"""What follows where facts about the code differ."""


def sentences(findings: Findings) -> list[str]:
    """The results in words: the answers, one sentence per comparison and quantity, the orders of
    devices, and what reverses.
    """
    found = [s for one in findings.answers for s in answers(one)]
    found += [s for one in findings.rated for s in rates(one)]
    for comparison in findings.comparisons:
        found += [counted(comparison, section) for section in comparison.sections]
        if comparison.missing:
            found.append(_missing(comparison))
    found += [differing(one, names) for names, one in findings.effects]
    found += _ranks(findings.ranks)
    found += [reversal(one) for one in findings.reversals]
    if findings.several_devices and not findings.reversals:
        found.append("No optimization clearly helps on one device and hurts on another.")
    return found


def answers(found: Answer) -> Iterator[str]:
    """Which variant is best on either side, whether the order changes, which effect differs most,
    and what agrees with it.
    """
    names = found.comparison.names
    what = found.section.quantity
    if found.best:
        yield best(found.best, names)
    if found.order.pairs:
        yield order(found)
    if found.differing is not None:
        yield differing(found.differing, names)
    memory = [group for group in found.section.groups if group.factor == "memory"]
    if memory:
        yield _classes(memory, names, what)
    if found.causes is not None:
        yield causes(found.causes, names)


def best(found: Sequence[Best], names: tuple[str, str]) -> str:
    """The fastest at the largest size, and at which sizes it is another on either side."""
    top = found[0]
    called, (left, right) = top.called, top.leaders
    where = f"Fastest of {top.variants} variants at N={top.n}"
    if top.same:
        text = (
            f"{where} on both: {called[left.point]}, {time(left.value.value)} on {names[0]} and"
            f" {time(right.value.value)} on {names[1]}"
        )
    else:
        each = [
            f"{called[lead.point]} on {name} ({time(lead.value.value)})"
            for lead, name in zip(top.leaders, names, strict=True)
        ]
        text = f"{where}: {each[0]}, but {each[1]}"
    differ = [one for one in found[1:] if not one.same]
    rest = sorted({one.n for one in found} - {top.n})
    text = f"{text}; {_lead(top, names)}."
    if differ:
        sizes = ", ".join(_of_size(n, top) for n in sorted({one.n for one in differ}))
        clear = any(lead.clear for one in differ for lead in one.leaders)
        doubt = "" if clear else ", without a clear lead on either"
        return f"{text} At N={sizes} the fastest is not the same on both{doubt}."
    if rest:
        return (
            f"{text} At each of the other sizes ({_range(rest)}) the fastest is the same on both."
        )
    return text


def _of_size(n: int, top: Best) -> str:
    """A size; searches of several lengths have several answers at one, each with its fastest."""
    return f"{n} (of those with another answer)" if n == top.n else str(n)


def _range(sizes: Sequence[int]) -> str:
    return f"N={', '.join(map(str, sizes))}"


def _lead(top: Best, names: tuple[str, str]) -> str:
    """How far the next variant is behind, on both sides."""
    called, (left, right) = top.called, top.leaders
    if called[left.next] == called[right.next] and left.clear and right.clear:
        return (
            f"the next, {called[left.next]}, takes {ratio(left.lead)} and {ratio(right.lead)} times"
            " as long"
        )
    if called[left.next] == called[right.next] and not (left.clear or right.clear):
        return (
            f"it is not distinguishable from the next, {called[left.next]} ({ratio(left.lead)} and"
            f" {ratio(right.lead)})"
        )
    return ", ".join(
        f"on {name} {_next(lead, called)}" for lead, name in zip(top.leaders, names, strict=True)
    )


def _next(lead: Leader, called: Mapping[PointResult, str]) -> str:
    if lead.clear:
        return f"the next ({called[lead.next]}) takes {ratio(lead.lead)} times as long"
    return f"it is not distinguishable from the next ({called[lead.next]}, {ratio(lead.lead)})"


def order(found: Answer) -> str:
    """Which pairs of variants change places."""
    names, what = found.comparison.names, found.section.quantity
    swaps, pairs = found.order.swaps, found.order.pairs
    unsure = ""
    if found.order.unsure:
        unsure = (
            f"; the values of {found.order.unsure} {'more ' if swaps else ''}change order, within"
            f" their intervals or by less than {LIMIT}"
        )
    if not swaps:
        return f"The order clearly changes in none of {_pairs(pairs)} of variants{unsure}."
    top = swaps[0]
    called = variants([top.one, top.other])
    first, second = (does(r, what) for r in top.ratios)
    return (
        f"The order clearly changes in {len(swaps)} of {_pairs(pairs)} of variants; most of all,"
        f" {called[top.other]} {first} as {called[top.one]} on {names[0]}, but {second} on"
        f" {names[1]} (N={top.one.n}, sweep {top.one.sweep}){unsure}."
    )


def _pairs(count: int) -> str:
    return f"{count:,} pair{'' if count == 1 else 's'}"


def differing(found: Differing, names: tuple[str, str]) -> str:
    """Which effect differs most between the two sides."""
    what = found.quantity
    change = f"{found.change}, N={found.change.n}"
    each = [f"{does(r, what)} on {n}" for r, n in zip(found.ratios, names, strict=True)]
    if found.clear:
        return (
            f"The effect that differs most, of {found.compared} compared: {change}: {each[0]} and"
            f" {each[1]}; ratio of the two ratios {ratio(found.ratio)}."
        )
    return (
        f"No effect of {found.compared} clearly differs by {LIMIT} or more; the largest difference"
        f" of the values is that of {change}: ratio of the two ratios {ratio(found.ratio)}."
    )


def _classes(groups: Iterable[Group], names: tuple[str, str], what: Quantity) -> str:
    each = [
        f"{g.level} {ratio(g.ratio)}{f' ({g.verdict})' if g.verdict else ''}"
        for g in groups
        if g.ratio is not None
    ]
    return (
        f"By class of memory, geometric mean of the {what.label} of {names[1]} over that of"
        f" {names[0]}: {', '.join(each)}."
    )


def causes(found: Causes, names: tuple[str, str]) -> str:
    """What recorded facts agree with a difference; nothing that was not recorded is named."""
    equal = f" Equal on both: {', '.join(found.equal)}." if found.equal else ""
    others = ""
    if found.others:
        listed = "; ".join(_values(fact, names) for fact in found.others)
        besides = (
            "Recorded besides, without a direction or against it"
            if found.agreeing
            else ("What does differ says nothing about the direction, or points the other way")
        )
        others = f" {besides}: {listed}."
    if not found.agreeing:
        return f"{found.about} is consistent with no recorded fact.{others}{equal}"
    listed = "; ".join(_agreeing(fact, found.observed, names) for fact in found.agreeing)
    unknown = ""
    if any(fact.name == BANDWIDTH for fact in found.agreeing):
        unknown = (
            " Caches may serve what these kernels keep off the chip: whether they or the device"
            " memory make the difference was not recorded."
        )
    return f"{found.about} is consistent with {listed}.{unknown}{others}{equal}"


def _values(fact: Fact, names: tuple[str, str]) -> str:
    text = f"{fact.name} {fact.values[0]} on {names[0]}, {fact.values[1]} on {names[1]}"
    return text + CODE.get(fact.name, "")


def _agreeing(fact: Fact, observed: float, names: tuple[str, str]) -> str:
    assert fact.predicted is not None
    most, seen = (math.exp(abs(math.log(v))) for v in (fact.predicted, observed))
    share = "at most" if seen <= most * NOTEWORTHY else "only"
    return (
        f"{_values(fact, names)} (alone this would make {share} a factor of {most:.3g}, seen is"
        f" {seen:.3g})"
    )


def rates(found: Rated) -> Iterator[str]:
    """What is left of the difference per multiprocessor and GHz, and the energy."""
    names = found.comparison.names
    clocked, powered = found.counted
    if found.per_clock is not None:
        yield (
            f"Per multiprocessor and GHz, {names[1]} does {ratio(found.per_clock)} times the"
            f" {found.unit} per second of {names[0]} (geometric mean of {many(clocked, 'point')})."
        )
    if found.energy is not None:
        yield (
            f"A launch takes {ratio(found.energy)} times the energy on {names[1]} (whole board,"
            f" geometric mean of the {many(powered, 'point')} that were measured long enough)."
        )


def counted(comparison: Comparison, section: Section) -> str:
    """How many points are faster, slower, ..., and their mean."""
    head = (
        f"{comparison.names[1]} against {comparison.names[0]}, {section.quantity.label} of"
        f" {many(len(section.rows), 'point')}"
    )
    if section.equal_everywhere:
        return f"{head}: equal everywhere."
    counts = ", ".join(f"{n} {verdict}" for verdict, n in section.counts.items() if n)
    mean = ""
    if section.overall is not None:
        mean = f"; geometric mean of the ratios {ratio(section.overall)}"
    return f"{head}: {counts}{mean}."


def _missing(comparison: Comparison) -> str:
    first = comparison.missing[0]
    return (
        f"{many(comparison.unmatched, 'point')} could not be compared with {comparison.names[1]};"
        f" e.g. {first.label} (in {first.where}): {first.reason}."
    )


def _ranks(ranks: Sequence[RankCorrelation]) -> list[str]:
    """Of every two devices and each quantity the least agreement of their orders."""
    found: dict[tuple[tuple[str, str], str], list[RankCorrelation]] = {}
    for one in ranks:
        found.setdefault((one.names, one.quantity.label), []).append(one)
    return [
        f"{names[0]} and {names[1]} order the points of {_sweeps(own)} by {label}:"
        f" Spearman's correlation is {'at least ' if len(own) > 1 else ''}"
        f"{min(r.spearman for r in own):.2f}, Kendall's {min(r.kendall for r in own):.2f}."
        for (names, label), own in found.items()
    ]


def _sweeps(ranks: Sequence[RankCorrelation]) -> str:
    one = ranks[0]
    if len(ranks) == 1:
        return f"sweep {one.of} at N={one.n}"
    return f"each of {len(ranks)} sweeps and sizes"


def reversal(found: Reversal) -> str:
    """A change that helps on one device and hurts on the other."""
    one, two = (
        f"{does(r, found.quantity)} on {n}" for r, n in zip(found.ratios, found.names, strict=True)
    )
    return f"{found.change}: {one}, but {two} (N={found.n})."
