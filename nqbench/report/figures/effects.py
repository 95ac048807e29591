"""Main effects and two-way interactions as dots with whiskers on a ratio axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial import effects as factorial
from nqbench.errors import AnalysisError
from nqbench.report.figures.axes import ratio_axis, timed_as
from nqbench.report.figures.style import (
    GREY,
    Draw,
    Drawing,
    dots,
    finish,
    grid_shape,
    label_of,
    legend,
    new_figure,
    series_style,
)
from nqbench.report.items import sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOT_IN = 0.075
"""Height that one size takes within a row."""
_FRAME_IN = 0.75


@dataclass(frozen=True, slots=True)
class _Ratio:
    row: str
    n: int
    ratio: Estimate


def effects(data: Dataset, item: ReportItem) -> list[Draw]:
    """Main effects and interactions: side by side for one quantity, two figures for several."""
    sweep = sweep_of(data, item)
    shown = timed_as(data, data.quantities(item.value), data.select(sweep, item.n))
    mains = {what: _mains(data, sweep, what, item) for what in shown}
    crossed = {what: found for what in shown if (found := _crossed(data, sweep, what, item))}
    title = title_of(data, item, f"Effects of sweep {sweep}")
    name = slug("effects", sweep, item.value or "")
    if len(shown) == 1:
        what = shown[0]
        return [partial(_single, data, name, title, what, mains[what], crossed.get(what, []))]
    figures: list[Draw] = [partial(_multiples, data, name, title, mains, "main effects")]
    if crossed:
        heading = f"{item.title}: interactions" if item.title else f"Interactions of sweep {sweep}"
        name = f"{name}-interactions"
        figures.append(partial(_multiples, data, name, heading, crossed, "two-way interactions"))
    return figures


def _mains(data: Dataset, sweep: str, what: Quantity, item: ReportItem) -> list[_Ratio]:
    found = factorial.effects(data, sweep, what, sizes=item.n)
    return [_Ratio(f"{e.factor}: {e.base} → {e.level}", e.n, e.ratio) for e in found]


def _crossed(data: Dataset, sweep: str, what: Quantity, item: ReportItem) -> list[_Ratio]:
    try:
        found = factorial.interactions(data, sweep, what, sizes=item.n)
    except AnalysisError:
        return []  # a sweep of one factor has effects, but no interactions
    return [
        _Ratio(f"{i.factor} {i.level} \u00d7 {i.other} {i.other_level}", i.n, i.ratio)
        for i in found
    ]


def _single(
    data: Dataset,
    name: str,
    title: str,
    what: Quantity,
    mains: Sequence[_Ratio],
    crossed: Sequence[_Ratio],
) -> Drawing:
    panels = [part for part in (mains, crossed) if part]
    rows = max(len(_rows(part)) for part in panels)
    row_in = 0.12 + _DOT_IN * len({r.n for r in mains})
    figure = new_figure(_FRAME_IN + 0.9 + row_in * max(rows, 4))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    below = " (below 1: faster)" if what.unit == "s" else ""
    heads = ("Main effects", "Interactions")
    names = (f"ratio of {what.label}{below}", "ratio of two effects (1: none)")
    for ax, part, head, label in zip(axes, panels, heads, names, strict=False):
        _draw(ax, part, with_labels=True)
        ax.set_title(head)
        ax.set_xlabel(label)
    legend(figure, axes[0])
    subtitle = "Geometric-mean ratio of otherwise identical points" + _whisker_note(mains)
    alt = f"Dot plot of main effects and two-way interactions on the {what.label}."
    return finish(figure, name, title, source_of(data), alt=alt, subtitle=subtitle)


def _multiples(
    data: Dataset,
    name: str,
    title: str,
    parts: dict[Quantity, list[_Ratio]],
    kind: str,
) -> Drawing:
    lines, columns = grid_shape(len(parts))
    rows = max(len(_rows(part)) for part in parts.values())
    row_in = 0.1 + _DOT_IN * len({r.n for part in parts.values() for r in part})
    figure = new_figure(_FRAME_IN + lines * (0.75 + row_in * max(rows, 3)))
    axes = figure.subplots(lines, columns, squeeze=False)
    flat = list(axes.flat)
    labels = _rows([ratio for part in parts.values() for ratio in part])
    for i, (ax, (what, part)) in enumerate(zip(flat, parts.items(), strict=False)):
        _draw(ax, part, with_labels=i % columns == 0, labels=labels)
        ax.set_title(what.label)
        if i == 0:
            legend(figure, ax)
        if i + columns >= len(parts):
            ax.set_xlabel("ratio")
    for ax in flat[len(parts) :]:
        ax.set_axis_off()
    alt = f"Small multiples of {kind}, one panel per counter: {', '.join(w.label for w in parts)}."
    subtitle = (
        f"{kind[0].upper()}{kind[1:]} as exact ratios of counters; none of them alone is the cost"
    )
    return finish(figure, name, title, source_of(data), alt=alt, subtitle=subtitle)


def _rows(part: Sequence[_Ratio]) -> list[str]:
    return list(dict.fromkeys(r.row for r in part))


def _draw(
    ax: Axes, part: Sequence[_Ratio], *, with_labels: bool, labels: Sequence[str] = ()
) -> None:
    rows = list(labels) or _rows(part)
    sizes = sorted({r.n for r in part})
    bounds = [
        v
        for r in part
        for v in (r.ratio.value, r.ratio.low, r.ratio.high)
        if v is not None and 0 < v < math.inf
    ]
    low, high = ratio_axis(ax, bounds)
    for i, n in enumerate(sizes):
        style = series_style(i)
        offset = _offset(i, len(sizes))
        here = [r for r in part if r.n == n and 0 < r.ratio.value < math.inf]
        plain = [(rows.index(r.row) + offset, r.ratio) for r in here]
        look: dict[str, Any] = {"markersize": 4.2, "capsize": 2, "elinewidth": 1}
        dots(ax, plain, style.colour, style.marker, label=f"N={n}", **look)
    _extremes(ax, part, rows, low, high)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(rows)), [label_of(row, 60) if with_labels else "" for row in rows])
    ax.tick_params(axis="y", length=0)


def _extremes(
    ax: Axes, part: Sequence[_Ratio], rows: Sequence[str], low: float, high: float
) -> None:
    """Ratios that a logarithmic axis cannot show, as words at its edge.

    Once per row, with the sizes it applies to unless it applies to all, and at the height of the
    first of these: the marks of the others stand at their own heights.
    """
    every = sorted({r.n for r in part})
    noted: dict[tuple[str, str], list[int]] = {}
    for r in part:
        value = r.ratio.value
        if 0 < value < math.inf:
            continue
        text = {0.0: "◂ to 0", math.inf: "from 0 ▸"}.get(value, "0 \u00f7 0")
        noted.setdefault((r.row, text), []).append(r.n)
    places = {"◂ to 0": (low, "left"), "from 0 ▸": (high, "right"), "0 \u00f7 0": (1.0, "center")}
    for (row, text), sizes in noted.items():
        if len(sizes) < sum(r.row == row for r in part):
            text = f"{text} at N={', '.join(map(str, sizes))}"
        place, align = places[text.partition(" at ")[0]]
        alone = len(sizes) == len(every)
        height = rows.index(row) + (0 if alone else _offset(every.index(sizes[0]), len(every)))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
        keywords: dict[str, Any] = {"ha": align, "va": "center", "bbox": box, "zorder": 1.5}
        ax.text(place, height, text, color=GREY, fontsize=7 if alone else 6, **keywords)


def _offset(index: int, sizes: int) -> float:
    """Height of a size within a row, from its middle."""
    return 0.75 * ((index + 0.5) / sizes - 0.5)


def _whisker_note(part: Sequence[_Ratio]) -> str:
    rounds = next((r.ratio.rounds for r in part if r.ratio.bounded), 0)
    if rounds:
        return f"; whiskers: 95% interval over {rounds} rounds"
    return "; exact" if part[0].ratio.exact else "; one round, no interval"
