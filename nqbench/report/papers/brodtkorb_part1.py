"""Brodtkorb et al.: phases of a search, rates of moves, coalescing, the mapping of moves."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.claims.functions import first_counted
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import NotMeasured, no_time
from nqbench.analysis.limits.ceilings import fp32_per_s, roots_per_s
from nqbench.analysis.wording import time as time_text
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper, PaperFigure
from nqbench.report.figures.axes import value_axis
from nqbench.report.figures.bottleneck import bottleneck
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
COUNT: Final = Quantity("count", "count", (), "counter")
LOGARITHMIC: Final = "instructions_issued"
"""Of which the choice has a thousandth of the evaluation's."""
AVERAGES: Final = (
    ("duration_ns", "duration (µs)", 1e-3),
    ("achieved_occupancy", "achieved occupancy (%)", 100.0),
    (LOGARITHMIC, "warp instructions issued", 1.0),
    ("lane_efficiency", "active lanes per instruction (%)", 100.0),
    ("global_load_sectors_per_request", "sectors (32 B) per load", 1.0),
    ("global_load_hit_percent", "loads found in L1 (%)", 1.0),
)
"""Counters of figure 9: name, name with unit, factor to that unit."""
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


def versions(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """A panel per GPU and size: whole searches, the evaluation alone, the limit.

    Raises ``NotMeasured`` where no run has a time.
    """
    systems = shown_systems(paper, runs)
    shown = timed_panels(figure, runs, systems)
    drawing, axes = panels(len(shown), 1.6, 2.6, most=len(figure.n), sharey=True)
    for ax, (run, n, points) in zip(axes, shown, strict=True):
        _rate_panel(ax, run.data, points, systems)
        ax.set_title(f"{run.name}\nN = {n}", fontsize=8)
    legend(drawing, axes[0])
    subtitle = (
        "not in the paper. Limit: single-precision operations (none fused) and square roots that"
        " the algorithm needs per move, at the maximum clock"
    )
    alt = f"Moves per second of {len(systems)} systems at {len(shown)} sizes."
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle, ours=True)


def moves_per_s(point: PointResult, phase: str = "") -> float | None:
    """Moves evaluated per second of the search, or of one of its phases."""
    moves = point.detail("moves_evaluated")
    time = point.estimate(quantity(phase) if phase else TIME)
    return float(moves) / time.value if moves is not None and time and time.value > 0 else None


def limit_moves_per_s(data: Dataset, point: PointResult) -> float | None:
    """The moves per second that the device's operations and square roots allow."""
    bounds = []
    for names, peak in (
        (("fp32_instructions_per_move", "operations_per_move"), fp32_per_s(data)),
        (("roots_per_move",), roots_per_s(data)),
    ):
        needed = next((n for name in names if (n := point.detail(name)) is not None), None)
        if needed is not None and peak:
            bounds.append(peak / float(needed))
    return min(bounds, default=None)


def _rate_panel(
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
            ax.plot([whole], [y], "s", color=COLOURS[0], markersize=5,
                    label=once("whole search"))  # fmt: skip
        if alone:
            ax.plot([alone], [y], "D", color=COLOURS[1], markersize=4,
                    label=once("evaluation kernel alone"))  # fmt: skip
        if limit:
            ax.plot([limit], [y], "|", color="#000000", markersize=10, label=once("limit"))
    ax.set_xlim(left=min(rates) / 3)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(range(len(systems)), [version(s) for s in reversed(systems)], fontsize=7)
    ax.set_xlabel("moves per second")


def _plain(value: float) -> str:
    """10 M, 1 G, 100 G."""
    for power, unit in ((4, " T"), (3, " G"), (2, " M"), (1, " k")):
        if value >= 1000**power:
            return f"{value / 1000**power:g}{unit}"
    return f"{value:g}"


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
            (draw,) = bottleneck(run.data, item)
        except AnalysisError as error:
            reasons[str(error)] = None
            continue
        many = [run.device_id] if len(runs) > 1 else []
        drawn.append(replace(draw(), name=slug("paper", figure.id, *many)))
    if not drawn:
        raise AnalysisError("; ".join(reasons))
    return drawn


def timeline(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Figure 8: an average iteration of every version as bars along the time, a panel per GPU and
    size.

    Raises ``NotMeasured`` where no run has a time.
    """
    systems = shown_systems(paper, runs)
    shown = timed_panels(figure, runs, systems)
    drawing, axes = panels(len(shown), 1.2, 2.7, most=len(figure.n))
    for ax, (run, n, points) in zip(axes, shown, strict=True):
        ends: list[float] = []
        for y, system in enumerate(systems):
            if system not in points:
                ax.text(0, y, " not timed", va="center", color=GREY, fontsize=6.5)
                continue
            begin = 0.0
            evaluations = float(points[system].detail("evaluations"))
            for name, label, colour in PHASES:
                took = shares_s(points[system])[name] / evaluations
                ax.barh(y, took, left=begin, height=0.6, color=colour,
                        label=None if ends else label)  # fmt: skip
                begin += took
            ends.append(begin)
            took_s = time_text(points[system].value(TIME) / evaluations, 3)
            ax.text(begin, y, f" {took_s}", va="center", fontsize=6.5)
        value_axis(ax, "x", [1.15 * end for end in ends], TIME, log=False)
        ax.set_yticks(range(len(systems)), [version(s) for s in systems], fontsize=7)
        ax.set_ylim(len(systems) - 0.5, -0.5)
        ax.set_xlabel("time within an iteration")
        ax.set_title(f"{run.name}, N = {n} (measured)", fontsize=8)
    legend(drawing, axes[0])
    subtitle = (
        "mean of all iterations, kernels in the order of their launches; waiting, copies and the"
        " CPU lie between them and are drawn together at the end. Numbers: the whole iteration of a"
        " search without events, which may take less. Of the paper's timeline nothing is printed"
    )
    alt = f"Bars of the parts of an iteration of {len(systems)} searches along the time."
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def averages(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Figure 9: what a profiler counts of both kernels, a panel per counter; a figure per run.

    Raises ``NotMeasured`` where no run was profiled at a size of the figure.
    """
    systems = shown_systems(paper, runs)
    drawn = []
    for run in runs:
        for n in reversed(figure.n):
            found = {name: _counted(run, systems, n, name, scale) for name, _, scale in AVERAGES}
            if any(any(bars.values()) for bars in found.values()):
                drawn.append(_averages(figure, run, n, systems, found, source, len(runs) > 1))
                break
    if not drawn:
        first_counted(runs[0], systems[0], figure.n[0], of_kernel(AVERAGES[0][0], EVALUATION))
        raise NotMeasured("no run was profiled", runs[0].data.command)
    return drawn


def _counted(
    run: Observed, systems: Sequence[str], n: int, name: str, scale: float
) -> dict[str, dict[int, float]]:
    """A counter of each kernel by the place of the system."""
    found: dict[str, dict[int, float]] = {kernel: {} for kernel, _, _ in PHASES[:-1]}
    for kernel, bars in found.items():
        for x, system in enumerate(systems):
            with suppress(NotMeasured):
                bars[x] = scale * first_counted(run, system, n, of_kernel(name, kernel))
    return found


def _averages(
    figure: PaperFigure,
    run: Observed,
    n: int,
    systems: Sequence[str],
    found: Mapping[str, Mapping[str, Mapping[int, float]]],
    source: Source,
    many: bool,
) -> Drawing:
    drawing, axes = panels(len(AVERAGES), 1.2, 2.1, most=2)
    for ax, (name, words, _) in zip(axes, AVERAGES, strict=True):
        for i, (kernel, label, colour) in enumerate(PHASES[:-1]):
            bars = found[name][kernel]
            places = [x + 0.38 * (i - 0.5) for x in bars]
            ax.bar(places, list(bars.values()), width=0.36, color=colour, label=label)
        ax.set_ylabel(words)
        if name == LOGARITHMIC:
            counted = [value for bars in found[name].values() for value in bars.values()]
            value_axis(ax, "y", counted, COUNT, log=True)
        _names(ax, systems, fontsize=6)
    legend(drawing, axes[0])
    name = slug("paper", figure.id, run.device_id if many else "")
    subtitle = (
        f"{run.name}, N = {n}: the first launch of each kernel under Nsight Compute. The paper's"
        " values and caption are not in its text"
    )
    alt = f"Bars of {len(AVERAGES)} counters of both kernels of {len(systems)} searches."
    (made,) = finished(figure, drawing, source, alt=alt, subtitle=subtitle, name=name)
    return made


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


def mapping(
    _paper: Paper, figure: PaperFigure, _runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """The triangle of moves and the rectangle it becomes, for each size of the figure."""
    drawing = new_figure(1.2 + 2.4 * len(figure.n))
    axes = drawing.subplots(len(figure.n), 2, squeeze=False)
    for (left, right), n in zip(axes, figure.n, strict=True):
        cells = numbered(n)
        _triangle(left, cells, n)
        _rectangle(right, cells)
        left.set_title(f"n = {n}: number of the move that swaps x and y", fontsize=8)
        right.set_title("the same moves, row by row: x, y", fontsize=8)
    alt = "Triangles of pairs x < y, and the rectangles that their rows are folded into."
    subtitle = "light blue: rows of the triangle as they are; orange: rows from its end, reversed"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def numbered(n: int) -> list[tuple[int, int, int, int, bool]]:
    """For each move: row and column in the rectangle, x, y, and whether it was folded there."""
    from nqbench.workloads.local_search.mapping import RECTANGLE, moves_of, positions

    m = n - 1
    width = m if m % 2 else m - 1
    found = []
    for k in range(moves_of(n)):
        x, y = positions(k, n, RECTANGLE)
        row, column = divmod(k, width)
        found.append((row, column, int(x), int(y), x != row + 1))
    return found


def _triangle(ax: Axes, cells: Sequence[tuple[int, int, int, int, bool]], n: int) -> None:
    for number, (_, _, x, y, folded) in enumerate(cells):
        _cell(ax, y, x, str(number), folded=folded)
    ax.set_xlim(1.5, n - 0.5)
    ax.set_ylim(n - 1.5, 0.5)
    ax.set_xlabel("y")
    ax.set_ylabel("x")
    ax.set_aspect("equal")
    ax.grid(visible=False)
    ax.set_xticks(range(2, n))
    ax.set_yticks(range(1, n - 1))


def _rectangle(ax: Axes, cells: Sequence[tuple[int, int, int, int, bool]]) -> None:
    for row, column, x, y, folded in cells:
        _cell(ax, column, row, f"{x},{y}", folded=folded)
    ax.set_xlim(-0.5, max(c[1] for c in cells) + 0.5)
    ax.set_ylim(max(c[0] for c in cells) + 0.5, -0.5)
    ax.set_yticks(sorted({c[0] for c in cells}))
    ax.set_xlabel("column")
    ax.set_ylabel("row")
    ax.set_aspect("equal")
    ax.grid(visible=False)


def _cell(ax: Axes, x: float, y: float, text: str, *, folded: bool) -> None:
    from matplotlib.patches import Rectangle

    colour = _FOLDED if folded else _OWN
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white"))
    ax.text(x, y, text, ha="center", va="center", fontsize=7)
