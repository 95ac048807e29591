"""Main effects and two-way interactions as dots with whiskers on a ratio axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.factorial import effects as factorial
from nqbench.errors import AnalysisError
from nqbench.report.figures import style
from nqbench.report.figures.axes import ratio_axis, timed_as
from nqbench.report.items import sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOT_IN = 0.075
"""Height that one size takes within a row."""
_PLACES = {0.0: ("◂ to 0", "left"), math.inf: ("from 0 ▸", "right")}
"""What is said of a ratio that a logarithmic axis cannot show, and how it is aligned."""


@dataclass(frozen=True, slots=True)
class EffectRatio:
    """A ratio at one size, and the row that it stands in."""

    row: str
    n: int
    ratio: Estimate

    @property
    def drawable(self) -> bool:
        """Whether a logarithmic axis can show it."""
        return 0 < self.ratio.value < math.inf


RatioPanel = tuple[str, str, Sequence[EffectRatio]]
"""The title of a panel, the label of its axis, its ratios."""


def effects(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """Main effects and interactions: side by side for one quantity, two figures for several."""
    sweep = sweep_of(data, item)
    shown = timed_as(data, data.quantities(item.value), data.select(sweep, item.n))
    mains: list[RatioPanel] = []
    crossed: list[RatioPanel] = []
    for what in shown:
        found = factorial.effects(data, sweep, what, sizes=item.n)
        ratios = [EffectRatio(f"{e.factor}: {e.base} → {e.level}", e.n, e.ratio) for e in found]
        mains.append((what.label, "ratio", ratios))
        with suppress(AnalysisError):  # a sweep of one factor has effects, but no interactions
            both = factorial.interactions(data, sweep, what, sizes=item.n)
            ratios = [
                EffectRatio(f"{i.factor} {i.level} \u00d7 {i.other} {i.other_level}", i.n, i.ratio)
                for i in both
            ]
            crossed += [(what.label, "ratio", ratios)] * bool(ratios)
    title = title_of(data, item, f"Effects of sweep {sweep}")
    name = slug("effects", sweep, item.value or "")
    if len(shown) == 1:
        ((label, _, own),) = mains
        below = " (below 1: faster)" if shown[0].unit == "s" else ""
        panels: list[RatioPanel] = [("Main effects", f"ratio of {label}{below}", own)]
        panels += [("Interactions", "ratio of two effects (1: none)", c) for _, _, c in crossed]
        rounds = next((r.ratio.rounds for r in own if r.ratio.bounded), 0)
        shown_as = "exact" if own[0].ratio.exact else "one round, no interval"
        shown_as = f"whiskers: 95% interval over {rounds} rounds" if rounds else shown_as
        subtitle = f"Geometric-mean ratio of otherwise identical points; {shown_as}"
        alt = f"Dot plot of main effects and two-way interactions on the {label}."
        return [partial(_dots, data, name, title, panels, subtitle, alt, shared=False)]
    figures = [partial(_counters, data, name, title, mains, "main effects")]
    if crossed:
        heading = f"{item.title}: interactions" if item.title else f"Interactions of sweep {sweep}"
        name = f"{name}-interactions"
        figures.append(partial(_counters, data, name, heading, crossed, "two-way interactions"))
    return list(figures)


def _counters(
    data: Dataset, name: str, title: str, panels: Sequence[RatioPanel], kind: str
) -> style.Drawing:
    """Small multiples: a panel per counter, with the same rows."""
    labels = ", ".join(panel[0] for panel in panels)
    alt = f"Small multiples of {kind}, one panel per counter: {labels}."
    exact = "as exact ratios of counters; none of them alone is the cost"
    subtitle = f"{kind[0].upper()}{kind[1:]} {exact}"
    return _dots(data, name, title, panels, subtitle, alt, shared=True)


def _dots(
    data: Dataset,
    name: str,
    title: str,
    panels: Sequence[RatioPanel],
    subtitle: str,
    alt: str,
    *,
    shared: bool,
) -> style.Drawing:
    """Panels of ratios; ``shared``: they have the same rows, named at the left."""
    every = [ratio for _, _, ratios in panels for ratio in ratios]
    fewest, head_in, line_in = (3, 0.75, 0.1) if shared else (4, 0.9, 0.12)
    rows = max(fewest, *(len({r.row for r in ratios}) for _, _, ratios in panels))
    row_in = head_in + rows * (line_in + _DOT_IN * len({r.n for r in every}))
    figure, axes = style.panels(len(panels), 0.75, row_in)
    columns = style.grid_shape(len(panels))[1]
    for i, (ax, (head, label, ratios)) in enumerate(zip(axes, panels, strict=True)):
        draw_ratios(ax, ratios, every if shared else ratios)
        if shared and i % columns:
            ax.set_yticklabels([])
        ax.set_title(head)
        if not shared or i + columns >= len(panels):
            ax.set_xlabel(label)
    style.legend(figure, axes[0])
    return style.finish(figure, name, title, source_of(data), alt=alt, subtitle=subtitle)


def draw_ratios(ax: Axes, part: Sequence[EffectRatio], every: Sequence[EffectRatio]) -> None:
    """Draw ratios of one panel into the rows of ``every``."""
    rows = list(dict.fromkeys(r.row for r in every))
    sizes = sorted({r.n for r in part})
    bounds = [b for r in part for b in (r.ratio.value, r.ratio.low, r.ratio.high) if b is not None]
    ends = ratio_axis(ax, [b for b in bounds if 0 < b < math.inf])
    for i, n in enumerate(sizes):
        here = [r for r in part if r.n == n and r.drawable]
        found = [(rows.index(r.row) + _offset(i, len(sizes)), r.ratio) for r in here]
        look: dict[str, Any] = {"markersize": 4.2, "capsize": 2, "elinewidth": 1}
        series = style.series_style(i)
        style.dots(ax, found, series.colour, series.marker, label=f"N={n}", **look)
    _extremes(ax, part, rows, ends)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(rows)), [style.label_of(row, 60) for row in rows])
    ax.tick_params(axis="y", length=0)


def _extremes(
    ax: Axes, part: Sequence[EffectRatio], rows: Sequence[str], ends: tuple[float, float]
) -> None:
    """Ratios that a logarithmic axis cannot show, as words at its edge.

    Once per row, with the sizes it applies to unless it applies to all, and at the height of the
    first of these: the marks of the others stand at their own heights.
    """
    every = sorted({r.n for r in part})
    noted: dict[tuple[str, str, str], list[int]] = {}
    for r in part:
        if not r.drawable:
            said = _PLACES.get(r.ratio.value, ("0 \u00f7 0", "center"))
            noted.setdefault((r.row, *said), []).append(r.n)
    places = {"left": ends[0], "right": ends[1], "center": 1.0}
    for (row, text, align), sizes in noted.items():
        if len(sizes) < sum(r.row == row for r in part):
            text = f"{text} at N={', '.join(map(str, sizes))}"
        alone = len(sizes) == len(every)
        height = rows.index(row) + (0 if alone else _offset(every.index(sizes[0]), len(every)))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
        keywords: dict[str, Any] = {"ha": align, "va": "center", "bbox": box, "zorder": 1.5}
        size = 7 if alone else 6
        ax.text(places[align], height, text, color=style.GREY, fontsize=size, **keywords)


def _offset(index: int, sizes: int) -> float:
    """Height of a size within a row, from its middle."""
    return 0.75 * ((index + 0.5) / sizes - 0.5)
