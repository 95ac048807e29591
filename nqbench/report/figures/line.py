"""A quantity along an axis, a line per series: ``line`` against a factor, ``scaling`` against N.

``line`` never shows kernels and CPU programs together; points without the factor are level lines.
``scaling`` has the times of a measured run with those of the CPU programs, and their ratios to the
fastest kernel; of a simulated run a panel per counter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import CPU_TIME, TIME, Quantity, quantity
from nqbench.errors import AnalysisError
from nqbench.report.figures import style
from nqbench.report.figures.axes import axis_label, is_wide, timed_as, value_axis
from nqbench.report.items import columns_of, quantities_of, sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOG_SPAN: Final = 8
"""Ratio of the largest to the smallest level from which their axis is logarithmic."""
TICK_ROOM: Final = 30
"""Letters of the ticks that stand beside each other in a panel of a third of the width."""
CROWD_IN: Final = 0.06
"""Height that each line adds to a panel."""
COUNTERS: Final = ("warp_instructions", "lane_efficiency", "bank_conflicts", "off_chip_sectors")
"""Counters shown against N: fewer than in other figures."""
TIMES_FASTEST: Final = Quantity("ratio", "times the fastest on the GPU", (), "counter")
_LOST: Final = Estimate(math.nan)
"""A value that is missing: it draws nothing, and breaks the line."""
Curve = Mapping[Level, Estimate]
"""The values of a line by level of the axis; at ``INAPPLICABLE`` of a point without the factor."""


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """What a panel shows, its heading, its lines by name."""

    what: Quantity
    head: str
    curves: Mapping[str, Curve]

    @property
    def bounds(self) -> list[float]:
        """All values with the ends of their intervals."""
        found = [e for curve in self.curves.values() for e in curve.values() if e is not _LOST]
        return [b for e in found for b in (e.value, e.low, e.high) if b is not None]


def _lines(
    points: Sequence[PointResult], x: str, series: str | None
) -> dict[Level, dict[Level, PointResult]]:
    """The points by line and level. Raises ``AnalysisError`` where two of a line share a level."""
    lines: dict[Level, dict[Level, PointResult]] = {}
    for point in points:
        name, level = point.level(series) if series else "", point.level(x)
        if level != INAPPLICABLE and level in lines.get(name, ()):
            raise AnalysisError(
                f"two points of line {name!r} share {x} {level}: another factor varies too; name it"
                " as `series`"
            )
        lines.setdefault(name, {})[level] = point
    return lines


def _curves(
    data: Dataset, points: Sequence[PointResult], x: str, series: str | None, what: Quantity
) -> Mapping[str, Curve]:
    """A line for each level of ``series``, broken where it lacks a level that it has at another
    size."""
    sweep, lines = points[0].sweep, _lines([p for p in points if p.values(what)], x, series)
    asked: dict[Level, set[Level]] = {}
    for point in data.select(sweep):
        asked.setdefault(point.level(series) if series else "", set()).add(point.level(x))
    curves: dict[str, Curve] = {}
    for name in data.order(sweep, series) if series else [""]:
        found = {v: p.estimate(what) or _LOST for v, p in lines.get(name, {}).items()}
        every = [v for v in data.order(sweep, x) if v in asked[name]]
        known = [i for i, v in enumerate(every) if v in found]
        if known:
            between = every[min(known) : max(known) + 1]
            label = "kernel" if name == INAPPLICABLE else str(name)
            curves[label] = {v: found.get(v, _LOST) for v in between}
    return curves


def line(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """A panel per size for one quantity, or a panel per counter at the largest size."""
    sweep, x = sweep_of(data, item), item.x
    if not x:
        raise AnalysisError("a line figure needs a factor along its axis: give x")
    cpu = all(p.cpu for p in data.select(sweep))
    shown = (CPU_TIME,) if cpu and not item.value else quantities_of(data, item)
    points = [p for p in data.select(sweep, cpu=cpu) if p.ok and p.values(shown[0])]
    shown = timed_as(shown, points)
    sizes = sorted({p.n for p in points if p.level(x) != INAPPLICABLE})
    if not sizes:
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a level of {x}")
    others = [f for f in columns_of(data, sweep) if f != x]
    series = item.series or (others[0] if len(others) == 1 else None)
    wanted = [(shown[0], n, f"N={n}") for n in sizes]
    if len(shown) > 1:
        wanted = [(what, sizes[-1], what.label) for what in shown]
    panels = [
        CurvePanel(what, head, _curves(data, [p for p in points if p.n == n], x, series, what))
        for what, n, head in wanted
    ]
    notes = [f"N={sizes[-1]}"] if len(panels) == 1 or len(shown) > 1 else []
    if series and series != "system":  # names of systems explain themselves, levels do not
        notes.append(f"lines by {series}")
    subject = shown[0].label if len(shown) == 1 else "counters"
    title = item.title or f"{subject[0].upper()}{subject[1:]} against {x}"
    name = slug("line", sweep, item.value or "")
    return [partial(_draw, data, sweep, name, title, x, panels, notes, cpu=cpu)]


def scaling(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """A panel per quantity, of times another one with their ratios to the fastest kernel."""
    sweep = sweep_of(data, item)
    points = [p for p in data.select(sweep) if p.ok and p.measurements]
    if item.value:
        shown: tuple[Quantity, ...] = (data.quantity(item.value),)
    else:
        shown = tuple(quantity(c) for c in COUNTERS) if data.simulated else (TIME,)
    kernels = [p for p in points if not p.cpu and any(p.values(what) for what in shown)]
    shown = timed_as(shown, kernels)
    timed = not (data.simulated and kernels)
    baselines = [p for p in points if p.cpu and timed]  # times stand beside no counters
    if data.simulated and timed:
        shown = (TIME,)
    if not kernels and not baselines:
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a {shown[0].label}")
    others = columns_of(data, sweep)
    if len(others) > 1 and not item.series:
        said = f"sweep {sweep!r} varies {', '.join(others)}: name the factor of the lines, `series`"
        raise AnalysisError(said)
    series = item.series or (others[0] if others else None)
    every = [*kernels, *baselines]
    panels = [CurvePanel(q, q.label, _curves(data, every, "n", series, q)) for q in shown]
    if timed and kernels:
        panels.append(_over_fastest(_lines(kernels, "n", series), shown[0]))
    said = ", ".join(dict.fromkeys(p.system for p in baselines))
    notes = [f"on the CPU, timed as a whole: {said}"] * bool(baselines)
    if not timed:
        notes.append("counters are exact; none of them alone is the cost")
    title = title_of(data, item, f"{'Time' if timed else 'Counters'} against N, sweep {sweep}")
    name, cpu = slug("scaling", sweep, item.value or ""), data.simulated and timed
    return [partial(_draw, data, sweep, name, title, "n", panels, notes, cpu=cpu)]


def _over_fastest(lines: Mapping[Level, Mapping[Level, PointResult]], what: Quantity) -> CurvePanel:
    """Each kernel's time over that of the fastest one at the same size."""
    known = [p for line in lines.values() for p in line.values() if p.values(what)]
    known.sort(key=lambda p: p.value(what), reverse=True)
    fastest = {point.n: point for point in known}
    curves = {
        str(name): {n: point_ratio(p, fastest[p.n], what) for n, p in line.items() if p in known}
        for name, line in lines.items()
    }
    return CurvePanel(TIMES_FASTEST, TIMES_FASTEST.label, curves)


def _draw(
    data: Dataset,
    sweep: str,
    name: str,
    title: str,
    x: str,
    panels: Sequence[CurvePanel],
    notes: Sequence[str],
    *,
    cpu: bool,
) -> style.Drawing:
    order, shown = data.order(sweep, x), list(dict.fromkeys(panel.what for panel in panels))
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    row_in, most = 2.3 if len(panels) > 1 else 3.2, 2 if len(panels) == 4 else 3
    figure, axes = style.panels(len(panels), 0.9, row_in + CROWD_IN * len(names), most)
    columns = min(len(panels), most)
    for i, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
        _panel(ax, panel, names, order, x)
        # Panels of one quantity are read side by side: all logarithmic, or none.
        alike = [other for other in panels if other.what == panel.what]
        log = any(is_wide(other.bounds) for other in alike) if len(shown) == 1 else None
        value_axis(ax, "y", panel.bounds, panel.what, log=log)
        ax.set_title(panel.head if len(panels) > 1 else "")
        ax.set_ylabel(axis_label(panel.what) if len(shown) == 1 and i % columns == 0 else "")
        if i + columns >= len(panels):
            ax.set_xlabel("N" if x == "n" else x)
    curves = [curve for panel in panels for curve in panel.curves.values()]
    if any(e.bounded for curve in curves for e in curve.values()):
        notes = [*notes, f"whiskers: 95% interval over {data.rounds} rounds"]
    if any(sum(lost for lost, _ in groupby(c.values(), _LOST.__ne__)) > 1 for c in curves):
        notes = [*notes, f"a line is broken at a {x} that was left out or did not finish"]
    source, subtitle = source_of(data, cpu=cpu), "; ".join(notes)
    alt = f"Lines of {', '.join(what.label for what in shown)} against {x}."
    words = {"alt": alt, "subtitle": subtitle}
    return style.finish(figure, name, title, source, legend_of=axes[0], **words)


def _panel(
    ax: Axes, panel: CurvePanel, names: Sequence[str], order: Sequence[Level], x: str
) -> None:
    """Draw the lines of a panel with its x axis: numbers to scale, words one after another."""
    drawn = {level for curve in panel.curves.values() for level in curve}
    ticks = [level for level in order if level in drawn and level != INAPPLICABLE]
    numbers = [t for t in ticks if isinstance(t, int | float)]
    place = {t: float(i) for i, t in enumerate(ticks)}
    if len(numbers) == len(ticks):
        place = {t: float(t) for t in numbers}
    for name, curve in panel.curves.items():
        look = style.series_style(names.index(name))
        found = {place[v]: e for v, e in curve.items() if v in place}
        style.interval_curve(ax, found, {**look.keywords, "elinewidth": 1}, name or None)
        if level := curve.get(INAPPLICABLE):  # the value without the factor, over the whole width
            label = f"{name} (no {x})".strip()
            ax.axhline(level.value, label=label, color=look.colour, linestyle=look.line)
            if level.low is not None and level.high is not None:
                ax.axhspan(level.low, level.high, color=look.colour, alpha=0.15, lw=0)
    if len(numbers) == len(ticks) and min(numbers) > 0 and max(numbers) / min(numbers) >= LOG_SPAN:
        from matplotlib.ticker import NullLocator

        ax.set_xscale("log", base=2)
        ax.xaxis.set_minor_locator(NullLocator())
    texts = [style.label_of(t, 20) for t in ticks]
    crowded = sum(len(text) + 1 for text in texts) > TICK_ROOM
    ax.set_xticks([place[t] for t in ticks], texts, rotation=60 if crowded else 0)
