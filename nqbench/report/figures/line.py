"""A quantity along an axis, a line per series: ``line`` against a factor, ``scaling`` against N.

``line`` never shows kernels and CPU programs together; points without the factor are level lines.
``scaling`` has a column per family of systems: times of a measured run with those of the CPU
programs, and their ratios to the fastest kernel; of a simulated run a row per counter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import CPU_TIME, TIME, Quantity, quantity
from nqbench.errors import AnalysisError
from nqbench.report.figures import style
from nqbench.report.figures.axes import axis_label, is_wide, sizes_axis, timed_as, value_axis
from nqbench.report.items import columns_of, quantities_of, sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOG_SPAN: Final = 8
"""Ratio of the largest to the smallest level of a factor from which its axis is logarithmic."""
LINEAR_SPAN: Final = 20
"""Sizes further apart than this factor are drawn on a logarithmic axis."""
COUNTERS: Final = ("warp_instructions", "lane_efficiency", "bank_conflicts", "off_chip_sectors")
"""Counters shown against N: a row each, so fewer than in other figures."""
TIMES_FASTEST: Final = Quantity("ratio", "times the fastest on the GPU", (), "counter")
Lines = Mapping[Level, Sequence[PointResult]]
"""The points of each line, by level of the factor that the lines stand for."""
FactorPanel = tuple[Quantity, str, Lines]
"""What a panel shows, its heading, its lines."""


def _lines(
    points: Iterable[PointResult], x: str, series: str | None
) -> dict[Level, list[PointResult]]:
    """The points of each line. Raises ``AnalysisError`` where two of a line share a level."""
    lines: dict[Level, list[PointResult]] = {}
    for point in points:
        name = point.level(series) if series else ""
        group = lines.setdefault(name, [])
        level = point.level(x)
        if level != INAPPLICABLE and any(p.level(x) == level for p in group):
            raise AnalysisError(
                f"two points of line {name!r} share {x} {level}: another factor varies too; name it"
                " as `series`"
            )
        group.append(point)
    return lines


def _look(index: int) -> dict[str, Any]:
    return {**style.series_style(index).keywords, "elinewidth": 1}


# Against a factor.


def line(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """A panel per size for one quantity, or a panel per counter at the largest size."""
    sweep, x = sweep_of(data, item), item.x
    if not x:
        raise AnalysisError("a line figure needs a factor along its axis: give x")
    cpu = all(p.cpu for p in data.select(sweep, item.n))
    shown = (CPU_TIME,) if cpu and not item.value else quantities_of(data, item)
    points = [p for p in data.select(sweep, item.n, cpu=cpu) if p.ok and p.values(shown[0])]
    shown = timed_as(data, shown, points)
    sizes = sorted({p.n for p in points if p.level(x) != INAPPLICABLE})
    if not sizes:
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a level of {x}")
    others = [f for f in columns_of(data, sweep) if f != x]
    series = item.series or (others[0] if len(others) == 1 else None)
    names = data.order(sweep, series) if series else [""]
    wanted = [(shown[0], n, f"N={n}") for n in sizes]
    if len(shown) > 1:
        wanted = [(what, sizes[-1], what.label) for what in shown]
    panels: list[FactorPanel] = []
    for what, n, head in wanted:
        found = _lines([p for p in points if p.n == n and p.values(what)], x, series)
        panels.append((what, head, {name: found.get(name, ()) for name in names}))
    note = f"N={sizes[-1]}" if len(panels) == 1 or len(shown) > 1 else ""
    return [partial(_against_factor, data, item, series, points, panels, note)]


def _against_factor(
    data: Dataset,
    item: ReportItem,
    series: str | None,
    points: Sequence[PointResult],
    panels: Sequence[FactorPanel],
    note: str,
) -> style.Drawing:
    x, first = str(item.x), points[0]
    shown = list(dict.fromkeys(what for what, _, _ in panels))
    several, one = len(panels) > 1, len(shown) == 1
    # Where a line lacks a level at a size that it has at another one, it is broken.
    planned = data.select(first.sweep, cpu=first.cpu)
    planned = [p for p in planned if p.level(x) != INAPPLICABLE]
    asked: dict[Level, set[Level]] = {}
    for point in planned:
        asked.setdefault(point.level(series) if series else "", set()).add(point.level(x))
    # Panels of one quantity are read side by side: all logarithmic, or none.
    wide = any(is_wide(_bounds(lines, shown[0])) for _, _, lines in panels)
    figure, axes = style.panels(len(panels), 0.9, 2.3 if several else 3.2)
    columns = style.grid_shape(len(panels))[1]
    gaps = False
    for i, (ax, (what, head, lines)) in enumerate(zip(axes, panels, strict=True)):
        gaps |= _factor_panel(ax, data.order(first.sweep, x), lines, asked, what, x)
        value_axis(ax, "y", _bounds(lines, what), what, log=True if one and wide else None)
        ax.set_title(head if several else "")
        ax.set_ylabel(axis_label(what) if one and i % columns == 0 else "")
        if i + columns >= len(panels):
            ax.set_xlabel(x)
    style.legend(figure, axes[0], columns=3)
    bounded = any((e := p.estimate(shown[0])) is not None and e.bounded for p in points)
    notes = [
        note,
        # Names of systems explain themselves, levels do not.
        f"a line for each {series}" if series and series != "system" else "",
        f"whiskers: 95% interval over {data.rounds} rounds" if bounded else "",
        f"a line is broken at a {x} that was left out or did not finish" if gaps else "",
    ]
    subject = shown[0].label if one else "counters"
    return style.finish(
        figure,
        slug("line", first.sweep, item.value or ""),
        item.title or f"{subject[0].upper()}{subject[1:]} against {x}",
        source_of(data, cpu=first.cpu),
        alt=f"Lines of {', '.join(w.label for w in shown)} against {x}.",
        subtitle="; ".join(filter(None, notes)),
    )


def _bounds(lines: Lines, what: Quantity) -> list[float]:
    found = [e for points in lines.values() for p in points if (e := p.estimate(what)) is not None]
    return [b for e in found for b in (e.value, e.low, e.high) if b is not None]


def _factor_panel(
    ax: Axes,
    order: Sequence[Level],
    lines: Lines,
    asked: Mapping[Level, set[Level]],
    what: Quantity,
    x: str,
) -> bool:
    """Draw one panel with its x axis; whether a line of it is broken."""
    drawn = {p.level(x) for points in lines.values() for p in points} - {INAPPLICABLE}
    places = [i for i, level in enumerate(order) if level in drawn]
    everywhere = set().union(*asked.values())
    # From the first to the last level drawn, those left out between them included.
    ticks = [v for v in order[min(places) : max(places) + 1] if v in everywhere] if places else []
    numbers = [t for t in ticks if isinstance(t, int | float)]
    place = {t: float(i) for i, t in enumerate(ticks)}
    if len(numbers) == len(ticks):
        place = {t: float(t) for t in numbers}
    broken = False
    for i, (name, points) in enumerate(lines.items()):
        known = {p.level(x): e for p in points if (e := p.estimate(what)) is not None}
        levels = sorted(place.keys() & {*known, *asked.get(name, ())}, key=place.__getitem__)
        there = [v in known for v in levels]
        broken |= sum(key for key, _ in groupby(there)) > 1
        if any(there):
            lost = Estimate(math.nan)  # which draws nothing, and breaks the line
            found = {place[v]: known.get(v, lost) for v in levels}
            style.interval_curve(ax, found, _look(i), str(name) or None)
        if INAPPLICABLE in known:  # the value without the factor, over the whole width
            level, look = known[INAPPLICABLE], style.series_style(i)
            label = f"{name} (no {x})".strip()
            ax.axhline(level.value, label=label, color=look.colour, linestyle=look.line)
            if level.low is not None and level.high is not None:
                ax.axhspan(level.low, level.high, color=look.colour, alpha=0.15, lw=0)
    if len(numbers) == len(ticks) and min(numbers) > 0 and max(numbers) / min(numbers) >= LOG_SPAN:
        from matplotlib.ticker import NullLocator

        ax.set_xscale("log", base=2)
        ax.xaxis.set_minor_locator(NullLocator())
    texts = [style.label_of(t, 20) for t in ticks]
    ax.set_xticks([place[t] for t in ticks], texts, rotation=60 if len(ticks) > 6 else 0)
    return broken


# Against N.


def scaling(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """One figure; a column per family (the part of a system's name before its dot)."""
    sweep = sweep_of(data, item)
    points = [p for p in data.select(sweep, item.n) if p.ok and p.measurements]
    points.sort(key=lambda p: p.n)
    if item.value:
        shown: tuple[Quantity, ...] = (data.quantity(item.value),)
    else:
        shown = tuple(quantity(c) for c in COUNTERS) if data.simulated else (TIME,)
    kernels = [p for p in points if not p.cpu and any(p.values(what) for what in shown)]
    shown = timed_as(data, shown, kernels)
    baselines = _lines((p for p in points if p.cpu), "n", "system")
    if data.simulated and kernels:
        baselines = {}  # times stand beside no counters
    elif data.simulated:
        shown = (TIME,)
    if not kernels and not baselines:
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a {shown[0].label}")
    series = item.series
    if not series and (others := columns_of(data, sweep)):
        if len(others) > 1:
            raise AnalysisError(
                f"sweep {sweep!r} varies {', '.join(others)}: name the factor of the lines,"
                " `series`"
            )
        series = others[0]
    families: dict[str, dict[Level, Sequence[PointResult]]] = {}
    for level, group in _lines(kernels, "n", series).items():
        label = str(level) if series else sweep
        family, dot, rest = label.partition(".") if series == "system" else ("", "", label)
        if label == INAPPLICABLE:
            family, dot, rest = "", "", "kernel"
        families.setdefault(family, {})[rest if dot else label] = group
    subject = "Counters" if data.simulated else "Time"
    title = title_of(data, item, f"{subject} against N, sweep {sweep}")
    name = slug("scaling", sweep, item.value or "")
    return [partial(_against_size, data, title, name, shown, families, baselines)]


def _against_size(
    data: Dataset,
    title: str,
    name: str,
    shown: Sequence[Quantity],
    families: Mapping[str, Lines],
    baselines: Lines,
) -> style.Drawing:
    """A column per family, a row per quantity; below times their ratios to the fastest kernel."""
    columns = families or {"CPU": {}}
    timed = not data.simulated or not families
    rows = [*shown, TIMES_FASTEST] if timed and families else list(shown)
    heights = [1.4 if timed and row is shown[0] else 1.0 for row in rows]
    figure = style.new_figure(2.2 + 2.0 * sum(heights))
    shape: dict[str, Any] = {"squeeze": False, "sharey": "row", "height_ratios": heights}
    grid = figure.subplots(len(rows), len(columns), **shape)
    first_baseline = max(len(style.MARKERS) - 2, *map(len, columns.values()))
    for axes, row in zip(grid, rows, strict=True):
        if row is TIMES_FASTEST:
            _relative(axes, columns, shown[0])
            continue
        for ax, (family, group) in zip(axes, columns.items(), strict=True):
            for points in (p for f, rest in columns.items() if f != family for p in rest.values()):
                if found := [(p.n, e.value) for p in points if (e := p.estimate(row)) is not None]:
                    ax.plot(*zip(*found, strict=True), color=style.GREY, alpha=0.3, linewidth=0.8)
            _draw(ax, group, row)
            _draw(ax, baselines, row, first_baseline, dark=True)
            _sizes(ax, [*group.values(), *baselines.values()])
        value_axis(axes[0], "y", _values([*columns.values(), baselines], row), row, log=True)
        axes[0].set_ylabel(axis_label(row) if timed else row.label)
    for top, bottom, family in zip(grid[0], grid[-1], columns, strict=True):
        top.set_title(family or data.name)
        bottom.set_xlabel("N")
        entries = top.get_legend_handles_labels()
        bottom.legend(*entries, loc="upper left", bbox_to_anchor=(0, -0.24), borderaxespad=0)
    notes = ["the other families in grey"] if len(columns) > 1 else []
    if data.simulated and families:
        notes.append("counters are exact; none of them alone is the cost")
    if baselines:
        notes.append(f"on the CPU, timed as a whole: {', '.join(map(str, baselines))}")
    said = ", ".join(row.label for row in rows if row is not TIMES_FASTEST)
    alt = f"{said} against N for {', '.join(families) or 'the CPU baselines'}."
    source = source_of(data, cpu=data.simulated and timed)
    return style.finish(figure, name, title, source, alt=alt, subtitle="; ".join(notes))


def _relative(axes: Sequence[Axes], columns: Mapping[str, Lines], what: Quantity) -> None:
    """Each kernel's time over that of the fastest kernel at the same size."""
    fastest: dict[int, PointResult] = {}
    for group in columns.values():
        for point in (p for points in group.values() for p in points if p.values(what)):
            best = fastest.get(point.n)
            if best is None or point.value(what) < best.value(what):
                fastest[point.n] = point
    shown = [1.0]
    for ax, group in zip(axes, columns.values(), strict=True):
        for i, points in enumerate(group.values()):
            ratios = {p.n: point_ratio(p, fastest[p.n], what) for p in points if p.values(what)}
            shown += [ratio.value for ratio in ratios.values()]
            style.interval_curve(ax, ratios, _look(i), "")
        _sizes(ax, group.values())
        ax.axhline(1, color="#333333", linewidth=0.9, zorder=1)
    if is_wide(shown):  # a linear axis shows small differences better
        value_axis(axes[0], "y", shown, TIMES_FASTEST, log=True)
    axes[0].set_ylabel(TIMES_FASTEST.label)


def _values(families: Iterable[Lines], what: Quantity) -> list[float]:
    points = (p for lines in families for points in lines.values() for p in points)
    return [e.value for p in points if (e := p.estimate(what)) is not None]


def _draw(ax: Axes, lines: Lines, what: Quantity, first: int = 0, *, dark: bool = False) -> None:
    for i, (label, points) in enumerate(lines.items(), first):
        found = {p.n: e for p in points if (e := p.estimate(what)) is not None}
        look = _look(i) | ({"color": "black", "markerfacecolor": "white"} if dark else {})
        style.interval_curve(ax, found, look, str(label))


def _sizes(ax: Axes, groups: Iterable[Sequence[PointResult]]) -> None:
    sizes = sorted({p.n for group in groups for p in group})
    if sizes and sizes[-1] > LINEAR_SPAN * sizes[0]:
        sizes_axis(ax, ax.get_xlabel())
        return
    ax.set_xticks(sizes, [str(n) for n in sizes])
    if sizes:
        ax.set_xlim(sizes[0] - 0.3, sizes[-1] + 0.3)
