"""Numbers and levels as sentences write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import CONFIDENCE, Estimate
from nqbench.analysis.data.quantities import Quantity

_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_SIZE: Final = re.compile(r"N=(\d+)")
_TIME_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def number(value: float, digits: int = 4) -> str:
    """A plain number: whole counts in full with separators, others to ``digits`` digits."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "infinite"
    if float(value).is_integer():
        return f"{int(value):,}"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if abs(value) >= 1e-4 else f"{value:.{digits - 1}e}"


def time(value_s: float, digits: int = 4) -> str:
    """A time with its unit."""
    scale, unit = next((u for u in _TIME_UNITS if abs(value_s) >= u[0]), _TIME_UNITS[-1])
    return f"{_fixed(value_s / scale, digits)} {unit}"


def ratio(estimate: Estimate) -> str:
    """A ratio with its interval: ``1.234 [1.229, 1.239]``."""
    if estimate.low is None or estimate.high is None:
        return _fixed(estimate.value)
    return f"{_fixed(estimate.value)} [{_fixed(estimate.low)}, {_fixed(estimate.high)}]"


def does(ratio_of: Estimate, what: Quantity) -> str:
    """What a change does: ``is 2.310 times as fast``, ``multiplies the bank conflicts by 0.43``."""
    if what.kind == "counter":
        return f"multiplies the {what.label} by {ratio(ratio_of)}"
    if ratio_of.value < 1:
        return f"is {ratio(ratio_of.inverse())} times as fast"
    return f"takes {ratio(ratio_of)} times as long"


def interval_note(estimate: Estimate) -> str:
    """What the brackets mean, or why there are none."""
    if estimate.exact:
        return "exact"
    if not estimate.bounded:
        return "one round, so no interval"
    return f"{CONFIDENCE:.0%} interval over {estimate.rounds} rounds"


def describe(point: PointResult, factors: tuple[str, ...]) -> str:
    """A point by the levels that distinguish it from its neighbours."""
    words = [
        point.system if f == "system" else f"{f} {point.level(f)}"
        for f in factors
        if point.level(f) != "-"
    ]
    return ", ".join(words) or point.name


def _fixed(value: float, digits: int = 4) -> str:
    """Significant digits kept even where they are zeros, so that precision stays visible."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "infinite"
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"  # no separators: a comma already separates the bounds of an interval
    if abs(value) < 1e-3:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def grouped(reasons: Iterable[str]) -> list[str]:
    """Reasons of the form ``SUBJECT: WHY`` without repetitions: subjects of one WHY, numbers aside,
    are listed before the first one's."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for reason in dict.fromkeys(reasons):
        subject, _, why = reason.partition(": ")
        if "(" in subject:  # the colon is not that of a subject
            subject, why = reason, ""
        key = _NUMBER.sub("#", why) or _SIZE.sub("N=#", subject)
        groups.setdefault(key, []).append((subject, why))
    said = []
    for found in groups.values():
        subjects: dict[str, list[str]] = {}
        for subject, _ in found:
            size = _SIZE.search(subject)
            subjects.setdefault(_SIZE.sub("N=#", subject), []).append(size[1] if size else "")
        names = "; ".join(s.replace("N=#", f"N={', '.join(n)}") for s, n in subjects.items())
        differ = " (the numbers are the first one's)" if len({w for _, w in found}) > 1 else ""
        said.append(f"{names}: {found[0][1]}{differ}" if found[0][1] else names)
    return said
