"""The roofline: operations per second over operations per byte, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.limits.ceilings import Ceiling, Ceilings
from nqbench.analysis.limits.roofline import SIMULATED, RoofPoint
from nqbench.report.figures.axes import short
from nqbench.report.figures.style import (
    COLOURS,
    GREY,
    MARKERS,
    Drawing,
    finish,
    new_figure,
    series_style,
)
from nqbench.report.table import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DECADES: Final = 0.6
"""Room left and right of the points and the ridges, in powers of ten."""
MAX_NAMES: Final = 12
"""Entries of the legend that fit beside the panel."""
MARKS: Final = (4.0, 7.5)
"""Points of the marks of the smallest and the largest size."""
FEW: Final = 2.5
"""Below so many powers of ten on an axis their ticks alone are too few to read a value off."""
APART: Final = 1.4
"""Lines closer than by this factor have no room for a name between them: they share one."""
OPERATIONS: Final = Quantity("operations", "operations", (), "counter")


def roofline(ceilings: Ceilings, points: Sequence[RoofPoint], source: Source) -> Drawing:
    """One panel: the ceilings as lines, the kernels as marks, filled where FP32 dominates."""
    shown = [p for p in points if 0 < p.intensity < math.inf]
    figure = new_figure(4.6)
    ax = figure.subplots()
    low, high = _span(ceilings, shown)
    _roofs(ax, ceilings, low, high)
    systems = list(dict.fromkeys(p.system for p in shown))
    sizes = sorted({p.n for p in shown})
    for index, system in enumerate(systems):
        own = [p for p in shown if p.system == system]
        colour = series_style(index).colour
        marker = MARKERS[index // len(COLOURS) % len(MARKERS)]
        for place, point in enumerate(own):
            ax.plot(
                [point.intensity],
                [point.per_s(point.operations)],
                marker=marker,
                linestyle="none",
                markersize=_mark(sizes, point.n),
                color=colour,
                markerfacecolor=colour if point.operations == "float" else "white",
                label=system if place == 0 and index < MAX_NAMES else None,
                zorder=3,
            )
    _axes(ax, _powers([p.per_s(p.operations) for p in shown], ceilings))
    ax.set_xlim(low, high)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=7)
    title = f"Roofline of {ceilings.device}"
    who = ", ".join(dict.fromkeys(p.counted_by for p in shown)) or "nobody"
    subtitle = f"filled: FP32 operations dominate; open: integer; counted by {who}"
    if any(p.counted_by == SIMULATED for p in shown):
        subtitle += " (not machine code, no caches)"
    if len(sizes) > 1:
        subtitle += f"; larger marks: larger N ({', '.join(f'{n:,}' for n in sizes)})"
    alt = f"{len(shown)} kernels under {len(ceilings.found)} measured ceilings."
    return finish(figure, "roofline", title, source, alt=alt, subtitle=subtitle)


def _span(ceilings: Ceilings, points: Sequence[RoofPoint]) -> tuple[float, float]:
    """Limits of the axis of intensities: all kernels, and where the roofs bend."""
    bandwidth = ceilings.best("bytes").per_s.value
    bends = [c.per_s.value / bandwidth for c in ceilings.found.values() if c.kind != "bytes"]
    values = [*bends, *(p.intensity for p in points)]
    return min(values) / 10**DECADES, max(values) * 10**DECADES


def _roofs(ax: Axes, ceilings: Ceilings, low: float, high: float) -> None:
    """Slanted lines for bytes, level ones for operations, each with its name and number."""
    level = [c for c in ceilings.found.values() if c.kind != "bytes"]
    slanted = [c for c in ceilings.found.values() if c.kind == "bytes"]
    top = max(c.per_s.value for c in level)
    for ceiling in slanted:
        rate = ceiling.per_s.value
        end = min(high, top / rate)
        style = "-" if ceiling.operation == "copy" else "--"
        name = f"{ceiling.name}:\n{rate * 1e-9:,.0f} GB/s"
        ends = ([low, end], [low * rate, end * rate])
        ax.plot(*ends, color=GREY, linestyle=style, linewidth=1.2, label=name)
    steepest = max(c.per_s.value for c in slanted)
    named: list[list[Ceiling]] = []
    for ceiling in sorted(level, key=lambda c: -c.per_s.value):
        rate = ceiling.per_s.value
        colour = COLOURS[0] if ceiling.kind == "float" else COLOURS[1]
        ax.plot([rate / steepest, high], [rate, rate], color=colour, linewidth=1.2)
        if named and rate > named[-1][-1].per_s.value / APART:
            named[-1].append(ceiling)
        else:
            named.append([ceiling])
    for group in named:
        one = {c.kind for c in group} == {group[0].kind}
        colour = COLOURS[0] if group[0].kind == "float" else COLOURS[1]
        names = ", ".join(f"{c.name}: {c.per_s.value * 1e-12:.3g}" for c in group)
        ax.annotate(
            f"{names} Top/s",
            (high, group[0].per_s.value),
            xytext=(-4, 2),
            textcoords="offset points",
            fontsize=6.5,
            color=colour if one else GREY,
            ha="right",
            va="bottom",
        )


def _mark(sizes: Sequence[int], n: int) -> float:
    """Points of a mark: the larger the size, the larger."""
    low, high = MARKS
    return high if len(sizes) == 1 else low + (high - low) * sizes.index(n) / (len(sizes) - 1)


def _powers(values: Sequence[float], ceilings: Ceilings) -> float:
    """Powers of ten between the slowest kernel and the highest roof."""
    top = max(c.per_s.value for c in ceilings.found.values() if c.kind != "bytes")
    return math.log10(top / min(values, default=top))


def _axes(ax: Axes, powers: float) -> None:
    """Logarithmic, with plain numbers as ticks; twos and fives where powers of ten are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.set_yscale("log")
    if powers < FEW:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: short(v, OPERATIONS)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("operations per byte")
    ax.set_ylabel("operations per second")
    ax.grid(visible=True, which="major", linewidth=0.4)
