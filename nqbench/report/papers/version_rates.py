"""Moves per second of every version, of our kernels, and what the device's limits allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.limits.ceilings import fp32_per_s, roots_per_s
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure
from nqbench.report.figures.style import (
    COLOURS,
    GREY,
    Drawing,
    finish,
    legend,
    new_figure,
)
from nqbench.report.papers.phase_bars import short, shown_systems, timed_panels
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVALUATION: Final = "evaluation"


def versions(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """A panel per GPU and size: whole searches as bars, the evaluation alone, the limit.

    Raises ``NotMeasured`` where no run has a time.
    """
    systems = shown_systems(paper, runs)
    panels = timed_panels(figure, runs, systems)
    columns = len(figure.n)
    rows = -(-len(panels) // columns)
    drawing = new_figure(1.6 + 2.6 * rows)
    axes = list(drawing.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for ax, (run, n, points) in zip(axes, panels, strict=False):
        _panel(ax, run.data, points, systems)
        ax.set_title(f"{run.name}\nN = {n}", fontsize=8)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    legend(drawing, axes[0])
    title = figure.title[0].upper() + figure.title[1:]
    subtitle = (
        "not of the paper. Limit: single-precision operations (none fused) and square roots that"
        " the algorithm needs per move, at the highest clock"
    )
    alt = f"Bars of moves per second of {len(systems)} systems at {len(panels)} sizes."
    name = slug("paper", figure.id)
    return [finish(drawing, name, title, source, alt=alt, subtitle=subtitle)]


def moves_per_s(point: PointResult, phase: str = "") -> float | None:
    """Moves looked at per second of the search, or of one of its phases."""
    moves = point.detail("moves_evaluated")
    time = point.estimate(quantity(phase) if phase else TIME)
    return float(moves) / time.value if moves is not None and time and time.value > 0 else None


def limit_moves_per_s(data: Dataset, point: PointResult) -> float | None:
    """What the device could evaluate at most: by operations, or by square roots."""
    bounds = []
    for names, peak in (
        (("fp32_instructions_per_move", "operations_per_move"), fp32_per_s(data)),
        (("roots_per_move",), roots_per_s(data)),
    ):
        needed = next((n for name in names if (n := point.detail(name)) is not None), None)
        if needed is not None and peak:
            bounds.append(peak / float(needed))
    return min(bounds, default=None)


def _panel(
    ax: Axes, data: Dataset, points: Mapping[str, PointResult], systems: Sequence[str]
) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    labels: set[str] = set()

    def once(label: str) -> str | None:
        fresh = label not in labels
        labels.add(label)
        return label if fresh else None

    rates = [rate for p in points.values() if (rate := moves_per_s(p))]
    ax.set_xscale("log")
    for y, system in enumerate(reversed(systems)):
        if system not in points:
            ax.text(min(rates), y, " wrong or not timed", va="center", color=GREY, fontsize=6.5)
            continue
        point = points[system]
        whole, alone = moves_per_s(point), moves_per_s(point, EVALUATION)
        limit = limit_moves_per_s(data, point)
        if whole:
            ax.barh(y, whole, height=0.6, color=COLOURS[0], label=once("whole search"))
        if alone:
            ax.plot([alone], [y], "D", color=COLOURS[1], markersize=4,
                    label=once("evaluation kernel alone"))  # fmt: skip
        if limit:
            ax.plot([limit], [y], "|", color="#000000", markersize=10, label=once("limit"))
    ax.set_xlim(left=min(rates) / 3)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(range(len(systems)), [short(s) for s in reversed(systems)], fontsize=7)
    ax.set_xlabel("moves per second")


def _plain(value: float) -> str:
    """10 M, 1 G, 100 G."""
    for power, unit in ((4, " T"), (3, " G"), (2, " M"), (1, " k")):
        if value >= 1000**power:
            return f"{value / 1000**power:g}{unit}"
    return f"{value:g}"
