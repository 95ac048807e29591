"""The histogram beside the coarse scheme, and how near each comes to the device's limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.limits.ceilings import bytes_per_s, ceilings_beside, integers_per_s
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure
from nqbench.report.figures.log_axis import sizes_axis
from nqbench.report.figures.scale import value_axis
from nqbench.report.figures.style import Drawing, finish, new_figure, series_style, whiskers
from nqbench.report.papers.data_twins import COARSE, found_points, refuse
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HISTOGRAM: Final = "fitness.histogram"
MOVED: Final = ("bytes_moved", "operations")
"""What an evaluation moves and computes, as the workload states it (docs/fitness.md)."""
KERNEL: Final = quantity("kernel")
FULL: Final = 100.0
"""Percent."""
CEILINGS_OF: Final = {MOVED[0]: "copy", MOVED[1]: "logic"}
"""The measured ceiling of each. Of integer instructions those of which no two are fused into one:
three of a pair's four operations are no additions with three operands."""


def limits(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Kernel and call times of both schemes against N; shares of the limits where known.

    Raises ``NotMeasured`` where no run timed either scheme.
    """
    systems = (paper.system(COARSE), HISTOGRAM)
    ours = [(run, {s: found_points(run.data, s) for s in systems}) for run in runs]
    ours = [(run, points) for run, points in ours if any(points.values())]
    if not ours:
        refuse(runs[0], systems[0], "no time of either scheme")
    drawing = new_figure(4.4)
    left, right = drawing.subplots(1, 2)
    times: list[float] = []
    shares: list[float] = []
    every = [(run, s, points[s]) for run, points in ours for s in systems if points[s]]
    for i, (run, system, points) in enumerate(every):
        many = f", {run.name}" if len(ours) > 1 else ""
        name = f"{system.partition('.')[2]}{many}"
        look: dict[str, Any] = dict(series_style(i).keywords) | {"markersize": 4}
        times += _times(left, points, name, look)
        shares += _shares(right, points, peaks(run), name, look)
    value_axis(left, "y", times, TIME, log=True)
    left.set_ylabel("time of one evaluation")
    right.set_ylabel("% of the device's limit, by the kernels")
    if shares:
        right.set_yscale("log")
        right.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
        right.axhline(FULL, color="#333333", linewidth=0.9)
    else:
        right.text(0.5, 0.5, "limits of this device not known", ha="center",
                   transform=right.transAxes)  # fmt: skip
    for ax in (left, right):
        sizes_axis(ax)
        if ax.get_legend_handles_labels()[1]:
            ax.legend(loc="upper left", bbox_to_anchor=(0, -0.16), fontsize=6.5)
    title = figure.title[0].upper() + figure.title[1:]
    alt = "Times of the coarse and the histogram scheme, and shares of the device's limits."
    subtitle = "not of the paper. Bytes and operations as the algorithm has them; caches serve many"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def _times(
    ax: Axes, points: Mapping[int, PointResult], name: str, look: Mapping[str, Any]
) -> list[float]:
    """Lines of the kernels and of the whole calls; the seconds shown."""
    shown: list[float] = []
    for what, style, told in ((KERNEL, "-", "the kernels"), (TIME, ":", "the whole call")):
        found = _estimates(points, what)
        heights = [e.value for e in found.values()]
        if found:
            line = {**look, "linestyle": style}
            bars = whiskers(list(found.values()))
            ax.errorbar(list(found), heights, yerr=bars, label=f"{name}: {told}", **line)
            shown += heights
    return shown


def _shares(
    ax: Axes,
    points: Mapping[int, PointResult],
    known: Mapping[str, float],
    name: str,
    look: Mapping[str, Any],
) -> list[float]:
    """Lines of the percent of each known limit; the percents shown."""
    shown: list[float] = []
    for limit, peak in known.items():
        share = {n: FULL * v / peak for n, v in _rates(points, limit, KERNEL).items()}
        if share:
            line = {**look, "linestyle": "-" if limit == MOVED[0] else "--"}
            label = f"{name}: {'memory bandwidth' if limit == MOVED[0] else 'integer units'}"
            ax.plot(list(share), list(share.values()), label=label, **line)
            shown += share.values()
    return shown


def peaks(run: Observed) -> dict[str, float]:
    """Bytes and integer operations per second that a GPU can do at most, as far as known.

    Measured where the ceilings of that GPU lie beside the run, else its maker's figures.
    """
    found = {MOVED[0]: bytes_per_s(run.data), MOVED[1]: integers_per_s(run.data)}
    return measured_peaks(run) or {name: value for name, value in found.items() if value}


def measured_peaks(run: Observed) -> dict[str, float]:
    """Those of ``peaks`` out of measured ceilings; empty unless all of them were measured."""
    measured = ceilings_beside(run.path, run.data.device)
    if measured is None or not set(CEILINGS_OF.values()) <= set(measured.found):
        return {}
    return {name: measured.found[of].per_s.value for name, of in CEILINGS_OF.items()}


def _rates(points: Mapping[int, PointResult], what: str, kernel: Quantity) -> dict[int, float]:
    """What the kernels did per second, by N."""
    found = {}
    for n, point in points.items():
        done, value = point.detail(what), point.estimate(kernel)
        if done is not None and value is not None and value.value > 0:
            found[n] = float(done) / value.value
    return found


def _estimates(points: Mapping[int, PointResult], what: Quantity) -> dict[int, Estimate]:
    values = {n: p.estimate(what) for n, p in points.items()}
    return {n: v for n, v in values.items() if v is not None and v.value > 0}
