"""Numbers and levels as sentences write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import NOTEWORTHY, Estimate
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


def short(name: str) -> str:
    """A point by its levels, without the names of factors whose levels are words."""
    return ", ".join(re.sub(r"^\w+ (?=[a-z_]+\w*$)", "", part) for part in name.split(", "))


def capital(text: str) -> str:
    """A sentence of it."""
    return f"{text[0].upper()}{text[1:]}"


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


# Effects: one direction and one notation wherever people read them.

WIDE: Final = 0.1
"""Half-width from which an interval is visibly lopsided and ``±`` would hide that."""
SAME: Final = 1.005
"""Ratio below which an exact count is called the same."""
FEW: Final = 100
"""Counts below it say nothing as a factor: the totals are shown instead."""
Totals = tuple[float, float] | None
"""The mean of a quantity on the two sides, where it is known."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A quantity of two things, the second over the first, as tables have it.

    ``totals``  the two values, if they are known
    ``verdict`` what was judged otherwise than by the ratio alone: ``same``, ``unclear``, ``+1``
    ``turned``  data formats have the first over the second: times as fast
    """

    ratio: Estimate
    quantity: Quantity
    totals: Totals = None
    verdict: str = ""
    turned: bool = False

    @property
    def plain(self) -> Estimate:
        """What data formats have."""
        return self.ratio.inverse() if self.turned else self.ratio

    def __str__(self) -> str:
        """With its sign: ``16% less +``, ``unclear ±3%``."""
        return self.said()

    def said(self, *, spread: bool = True) -> str:
        """The same, on request without the interval."""
        if self.verdict:
            return f"{self.verdict}{_margin(self.ratio)}"
        text = effect(self.ratio, self.quantity, self.totals, spread=spread)
        return f"{text} {mark(self.ratio, self.quantity)}".rstrip()


def weight(found: Estimate, what: Quantity, totals: Totals = None) -> float:
    """How much a difference says: its distance from 1 on a logarithmic scale. What grows from
    nearly nothing, or vanishes, has no meaningful factor: it counts by its totals."""
    if 0 < found.value < math.inf and not is_few(totals, what):
        return found.distance
    return math.log1p(max(totals or (0.0,)) / FEW)


def factor(value: float) -> str:
    """A factor of at least 1 as people read it: ``1.91x``, ``45.3x``, ``167,000x``; ``1.004x``."""
    size = math.log10(float(f"{value:.3g}"))
    digits = max(0, 2 - math.floor(size)) if value < 1000 else 0
    digits += value < 1.01
    step = 10 ** max(0, math.floor(math.log10(value)) - 2)
    rounded = round(value / step) * step if value >= 1000 else value
    return f"{rounded:,.{digits}f}x"


def percent(share: float) -> str:
    """A share as a percentage of two digits: ``16%``, ``3.1%``; three from 100%."""
    value = 100 * abs(share)
    return f"{value:,.0f}%" if value >= 10 else f"{value:.2g}%"


def effect(found: Estimate, what: Quantity, totals: Totals = None, *, spread: bool = True) -> str:
    """What a change does to a quantity: ``1.91x faster ±0.4%``, ``16% less``, ``+39%``.

    ``found`` is new over old; ``totals`` are the old and the new value, which are shown where a
    factor would say nothing: ``0 -> 60,984``.
    """
    if math.isnan(found.value):
        return "same" if totals and not any(totals) else "-"
    if totals and (not 0 < found.value < math.inf or is_few(totals, what)):
        before, after = (amount(total, what) for total in totals)
        return "same" if before == after else f"{before} -> {after}"
    if not 0 < found.value < math.inf:
        return "none left" if found.value == 0 else "none before"
    low, high = found.low or 0.0, found.high or math.inf
    within = found.exact or 1 / NOTEWORTHY < low <= 1 <= high < NOTEWORTHY
    if within and max(found.value, 1 / found.value) < SAME:
        return "same"
    if not found.exact and found.bounded and not found.differs_from(1):
        return f"unclear{_margin(found)}"
    return _size(found.value, what) + (_margin(found) if spread else "")


def is_few(totals: Totals, what: Quantity) -> bool:
    """Whether one of two counts is too small for a factor to say something."""
    return what.counts and totals is not None and min(totals) < FEW


def _size(value: float, what: Quantity) -> str:
    more, size = value > 1, max(value, 1 / value)
    if what.kind == "time":
        return f"{factor(size)} {'slower' if more else 'faster'}"
    if what.better == "higher" and size < 10:
        return f"{'+' if more else '-'}{percent(value - 1)}"
    told = percent(value - 1) if size < 2 else factor(size)
    return f"{told} {_more(more, what)}"


def _more(more: bool, what: Quantity) -> str:
    if what.better == "higher":
        return "higher" if more else "lower"
    return "more" if more else "fewer" if what.countable else "less"


def direction(more: bool, what: Quantity) -> str:
    """``slower``, ``fewer instructions``, ``more busy lanes``."""
    if what.kind == "time":
        return "slower" if more else "faster"
    return f"{'more' if more else 'fewer' if what.countable else 'less'} {what.plain}"


def better_by(found: Estimate, what: Quantity) -> str:
    """How much better something is, of a ratio above 1: ``1.91x faster ±0.4%``, ``45x less``."""
    if what.kind == "time":
        return f"{factor(found.value)} faster{_margin(found)}"
    share = found.value - 1 if what.better == "higher" else 1 - 1 / found.value
    size = percent(share) if found.value < 2 else factor(found.value)
    return f"{size} {_more(what.better == 'higher', what)}{_margin(found)}"


def measured(value: Estimate | str, unit: str = "") -> str:
    """A value with its interval, whole numbers as such; alone if it came out in every resample."""
    if isinstance(value, str):
        return value
    known = [b for b in (value.value, value.low, value.high) if b is not None]
    whole = all(b.is_integer() for b in known)
    texts = [number(b) if whole else ratio(Estimate(b)) for b in known]
    interval = f" [{', '.join(texts[1:])}]" if len(set(known)) > 1 else ""
    return f"{texts[0]}{interval}{unit}"


def times_as_fast(found: Estimate) -> str:
    """How many times as fast something is, of old over new: ``1.57x faster ±0.4%``."""
    value = found.value
    if not 0 < value < math.inf:
        return number(value)
    if value < 1:
        return f"{factor(1 / value)} slower{_margin(found.inverse())}"
    return f"{factor(value)} faster{_margin(found)}"


def times(found: Estimate) -> str:
    """A number of times with its interval: ``0.637x (0.35 to 0.975)``."""
    if 1 <= found.value < math.inf:
        return f"{factor(found.value)}{_margin(found)}"
    interval = f" ({found.low:.3g} to {found.high:.3g})" if found.bounded else ""
    return f"{found.value:.3g}x{interval}"


def _margin(found: Estimate) -> str:
    """The interval of a ratio: ``±0.4%`` where it is about symmetric, else both bounds."""
    if found.low is None or found.high is None:
        return ""
    half = math.sqrt(found.high / found.low) - 1
    if half < WIDE:
        return f" ±{max(100 * half, 0.1):.{2 if half >= 0.01 else 1}g}%"
    bounds = [found.low, found.high]
    if found.value < 1 and found.differs_from(1):  # the factor is shown the other way round
        bounds = [1 / found.high, 1 / found.low]
    return f" ({bounds[0]:.3g} to {bounds[1]:.3g})"


def mark(found: Estimate, what: Quantity) -> str:
    """``+`` where a change makes a quantity better, ``-`` where worse, else empty."""
    if not what.better or math.isnan(found.value) or not found.differs_from(1):
        return ""
    if found.exact and max(found.value, 1 / found.value if found.value else math.inf) < SAME:
        return ""
    return "+" if (found.value < 1) == (what.better == "lower") else "-"


def amount(value: float, what: Quantity) -> str:
    """A value for people, three digits: ``9.78 ms``, ``5.65 M``, ``62%``, ``3,888``."""
    if what.unit == "s" or what.name == "modelled_ms":
        return time(value if what.unit else value / 1000, 3)
    if what.name == "lane_efficiency":
        return percent(value)
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {letter}"
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"


def named(found: Estimate, what: Quantity, totals: Totals = None) -> str:
    """An effect with the name of what it is on: ``16% less off-chip data``, ``1.9x faster``."""
    text = effect(found, what, totals)
    if "->" in text:
        return f"{what.plain} {text}"
    return text if what.kind == "time" else f"{text} {what.plain}"
