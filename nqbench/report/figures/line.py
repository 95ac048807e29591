"""A quantity against one factor, a line per series; points without the factor are level lines.

Kernels and CPU programs are never on one figure; a sweep of the latter alone has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import CPU_TIME, Quantity
from nqbench.errors import AnalysisError
from nqbench.report.figures.axes import axis_label, is_wide, timed_as, value_axis
from nqbench.report.figures.style import (
    Draw,
    Drawing,
    finish,
    grid_shape,
    interval_curve,
    label_of,
    legend,
    new_figure,
    series_style,
)
from nqbench.report.items import columns_of, sweep_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOG_SPAN: Final = 8
"""Ratio of largest to smallest number above which the x axis is logarithmic."""


def line(data: Dataset, item: ReportItem) -> list[Draw]:
    """A panel per size for one quantity, or a panel per counter at the largest size."""
    sweep = sweep_of(data, item)
    if not item.x:
        raise AnalysisError("a line figure needs a factor along its axis: give x")
    cpu = all(p.cpu for p in data.select(sweep, item.n))
    shown = (CPU_TIME,) if cpu and not item.value else data.quantities(item.value)
    points = [p for p in data.select(sweep, item.n, cpu=cpu) if p.ok and p.values(shown[0])]
    shown = timed_as(data, shown, points)
    if not any(p.level(item.x) != INAPPLICABLE for p in points):
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a level of {item.x}")
    sizes = sorted({p.n for p in points if p.level(item.x) != INAPPLICABLE})
    if len(shown) > 1:
        panels = [(what, sizes[-1], what.label) for what in shown]
    else:
        panels = [(shown[0], n, f"N={n}") for n in sizes]
    series = item.series or _default_series(data, sweep, item.x)
    for what, n, _ in panels:
        _check_distinct([p for p in points if p.n == n and p.values(what)], item.x, series)
    return [partial(_lines, data, item, series, shown, points, panels)]


def _lines(
    data: Dataset,
    item: ReportItem,
    series: str | None,
    shown: Sequence[Quantity],
    points: Sequence[PointResult],
    panels: Sequence[tuple[Quantity, int, str]],
) -> Drawing:
    x, sweep, cpu = str(item.x), points[0].sweep, points[0].cpu
    asked = _asked(data.select(sweep, cpu=cpu), x, series)
    rows, columns = grid_shape(len(panels))
    figure = new_figure(0.9 + rows * (2.3 if len(panels) > 1 else 3.2))
    flat = list(figure.subplots(rows, columns, squeeze=False).flat)
    parts = [[p for p in points if p.n == n] for _, n, _ in panels]
    # Panels of one quantity are read side by side: all logarithmic, or none.
    wide = any(is_wide(_bounds(part, shown[0])) for part in parts)
    log = True if len(shown) == 1 and wide else None
    gaps = False
    for i, (ax, here, (what, _, head)) in enumerate(zip(flat, parts, panels, strict=False)):
        gaps |= _panel(ax, data, sweep, here, x, series, what, asked, log=log)
        ax.set_title(head if len(panels) > 1 else "")
        ax.set_ylabel(axis_label(what) if len(shown) == 1 and i % columns == 0 else "")
        if i + columns >= len(panels):
            ax.set_xlabel(x)
    for ax in flat[len(panels) :]:
        ax.set_axis_off()
    legend(figure, flat[0], columns=3)
    bounded = any((e := p.estimate(shown[0])) is not None and e.bounded for p in points)
    notes = [f"N={panels[-1][1]}" if len(panels) == 1 or len(shown) > 1 else ""]
    if series and series != "system":  # names of systems explain themselves, levels do not
        notes.append(f"a line for each {series}")
    notes.append(f"whiskers: 95% interval over {data.rounds} rounds" if bounded else "")
    notes.append(f"a line is broken at a {x} that was left out or did not finish" if gaps else "")
    subtitle = "; ".join(note for note in notes if note)
    subject = shown[0].label if len(shown) == 1 else "counters"
    title = item.title or f"{subject[0].upper()}{subject[1:]} against {x}"
    alt = f"Lines of {', '.join(w.label for w in shown)} against {x}."
    name = slug("line", sweep, item.value or "")
    source = source_of(data, cpu=cpu)
    return finish(figure, name, title, source, alt=alt, subtitle=subtitle)


def _asked(points: Sequence[PointResult], x: str, series: str | None) -> dict[Level, set[Level]]:
    """The levels of ``x`` that each line has at any size, finished or not: where one is missing at
    a size, the line is broken there."""
    found: dict[Level, set[Level]] = {}
    for point in points:
        if point.level(x) != INAPPLICABLE:
            found.setdefault(point.level(series) if series else "", set()).add(point.level(x))
    return found


def _check_distinct(points: Sequence[PointResult], x: str, series: str | None) -> None:
    """Raise ``AnalysisError`` if a line has two points at the same place."""
    drawn = [
        (p.level(series) if series else "", level)
        for p in points
        if (level := p.level(x)) != INAPPLICABLE
    ]
    if len(set(drawn)) < len(drawn):
        raise AnalysisError(
            f"two points of a line share one {x}: another factor varies too; name it as `series`"
        )


def _default_series(data: Dataset, sweep: str, x: str) -> str | None:
    """The other factor of the sweep, if there is just one."""
    others = [f for f in columns_of(data, sweep) if f != x]
    return others[0] if len(others) == 1 else None


def _panel(
    ax: Axes,
    data: Dataset,
    sweep: str,
    points: Sequence[PointResult],
    x: str,
    series: str | None,
    what: Quantity,
    asked: Mapping[Level, set[Level]],
    *,
    log: bool | None,
) -> bool:
    """Draw one panel; whether a line of it is broken."""
    found = [(p, e) for p in points if (e := p.estimate(what)) is not None]
    drawn = {p.level(x) for p, _ in found}
    ticks = [v for v in data.order(sweep, x) if v in drawn and v != INAPPLICABLE]
    ticks = _between(data.order(sweep, x), ticks, set().union(*asked.values()))
    place, broken = _places(ticks), False
    names = data.order(sweep, series) if series else [""]
    for i, name in enumerate(names):
        mine = [(p, e) for p, e in found if not series or p.level(series) == name]
        values = [(p.level(x), e) for p, e in mine]
        broken |= _series(ax, values, place, asked.get(name, set()), i, str(name), x)
    _x_axis(ax, ticks, place)
    value_axis(ax, "y", _bounds(points, what), what, log=log)
    return broken


def _between(order: Sequence[Level], drawn: Sequence[Level], asked: set[Level]) -> list[Level]:
    """The levels from the first to the last one drawn, those left out between them included."""
    if not drawn:
        return []
    first, last = order.index(drawn[0]), order.index(drawn[-1])
    return [v for v in order[first : last + 1] if v in asked]


def _bounds(points: Sequence[PointResult], what: Quantity) -> list[float]:
    found = [e for p in points if (e := p.estimate(what)) is not None]
    return [b for e in found for b in (e.value, e.low, e.high) if b is not None]


def _places(ticks: Sequence[Level]) -> dict[Level, float]:
    """Numbers are placed at their value, names side by side."""
    if all(isinstance(t, int | float) for t in ticks):
        return {t: float(t) for t in ticks}
    return {t: float(i) for i, t in enumerate(ticks)}


def _series(
    ax: Axes,
    values: Sequence[tuple[Level, Estimate]],
    place: dict[Level, float],
    asked: set[Level],
    index: int,
    name: str,
    x: str,
) -> bool:
    """Draw one line, in pieces where a level is missing; whether it has several."""
    style, known = series_style(index), dict(values)
    pieces: list[dict[float, Estimate]] = [{}]
    for level in sorted(place, key=lambda v: place[v]):
        if level in known:
            pieces[-1][place[level]] = known[level]
        elif level in asked:
            pieces.append({})
    pieces = [piece for piece in pieces if piece]
    for i, piece in enumerate(pieces):
        label = name if name and i == 0 else None
        interval_curve(ax, piece, {**style.keywords, "elinewidth": 1}, label)
    for level, estimate in values:
        if level != INAPPLICABLE:
            continue
        keywords: dict[str, Any] = {"color": style.colour, "linestyle": style.line}
        ax.axhline(estimate.value, label=f"{name} (no {x})".strip(), **keywords)
        if estimate.low is not None and estimate.high is not None:
            ax.axhspan(estimate.low, estimate.high, color=style.colour, alpha=0.15, lw=0)
    return len(pieces) > 1


def _x_axis(ax: Axes, ticks: Sequence[Level], place: dict[Level, float]) -> None:
    from matplotlib.ticker import NullLocator

    numbers = [t for t in ticks if isinstance(t, int | float)]
    if len(numbers) == len(ticks) and min(numbers) > 0 and max(numbers) / min(numbers) >= _LOG_SPAN:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_minor_locator(NullLocator())
    crowded = len(ticks) > 6
    names = [label_of(t, 20) for t in ticks]
    ax.set_xticks([place[t] for t in ticks], names, rotation=60 if crowded else 0)
