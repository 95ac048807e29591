"""Logarithmic x axes of problem sizes and thresholds, with plain numbers as ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KILO: Final = 1000


def sizes_axis(ax: Axes, label: str = "N") -> None:
    """Powers of ten, written 100, 1k, 10k, 1M."""
    _log_axis(ax, label, 10, _KILO)


def powers_axis(ax: Axes, label: str) -> None:
    """Powers of two, written 512, 1k (1024), 2k."""
    _log_axis(ax, label, 2, 1024)


def _log_axis(ax: Axes, label: str, base: int, kilo: int) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    ax.set_xscale("log", base=base)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _plain(v, kilo)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(label)


def _plain(value: float, kilo: int) -> str:
    for power, unit in ((2, "M"), (1, "k")):
        if value >= kilo**power:
            return f"{value / kilo**power:g}{unit}"
    return f"{value:g}"
