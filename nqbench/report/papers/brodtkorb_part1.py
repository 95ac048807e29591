"""Brodtkorb et al.: phases of a search, rates of moves, coalescing, the mapping of moves."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.claims.functions import first_counted
from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.data.select import NotMeasured, no_time
from nqbench.analysis.wording import time as time_text
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper, PaperFigure
from nqbench.report.bottleneck import bottleneck_figure
from nqbench.report.figures.axes import value_axis
from nqbench.report.figures.style import (
    COLOURS,
    GREY,
    HATCH,
    Drawing,
    legend,
    new_figure,
    panels,
    whiskers,
)
from nqbench.report.papers.common import finished, short, timed_point
from nqbench.report.table import Source, slug
from nqbench.study.report_items import ReportItem
from nqbench.vocabulary import of_kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PHASES: Final = (
    ("evaluation", "evaluation", COLOURS[0]),
    ("apply", "choice and application", COLOURS[1]),
    ("other", "other: CPU, copies, waiting", "#bbbbbb"),
)
"""Phases, their names in the paper, colours."""
EVALUATION: Final = "evaluation"
IDEAL_SECTORS: Final = 4
"""Sectors of 32 bytes that a warp needs for 4 neighbouring bytes per lane."""
_TITLE: Final = 27  # characters that fit over a panel
Read = Callable[[str, str], float]
_OWN, _FOLDED = COLOURS[5], COLOURS[4]


def phases(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """A panel per size and GPU, one of the published numbers before them.

    Raises ``NotMeasured`` where no run has a time.
    """
    systems = shown_systems(paper, runs)
    shown = timed_panels(figure, runs, systems)
    published = _published_phases(figure)
    drawing, axes = panels(len(published) + len(shown), 1.4, 2.7, most=2)
    for ax, (n, known) in zip(axes, published.items(), strict=False):
        _known_panel(ax, known, [s for s in systems if s.startswith(paper.id)])
        ax.set_title(f"{paper.device(figure.hardware[0]).name}, N = {n} (published)", fontsize=8)
    for ax, (run, n, points) in zip(axes[len(published) :], shown, strict=True):
        _phase_panel(ax, points, systems)
        ax.set_title(f"{run.name}, N = {n} (measured)", fontsize=8)
    legend(drawing, axes[len(published)])
    subtitle = (
        "hatched: published time per launch, multiplied by iterations; question mark: drawn"
        " without numbers. Whiskers and numbers: the whole search; its phases come from another"
        " search with events around each kernel and may add up to more"
    )
    alt = f"Stacked bars of the phases of {len(systems)} searches at {len(shown)} sizes."
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def shown_systems(paper: Paper, runs: Sequence[Observed]) -> list[str]:
    """The paper's GPU versions in its order, then ours."""
    own = [s.system for s in paper.systems if s.system]
    points = [p for run in runs for p in run.data.points if p.system]
    on_cpu = {p.system for p in points if p.cpu}
    kernels = dict.fromkeys(p.system for p in points if p.system not in on_cpu)
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
    return {system: p for system in systems if (p := timed_point(run.data, system, n))}


def version(system: str) -> str:
    """``v1`` for the paper's versions, our own names for the rest."""
    return short(system).removeprefix("gpu_")


def shares_s(point: PointResult) -> dict[str, float]:
    """Seconds of each part of a search; ``other`` is what is left of the whole."""
    found = {}
    for name, _, _ in PHASES[:-1]:
        part = point.estimate(quantity(name))
        found[name] = part.value if part else 0.0
    return found | {"other": max(0.0, point.value(TIME) - sum(found.values()))}


def _published_phases(figure: PaperFigure) -> dict[int, dict[str, dict[str, float]]]:
    """Seconds of whole searches by size, system and part: times per launch by iterations."""
    published: dict[tuple[int, str], dict[str, float]] = {}
    for known in figure.known:
        if known.n is not None and known.value is not None:
            published.setdefault((known.n, known.system), {})[known.role] = known.value
    found: dict[int, dict[str, dict[str, float]]] = {}
    for (n, system), values in published.items():
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
        for name, _, colour in PHASES:
            value = known[system].get(name, 0.0)
            ax.bar(x, value, bottom=bottom, width=0.7, facecolor="white", edgecolor=colour,
                   hatch=HATCH)  # fmt: skip
            bottom += value
        ax.text(x, bottom, time_text(bottom, 3), ha="center", va="bottom", fontsize=7)
    ax.set_ylabel("time of a search")
    _names(ax, systems, fontsize=7)


def _phase_panel(ax: Axes, points: Mapping[str, PointResult], systems: Sequence[str]) -> None:
    highest: list[float] = []
    for x, system in enumerate(systems):
        if system not in points:
            ax.text(x, 0, "not\ntimed", ha="center", va="bottom", color=GREY, fontsize=6)
            continue
        parts, bottom = shares_s(points[system]), 0.0
        for name, label, colour in PHASES:
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
    _names(ax, systems, fontsize=6.5)


def moves_per_s(point: PointResult, phase: str = "") -> float | None:
    """Moves evaluated per second of the search, or of one of its phases."""
    moves = point.detail("moves_evaluated")
    time = point.estimate(quantity(phase) if phase else TIME)
    return float(moves) / time.value if moves is not None and time and time.value > 0 else None


def parts(
    _paper: Paper, figure: PaperFigure, runs: Sequence[Observed], _source: Source
) -> list[Drawing]:
    """Bars Math, Memory and Total of every kernel with variants; a figure per run.

    Raises ``AnalysisError`` where no run timed the variants of a kernel.
    """
    drawn, reasons = [], dict[str, None]()
    for run in runs:
        item = ReportItem("figure", "bottleneck", title=f"Figure {figure.number}: {figure.title}")
        try:
            (draw,) = bottleneck_figure(run.data, item)
        except AnalysisError as error:
            reasons[str(error)] = None
            continue
        many = [run.device_id] if len(runs) > 1 else []
        drawn.append(replace(draw(), name=slug("paper", figure.id, *many)))
    if not drawn:
        raise AnalysisError("; ".join(reasons))
    return drawn


def requests(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Transactions per request as published; sectors, hits and efficiency of every run.

    Raises ``NotMeasured`` where no run counted both versions.
    """
    systems = [k.system for k in figure.known]
    found = [(run, n, _reader(run, n)) for run in runs if (n := _size(run, systems, figure.n))]
    if not found:
        _sectors(_reader(runs[0], figure.n[0]), systems[0])
        raise NotMeasured("no run counted the loads of both versions", runs[0].data.command)
    drawing = new_figure(2.2 + 2.2 * len(found))
    axes = drawing.subplots(len(found), 4, squeeze=False)
    for row, (run, n, read) in enumerate(found):
        _published(axes[row][0], paper, figure)
        _bars(axes[row][1], [_sectors(read, s) for s in systems], systems)
        _ideal(axes[row][1], IDEAL_SECTORS)
        where = textwrap.fill(f"{run.data.device_short}, N = {n}", _TITLE)
        axes[row][1].set_title(f"sectors (32 B) per request\n{where}", fontsize=7)
        for ax, name, words in (
            (axes[row][2], "global_load_hit_percent", "% of sectors found in L1"),
            (axes[row][3], "global_load_efficiency_percent", "% used of loaded bytes"),
        ):
            _percent(ax, read, name, systems)
            ax.set_title(words, fontsize=7)
    subtitle = "128-byte lines then, 32-byte sectors now: compare the two versions only"
    alt = "Bars of transactions per request of both versions, published and counted."
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def _reader(run: Observed, n: int) -> Read:
    def read(system: str, name: str) -> float:
        return first_counted(run, system, n, of_kernel(name, EVALUATION))

    return read


def _size(run: Observed, systems: Sequence[str], wanted: Sequence[int]) -> int:
    """The paper's size, else the largest at which the loads were counted; 0 if there is none."""
    for n in [*wanted, *reversed(run.sizes)]:
        try:
            for system in systems:
                _sectors(_reader(run, n), system)
        except NotMeasured:
            continue
        return n
    return 0


def _sectors(read: Read, system: str) -> float:
    """Per load; of a simulated run, which does not separate them, per load and store."""
    try:
        return read(system, "global_load_sectors_per_request")
    except NotMeasured:
        return read(system, "global_sectors") / read(system, "global_requests")


def _published(ax: Axes, paper: Paper, figure: PaperFigure) -> None:
    known = [(k.system, k.value) for k in figure.known if k.value is not None]
    for x, (_, value) in enumerate(known):
        ax.bar(x, value, width=0.6, facecolor="white", edgecolor=GREY, hatch=HATCH)
        ax.text(x, value, f"{value:g}", ha="center", va="bottom", fontsize=7)
    _names(ax, [system for system, _ in known])
    ax.set_ylim(0, 1.2 * max(value for _, value in known))
    _ideal(ax, 1)
    device = paper.device(figure.hardware[0]).name
    ax.set_title(f"transactions (128 B) per request\n{device} (published)", fontsize=7)


def _ideal(ax: Axes, value: float) -> None:
    ax.set_ylim(0, max(ax.get_ylim()[1], 1.3 * value))
    ax.axhline(value, color="#333333", linestyle=":")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    ax.text(0.5, value, "ideal", ha="center", va="center", fontsize=6.5, bbox=box)


def _bars(ax: Axes, values: Sequence[float], systems: Sequence[str]) -> None:
    for x, value in enumerate(values):
        ax.bar(x, value, width=0.6, color=COLOURS[x])
        ax.text(x, value, f"{value:.4g}", ha="center", va="bottom", fontsize=7)
    _names(ax, systems)
    ax.set_ylim(0, 1.2 * max(values))


def _percent(ax: Axes, read: Read, name: str, systems: Sequence[str]) -> None:
    try:
        _bars(ax, [read(system, name) for system in systems], systems)
    except NotMeasured:
        ax.text(0.5, 0.5, "counted by\nNsight Compute\nonly", ha="center", va="center",
                color=GREY, transform=ax.transAxes, fontsize=7)  # fmt: skip
        ax.set_xticks([])
    ax.set_ylim(0, 110)


def _names(ax: Axes, systems: Sequence[str], **look: Any) -> None:
    ax.set_xticks(range(len(systems)), [version(s) for s in systems], **look)
    ax.set_xlim(-0.6, len(systems) - 0.4)
