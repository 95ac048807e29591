"""A quantity against N, a panel per family of systems, with the CPU baselines.

Times of a measured run and those of the CPU share a logarithmic axis. Counters of a simulated run
get a row each, and the CPU's times a separate panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, PointResult, point_ratio
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.errors import AnalysisError
from nqbench.report.figures.axes import axis_label, is_wide, sizes_axis, timed_as, value_axis
from nqbench.report.figures.style import (
    GREY,
    MARKERS,
    Draw,
    Drawing,
    finish,
    interval_curve,
    new_figure,
    series_style,
)
from nqbench.report.items import columns_of, sweep_of, title_of
from nqbench.report.table import slug, source_of
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNTERS: Final = ("warp_instructions", "lane_efficiency", "bank_conflicts", "off_chip_sectors")
"""Counters shown against N: a row each, so fewer than in other figures."""
LINEAR_SPAN: Final = 20
"""Sizes further apart than this factor are drawn on a logarithmic axis."""
TIMES_FASTEST: Final = Quantity("ratio", "times the fastest on the GPU", (), "counter")
Series = Mapping[str, Sequence[PointResult]]


def scaling(data: Dataset, item: ReportItem) -> list[Draw]:
    """One figure; a column per family (the part of a system's name before its dot)."""
    sweep = sweep_of(data, item)
    points = [p for p in data.select(sweep, item.n) if p.ok and p.measurements]
    on_cpu = [p for p in points if p.cpu]
    if item.value:
        shown: tuple[Quantity, ...] = (data.quantity(item.value),)
    else:
        shown = tuple(quantity(c) for c in COUNTERS) if data.simulated else (TIME,)
    kernels = [p for p in points if not p.cpu and any(p.values(what) for what in shown)]
    shown = timed_as(data, shown, kernels)
    if not kernels and not on_cpu:
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a {shown[0].label}")
    series = item.series or _default_series(data, sweep)
    families, baselines = _families(kernels, series), _by_name(on_cpu, "system")
    title = title_of(
        data, item, f"{'Counters' if data.simulated else 'Time'} against N, sweep {sweep}"
    )
    name = slug("scaling", sweep, item.value or "")
    if data.simulated:
        return [partial(_simulated, data, name, title, shown, families, baselines)]
    return [partial(_measured, data, name, title, shown[0], families, baselines)]


def _default_series(data: Dataset, sweep: str) -> str | None:
    others = columns_of(data, sweep)
    if len(others) > 1:
        raise AnalysisError(
            f"sweep {sweep!r} varies {', '.join(others)}: name the factor of the lines, `series`"
        )
    return others[0] if others else None


def _by_name(points: Sequence[PointResult], series: str | None) -> dict[str, list[PointResult]]:
    groups: dict[str, list[PointResult]] = {}
    for point in sorted(points, key=lambda p: p.n):
        label = str(point.level(series)) if series else point.sweep
        group = groups.setdefault(label, [])
        if any(p.n == point.n for p in group):
            raise AnalysisError(
                f"two points of {label!r} share N={point.n}: another factor varies too; name it as"
                " `series`"
            )
        group.append(point)
    return groups


def _families(points: Sequence[PointResult], series: str | None) -> dict[str, Series]:
    families: dict[str, dict[str, list[PointResult]]] = {}
    for label, group in _by_name(points, series).items():
        family, dot, rest = label.partition(".") if series == "system" else ("", "", label)
        if label == INAPPLICABLE:
            family, dot, rest = "", "", "kernel"
        families.setdefault(family, {})[rest if dot else label] = group
    return dict(families)


def _measured(
    data: Dataset,
    name: str,
    title: str,
    what: Quantity,
    families: Mapping[str, Series],
    baselines: Series,
) -> Drawing:
    columns: dict[str, Series] = dict(families) or {"CPU": {}}
    first_baseline = max(len(MARKERS) - 2, *(len(group) for group in columns.values()))
    compared = bool(families)
    figure = new_figure(7.0 if compared else 5.0)
    rows = 2 if compared else 1
    grid = figure.subplots(
        rows, len(columns), sharey="row", squeeze=False, height_ratios=[1.4, 1][:rows]
    )
    axes = grid[0]
    values = _values([s for f in columns.values() for s in f.values()], what)
    values += _values(list(baselines.values()), what)
    for ax, (family, group) in zip(axes, columns.items(), strict=True):
        for other, rest in columns.items():
            if other != family:
                _context(ax, rest, what)
        _lines(ax, group, what, 0)
        _lines(ax, baselines, what, first_baseline, dark=True)
        ax.set_title(family or data.name)
        _sizes(ax, [*group.values(), *baselines.values()])
    for ax, bottom in zip(axes, grid[-1], strict=True):
        bottom.set_xlabel("N")
        handles, labels = ax.get_legend_handles_labels()
        bottom.legend(handles, labels, loc="upper left", bbox_to_anchor=(0, -0.24), borderaxespad=0)
    if compared:
        _relative(grid[1], columns, what)
    value_axis(axes[0], "y", values, what, log=True)
    axes[0].set_ylabel(axis_label(what))
    notes = ["the other families in grey"] if len(columns) > 1 else []
    if baselines:
        notes.append(_where(baselines))
    subtitle = "; ".join(notes)
    alt = f"{what.label} against N for {', '.join(families) or 'the CPU baselines'}."
    return finish(figure, name, title, source_of(data), alt=alt, subtitle=subtitle)


def _where(baselines: Series) -> str:
    """What the lines of CPU systems show, as opposed to those of kernels."""
    if all(name.startswith("cpu.") for name in baselines):
        return "cpu.* on the CPU, timed as a whole; kernels: the kernel alone"
    return f"on the CPU, timed as a whole: {', '.join(baselines)}"


def _relative(axes: Sequence[Axes], columns: Mapping[str, Series], what: Quantity) -> None:
    """Each kernel's time over that of the fastest kernel at the same size."""
    everyone = [p for group in columns.values() for own in group.values() for p in own]
    fastest: dict[int, PointResult] = {}
    for point in (p for p in everyone if p.values(what)):
        best = fastest.get(point.n)
        if best is None or point.value(what) < best.value(what):
            fastest[point.n] = point
    shown = [1.0]
    for ax, group in zip(axes, columns.values(), strict=True):
        for i, points in enumerate(group.values()):
            ratios = {p.n: point_ratio(p, fastest[p.n], what) for p in points if p.values(what)}
            shown += [ratio.value for ratio in ratios.values()]
            interval_curve(ax, ratios, {**series_style(i).keywords, "elinewidth": 1}, "")
        _sizes(ax, list(group.values()))
        ax.axhline(1, color="#333333", linewidth=0.9, zorder=1)
    if is_wide(shown):  # a linear axis shows small differences better
        value_axis(axes[0], "y", shown, TIMES_FASTEST, log=True)
    axes[0].set_ylabel(TIMES_FASTEST.label)


def _simulated(
    data: Dataset,
    name: str,
    title: str,
    shown: Sequence[Quantity],
    families: Mapping[str, Series],
    baselines: Series,
) -> Drawing:
    """Counters in rows, families in columns; the last column holds the CPU and the legends."""
    lines, columns = len(shown), len(families)
    cells = max(lines, columns + 2 * bool(baselines))
    figure = new_figure(0.9 + 1.75 * cells)
    grid = figure.subplots(cells, columns + 1, squeeze=False)
    for i, what in enumerate(shown):
        values = _values([s for f in families.values() for s in f.values()], what)
        for j, (family, group) in enumerate(families.items()):
            ax = grid[i][j]
            _lines(ax, group, what, 0)
            value_axis(ax, "y", values, what, log=True)
            _sizes(ax, list(group.values()))
            if i == 0:
                ax.set_title(family or data.name)
            if i == lines - 1:
                ax.set_xlabel("N")
            if j == 0:
                ax.set_ylabel(what.label)
            else:
                ax.tick_params(axis="y", labelleft=False)
    for row in grid[lines:]:
        for ax in row[:columns]:
            ax.set_axis_off()
    side = [row[columns] for row in grid]
    if baselines:
        panel = side.pop(0)
        _cpu_panel(panel, baselines)
        handles, labels = panel.get_legend_handles_labels()
        # Not in the panel, whose lines it would cover.
        side.pop(0).legend(
            handles, labels, loc="upper left", title="CPU", alignment="left", handlelength=2.5
        )
    for ax, (family, _) in zip(side, families.items(), strict=False):
        column = list(families).index(family)
        handles, labels = grid[0][column].get_legend_handles_labels()
        ax.legend(handles, labels, loc="upper left", title=family or None, alignment="left")
    for row in grid[bool(baselines) :]:
        row[columns].set_axis_off()
    subtitle = "Counters are exact; none of them alone is the cost"
    if baselines:
        subtitle += f"; the CPU panel shows measured times of {data.cpu}"
    alt = f"{', '.join(w.label for w in shown)} against N for {', '.join(families)}."
    return finish(figure, name, title, source_of(data), alt=alt, subtitle=subtitle)


def _cpu_panel(ax: Axes, baselines: Series) -> None:
    _lines(ax, baselines, TIME, 0, dark=True)
    value_axis(ax, "y", _values(list(baselines.values()), TIME), TIME, log=True)
    _sizes(ax, list(baselines.values()))
    ax.set_title("CPU time, measured")
    ax.set_xlabel("N")


def _values(groups: Sequence[Sequence[PointResult]], what: Quantity) -> list[float]:
    return [e.value for group in groups for p in group if (e := p.estimate(what)) is not None]


def _lines(ax: Axes, group: Series, what: Quantity, first: int, *, dark: bool = False) -> None:
    for i, (label, points) in enumerate(group.items()):
        found = {p.n: e for p in points if (e := p.estimate(what)) is not None}
        look = {**series_style(first + i).keywords, "elinewidth": 1}
        if dark:
            look |= {"color": "black", "markerfacecolor": "white"}
        interval_curve(ax, found, look, label)


def _context(ax: Axes, group: Series, what: Quantity) -> None:
    """Lines of another family, in the background."""
    for points in group.values():
        found = [(p.n, e.value) for p in points if (e := p.estimate(what)) is not None]
        if found:
            ax.plot(*zip(*found, strict=True), color=GREY, alpha=0.3, linewidth=0.8)


def _sizes(ax: Axes, groups: Sequence[Sequence[PointResult]]) -> None:
    sizes = sorted({p.n for group in groups for p in group})
    if sizes and sizes[-1] > LINEAR_SPAN * sizes[0]:
        label = ax.get_xlabel()
        sizes_axis(ax, label)
        return
    ax.set_xticks(sizes, [str(n) for n in sizes])
    if sizes:
        ax.set_xlim(sizes[0] - 0.3, sizes[-1] + 0.3)
