"""What each change is worth, and two-way interactions: dots with whiskers, better to the right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis import wording
from nqbench.analysis.answer import MODELLED, Answer, FactorStep
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial import effects as factorial
from nqbench.analysis.wording import Difference
from nqbench.errors import AnalysisError
from nqbench.report.figures import style
from nqbench.report.figures.axes import gain, ratio_axis, timed_as
from nqbench.report.items import quantities_of, sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOT_IN: Final = 0.075
"""Height that one size takes within a row."""
_LABEL: Final = 44
"""Characters of a line beside a row."""
MOST_CHANGES: Final = 9
"""Rows of the figure that opens a page; of more steps the strongest of each factor is shown."""
MOST_SERIES: Final = 4
ROW_IN: Final = 0.58
"""Height of a row with its words above its dots."""
CLIPPED: Final = 12.0
"""Gain from which a counter's mark is an arrow: traffic may fall by thousands, beside which nothing
else could be told from 1."""
LETTERS_IN: Final = 14.5
"""Characters of 7.5-point type in an inch."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How many times better something is: its row, its series, and the ratio in words.

    ``ratio``  new over old, where it is 0, infinite or undefined: no axis can show that
    """

    row: str
    series: str
    gain: Estimate
    said: str
    ratio: float

    @property
    def drawable(self) -> bool:
        """Whether a logarithmic axis can show it."""
        return 0 < self.gain.value < math.inf


Panel = tuple[Quantity, Sequence[Mark]]


def effects(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """A figure of main effects and one of interactions, if there are any; a panel per quantity."""
    sweep = sweep_of(data, item)
    shown = timed_as(data, quantities_of(data, item), data.select(sweep, item.n))
    mains: list[Panel] = []
    crossed: list[Panel] = []
    for what in shown:
        found = factorial.effects(data, sweep, what, sizes=item.n)
        marks = [mark(f"{e.factor}: {e.base} → {e.level}", f"N={e.n}", e.difference) for e in found]
        mains.append((what, marks))
        with suppress(AnalysisError):  # a sweep of one factor has effects, but no interactions
            both = factorial.interactions(data, sweep, what, sizes=item.n)
            pairs = [(f"{i.factor} {i.level} \u00d7 {i.other} {i.other_level}", i) for i in both]
            marks = [mark(s, f"N={i.n}", Difference(i.ratio, i.quantity)) for s, i in pairs]
            crossed.append((what, marks))
    title = title_of(data, item, f"What each change is worth, sweep {sweep}")
    name = slug("effects", sweep, item.value or "")
    said = f"Dot plot of every {{}} on {', '.join(what.label for what in shown)}."
    alone = "Otherwise identical points, geometric mean"
    figures = [partial(dots, data, name, title, mains, said.format("change"), alone)]
    if crossed:
        heading = title_of(data, item, f"How effects depend on each other, sweep {sweep}")
        heading = f"{item.title}: interactions" if item.title else heading
        together = "The effect of one change where the other is made, against where it is not"
        name = f"{name}-interactions"
        alt = said.format("interaction")
        figures.append(partial(dots, data, name, heading, crossed, alt, together))
    return list(figures)


def mark(row: str, series: str, found: Difference) -> Mark:
    """The mark of a difference."""
    return Mark(row, series, gain(found.ratio, found.quantity), str(found), found.ratio.value)


def dots(
    data: Dataset, name: str, title: str, panels: Sequence[Panel], alt: str, subtitle: str
) -> style.Drawing:
    """Panels with the same rows, named at the left."""
    every = [mark for _, marks in panels for mark in marks]
    rows = list(dict.fromkeys(mark.row for mark in every))
    series = list(dict.fromkeys(mark.series for mark in every))
    heights = [style.label_of(row, _LABEL).count("\n") + 1 for row in rows]
    row_in = 0.85 + max(3, len(rows)) * max(0.1 + _DOT_IN * len(series), 0.13 * max(heights))
    figure, axes = style.panels(len(panels), 0.75, row_in)
    columns = style.grid_shape(len(panels))[1]
    for i, (ax, (what, marks)) in enumerate(zip(axes, panels, strict=True)):
        _panel(ax, marks, rows, series)
        ax.set_yticks(range(len(rows)), [style.label_of(row, _LABEL) for row in rows])
        ax.tick_params(axis="y", length=0, labelleft=i % columns == 0)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_title(what.label if len(panels) > 1 else "")
        if i + columns >= len(panels):
            ax.set_xlabel(_direction(what if len(panels) == 1 else None))
    rounds = next((mark.gain.rounds for mark in every if mark.gain.bounded), 0)
    certain = f"whiskers: 95% interval over {rounds} rounds" if rounds else "no interval: one round"
    if panels[0][0].name == MODELLED:
        certain = "counts, and the time that a model makes of them"
    elif panels[0][0].exact:
        certain = "exact counts, none of them alone is the cost"
    source, subtitle = source_of(data), f"{subtitle}; {certain}"
    words = {"alt": alt, "subtitle": subtitle}
    return style.finish(figure, name, title, source, legend_of=axes[0], **words)


def _direction(what: Quantity | None) -> str:
    if what is not None and what.kind == "time":
        return f"◂ slower · {what.label} · faster ▸"
    return (
        "◂ worse · better ▸" if what is None or what.better else f"◂ less · {what.label} · more ▸"
    )


def _panel(
    ax: Axes,
    marks: Sequence[Mark],
    rows: Sequence[str],
    series: Sequence[str],
    lower: float = 0.0,
    most: float = math.inf,
) -> None:
    """Draw marks into their rows, ``lower`` by a part of a row; those that no axis can show once
    per row as words at its edge, with the series they apply to unless it applies to all. Gains of
    ``most`` and more are arrows at the edge."""
    bounds = [b for m in marks for b in (m.gain.value, m.gain.low, m.gain.high) if b is not None]
    ends = ratio_axis(ax, [b for b in bounds if 1 / most < b < most])
    for i, name in enumerate(series):
        here = [m for m in marks if m.series == name and 1 / most < m.gain.value < most]
        found = [(rows.index(m.row) + lower + _offset(i, len(series), lower), m.gain) for m in here]
        look: dict[str, Any] = {"markersize": 4.2, "capsize": 2, "elinewidth": 1, "label": name}
        look["said"] = [f"{m.row}, {name}: {m.said}" for m in here]
        own = style.series_style(i)
        style.dots(ax, found, own.colour, own.marker, **look)
        for m in (m for m in marks if m.series == name and m.drawable and m not in here):
            high = m.gain.value > 1
            y = rows.index(m.row) + lower + _offset(i, len(series), lower)
            at, marker = [(y, Estimate(ends[high]))], ">" if high else "<"
            said = [f"{m.row}, {name}: {m.said}"]
            style.dots(ax, at, own.colour, marker, said=said, markersize=6, clip_on=False)
    noted: dict[tuple[str, str, str], list[int]] = {}
    for m in marks:
        if not m.drawable:
            words = {0.0: "to 0", math.inf: "from 0"}.get(m.ratio, "0 \u00f7 0")
            side = {0.0: "left", math.inf: "right"}.get(m.gain.value, "center")
            noted.setdefault((m.row, words, side), []).append(series.index(m.series))
    for (row, text, side), places in noted.items():
        alone = len(places) == len(series)
        if len(places) < sum(m.row == row for m in marks):
            text = f"{text} at {', '.join(series[i] for i in places)}"
        text = {"left": f"◂ {text}", "right": f"{text} ▸"}.get(side, text)
        x = {"left": ends[0], "right": ends[1]}.get(side, 1.0)
        y = rows.index(row) + lower + (0 if alone else _offset(places[0], len(series), lower))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
        keywords: dict[str, Any] = {"ha": side, "va": "center", "bbox": box, "zorder": 1.5}
        ax.text(x, y, text, color=style.GREY, fontsize=7 if alone else 6, **keywords)


def _offset(index: int, count: int, lower: float = 0.0) -> float:
    """Height of a series within a row, from its middle."""
    return (0.75 - 1.7 * lower) * ((index + 0.5) / count - 0.5)


# The figure that opens a page.


def height_in(answer: Answer, width_in: float) -> float:
    """What :func:`worth` takes at least; 0 where no change was made."""
    words = _words(answer)
    row_in = ROW_IN + (0.15 if any(not _fits(*one, width_in) for one in words) else 0)
    return 0.9 + row_in * len(words) if words else 0


def _shown(answer: Answer) -> list[FactorStep]:
    """The steps of the factors, the strongest factor first."""
    order = [change.factor for change in answer.changes]
    steps = sorted(answer.steps(answer.sweep), key=lambda step: order.index(step.factor))
    return steps if len(steps) <= MOST_CHANGES else answer.changes[:MOST_CHANGES]


def _row(change: FactorStep) -> str:
    return f"{change.factor}: {change.base} → {change.level}"


def _words(answer: Answer) -> list[tuple[str, str]]:
    """Each change with what it does to the first quantity on which it matters."""
    words = []
    for change in _shown(answer):
        found = [change.effects[q.name] for q in answer.quantities if q.name in change.effects]
        told = next(filter(answer.matters, found), found[0])
        text = wording.named(told.ratio, told.quantity, told.totals)
        words.append((_row(change), f"{text} {wording.mark(told.ratio, told.quantity)}"))
    return words


def _fits(row: str, text: str, width_in: float) -> bool:
    """Whether both stand in one line."""
    return len(row) + len(text) + 2 <= int(width_in * LETTERS_IN)


def worth(answer: Answer, width_in: float, total_in: float) -> style.Drawing:
    """What each change does to the times of all sizes, or to the counters at the largest: the words
    above the dots, for any width."""
    data, words = answer.data, _words(answer)
    marks: list[Mark] = []
    for change in _shown(answer):
        if data.simulated:
            found = [change.effects[q.name] for q in answer.quantities if q.name in change.effects]
            told = [e for e in found if not wording.is_few(e.totals, e.quantity)]
            marks += [mark(_row(change), e.quantity.plain, e.difference) for e in told]
        else:
            sizes = change.by_size(answer.quantities[0])
            marks += [mark(_row(change), f"N={n}", e.difference) for n, e in sizes.items()]
    rows = [row for row, _ in words]
    series = list(dict.fromkeys(mark.series for mark in marks))[-MOST_SERIES:]
    if data.simulated:
        series = list(dict.fromkeys(mark.series for mark in marks))[:MOST_SERIES]
    kept = [mark for mark in marks if mark.series in series]
    figure = style.new_figure(total_in, width_in)
    ax = figure.subplots()
    _panel(ax, kept, rows, series, 0.22, CLIPPED if data.simulated else math.inf)
    room = int(width_in * LETTERS_IN)
    for y, (row, text) in enumerate(words):
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
        one: dict[str, Any] = {
            "transform": ax.get_yaxis_transform(),
            "fontsize": 7.5,
            "bbox": white,
        }
        fits = _fits(row, text, width_in)
        ax.text(0, y - (0.2 if fits else 0.35), style.label_of(row, room), va="center", **one)
        one |= {"va": "center", "ha": "right" if fits else "left"}
        ax.text(float(fits), y - (0.2 if fits else 0.14), text, color=style.GREY, **one)
        ax.axhline(y + 0.5, color="#e2e2e2", linewidth=0.6, zorder=0)
    ax.set_yticks([])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(_direction(answer.quantities[0] if len(answer.quantities) == 1 else None))
    if len(series) > 1:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}
        columns = 4 if sum(len(name) + 4 for name in series) < room else 2
        ax.legend(ncols=columns, columnspacing=1, handletextpad=0.2, **place)
    alt = f"Dot plot of what {len(rows)} changes are worth."
    return style.finish(figure, "worth", "What each change is worth", source_of(data), alt=alt)
