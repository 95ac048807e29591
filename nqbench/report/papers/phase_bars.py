"""Stacked bars: where the time of a search goes, version by version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.data.select import NotMeasured, main_point, no_time
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
    legend,
    new_figure,
    whiskers,
)
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS: Final = (
    ("evaluation", "evaluation", COLOURS[0]),
    ("apply", "choice and application", COLOURS[1]),
    ("other", "other: the host, copies, waiting", "#bbbbbb"),
)
"""Phases, their names in the paper, colours."""


def phases(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """A panel per size and GPU, one of the published numbers before them.

    Raises ``NotMeasured`` where no run has a time.
    """
    systems = shown_systems(paper, runs)
    panels = timed_panels(figure, runs, systems)
    published = _published(figure)
    rows, columns = grid_shape(len(published) + len(panels), 2)
    drawing = new_figure(1.4 + 2.7 * rows)
    axes = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for ax, (n, known) in zip(axes, published.items(), strict=False):
        _known_panel(ax, known, [s for s in systems if s.startswith(paper.id)])
        ax.set_title(f"{paper.device(figure.hardware[0]).name}, N = {n} (published)", fontsize=8)
    for ax, (run, n, points) in zip(axes[len(published) :], panels, strict=False):
        _panel(ax, points, systems)
        ax.set_title(f"{run.name}, N = {n} (measured)", fontsize=8)
    for ax in axes[len(published) + len(panels) :]:
        ax.set_visible(False)
    legend(drawing, axes[len(published)])
    title = f"Figure {figure.number}: {figure.title}"
    subtitle = (
        "hatched: published times per launch by the iterations; a question mark: drawn without"
        " numbers. Whiskers and numbers: the whole search; its parts come from one more, with"
        " events around each kernel, and may exceed it"
    )
    alt = f"Stacked bars of the parts of {len(systems)} searches at {len(panels)} sizes."
    name = slug("paper", figure.id)
    return [finish(drawing, name, title, source, alt=alt, subtitle=subtitle)]


def shown_systems(paper: Paper, runs: Sequence[Observed]) -> list[str]:
    """The paper's versions for a GPU in its order, then ours."""
    own = [s.system for s in paper.systems if s.system]
    points = [p for run in runs for p in run.data.points if p.system]
    hosts = {p.system for p in points if p.host}
    kernels = dict.fromkeys(p.system for p in points if p.system not in hosts)
    return [s for s in own if s in kernels] + [s for s in kernels if s not in own]


def untimed(runs: Sequence[Observed]) -> NotMeasured:
    """Why there is nothing to draw: no run has the time of a kernel's search."""
    for run in runs:
        if run.data.simulated:
            return NotMeasured(no_time(run.data))
    return NotMeasured("no search on a GPU was timed", runs[0].data.command)


def timed_panels(
    figure: PaperFigure, runs: Sequence[Observed], systems: Sequence[str]
) -> list[tuple[Observed, int, dict[str, PointResult]]]:
    """Each run and size of a figure with its timed points by system.

    Raises ``NotMeasured`` where no run has a time.
    """
    panels = [(run, n, points_at(run, systems, n)) for run in runs for n in figure.n]
    panels = [panel for panel in panels if panel[2]]
    if not panels:
        raise untimed(runs)
    return panels


def points_at(run: Observed, systems: Sequence[str], n: int) -> dict[str, PointResult]:
    """The timed main configuration of each system at a size."""
    found = {}
    for system in systems:
        try:
            point = main_point(run.data, system, n)
        except NotMeasured:
            continue
        if point.estimate(TIME) is not None:
            found[system] = point
    return found


def short(system: str) -> str:
    """``v1`` for the paper's versions, our own names for the rest."""
    return system.partition(".")[2].removeprefix("gpu_")


def shares_s(point: PointResult) -> dict[str, float]:
    """Seconds of each part of a search; ``other`` is what is left of the whole."""
    whole = point.estimate(TIME)
    assert whole is not None  # timed points only
    found = {}
    for name, _, _ in PARTS[:-1]:
        part = point.estimate(quantity(name))
        found[name] = part.value if part else 0.0
    return found | {"other": max(0.0, whole.value - sum(found.values()))}


def _published(figure: PaperFigure) -> dict[int, dict[str, dict[str, float]]]:
    """Seconds of whole searches by size, system and part: times per launch by iterations."""
    told: dict[tuple[int, str], dict[str, float]] = {}
    for known in figure.known:
        if known.n is not None and known.value is not None:
            told.setdefault((known.n, known.system), {})[known.role] = known.value
    found: dict[int, dict[str, dict[str, float]]] = {}
    for (n, system), values in told.items():
        iterations = values.pop("iterations", None)
        if iterations and values:
            parts = {name: iterations * value for name, value in values.items()}
            found.setdefault(n, {})[system] = parts
    return found


def _known_panel(
    ax: Axes, known: Mapping[str, Mapping[str, float]], systems: Sequence[str]
) -> None:
    highest = max(sum(parts.values()) for parts in known.values())
    value_axis(ax, "y", [highest], TIME, log=False)
    for x, system in enumerate(systems):
        if system not in known:
            ax.text(x, highest * 0.02, "?", ha="center", color=GREY, fontsize=9)
            continue
        bottom = 0.0
        for name, _, colour in PARTS:
            value = known[system].get(name, 0.0)
            ax.bar(x, value, bottom=bottom, width=0.7, facecolor="white", edgecolor=colour,
                   hatch=HATCH)  # fmt: skip
            bottom += value
        ax.text(x, bottom, time_text(bottom, 3), ha="center", va="bottom", fontsize=7)
    ax.set_xticks(range(len(systems)), [short(s) for s in systems], fontsize=7)
    ax.set_xlim(-0.6, len(systems) - 0.4)


def _panel(ax: Axes, points: Mapping[str, PointResult], systems: Sequence[str]) -> None:
    highest: list[float] = []
    for x, system in enumerate(systems):
        if system not in points:
            ax.text(x, 0, "not\ntimed", ha="center", va="bottom", color=GREY, fontsize=6)
            continue
        parts, bottom = shares_s(points[system]), 0.0
        for name, label, colour in PARTS:
            ax.bar(x, parts[name], bottom=bottom, width=0.7, color=colour,
                   label=label if not highest else None)  # fmt: skip
            bottom += parts[name]
        whole = points[system].estimate(TIME)
        assert whole is not None  # timed points only
        ax.errorbar([x], [whole.value], yerr=whiskers([whole]), color="#222222", capsize=3)
        above = max(bottom, whole.high or whole.value)
        ax.text(x, above, time_text(whole.value, 3), ha="center", va="bottom", fontsize=6)
        highest.append(above)
    value_axis(ax, "y", highest, TIME, log=False)
    ax.set_ylabel("time of a search")
    ax.set_xticks(range(len(systems)), [short(s) for s in systems], fontsize=6.5)
    ax.set_xlim(-0.6, len(systems) - 0.4)
