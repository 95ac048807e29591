"""Every point of a factorial, sorted, next to its levels as a matrix of dots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial.effects import swept_factors
from nqbench.report.figures import style
from nqbench.report.figures.axes import axis_label, timed_as, value_axis
from nqbench.report.items import columns_of, sizes_of, sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS: Final = 60
"""More rows than this are no longer legible on one page; the best are shown."""
MAX_DOTS: Final = 6
"""A factor with more levels is written as text: a dot per level would take too much room."""
MAX_LEVEL: Final = 20
"""Characters of a level that is written upright, below its column of dots."""
_ROW_IN: Final = 0.165
_DOT_IN: Final = 0.2
_TEXT_IN: Final = 0.62
_SYSTEM_IN: Final = 1.9


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the matrix: one level of a factor, or (``level`` None) its level in words."""

    factor: str
    level: Level | None
    left: float
    width: float

    @property
    def centre(self) -> float:
        return self.left + self.width / 2


def ranking(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """One figure per size asked for; by default the largest size."""
    sweep = sweep_of(data, item)
    shown = data.quantities(item.value)
    points = [
        p for p in data.select(sweep, item.n, cpu=data.programs_only) if p.ok and p.values(shown[0])
    ]
    wanted = sizes_of(item, sweep, points, shown[0])
    shown = timed_as(data, shown, points)
    return [partial(_one, data, item, shown, [p for p in points if p.n == n]) for n in wanted]


def _one(
    data: Dataset,
    item: ReportItem,
    shown: Sequence[Quantity],
    points: Sequence[PointResult],
) -> style.Drawing:
    first, n, sweep = shown[0], points[0].n, points[0].sweep
    ranked = sorted(points, key=lambda p: p.value(first), reverse=first.better == "higher")
    cut = ranked[:MAX_ROWS]
    factors = swept_factors(data, sweep) or columns_of(data, sweep)
    columns = _columns(data, sweep, factors, cut)
    matrix_in = max((c.left + c.width for c in columns), default=0.1)
    figure = style.new_figure(1.9 + _ROW_IN * max(len(cut), 6))
    widths = [matrix_in, *[(style.WIDTH_IN - matrix_in - 0.3) / len(shown)] * len(shown)]
    axes = figure.subplots(1, len(widths), width_ratios=widths, sharey=True)
    coloured = next((f for f in factors if 2 <= len(_levels(cut, f)) <= 4), "")
    _matrix(axes[0], cut, columns, coloured)
    for ax, what in zip(axes[1:], shown, strict=True):
        _values(ax, cut, what, coloured)
        label = axis_label(what)
        ax.set_title(label.replace(" ", "\n", 1) if len(shown) > 2 else label)
    order = {"higher": "largest", "lower": "smallest", "": "smallest"}[first.better]
    subtitle = f"{len(cut)} points sorted by {first.label}, {order} first"
    if len(cut) < len(ranked):
        subtitle += f" (of {len(ranked)}; the table of results has all)"
    if data.simulated and len(shown) > 1:
        subtitle += "; the order is not one of speed"
    elif any((e := p.estimate(first)) is not None and e.bounded for p in cut):
        subtitle += f"; whiskers: 95% interval over {data.rounds} rounds"
    whole = len(cut) == len(ranked)
    title = title_of(data, item, f"{'All points' if whole else 'Points'} of sweep {sweep}")
    name = slug("ranking", sweep, item.value or "", f"n{n}" if item.n else "")
    alt = f"Sorted dot plot of {len(cut)} points with their factor levels."
    title, source = f"{title}, N={n}", source_of(data)
    return style.finish(figure, name, title, source, alt=alt, subtitle=subtitle)


def _levels(points: Sequence[PointResult], factor: str) -> list[Level]:
    return list(dict.fromkeys(p.level(factor) for p in points))


def _columns(
    data: Dataset, sweep: str, factors: Sequence[str], points: Sequence[PointResult]
) -> list[_Column]:
    """Columns in inches from the left."""
    columns: list[_Column] = []
    left = 0.05
    for factor in factors:
        present = set(_levels(points, factor))
        levels = [v for v in data.order(sweep, factor) if v in present and v != INAPPLICABLE]
        if factor == "system" or len(levels) > MAX_DOTS:
            width = _SYSTEM_IN if factor == "system" else _TEXT_IN
            columns.append(_Column(factor, None, left, width))
            left += width + 0.1
            continue
        for level in levels:
            columns.append(_Column(factor, level, left, _DOT_IN))
            left += _DOT_IN
        # Room for the factor's name above its columns.
        left += max(0.12, 0.085 * len(style.label_of(factor)) + 0.08 - _DOT_IN * len(levels))
    return columns


def _matrix(
    ax: Axes, points: Sequence[PointResult], columns: Sequence[_Column], coloured: str
) -> None:
    rows = range(len(points))
    for column in columns:
        if column.level is None:
            for y, point in zip(rows, points, strict=True):
                text = style.label_of(point.level(column.factor))
                ax.text(column.left, y, text, va="center", fontsize=7)
            continue
        here = [y for y in rows if points[y].level(column.factor) == column.level]
        rest = [y for y in rows if y not in set(here)]
        colour, marker = "#333333", "o"
        if column.factor == coloured:
            colour, marker = _look(points, coloured, column.level)
        ax.plot([column.centre] * len(rest), rest, ".", color="#d5d5d5", markersize=2.5)
        ax.plot([column.centre] * len(here), here, marker, color=colour, markersize=4.5)
    for factor in dict.fromkeys(c.factor for c in columns):
        left = min(c.left for c in columns if c.factor == factor)
        ax.text(left, -0.9, style.label_of(factor), fontsize=7, fontweight="bold", va="bottom")
    shown = [c for c in columns if c.level is not None]
    levels = [style.label_of(c.level, MAX_LEVEL) for c in shown]
    ax.set_xticks([c.centre for c in shown], levels, rotation=90, fontsize=7)
    ax.set_xlim(0, max((c.left + c.width for c in columns), default=0.1))
    ax.set_ylim(len(points) - 0.5, -0.7)
    ax.tick_params(axis="both", length=0, labelleft=False)
    ax.grid(visible=False)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)


def _look(points: Sequence[PointResult], factor: str, level: Level) -> tuple[str, str]:
    """Colour and marker of a level; the same whatever the order of the points."""
    order = sorted(map(str, _levels(points, factor)))
    i = order.index(str(level))
    return style.COLOURS[i], style.MARKERS[i]


def _values(ax: Axes, points: Sequence[PointResult], what: Quantity, coloured: str) -> None:
    found = {y: e for y, p in enumerate(points) if (e := p.estimate(what)) is not None}
    for level in _levels(points, coloured):  # one, if nothing is coloured
        here = [(y, e) for y, e in found.items() if points[y].level(coloured) == level]
        colour, marker = _look(points, coloured, level)
        style.dots(ax, here, colour, marker, markersize=4.5, capsize=1.5, elinewidth=0.9)
    value_axis(ax, "x", [e.value for e in found.values()], what)
    ax.tick_params(axis="x", labelrotation=90 if len(points) and what.kind == "counter" else 0)
    ax.tick_params(axis="y", length=0, labelleft=False)
    ax.axhline(0, color=style.GREY, linewidth=0.5, linestyle=":", zorder=0)
