"""Times and speed-ups of many schemes against N, published points hollow; random against valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nqbench.analysis.data.dataset import point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured, main_point
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure
from nqbench.report.figures.log_axis import sizes_axis
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
from nqbench.report.papers.data_twins import BASELINE, COARSE, found_points, refuse, timed_on
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OWN = ("fitness.cpu_histogram", "fitness.histogram")
"""Systems that the paper does not have, drawn beside its own."""
HOLLOW: Mapping[str, Any] = {"markerfacecolor": "white", "linewidth": 0.8, "alpha": 0.75}
"""How published points look: hollow, with thin lines."""


def times(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Seconds of every scheme against N: the published panel, then one per run."""
    systems, published, ours = _gather(paper, figure, runs)
    rows, columns = grid_shape(len(ours) + 1, most=2)
    drawing = new_figure(1.4 + 3.6 * rows)
    axes = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[len(ours) + 1 :]:
        ax.set_visible(False)
    for i, system in enumerate(systems):
        if published.get(system):
            look = {**series_style(i).keywords, **HOLLOW}
            found = published[system]
            axes[0].plot(list(found), list(found.values()), label=_short(system), **look)
    axes[0].set_title(f"published, {paper.series(figure.data).origin}", fontsize=8)
    _finish(axes[0], [v for f in published.values() for v in f.values() if v > 0])
    for ax, (run, points) in zip(axes[1:], ours, strict=False):
        shown: list[float] = []
        for i, system in enumerate(systems):
            estimates = {n: p.estimate(TIME) for n, p in points.get(system, {}).items()}
            values = {n: e for n, e in estimates.items() if e is not None}
            _curve(ax, values, i, _short(system))
            shown += [e.value for e in values.values()]
        _finish(ax, shown)
        everyone = (p for found in points.values() for p in found.values())
        ax.set_title(f"{timed_on(run, everyone)} (measured)", fontsize=8)
        # Below, since some scheme is slow and some fast at every size.
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.14), fontsize=6.5, ncols=3)
    title = f"Figure {figure.number}: {figure.title}"
    alt = f"Times of {len(systems)} schemes against N, published and measured."
    subtitle = "hollow: published. One call with allocation and transfers; compare order and shape"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def speedups(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Speed-up of every scheme over the single thread, published and ours on one axis."""
    systems, published, ours = _gather(paper, figure, runs)
    base = paper.system(BASELINE)
    drawing = new_figure(5.2)
    ax = drawing.subplots()
    shown: list[float] = []
    for i, system in enumerate(systems):
        theirs = published.get(system, {})
        bases = published.get(base, {})
        ratios = {n: bases[n] / s for n, s in theirs.items() if s > 0 and n in bases}
        if system != base and ratios:
            look = {**series_style(i).keywords, **HOLLOW}
            label = f"{_short(system)} (published)"
            ax.plot(list(ratios), list(ratios.values()), label=label, **look)
            shown += ratios.values()
    for run, points in ours:
        many = f", {run.name}" if len(ours) > 1 else ""
        serial = points.get(base, {})
        for i, system in enumerate(systems):
            own = points.get(system, {}) if system != base else {}
            found = {n: point_ratio(serial[n], p, TIME) for n, p in own.items() if n in serial}
            _curve(ax, found, i, f"{_short(system)} (here{many})")
            shown += [r.value for r in found.values()]
    if not shown:
        refuse(runs[0], base, "no time of two schemes at one size")
    value_axis(ax, "y", shown, TIME, log=True)
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.axhline(1, color="#333333", linewidth=0.9)
    sizes_axis(ax)
    ax.set_ylabel("times the single thread (higher is better)")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=6.5)
    hosts = ", ".join(dict.fromkeys(run.data.host for run in runs))
    title = f"Figure {figure.number}: {figure.title}"
    alt = "Speed-up of the schemes over one thread against N, published and measured."
    subtitle = f"hollow: published, against its Xeon E7-4820 v4; ours against one core of {hosts}"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def boards(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time on random boards over that on valid ones, against N."""
    system = paper.system(COARSE)
    drawing = new_figure(3.8)
    ax = drawing.subplots()
    shown = [1.0]
    for i, run in enumerate(runs):
        found = {}
        for n in run.sizes:
            try:
                pair = [main_point(run.data, system, n, {"board": b}) for b in ("random", "valid")]
            except NotMeasured:
                continue
            if all(p.values(TIME) for p in pair):
                found[n] = point_ratio(pair[0], pair[1], TIME)
        _curve(ax, found, i, f"{run.name} (measured)")
        shown += [b for r in found.values() for b in (r.value, r.low, r.high) if b]
    if len(shown) == 1:
        refuse(runs[0], system, "no size with both boards")
    loss = next((k.value for k in figure.known if k.value), None)
    if loss is not None:
        label = f"published: {loss:g}% slower on average"
        ax.axhline(1 + loss / 100, color=GREY, linestyle="--", label=label)
        shown.append(1 + loss / 100)
    ax.axhline(1, color="#333333", linewidth=0.9)
    pad = 0.15 * (max(shown) - min(shown))
    ax.set_ylim(min(shown) - pad, max(shown) + pad)
    sizes_axis(ax)
    ax.set_ylabel("time on a random / on a valid board")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=7)
    title = f"Figure {figure.number}: {figure.title}"
    alt = "Time on random boards over time on valid boards against N."
    subtitle = "the axis does not begin at 0; the paper's curve is lost, its mean is drawn"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def _gather(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed]
) -> tuple[list[str], dict[str, dict[int, float]], list[Any]]:
    """Systems to draw, the published seconds, and the points of each run that has any."""
    data = paper.series(figure.data)
    systems = [*dict.fromkeys(row.system for row in data.rows), *OWN]
    published = {system: data.times(system) for system in systems}
    ours = [(run, {s: found_points(run.data, s) for s in systems}) for run in runs]
    ours = [(run, points) for run, points in ours if any(points.values())]
    if not ours:
        refuse(runs[0], systems[0], "no time to draw")
    return systems, published, ours


def _short(system: str) -> str:
    return system.partition(".")[2]


def _curve(ax: Axes, found: Mapping[int, Estimate], index: int, name: str) -> None:
    interval_curve(ax, found, {**series_style(index).keywords, "markersize": 4}, name)


def _finish(ax: Axes, values: Sequence[float]) -> None:
    value_axis(ax, "y", values, TIME, log=True)
    sizes_axis(ax)
    ax.set_ylabel("time of one evaluation")
