"""A quantity over two factors: values in the cells, the best marked, what cannot run hatched."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.analysis.data.quantities import Quantity
from nqbench.errors import AnalysisError
from nqbench.report.figures import style
from nqbench.report.figures.axes import SECONDS, WIDE, digits, short, timed_as
from nqbench.report.items import largest_of, quantities_of, sweep_of
from nqbench.report.table import Column, cell_text, slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL_IN: Final = 0.27
_NARROW: Final = 7
"""Columns up to which two panels fit side by side with legible cells."""
HALF: Final = (0.48, 0.46)
"""Half the width and the height of a cell."""
_DARK: Final = 0.5
"""Luminance of a cell below which its text is white."""
Grid = Mapping[tuple[Level, Level], PointResult]
_Side = tuple[str, Sequence[Level]]


def heatmap(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """The points of the largest size over the factors ``x`` and ``y``."""
    sweep = sweep_of(data, item)
    if not item.x or not item.y:
        raise AnalysisError("a heat map needs two factors: give x and y")
    points = data.select(sweep, cpu=data.programs_only)
    shown = quantities_of(data, item)
    fit = [p for p in points if p.ok and any(p.values(what) for what in shown)]
    n = largest_of(sweep, fit, shown[0])
    here, shown = [p for p in points if p.n == n], timed_as(shown, fit)
    grid, x, y = _grid(here, item.x, item.y), item.x, item.y
    xs = [v for v in data.order(sweep, x) if v in {k[0] for k in grid}]
    ys = [v for v in data.order(sweep, y) if v in {k[1] for k in grid}]

    def draw() -> style.Drawing:
        columns = 2 if len(xs) <= _NARROW and len(shown) > 1 else 1
        row_in = 0.42 + _CELL_IN * max(len(ys), 2)
        figure, axes = style.panels(len(shown), 1.15, row_in, most=columns)
        for i, (ax, what) in enumerate(zip(axes, shown, strict=True)):
            _panel(ax, grid, (x, xs), (y, ys), what)
            ax.set_ylabel(y, labelpad=6)
            if i + columns >= len(shown):
                ax.set_xlabel(x)
        named = shown[0].label if len(shown) == 1 else "Counters"
        title = item.title or f"{named} over {x} and {y}"
        title = title[0].upper() + title[1:]
        name = slug("heatmap", sweep, item.value or "")
        alt = f"Heat map of {', '.join(w.label for w in shown)} over {x} and {y}."
        about = _about(shown, here)
        return style.finish(figure, name, title, source_of(data), alt=alt, subtitle=about)

    return [draw]


def _about(shown: Sequence[Quantity], points: Sequence[PointResult]) -> str:
    """The system and the size, and what outlines, hatches and shades mean."""
    system = {p.system for p in points if p.system}
    about = f"{system.pop()}, " if len(system) == 1 else ""
    hatched = "hatched: infeasible or failed; " if any(not p.ok for p in points) else ""
    # Of a counter no value is "best", only lowest or highest.
    most = ", ".join(what.label for what in shown if what.better == "higher")
    outlined = f"lowest (highest for {most})" if most else "lowest"
    outlined = "highest" if all(what.better == "higher" for what in shown) else outlined
    return f"{about}N={points[0].n}; outlined: {outlined}; {hatched}darker: higher"


def _grid(points: Sequence[PointResult], x: str, y: str) -> Grid:
    grid: dict[tuple[Level, Level], PointResult] = {}
    for point in points:
        key = (point.level(x), point.level(y))
        if INAPPLICABLE in key:
            continue
        if key in grid:
            raise AnalysisError(
                f"two points share {x} {key[0]} and {y} {key[1]}: another factor varies too;"
                " fix it in a sweep of its own"
            )
        grid[key] = point
    if not grid:
        raise AnalysisError(f"no point of the sweep has both {x} and {y}")
    return grid


def _panel(ax: Axes, grid: Grid, across: _Side, down: _Side, what: Quantity) -> None:
    import matplotlib as mpl

    (x, xs), (y, ys) = across, down
    found = {key: e for key, p in grid.items() if (e := p.estimate(what)) is not None}
    values = {key: e.value for key, e in found.items()}
    column = Column(what.label, "time" if what.kind == "time" else "number")
    positive = [v for v in values.values() if v > 0]
    colours = mpl.colormaps["cividis_r"]
    scale, unit = _unit(what, positive)
    for (i, level_x), (j, level_y) in itertools.product(enumerate(xs), enumerate(ys)):
        key = level_x, level_y
        if key not in values:
            edge, hatch = (style.GREY, style.HATCH) if key in grid else ("#dddddd", None)
            _box(ax, i, j, facecolor="white", edgecolor=edge, hatch=hatch, lw=0.4)
            continue
        text = digits(values[key] / scale, keep_zeros=True) if unit else short(values[key], what)
        red, green, blue, _ = colours(0.05 + 0.9 * _shade(values[key], positive))
        # The label is what a page shows under the pointer.
        label = f"{x} {level_x}, {y} {level_y}: {cell_text(found[key], column)}"
        _box(ax, i, j, facecolor=(red, green, blue), lw=0, label=label)
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < _DARK
        colour = style.ON_CELL[bool(dark)]
        ax.text(i, j, text, ha="center", va="center", fontsize=7, color=colour)
    best = (max if what.better == "higher" else min)(values.values(), default=None)
    winners = [key for key, value in values.items() if value == best]
    if what.better and len(winners) < len(values):  # else nothing is better than anything else
        for level_x, level_y in winners:
            i, j = xs.index(level_x), ys.index(level_y)
            _box(ax, i, j, (0.46, 0.44), fill=False, edgecolor="#D55E00", lw=2)
    ax.set_xlim(-0.5, len(xs) - 0.5)
    ax.set_ylim(len(ys) - 0.5, -0.5)
    ax.set_xticks(range(len(xs)), [style.label_of(v, 12) for v in xs])
    ax.set_yticks(range(len(ys)), [style.label_of(v) for v in ys])
    ax.tick_params(length=0)
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title(f"{what.label} ({unit})" if unit else what.label)


def _box(ax: Axes, i: int, j: int, half: tuple[float, float] = HALF, **look: Any) -> None:
    """A rectangle around the middle of a cell; ``half`` of its width and height."""
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((i - half[0], j - half[1]), 2 * half[0], 2 * half[1], **look))


def _unit(what: Quantity, values: Sequence[float]) -> tuple[float, str]:
    """One unit for all cells of a panel where that keeps them short; else none."""
    if not values or what.unit != "s":
        return 1.0, ""
    scale, unit = next((s for s in SECONDS if max(values) >= s[0] * 10), SECONDS[-1])
    # Times of less than a thousandth of the unit would lose their digits.
    return (scale, unit.strip()) if min(values) >= scale * 1e-2 else (1.0, "")


def _shade(value: float, positive: Sequence[float]) -> float:
    """Place of a value between the smallest (0) and the largest (1), logarithmic where wide."""
    if not positive or value <= 0:
        return 0.0
    low, high = min(positive), max(positive)
    if low == high:
        return 0.3
    wide = high / low > WIDE
    return math.log(value / low, high / low) if wide else (value - low) / (high - low)
