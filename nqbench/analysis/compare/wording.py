"""Every sentence of a comparison: the answers first, then what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nqbench.analysis.compare import changes, match
from nqbench.analysis.compare.match import Names
from nqbench.analysis.compare.request import Findings
from nqbench.analysis.compare.runs import ComparedQuantity, Comparison
from nqbench.analysis.data.estimate import NOTEWORTHY
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.wording import does, ratio, time
from nqbench.runs.frame import json_rows
from nqbench.system.suggest import many

LIMIT: Final = f"{NOTEWORTHY - 1:.0%}"
"""Smallest difference worth a sentence."""


def as_json(findings: Findings) -> dict[str, Any]:
    """A comparison as ``nqbench compare --json`` has it."""
    return {
        "findings": sentences(findings),
        "points": json_rows(findings.table()),
        "notes": list(findings.notes),
    }


def sentences(findings: Findings) -> list[str]:
    """The results in words: the answers, one sentence per comparison and quantity, the orders of
    devices, and what reverses.
    """
    found = []
    for ranking in findings.rankings:
        names = ranking.comparison.names
        if ranking.best:
            found.append(best(ranking.best, names))
        if ranking.order.pairs:
            found.append(order(ranking.order, names, ranking.section.quantity))
    for comparison in findings.comparisons:
        found += [counted(comparison, section) for section in comparison.sections]
        if comparison.missing:
            first = comparison.missing[0]
            found.append(
                f"{many(len(comparison.missing), 'point')} could not be compared with"
                f" {comparison.names[1]}; e.g. {first.label} (in {first.where}): {first.reason}."
            )
    found += [reversal(one) for one in findings.reversals]
    if findings.several_devices and not findings.reversals:
        found.append("No optimization clearly helps on one device and hurts on another.")
    return found


def best(found: Sequence[changes.BestVariant], names: match.Names) -> str:
    """The fastest at the largest size, and at which sizes it is another on either side."""
    top, each = found[0], []
    for lead, name in zip(top.leaders, names, strict=True):
        following, by = top.called[lead.next], ratio(lead.lead)
        behind = f"the next, {following}, takes {by} times as long"
        if not lead.clear:
            behind = f"not distinguishable from the next, {following}: {by}"
        which = "" if top.same else f"{top.called[lead.point]}, "
        each.append(f"{which}{time(lead.value.value)} on {name} ({behind})")
    text = f"Fastest of {top.variants} variants at N={top.n}"
    if top.same:
        text += f" on both: {top.called[top.leaders[0].point]}, {' and '.join(each)}."
    else:
        text += f": {', but '.join(each)}."
    differ = [one for one in found[1:] if not one.same]
    rest = sorted({one.n for one in found} - {top.n})
    if differ:
        # Searches of several lengths have several answers at one size, each with its fastest.
        sizes = ", ".join(
            f"{n} (of those with another answer)" if n == top.n else str(n)
            for n in sorted({one.n for one in differ})
        )
        clear = any(lead.clear for one in differ for lead in one.leaders)
        doubt = "" if clear else ", without a clear lead on either"
        return f"{text} At N={sizes} the fastest is not the same on both{doubt}."
    if rest:
        sizes = ", ".join(map(str, rest))
        return f"{text} At each of the other sizes (N={sizes}) the fastest is the same on both."
    return text


def order(found: changes.OrderChanges, names: Names, what: Quantity) -> str:
    """Which pairs of variants change places."""
    swaps, pairs = found.swaps, f"{found.pairs:,} pair{'' if found.pairs == 1 else 's'}"
    unsure = ""
    if found.unsure:
        unsure = (
            f"; the values of {found.unsure} {'more ' if swaps else ''}change order, within"
            f" their intervals or by less than {LIMIT}"
        )
    if not swaps:
        return f"The order clearly changes in none of {pairs} of variants{unsure}."
    top = swaps[0]
    called = match.variants([top.one, top.other])
    first, second = (does(r, what) for r in top.ratios)
    return (
        f"The order clearly changes in {len(swaps)} of {pairs} of variants; most of all,"
        f" {called[top.other]} {first} as {called[top.one]} on {names[0]}, but {second} on"
        f" {names[1]} (N={top.one.n}, sweep {top.one.sweep}){unsure}."
    )


def reversal(found: changes.Reversal) -> str:
    """A change that helps on one device and hurts on the other."""
    one, two = (
        f"{does(effect, found.quantity)} on {name}"
        for effect, name in zip(found.ratios, found.names, strict=True)
    )
    return f"{found.change}: {one}, but {two} (N={found.change.n})."


def counted(comparison: Comparison, section: ComparedQuantity) -> str:
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
