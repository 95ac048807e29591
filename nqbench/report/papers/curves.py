"""Curves against N or pool size: the published points in panels or marks of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nqbench.analysis.data.dataset import PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed, timed_runs
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import (
    NotMeasured,
    best_point,
    main_point,
    no_time,
    timed_points,
)
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure, Series
from nqbench.report.figures.scale import value_axis
from nqbench.report.figures.style import (
    GREY,
    Drawing,
    finish,
    grid_shape,
    interval_curve,
    new_figure,
    series_style,
)
from nqbench.report.papers.cells import Beside, printed_ratio
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POOL_BLOCK = 32
"""Threads per block of the pool sweep: a pool of 64 jobs needs blocks smaller than that."""


def kernels(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """All kernels against N: the published panel, then one per run."""
    series = [s for t in paper.tables for s in t.series if s.quantity == "time"]
    published = {
        s.system: {n: float(t.printed(s.label, n)) for n in t.sizes}
        for t in paper.tables
        for s in t.series
        if s.quantity == "time"
    }
    ours = [(run, _times(paper, run, series, figure.n)) for run in runs]
    ours = [(run, found) for run, found in ours if any(found.values())]
    if not ours:
        _refuse(paper, runs, series[0], figure.n[0])
    rows, columns = grid_shape(len(ours) + 1)
    drawing = new_figure(1.2 + 3.4 * rows)
    axes = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[len(ours) + 1 :]:
        ax.set_visible(False)
    for i, (system, found) in enumerate(published.items()):
        look = dict(series_style(i).keywords) | {"markerfacecolor": "white"}
        name = system.partition(".")[2]
        axes[0].plot(list(found), list(found.values()), label=name, **look)
    _finish_panel(axes[0], [v for f in published.values() for v in f.values()], figure.n)
    axes[0].set_title(f"{paper.device(figure.hardware[0]).name} (published)", fontsize=8)
    for ax, (run, times) in zip(axes[1:], ours, strict=False):
        for i, system in enumerate(published):
            interval_curve(
                ax, times[system], dict(series_style(i).keywords), system.partition(".")[2]
            )
        values = [v for f in times.values() for e in f.values() for v in _span(e)]
        _finish_panel(ax, values, figure.n)
        ax.set_title(f"{run.name} (measured)", fontsize=8)
    axes[0].legend(loc="upper left", fontsize=7)
    title = f"Figure {figure.number}: {figure.title}"
    alt = f"Times of {len(published)} kernels against N, published and measured."
    subtitle = "hollow: published. Every panel has its own axis: compare order and distances"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def speedup(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Speed-up over the sequential program against N: published cards and ours on one axis."""
    table = next(t for t in paper.tables if any(s.quantity == "ratio" for s in t.series))
    drawing = new_figure(4.6)
    ax = drawing.subplots()
    values: list[float] = []
    for i, series in enumerate(table.series):
        found = [(n, float(table.printed(series.label, n))) for n in table.sizes]
        values += [v for _, v in found]
        look = dict(series_style(i).keywords) | {"markerfacecolor": "white", "alpha": 0.8}
        name = paper.device(series.hardware).name
        ax.plot(*zip(*found, strict=True), label=f"{name} (published)", **look)
    drawn = 0
    for i, run in enumerate(runs, len(table.series)):
        cells = [Beside(paper, run.data).cell(table, table.series[0], n) for n in table.sizes]
        ratios = {c.n: c.ratio for c in cells if c.ratio is not None}
        interval_curve(ax, ratios, dict(series_style(i).keywords), f"{run.name} (measured)")
        values += [v for r in ratios.values() for v in _span(r)]
        drawn += bool(ratios)
    if not drawn:
        main_point(runs[0].data, "cpu.somers", table.sizes[0])
        _refuse(paper, runs, table.series[0], table.sizes[0])
    value_axis(ax, "y", values, TIME, log=True)
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.set_xticks(list(table.sizes))
    ax.set_xlabel("N")
    ax.set_ylabel("times one CPU core (higher is better)")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=7)
    hosts = ", ".join(dict.fromkeys(run.data.host for run in runs))
    subtitle = f"hollow: published, against its 2.93 GHz Core i3; ours against one core of {hosts}"
    title = figure.title[0].upper() + figure.title[1:]
    alt = "Speed-up of the GPU over one CPU core against N, published and measured."
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def pool(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time against pool size: ours in seconds, and everything relative to the kernel without."""
    from matplotlib.ticker import NullLocator

    n = figure.n[0]
    reference = next(k for k in figure.known if k.value)
    pooled = next(k.system for k in figure.known if k.pool_size)
    drawing = new_figure(4.8)
    left, right = drawing.subplots(1, 2)
    values, relative, sizes = [], [1.0], set()
    timed = _timed(runs)
    for i, run in enumerate(timed):
        base = best_point(run.data, reference.system, n, {"block_size": POOL_BLOCK})
        points = timed_points(run.data, pooled, n, {"block_size": POOL_BLOCK})
        points = [p for p in points if isinstance(p.level("pool_size"), int)]
        # Devices of like speed lie on each other: the larger mark shows beneath the smaller.
        look: dict[str, Any] = {**series_style(i).keywords, "markersize": max(3, 8 - 3 * i)}
        name = run.name
        times = {_pool_size(p): p.estimate(TIME) for p in points}
        interval_curve(left, {k: v for k, v in sorted(times.items()) if v}, look, name)
        base_s = base.estimate(TIME)
        assert base_s is not None  # best_point takes timed points only
        # Dashes of one device in the gaps of the others: they may lie on each other too.
        dashes = (3 * i, (2, 3 * len(timed) - 2))
        label = f"{name}, no pool"
        left.axhline(base_s.value, color=look["color"], linestyle=dashes, label=label)
        ratios = {_pool_size(p): point_ratio(p, base, TIME) for p in points}
        sizes |= set(ratios)
        interval_curve(right, dict(sorted(ratios.items())), look, name)
        values += [e.value for e in times.values() if e] + [base_s.value]
        relative += [r.value for r in ratios.values()]
    _published_pool(paper, figure, right, n, relative)
    for ax, label in ((left, "kernel time"), (right, "time / time without a pool")):
        ax.set_xscale("log", base=2)
        ticks = sorted({*sizes, *(k.pool_size for k in figure.known if k.pool_size)})
        ax.set_xticks(ticks, [str(t) for t in ticks], rotation=60)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("jobs per pool")
        ax.set_ylabel(label)
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.3), fontsize=7, borderaxespad=0)
    value_axis(left, "y", values, TIME, log=False)
    right.axhline(1, color="#333333", linewidth=0.9)
    right.set_ylim(0, max(relative) * 1.25)
    title = f"Figure {figure.number}: {figure.title}"
    alt = "Time of the distributed job pool against its size."
    subtitle = (
        f"{POOL_BLOCK} threads per block; published marks: the paper prints no time here,"
        " their height means nothing"
    )
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def _published_pool(
    paper: Paper, figure: PaperFigure, ax: Axes, n: int, relative: Sequence[float]
) -> None:
    """What the text says of pool sizes, and the time of table 7, whose pool size is not stated."""
    top = max(relative) * 1.12
    look: dict[str, Any] = {"color": GREY, "markerfacecolor": "white", "linestyle": ""}
    for marker, pays, words in (("v", True, "pays"), ("^", False, "does not pay")):
        known = [
            k.pool_size for k in figure.known if k.pool_size and ("not" not in k.relation) == pays
        ]
        ax.plot(known, [top] * len(known), marker=marker, label=f"published: {words} here", **look)
    pooled = next(k.system for k in figure.known if k.pool_size)
    for table in paper.tables:
        for series in table.series:
            if series.system == pooled and series.ratio is not None:
                ratio = printed_ratio(paper, table, series, n)
                label = f"published, table {table.number} (pool size not stated)"
                ax.axhline(1 / float(ratio), color=GREY, linestyle="--", label=label)


def _times(
    paper: Paper, run: Observed, series: Sequence[Series], sizes: Sequence[int]
) -> dict[str, dict[int, Estimate]]:
    beside = Beside(paper, run.data)
    found: dict[str, dict[int, Estimate]] = {}
    for one in series:
        own = found.setdefault(one.system, {})
        for n in sizes:
            try:
                value = beside.point(one, n).estimate(TIME)
            except NotMeasured:
                continue
            if value is not None:
                own[n] = value
    return found


def _refuse(paper: Paper, runs: Sequence[Observed], series: Series, n: int) -> None:
    """Let the first run say why it has nothing to draw."""
    Beside(paper, runs[0].data).point(series, n)
    raise NotMeasured("the runs hold nothing to draw", runs[0].data.command)


def _timed(runs: Sequence[Observed]) -> list[Observed]:
    timed = timed_runs(runs)
    if not timed:
        raise NotMeasured(no_time(runs[0].data))
    return timed


def _pool_size(point: PointResult) -> int:
    size = point.level("pool_size")
    assert isinstance(size, int)  # picked by the caller
    return size


def _span(found: Estimate) -> tuple[float, float]:
    """What an axis has to hold of a value: all of its interval."""
    low = found.value if found.low is None else found.low
    return low, found.value if found.high is None else found.high


def _finish_panel(ax: Axes, values: Sequence[float], sizes: Sequence[int]) -> None:
    value_axis(ax, "y", values, TIME, log=True)
    ax.set_xticks(list(sizes))
    ax.set_xlabel("N")
