"""A quantity over two factors: values in the cells, the best marked, what cannot run hatched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.analysis.data.quantities import Quantity
from nqbench.errors import AnalysisError
from nqbench.report.figures.axes import WIDE, digits, short, timed_as
from nqbench.report.figures.style import (
    GREY,
    HATCH,
    Draw,
    Drawing,
    finish,
    label_of,
    new_figure,
)
from nqbench.report.items import sizes_of, sweep_of
from nqbench.report.table import Column, cell_text, slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

_CELL_IN: Final = 0.27
_NARROW: Final = 7
"""Columns up to which two panels fit side by side with legible cells."""
_DARK: Final = 0.5
"""Luminance of a cell below which its text is white."""
Grid = Mapping[tuple[Level, Level], PointResult]


def heatmap(data: Dataset, item: ReportItem) -> list[Draw]:
    """One figure per size asked for; by default the largest size. Needs ``x`` and ``y``."""
    sweep = sweep_of(data, item)
    if not item.x or not item.y:
        raise AnalysisError("a heat map needs two factors: give x and y")
    points = data.select(sweep, item.n, cpu=False)
    shown = data.quantities(item.value)
    fit = [p for p in points if p.ok and any(p.values(what) for what in shown)]
    wanted = sizes_of(item, sweep, fit, shown[0])
    shown = timed_as(data, shown, fit)
    figures: list[Draw] = []
    for n in wanted:
        here = [p for p in points if p.n == n]
        grid = _grid(here, item.x, item.y)
        figures.append(partial(_one, data, item, sweep, shown, here, grid, n))
    return figures


def _one(
    data: Dataset,
    item: ReportItem,
    sweep: str,
    shown: Sequence[Quantity],
    points: Sequence[PointResult],
    grid: Grid,
    n: int,
) -> Drawing:
    x, y = str(item.x), str(item.y)
    xs = [v for v in data.order(sweep, x) if v in {k[0] for k in grid}]
    ys = [v for v in data.order(sweep, y) if v in {k[1] for k in grid}]
    columns = 2 if len(xs) <= _NARROW and len(shown) > 1 else 1
    lines = math.ceil(len(shown) / columns)
    figure = new_figure(0.8 + lines * (0.42 + _CELL_IN * max(len(ys), 2)) + 0.35)
    flat = list(figure.subplots(lines, columns, squeeze=False).flat)
    for i, (ax, what) in enumerate(zip(flat, shown, strict=False)):
        _panel(ax, grid, (x, xs), (y, ys), what)
        ax.set_ylabel(y, labelpad=6)
        if i + columns >= len(shown):
            ax.set_xlabel(x)
    for ax in flat[len(shown) :]:
        ax.set_axis_off()
    system = {p.system for p in points if p.system}
    about = f"{system.pop()}, " if len(system) == 1 else ""
    hatched = "hatched: infeasible or failed; " if any(not p.ok for p in points) else ""
    subtitle = f"{about}N={n}; {_outlined(shown)}{hatched}darker: higher"
    title = item.title or f"{shown[0].label if len(shown) == 1 else 'Counters'} over {x} and {y}"
    title = title[0].upper() + title[1:]
    name = slug("heatmap", sweep, item.value or "", f"n{n}" if item.n else "")
    alt = f"Heat map of {', '.join(w.label for w in shown)} over {x} and {y}."
    return finish(figure, name, title, source_of(data), alt=alt, subtitle=subtitle)


def _outlined(shown: Sequence[Quantity]) -> str:
    """What the outlines mean: of a counter no value is "best", only lowest or highest."""
    words = {"lower": "lowest", "higher": "highest"}
    kinds = {what.better for what in shown if what.better}
    if len(kinds) == 1:
        return f"outlined: {words[kinds.pop()]}; "
    odd = ", ".join(what.label for what in shown if what.better == "higher")
    return f"outlined: lowest (highest for {odd}); " if kinds else ""


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


def _panel(
    ax: Axes,
    grid: Grid,
    across: tuple[str, Sequence[Level]],
    down: tuple[str, Sequence[Level]],
    what: Quantity,
) -> None:
    """Draw one quantity over the levels of two factors."""
    import matplotlib as mpl

    (x, xs), (y, ys) = across, down
    found = {key: e for key, p in grid.items() if (e := p.estimate(what)) is not None}
    values = {key: e.value for key, e in found.items()}
    column = Column(what.label, "time" if what.kind == "time" else "number")
    positive = [v for v in values.values() if v > 0]
    colours = mpl.colormaps["cividis_r"]
    scale, unit = _unit(what, positive)
    for i, level_x in enumerate(xs):
        for j, level_y in enumerate(ys):
            value = values.get((level_x, level_y))
            if value is None:
                _missing_cell(ax, i, j, planned=(level_x, level_y) in grid)
                continue
            shade = _shade(value, positive)
            text = (
                digits(value / scale, keep_zeros=True) if unit is not None else short(value, what)
            )
            said = cell_text(found[level_x, level_y], column)
            label = f"{x} {level_x}, {y} {level_y}: {said}"
            _cell(ax, i, j, colours, shade, text, label)
    _mark_best(ax, values, xs, ys, what)
    ax.set_xlim(-0.5, len(xs) - 0.5)
    ax.set_ylim(len(ys) - 0.5, -0.5)
    ax.set_xticks(range(len(xs)), [label_of(v, 12) for v in xs])
    ax.set_yticks(range(len(ys)), [label_of(v) for v in ys])
    ax.tick_params(length=0)
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title(f"{what.label} ({unit})" if unit else what.label)


def _unit(what: Quantity, values: Sequence[float]) -> tuple[float, str | None]:
    """One unit for all cells of a panel where that keeps them short; ``None`` for mixed ones."""
    if not values:
        return 1.0, None
    if what.unit == "s":
        steps = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
        scale, unit = next((s for s in steps if max(values) >= s[0] * 10), steps[-1])
        # Times of less than a thousandth of the unit would lose their digits.
        return (scale, unit) if min(values) >= scale * 1e-2 else (1.0, None)
    return 1.0, None


def _shade(value: float, positive: Sequence[float]) -> float:
    """Place of a value between the smallest (0) and the largest (1), logarithmic where wide."""
    if not positive or value <= 0:
        return 0.0
    low, high = min(positive), max(positive)
    if low == high:
        return 0.3
    if high / low > WIDE:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _cell(ax: Axes, i: int, j: int, colours: Colormap, shade: float, text: str, label: str) -> None:
    """Draw one cell; its ``label`` is what a page shows of it under the pointer."""
    from matplotlib.patches import Rectangle

    red, green, blue, _ = colours(0.05 + 0.9 * shade)
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < _DARK
    place: tuple[Any, ...] = ((i - 0.48, j - 0.46), 0.96, 0.92)
    ax.add_patch(Rectangle(*place, facecolor=(red, green, blue), lw=0, label=label))
    colour = "white" if dark else "black"
    ax.text(i, j, text, ha="center", va="center", fontsize=7, color=colour)


def _missing_cell(ax: Axes, i: int, j: int, *, planned: bool) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle(
            *((i - 0.48, j - 0.46), 0.96, 0.92),
            facecolor="white",
            edgecolor=GREY if planned else "#dddddd",
            hatch=HATCH if planned else None,
            lw=0.4,
        )
    )


def _mark_best(
    ax: Axes,
    values: Mapping[tuple[Level, Level], float],
    xs: Sequence[Level],
    ys: Sequence[Level],
    what: Quantity,
) -> None:
    """Outline the best cell, or all of them if several share the best value."""
    from matplotlib.patches import Rectangle

    if not values or not what.better:
        return
    best = (max if what.better == "higher" else min)(values.values())
    winners = [key for key, value in values.items() if value == best]
    if len(winners) == len(values):
        return  # nothing is better than anything else
    for level_x, level_y in winners:
        i, j = xs.index(level_x), ys.index(level_y)
        ax.add_patch(
            Rectangle((i - 0.46, j - 0.44), 0.92, 0.88, fill=False, edgecolor="#D55E00", lw=2)
        )
