"""A bar per version, a panel per GPU: the published bars hatched, ours with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed, time_of
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.analysis.data.select import NotMeasured, best_point
from nqbench.analysis.wording import time as time_text
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure
from nqbench.report.figures.scale import value_axis
from nqbench.report.figures.style import (
    COLOURS,
    GREY,
    HATCH,
    Drawing,
    finish,
    grid_shape,
    new_figure,
    whiskers,
)
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bars(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Feinbube's figures 4 and 5. Raises ``NotMeasured`` where no run has a version."""
    n = figure.n[0]
    versions = [s for s in paper.systems if s.system.startswith(paper.id)]
    names = [s.id.replace("_", "\n") for s in versions]
    ours = [(run, _measured(run, [s.system for s in versions], n)) for run in runs]
    ours = [(run, found) for run, found in ours if found]
    if not ours:
        # The reason is that of the first run: it is asked again so that it can say it.
        best_point(runs[0].data, versions[0].system, n)
    panels = len(figure.hardware) + len(ours)
    rows, columns = grid_shape(panels)
    drawing = new_figure(1.0 + 2.5 * rows)
    axes = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[panels:]:
        ax.set_visible(False)
    for ax, device in zip(axes, figure.hardware, strict=False):
        known = {k.system: k.value for k in figure.known if k.hardware == device and k.value}
        name = paper.device(device).name
        _published(ax, [known.get(s.system) for s in versions], name, time_of(paper))
    for ax, (run, found) in zip(axes[len(figure.hardware) :], ours, strict=False):
        _own(ax, [found.get(s.system) for s in versions], run.name, time_of(paper))
    for ax in axes[:panels]:
        ax.set_xticks(range(len(names)), names, fontsize=6.5)
    title = f"Figure {figure.number}: {figure.title}"
    alt = f"Bars of the times of {len(names)} versions on {panels} devices, N = {n}."
    subtitle = "hatched: published; a question mark: the paper prints no number. Every panel has"
    subtitle += " its own axis: compare the shapes. In the bars: rows on the host \u00d7 threads"
    name = slug("paper", figure.id)
    return [finish(drawing, name, title, source, alt=alt, subtitle=subtitle)]


def _measured(run: Observed, systems: Sequence[str], n: int) -> dict[str, tuple[Estimate, str]]:
    """The fastest configuration of each version that was timed."""
    found = {}
    for system in systems:
        try:
            point = best_point(run.data, system, n)
        except NotMeasured:
            continue
        value = point.estimate(TIME)
        assert value is not None  # best_point takes timed points only
        found[system] = value, f"{point.level('depth')}\u00d7{point.level('block_size')}"
    return found


def _published(ax: Axes, values: Sequence[float | None], name: str, what: Quantity) -> None:
    known = [v for v in values if v is not None]
    value_axis(ax, "y", known, what, log=False)
    for i, value in enumerate(values):
        if value is None:
            ax.text(i, max(known) * 0.02, "?", ha="center", color=GREY, fontsize=9)
        else:
            ax.bar(i, value, width=0.7, facecolor="white", edgecolor=GREY, hatch=HATCH)
            ax.text(i, value, f"{value:g} s", ha="center", va="bottom", fontsize=7)
    ax.set_title(f"{name}\n(published)", fontsize=8)


def _own(
    ax: Axes, values: Sequence[tuple[Estimate, str] | None], name: str, what: Quantity
) -> None:
    found = [v[0] for v in values if v is not None]
    value_axis(ax, "y", [e.high or e.value for e in found], what, log=False)
    for i, value in enumerate(values):
        if value is None:
            ax.text(i, 0, "not run", ha="center", va="bottom", color=GREY, fontsize=6.5)
            continue
        estimate, launch = value
        ax.bar(i, estimate.value, width=0.7, color=COLOURS[0])
        ax.errorbar([i], [estimate.value], yerr=whiskers([estimate]), color="#222222", capsize=3)
        above = max(estimate.value, estimate.high or 0.0)  # clear of the whisker
        text = time_text(estimate.value, 3)
        ax.annotate(text, (i, above), (0, 1.5), textcoords="offset points", ha="center",
                    va="bottom", fontsize=7)  # fmt: skip
        ax.text(i, 0, launch, ha="center", va="bottom", color="white", fontsize=7)
    ax.set_title(f"{name}\n(measured)", fontsize=8)
