"""What each change is worth, and two-way interactions: dots with whiskers, better to the right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis import wording
from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial import effects as factorial
from nqbench.analysis.factorial.effects import FactorEffect, Interaction
from nqbench.analysis.wording import Difference
from nqbench.errors import AnalysisError
from nqbench.report.figures import style
from nqbench.report.figures.axes import gain, ratio_axis, timed_as
from nqbench.report.items import quantities_of, sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.report.tables.common import interval_note
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
LOWER: Final = 0.22
"""Part of a row by which its dots stand below its words."""
Rows = Sequence[tuple[str, str]]
"""The words above the dots of each row: what is compared, and what that is worth."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How many times better something is: its row, its series, and the ratio in words."""

    row: str
    series: str
    gain: Estimate
    said: str


def mark(row: str, series: str, found: Difference) -> Mark:
    """The mark of a difference."""
    return Mark(row, series, gain(found.ratio, found.quantity), str(found))


def effects(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """The main effects, below them the interactions that matter: the effect of one change where
    another is made, against where it is not."""
    sweep = sweep_of(data, item)
    shown = timed_as(quantities_of(data, item), data.select(sweep))
    found = [effect for what in shown for effect in factorial.effects(data, sweep, what)]
    with suppress(AnalysisError):  # a sweep of one factor has effects, but no interactions
        found += factorial.strongest(factorial.interactions(data, sweep, shown))
    rows, marks = _told(found)
    title = title_of(data, item, f"What each change is worth, sweep {sweep}")
    name = slug("effects", sweep, item.value or "")
    note = interval_note(data.simulated, data.rounds, shown)
    axis, subtitle = _direction(set(shown)), f"Everything else equal. {note}"
    return [lambda: draw(data, name, title, rows, marks, axis=axis, subtitle=subtitle)]


def _told(found: Sequence[FactorEffect]) -> tuple[Rows, list[Mark]]:
    """The changes, each with what it does to the first quantity on which it matters; marks of one
    quantity at all sizes, of several at the largest. Tiny counts have no mark."""
    several, largest = len({e.quantity for e in found}) > 1, max(e.n for e in found)
    changes: dict[str, list[FactorEffect]] = {}
    for effect in found:
        row = f"{effect.factor}: {effect.base} → {effect.level}"
        if isinstance(effect, Interaction):
            row = f"{effect.factor} {effect.level} \u00d7 {effect.other} {effect.other_level}"
        changes.setdefault(row, []).append(effect)
    rows, marks = [], []
    for row, own in changes.items():
        here = [e for e in own if e.n == largest] or own
        one = next((e for e in here if e.ratio.noteworthy and e.ratio.differs_from(1)), here[0])
        text = wording.named(one.ratio, one.quantity, one.totals)
        rows.append((row, f"{text} {wording.mark(one.ratio, one.quantity)}"))
        marks += [
            mark(row, e.quantity.plain if several else f"N={e.n}", e.difference)
            for e in (here if several else own)
            if 0 < e.ratio.value < math.inf and not wording.is_few(e.totals, e.quantity)
        ]
    return rows, marks


def _direction(shown: set[Quantity]) -> str:
    what = next(iter(shown))
    if len(shown) == 1 and what.kind == "time":
        return f"◂ slower · {what.label} · faster ▸"
    if len(shown) > 1 or what.better:
        return "◂ worse · better ▸"
    return f"◂ less · {what.label} · more ▸"


def draw(
    data: Dataset,
    name: str,
    title: str,
    rows: Rows,
    marks: Sequence[Mark],
    *,
    size_in: tuple[float, float] = (style.WIDTH_IN, 0.0),
    axis: str,
    subtitle: str = "",
    alt: str = "",
) -> style.Drawing:
    """Rows of dots below their words, for any width; the height is at least what they take."""
    width_in, height_in = size_in
    figure = style.new_figure(height_in or 0.5 + _height_in(rows, width_in), width_in)
    ax = figure.subplots()
    series = list(dict.fromkeys(mark.series for mark in marks))
    sizes = all(name.startswith("N=") for name in series)  # the largest matter most
    series = series[-MOST_SERIES:] if sizes else series[:MOST_SERIES]
    _marks(ax, marks, [row for row, _ in rows], series, CLIPPED if data.simulated else math.inf)
    room = int(width_in * LETTERS_IN)
    for y, (row, text) in enumerate(rows):
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
        one: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "fontsize": 7.5}
        one["bbox"] = white
        fits = _fits(row, text, width_in)
        ax.text(0, y - (0.2 if fits else 0.35), style.label_of(row, room), va="center", **one)
        one |= {"va": "center", "ha": "right" if fits else "left"}
        ax.text(float(fits), y - (0.2 if fits else 0.14), text, color=style.GREY, **one)
        ax.axhline(y + 0.5, color="#e2e2e2", linewidth=0.6, zorder=0)
    ax.set_yticks([])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(axis)
    if len(series) > 1:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}
        columns = 4 if sum(len(name) + 4 for name in series) < room else 2
        ax.legend(ncols=columns, columnspacing=1, handletextpad=0.2, **place)
    alt = alt or f"Dot plot of what {len(rows)} changes are worth."
    return style.finish(figure, name, title, source_of(data), alt=alt, subtitle=subtitle)


def _marks(
    ax: Axes, marks: Sequence[Mark], rows: Sequence[str], series: Sequence[str], most: float
) -> None:
    """Draw marks into their rows, below the words; gains of ``most`` and more are arrows at the
    edge."""
    kept = [m for m in marks if m.series in series]
    bounds = [b for m in kept for b in (m.gain.value, m.gain.low, m.gain.high) if b is not None]
    ends = ratio_axis(ax, [b for b in bounds if 1 / most < b < most])
    for i, name in enumerate(series):
        lower = LOWER + (0.75 - 1.7 * LOWER) * ((i + 0.5) / len(series) - 0.5)
        own = style.series_style(i)
        here = [m for m in kept if m.series == name and 1 / most < m.gain.value < most]
        found = [(rows.index(m.row) + lower, m.gain) for m in here]
        look: dict[str, Any] = {"markersize": 4.2, "capsize": 2, "elinewidth": 1, "label": name}
        look["said"] = [f"{m.row}, {name}: {m.said}" for m in here]
        style.dots(ax, found, own.colour, own.marker, **look)
        for m in (m for m in kept if m.series == name and m not in here):
            high = m.gain.value > 1
            at, marker = [(rows.index(m.row) + lower, Estimate(ends[high]))], "<>"[high]
            said = [f"{m.row}, {name}: {m.said}"]
            style.dots(ax, at, own.colour, marker, said=said, markersize=6, clip_on=False)


def _height_in(rows: Rows, width_in: float) -> float:
    row_in = ROW_IN + (0.15 if any(not _fits(*one, width_in) for one in rows) else 0)
    return 0.9 + row_in * len(rows) if rows else 0


def _fits(row: str, text: str, width_in: float) -> bool:
    return len(row) + len(text) + 2 <= int(width_in * LETTERS_IN)


# The figure that opens a page.


def _opening(answer: Answer) -> list[FactorEffect]:
    """The effects of the factors' steps, the strongest factor first: of times at all sizes, of
    counters at the largest."""
    order = [change.factor for change in answer.changes]
    steps = sorted(answer.steps(answer.sweep), key=lambda step: order.index(step.factor))
    shown = steps if len(steps) <= MOST_CHANGES else answer.changes[:MOST_CHANGES]
    if not answer.data.simulated:
        return [e for one in shown for e in one.by_size(answer.quantities[0]).values()]
    return [one.effects[q.name] for one in shown for q in answer.telling if q.name in one.effects]


def height_in(answer: Answer, width_in: float) -> float:
    """What :func:`worth` takes at least; 0 where no change was made."""
    found = _opening(answer)
    return _height_in(_told(found)[0], width_in) if found else 0


def worth(answer: Answer, width_in: float, total_in: float) -> style.Drawing:
    """What each change does to the times of all sizes, or to the counters at the largest."""
    rows, marks = _told(_opening(answer))
    title, axis = "What each change is worth", _direction({*answer.quantities})
    return draw(answer.data, "worth", title, rows, marks, axis=axis, size_in=(width_in, total_in))
