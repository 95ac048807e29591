"""Axes of values, ratios and sizes: logarithmic where the numbers allow it, with plain ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from nqbench.analysis import wording
from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.report.tables.common import is_program

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE: Final = 4.0
"""Largest over smallest value above which an axis is logarithmic."""
SECONDS: Final = ((1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns"))
_PLAIN: Final = Quantity("", "", (), "counter")
_SI: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MAX_TICKS: Final = 6
"""More labels than this run into each other in a panel of a third of the width."""
GOOD_TICKS: Final = 3
GOOD_COVER: Final = 0.5
"""Part of the axis between the first and the last tick that lets a reader judge any dot."""


def short(value: float, what: Quantity) -> str:
    """A value in few characters, for ticks and heat-map cells."""
    if value == 0:
        return "0"
    timed = what.unit == "s"
    for scale, unit in SECONDS if timed else _SI:
        if abs(value) >= scale * 0.9995:
            return f"{digits(value / scale)}{unit}"
    return f"{value:.1e} s" if timed else digits(value)


def exact(value: float, what: Quantity) -> str:
    """A value in full, as tables write it."""
    return wording.time(value) if what.unit == "s" and value > 0 else wording.number(value)


def in_one_unit(times_s: Sequence[float]) -> str:
    """Times to five digits, in the unit of the first."""
    scale, unit = next((s for s in SECONDS if times_s[0] >= s[0]), SECONDS[-1])
    return " ".join(f"{time_s / scale:.5g}" for time_s in times_s) + unit


def digits(value: float, *, keep_zeros: bool = False) -> str:
    """Three significant digits without an exponent; zeros at the end only where asked for."""
    if value >= 99.95 or value == 0:
        return f"{value:.0f}"
    text = f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return text if keep_zeros or "." not in text else text.rstrip("0").rstrip(".")


def is_wide(values: Sequence[float]) -> bool:
    """Whether positive values span so much that their axis is logarithmic."""
    positive = [v for v in values if v > 0]
    return bool(positive) and max(positive) / min(positive) > WIDE


def value_axis(
    ax: Axes,
    which: Literal["x", "y"],
    values: Sequence[float],
    what: Quantity,
    *,
    log: bool | None = None,
) -> None:
    """Scale, limits, ticks and label of the axis that shows a quantity.

    A logarithmic axis cannot show zero: with zeros among the values the axis is linear below the
    smallest other value and logarithmic above.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    axis = ax.xaxis if which == "x" else ax.yaxis
    setattr(ax, f"fmt_{which}data", lambda value: exact(value, what))  # for a reader who points
    set_scale = ax.set_xscale if which == "x" else ax.set_yscale
    set_limits = ax.set_xlim if which == "x" else ax.set_ylim
    positive = [v for v in values if v > 0]
    log = (is_wide(values) or len(positive) < len(values)) if log is None else log
    if what.name == "lane_efficiency":  # a fraction
        set_limits(0, max([*positive, 0.1]) * 1.12)
    elif not positive:
        set_limits(-0.05, 1)
        axis.set_major_locator(FixedLocator([0.0]))
        middle: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "center"}
        ax.text(0.5, 0.5, "0 at every point", color="#6b6b6b", **middle)
    elif log and len(positive) < len(values):
        floor = 10 ** math.floor(math.log10(min(positive)))
        decades = math.log10(max(positive) / floor)
        # The linear part separates zero and its label from the smallest power.
        set_scale("symlog", linthresh=floor, linscale=max(0.5, 0.25 * decades))
        set_limits(-0.3 * floor, max(positive) * 2.5)
        axis.set_minor_locator(NullLocator())
        step = max(1, math.ceil(decades / 4))
        powers = [floor * 10**i for i in range(0, math.ceil(decades) + 1, step)]
        shown = [0.0, *(p for p in powers if p <= max(positive) * 2.5)]
        axis.set_major_locator(FixedLocator(shown))
    elif log:
        pad = (max(positive) / min(positive)) ** 0.06 * 1.05
        set_scale("log")
        low, high = min(positive) / pad, max(positive) * pad
        set_limits(low, high)
        axis.set_major_locator(FixedLocator(_ticks(low, high)))
        axis.set_minor_locator(NullLocator())
    else:
        set_limits(0, max(positive) * 1.12)
    axis.set_major_formatter(FuncFormatter(lambda v, _: short(v, what)))
    axis.set_minor_formatter(NullFormatter())


def _ticks(low: float, high: float) -> list[float]:
    """Three to six ticks at 1, 2, 5 times powers of ten, or at powers of ten."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for mantissas in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0**e for e in range(first, last + 1) for m in mantissas]
        ticks = [t for t in ticks if low <= t <= high]
        if len(ticks) <= 6:
            return ticks
    step = math.ceil((last - first) / 5)
    return [t for e in range(first, last + 1, step) if low <= (t := 10.0**e) <= high]


def timed_as(shown: Sequence[Quantity], points: Iterable[PointResult]) -> tuple[Quantity, ...]:
    """Quantities with the words for what was timed: the time of a program is that of a whole run,
    with all its launches and copies."""
    label = "time of a run" if is_program(points) else TIME.label
    return tuple(replace(what, label=label) if what == TIME else what for what in shown)


def axis_label(what: Quantity) -> str:
    """The name of a quantity, and which direction is better."""
    judged = what.better and (what.kind == "time" or what.measured)
    return f"{what.label} ({what.better} is better)" if judged else what.label


# Ratios: logarithmic, a line at 1, ticks that a reader can measure with.


def ratio_axis(ax: Axes, values: Sequence[float]) -> tuple[float, float]:
    """A logarithmic x axis for ratios with a line at 1 and factors on both sides: ``2x``, ``1``,
    ``2x``.

    Returns its limits. ``values`` are the finite positive ratios and their bounds.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min([*values, 0.9]), max([*values, 1.1])
    pad = (high / low) ** 0.08
    low, high = low / pad, high * pad
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(FixedLocator(_ratio_ticks(low, high)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _factor(max(v, 1 / v))))
    ax.axvline(1, color="#333333", linewidth=0.9, zorder=1)
    return low, high


def _factor(value: float) -> str:
    """A factor in few characters: ``2x``, ``1.05x``, ``20kx``; ``1`` for none."""
    text = short(value, _PLAIN) if value >= 1000 else f"{value:g}"
    return text if value == 1 else f"{text}x"


def gain(found: Estimate, what: Quantity) -> Estimate:
    """How many times better something is, of the ratio new over old: more is better."""
    return found.inverse() if what.better == "lower" else found


def _ratio_ticks(low: float, high: float) -> list[float]:
    """Two to six round factors, 1 among them, the finest that fit; ``low < 1 < high``."""
    best, widest = [1.0], 0.0
    for ladder in _ladders():
        ticks = [*(1 / t for t in reversed(ladder)), 1.0, *ladder]
        ticks = [t for t in ticks if low <= t <= high]
        if not 2 <= len(ticks) <= MAX_TICKS:
            continue
        cover = math.log(ticks[-1] / ticks[0]) / math.log(high / low)
        if len(ticks) >= GOOD_TICKS and cover >= GOOD_COVER:
            return ticks
        if cover > widest:
            best, widest = ticks, cover
    return best


def _ladders() -> Iterable[Sequence[float]]:
    """Round numbers above 1, from fine steps to many powers of ten apart."""
    for step in (0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        yield [round(1 + step * i, 2) for i in range(1, round(9 / step))]
    yield [1.5, 2, 3, 4]
    yield [m * 10.0**e for e in range(4) for m in (1, 2, 5)][1:]
    yield [2.0**i for i in range(1, 11)]
    yield [m * 10.0**e for e in range(5) for m in (1, 3)][1:]
    for power in range(1, 13):
        yield [10.0 ** (power * i) for i in range(1, 13)]


# Sizes and thresholds.


def sizes_axis(ax: Axes, label: str = "N", base: Literal[2, 10] = 10) -> None:
    """Powers of ten, written 100, 1k, 10k, 1M, or of two, written 512, 1k (1024), 2k."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    kilo = 1000 if base == 10 else 1024

    def text(value: float, _: object) -> str:
        power = 2 if value >= kilo**2 else 1 if value >= kilo else 0
        return f"{value / kilo**power:g}{('', 'k', 'M')[power]}"

    ax.set_xscale("log", base=base)
    ax.xaxis.set_major_formatter(FuncFormatter(text))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(label)
