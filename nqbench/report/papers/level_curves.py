"""Speed-up against the number of threads, and dynamic parallelism against its threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nqbench.analysis.data.dataset import PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured, timed_s
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import DataFile, PaperFigure
from nqbench.report.figures.log_axis import powers_axis, sizes_axis
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
from nqbench.report.papers.data_twins import (
    BASELINE,
    COARSE,
    by_level,
    chosen,
    found_points,
    refuse,
    thread_times,
)
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HOLLOW: Mapping[str, Any] = {"color": GREY, "markerfacecolor": "white", "linewidth": 0.8}
MOST_CURVES = 5
"""Published sizes of a panel, the largest ones: more lines cannot be told apart."""


def thread_curves(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Speed-up over the single thread against the number of threads: a panel per N."""
    data, system = paper.series(figure.data), _system(paper, figure)
    bases = _base_times(paper)
    sizes = [n for n in figure.n if any(_levels(run, system, n, "threads") for run in runs)]
    if not sizes:
        refuse(runs[0], system, "no drawn size with several numbers of threads")
    rows, columns = grid_shape(len(sizes), most=2)
    drawing = new_figure(1.4 + 2.7 * rows)
    axes = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[len(sizes) :]:
        ax.set_visible(False)
    for ax, n in zip(axes, sizes, strict=False):
        theirs = thread_times(data, n)
        if theirs and n in bases:
            heights = [bases[n] / s for s in theirs.values()]
            look = {**_HOLLOW, "marker": "o", "markersize": 3}
            ax.plot(list(theirs), heights, label="published", **look)
        for i, run in enumerate(runs):
            serial = found_points(run.data, paper.system(BASELINE), [n])
            points = _levels(run, system, n, "threads")
            if n in serial:
                found = {t: point_ratio(serial[n], p, TIME) for t, p in points.items()}
                _curve(ax, found, i, f"{run.data.host.removesuffix(' (cpu)')} (measured)")
        ax.axhline(1, color="#333333", linewidth=0.9)
        ax.set_ylim(bottom=0)
        ax.set_title(f"N = {n}", fontsize=8)
        ax.set_xlabel("threads")
        ax.set_ylabel("times the single thread")
    axes[0].legend(fontsize=6.5)
    title = f"Figure {figure.number}: {figure.title}"
    alt = f"Speed-up against the number of threads at {len(sizes)} sizes."
    subtitle = f"hollow: published, 20 cores with 40 threads; {figure.note}"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def best_threads(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Best speed-up and the number of threads that gives it, against N."""
    data, system = paper.series(figure.data), _system(paper, figure)
    bases = _base_times(paper)
    drawing = new_figure(3.8)
    left, right = drawing.subplots(1, 2)
    theirs = {n: thread_times(data, n) for n in sorted({row.n for row in data.rows})}
    best = {n: min(found, key=lambda t: found[t]) for n, found in theirs.items()}
    look = {**_HOLLOW, "marker": "o", "markersize": 3, "label": "published"}
    known = [n for n in best if n in bases]
    left.plot(known, [bases[n] / theirs[n][best[n]] for n in known], **look)
    right.plot(list(best), list(best.values()), **look)
    drawn = 0
    for i, run in enumerate(runs):
        serial = found_points(run.data, paper.system(BASELINE))
        levels = {n: _levels(run, system, n, "threads") for n in _sizes(run, system)}
        own = {n: min(f, key=lambda t: timed_s(f[t])) for n, f in levels.items() if len(f) > 1}
        ratios = {n: point_ratio(serial[n], levels[n][t], TIME) for n, t in own.items()
                  if n in serial}  # fmt: skip
        name = f"{run.data.host.removesuffix(' (cpu)')} (measured)"
        _curve(left, ratios, i, name)
        right.plot(list(own), list(own.values()), label=name, **series_style(i).keywords)
        drawn += len(own)
    if not drawn:
        refuse(runs[0], system, "no size with several numbers of threads")
    for ax, label in ((left, "best speed-up"), (right, "best number of threads")):
        sizes_axis(ax)
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
    left.legend(fontsize=6.5)
    title = f"Figure {figure.number}: {figure.title}"
    alt = "Best speed-up and best number of threads against N."
    subtitle = "hollow: published (20 cores, 40 threads); few numbers of threads are timed here"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def thresholds(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time over that of the coarse scheme against the threshold, a line per N."""
    data, coarse = paper.series(figure.data), paper.system(COARSE)
    system = paper.system(data.system)
    bases = next(part for part in paper.data if not part.system).times(coarse)
    ours = {run.name: _over_coarse(run, system, coarse) for run in runs}
    ours = {name: found for name, found in ours.items() if found}
    if not ours:
        refuse(runs[0], system, "no size with several thresholds")
    rows, columns = grid_shape(len(ours) + 1)
    drawing = new_figure(1.2 + 3.4 * rows)
    axes = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[len(ours) + 1 :]:
        ax.set_visible(False)
    theirs: dict[int, dict[int, Estimate]] = {}
    for row in data.rows:
        if row.n in bases and row.seconds > 0 and bases[row.n] > 0:
            own = theirs.setdefault(row.n, {})
            own[row.levels["threshold"]] = Estimate(row.seconds / bases[row.n])
    told = {n: f for n, f in theirs.items() if len(f) > 1 and max(e.value for e in f.values()) > 1}
    shown = dict(sorted(told.items())[-MOST_CURVES:])
    titles = [f"{paper.device(figure.hardware[0]).name} (published, {data.origin})"]
    titles += [f"{name} (measured)" for name in ours]
    for ax, found, title in zip(axes, (shown, *ours.values()), titles, strict=False):
        values = [e.value for f in found.values() for e in f.values()]
        for i, (n, curve) in enumerate(sorted(found.items())):
            _curve(ax, dict(sorted(curve.items())), i, f"N = {n}", hollow=found is shown)
        value_axis(ax, "y", [*values, 1.0], TIME, log=True)
        ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
        ax.axhline(1, color="#333333", linewidth=0.9)
        powers_axis(ax, "threshold (comparisons of a sub-thread)")
        ax.set_ylabel("time / time of the coarse scheme")
        ax.set_title(title, fontsize=8)
        # Below: the lines fall through every height.
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.16), fontsize=6.5, ncols=3)
    title = f"Figure {figure.number}: {figure.title}"
    alt = "Time of dynamic parallelism over the coarse scheme against the threshold."
    subtitle = "from N - 1 on no sub-kernel is started; published times are whole milliseconds"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def _over_coarse(run: Observed, system: str, coarse: str) -> dict[int, dict[int, Estimate]]:
    found = {}
    for n in _sizes(run, system):
        points = _levels(run, system, n, "threshold")
        try:
            base = chosen(run.data, coarse, n)
        except NotMeasured:
            continue
        if len(points) > 1:
            found[n] = {t: point_ratio(p, base, TIME) for t, p in points.items()}
    return found


def _system(paper: Paper, figure: PaperFigure) -> str:
    data: DataFile = paper.series(figure.data)
    return paper.system(data.system)


def _base_times(paper: Paper) -> dict[int, float]:
    return next(part for part in paper.data if not part.system).times(paper.system(BASELINE))


def _sizes(run: Observed, system: str) -> list[int]:
    return sorted({p.n for p in run.data.points if p.system == system})


def _levels(run: Observed, system: str, n: int, factor: str) -> dict[int, PointResult]:
    try:
        return by_level(run.data, system, n, factor)
    except NotMeasured:
        return {}


def _curve(
    ax: Axes, found: Mapping[int, Estimate], index: int, name: str, *, hollow: bool = False
) -> None:
    look = {**series_style(index).keywords, "markersize": 4}
    interval_curve(ax, found, look | ({"markerfacecolor": "white"} if hollow else {}), name)
