"""The axis of ratios: logarithmic, a line at 1, ticks that a reader can measure with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS: Final = 6
"""More labels than this run into each other in a panel of a third of the width."""
GOOD_TICKS: Final = 3
GOOD_COVER: Final = 0.5
"""Part of the axis between the first and the last tick that lets a reader judge any dot."""


def ratio_axis(ax: Axes, values: Sequence[float]) -> tuple[float, float]:
    """A logarithmic x axis for ratios with a line at 1 and plain numbers as ticks.

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
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _plain(v)))
    ax.axvline(1, color="#333333", linewidth=0.9, zorder=1)
    return low, high


def _plain(value: float) -> str:
    """A ratio in few characters: ``0.02``, ``1000``, ``1e-6``, ``1e6``."""
    if 0.01 <= value < 10_000:
        return f"{value:g}"
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def _ratio_ticks(low: float, high: float) -> list[float]:
    """Two to six round numbers, 1 among them, the finest that fit; ``low < 1 < high``."""
    best, widest = [1.0], 0.0
    for ladder in _ladders():
        ticks = [t for t in ladder if low <= t <= high]
        if not 2 <= len(ticks) <= MOST_TICKS:
            continue
        cover = math.log(ticks[-1] / ticks[0]) / math.log(high / low)
        if len(ticks) >= GOOD_TICKS and cover >= GOOD_COVER:
            return ticks
        if cover > widest:
            best, widest = ticks, cover
    return best


def _ladders() -> Iterable[Sequence[float]]:
    """Round numbers around 1, from fine steps to many powers of ten apart."""
    for step in (0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        yield [round(step * i, 2) for i in range(1, round(10 / step))]
    yield [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4]
    yield [m * 10.0**e for e in range(-3, 4) for m in (1, 2, 5)]
    yield [2.0**i for i in range(-3, 11)]
    yield [m * 10.0**e for e in range(-4, 5) for m in (1, 3)]
    for power in range(1, 13):
        yield [10.0 ** (power * i) for i in range(-12, 13)]
