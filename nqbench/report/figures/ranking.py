"""Every point of a factorial, sorted, next to its levels as a matrix of dots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.answer import MODELLED, Answer
from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial.effects import swept_factors
from nqbench.report.figures import style
from nqbench.report.figures.axes import axis_label, timed_as, value_axis
from nqbench.report.items import columns_of, largest_of, quantities_of, sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS: Final = 60
"""More rows than this are no longer legible on one page; the best are shown."""
HERO_ROWS: Final = 26
"""Rows of the figure that opens a page: they fit its first screen."""
LEAST_IN: Final = 0.85
"""Width of a panel of values."""
PANELS: Final = 3
"""Panels of values of a figure that is not narrow."""
NARROW_IN: Final = 5.0
MAX_DOTS: Final = 6
"""A factor with more levels is written as text: a dot per level would take too much room."""
MAX_LEVEL: Final = 15
"""Characters of a line of a level that is written upright, above its column of dots."""
_ROW_IN: Final = 0.165
_DOT_IN: Final = 0.2
_LINE_IN: Final = 0.12
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
    """Every point of the largest size."""
    sweep = sweep_of(data, item)
    shown = quantities_of(data, item)
    points = data.select(sweep, cpu=data.programs_only)
    points = [p for p in points if p.ok and p.values(shown[0])]
    n = largest_of(sweep, points, shown[0])
    points = [p for p in points if p.n == n]
    title = title_of(data, item, f"{_counted(points)} of sweep {sweep}")
    name = slug("ranking", sweep, item.value or "")
    shown = timed_as(shown, points)
    return [partial(_draw, data, points, shown, name, f"{title}, N={n}")]


def hero(answer: Answer, width_in: float, total_in: float) -> style.Drawing:
    """The points of the answering sweep for the opening of a page of any width; more points than
    fit lose those in the middle."""
    data, shown = answer.data, answer.telling[: PANELS if width_in > NARROW_IN else 1]
    points = answer.ranked
    shown = tuple(q for q in timed_as(shown, points) if any(p.values(q) for p in points))
    of = f" of sweep {answer.sweep}" if data.sweeps[1:] else ""
    title = f"{_counted(points, HERO_ROWS)}{of}, N = {points[0].n:,}"
    return _draw(data, points, shown, "hero", title, width_in, total_in, HERO_ROWS)


def height_in(points: Sequence[PointResult]) -> float:
    """What :func:`hero` takes at least; 0 without two points."""
    return 0.0 if len(points) < 2 else 2.1 + _ROW_IN * max(min(len(points), HERO_ROWS), 6)


def _counted(points: Sequence[PointResult], most: int = MAX_ROWS) -> str:
    return "All points" if len(points) <= most else f"The best of {len(points)} points"


def _draw(
    data: Dataset,
    points: Sequence[PointResult],
    shown: Sequence[Quantity],
    name: str,
    title: str,
    width_in: float = style.WIDTH_IN,
    total_in: float = 0.0,
    most: int = MAX_ROWS,
) -> style.Drawing:
    first, sweep = shown[0], points[0].sweep
    signs = [(-1 if what.better == "higher" else 1, what) for what in shown]
    ranked = sorted(points, key=lambda p: [sign * p.value(what) for sign, what in signs])
    cut = ranked if len(ranked) <= most else [*ranked[: most - 1], ranked[-1]]
    factors = swept_factors(data, sweep) or columns_of(data, sweep)
    columns = _columns(data, sweep, factors, cut)
    matrix_in = max((c.left + c.width for c in columns), default=0.1)
    figure = style.new_figure(total_in or 2.1 + _ROW_IN * max(len(cut), 6), width_in)
    most_in = width_in - 0.3 - LEAST_IN * len(shown)
    squeezed = min(1.0, most_in / matrix_in)
    widths = [squeezed * matrix_in]
    widths += [(width_in - widths[0] - 0.3) / len(shown)] * len(shown)
    axes = figure.subplots(1, len(widths), width_ratios=widths, sharey=True)
    coloured = next((f for f in factors if 2 <= len(_levels(cut, f)) <= 4), "")
    _matrix(axes[0], cut, columns, coloured)
    for ax, what in zip(axes[1:], shown, strict=True):
        _values(ax, cut, what, coloured, upright=what.kind == "counter" or widths[-1] < 1.8)
        ax.set_xlabel(style.label_of(axis_label(what), int(12 * widths[-1])))
    order = {"higher": "largest", "lower": "smallest", "": "smallest"}[first.better]
    subtitle = f"{len(cut)} points sorted by {first.label}, {order} first"
    if len(cut) < len(ranked):
        subtitle = f"Sorted by {first.label}: the best {most - 1} of {len(ranked)}, and the worst"
    if first.name == MODELLED:
        subtitle += "; a model's time, not a measured one"
    elif data.simulated and len(shown) > 1:
        subtitle += "; the order is not one of speed"
    elif any((e := p.estimate(first)) is not None and e.bounded for p in cut):
        subtitle += f"; whiskers: 95% interval over {data.rounds} rounds"
    alt = f"Sorted dot plot of {len(cut)} points with their factor levels."
    return style.finish(figure, name, title, source_of(data), alt=alt, subtitle=subtitle)


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
        names = [style.label_of(level, MAX_LEVEL) for level in levels]
        lines = max(name.count("\n") + 1 for name in names)
        width = _DOT_IN if lines == 1 else 0.05 + _LINE_IN * lines
        for level in levels:
            columns.append(_Column(factor, level, left, width))
            left += width
        # Room for the factor's name above its columns.
        left += max(0.12, 0.085 * len(style.label_of(factor)) + 0.08 - width * len(levels))
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
    shown = [c for c in columns if c.level is not None]
    levels = [style.label_of(c.level, MAX_LEVEL) for c in shown]
    ax.xaxis.tick_top()
    ax.set_xticks([c.centre for c in shown], levels, rotation=90, fontsize=7)
    longest = max((len(line) for text in levels for line in text.split("\n")), default=0)
    for factor in dict.fromkeys(c.factor for c in columns):
        left = min(c.left for c in columns if c.factor == factor)
        above: dict[str, Any] = {"xytext": (0, 6 + 4.4 * longest), "textcoords": "offset points"}
        above |= {"xycoords": ax.get_xaxis_transform(), "fontweight": "bold", "fontsize": 7}
        ax.annotate(style.label_of(factor), (left, 1), va="bottom", **above)
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


def _values(
    ax: Axes, points: Sequence[PointResult], what: Quantity, coloured: str, *, upright: bool
) -> None:
    found = {y: e for y, p in enumerate(points) if (e := p.estimate(what)) is not None}
    for level in _levels(points, coloured):  # one, if nothing is coloured
        here = [(y, e) for y, e in found.items() if points[y].level(coloured) == level]
        colour, marker = _look(points, coloured, level)
        style.dots(ax, here, colour, marker, markersize=4.5, capsize=1.5, elinewidth=0.9)
    value_axis(ax, "x", [e.value for e in found.values()], what)
    ax.tick_params(axis="x", labelrotation=90 if upright else 0)
    ax.tick_params(axis="x", top=True, labeltop=True, labelbottom=len(points) > HERO_ROWS)
    ax.xaxis.set_label_position("top")
    ax.tick_params(axis="y", length=0, labelleft=False)
    ax.axhline(0, color=style.GREY, linewidth=0.5, linestyle=":", zorder=0)
