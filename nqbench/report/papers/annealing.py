"""Simulated annealing: how long runs take, and how much of that is the evaluation of boards."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure
from nqbench.point import Level
from nqbench.report.figures.log_axis import sizes_axis
from nqbench.report.figures.scale import value_axis
from nqbench.report.figures.style import (
    GREY,
    Drawing,
    finish,
    grid_shape,
    new_figure,
    series_style,
    whiskers,
)
from nqbench.report.papers.data_twins import refuse, timed_on
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEARCHES: Final = (
    ("fitness_schemes.sa_cpu", "uniform"),
    ("fitness_schemes.sa_gpu", "uniform"),
    ("fitness.sa_delta", "uniform"),
    ("fitness.sa_delta", "attacked"),
    ("fitness.sa_chains", "uniform"),
    ("fitness.sa_chains", "attacked"),
)
"""Systems that search, each with the way it proposes moves."""
SPREAD: Final = 0.012
"""Runs with different seeds stand side by side, by this part of N: their times are much alike."""

FULL: Final = 100.0
"""Percent. The evaluations are timed in a walk of their own, so that noise may bring more."""
HEADROOM: Final = 1.04


@dataclass(frozen=True, slots=True)
class Search:
    """One run of a search. ``whole_s`` is predicted where ``cut`` says it was cut short.

    ``found`` and ``evaluations`` are those of the whole walk, which is known also where it was cut.
    """

    n: int
    whole_s: float
    cut: bool
    found: bool
    evaluations: float
    seed: int


def annealing(
    _paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time of a whole search against N: every seed a mark, medians joined by lines."""
    ours = [(run, searches_of(run)) for run in runs]
    ours = [(run, found) for run, found in ours if found]
    if not ours:
        refuse(runs[0], SEARCHES[0][0], "no time of a search")
    rows, columns = grid_shape(len(ours), most=2)
    drawing = new_figure(1.6 + 4.0 * rows)
    axes = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[len(ours) :]:
        ax.set_visible(False)
    for ax, (run, found) in zip(axes, ours, strict=False):
        shown = _draw(ax, found)
        known = [k for k in figure.known if k.n and k.value and "seconds" in k.relation]
        for one in known:
            label = f"published: {one.system}, {one.value:g} s at N = {one.n}"
            look: dict[str, Any] = {"marker": "*", "markersize": 11, "linestyle": ""}
            ax.plot(
                [float(one.n or 0)],
                [one.value or 0.0],
                color=GREY,
                markerfacecolor="white",
                label=label,
                **look,
            )
        value_axis(ax, "y", [*shown, *(k.value for k in known if k.value)], TIME, log=True)
        sizes_axis(ax)
        ax.set_ylabel("time of a search")
        searched = (p for p in run.data.points if p.system in dict(SEARCHES) and p.ok)
        ax.set_title(f"{timed_on(run, searched)} (measured)", fontsize=8)
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.14), fontsize=6.5, ncols=2)
    title = f"Figure {figure.number}: {figure.title}"
    alt = f"Time of {len(SEARCHES)} kinds of search against N, one mark per seed."
    subtitle = (
        "a mark per seed, side by side; hollow: predicted for the whole walk from a search cut"
        " short; cross: none found"
    )
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def _draw(ax: Axes, found: Mapping[tuple[str, str], Sequence[Search]]) -> list[float]:
    """Marks and median lines of one panel; the times shown."""
    shown: list[float] = []
    for i, (key, searches) in enumerate(found.items()):
        style = series_style(i)
        system, proposal = key
        name = f"{system.partition('.')[2]}{', attacked queens' if proposal == 'attacked' else ''}"
        sizes = sorted({s.n for s in searches})
        medians = [statistics.median(s.whole_s for s in searches if s.n == n) for n in sizes]
        ax.plot(sizes, medians, color=style.colour, linestyle=style.line, linewidth=0.9)
        for cut in (False, True):
            own = [s for s in searches if s.cut == cut]
            counts = {n: [s for s in own if s.n == n] for n in sizes}
            xs = [n * (1 + SPREAD * (j - len(c) / 2)) for n, c in counts.items()
                  for j in range(len(c))]  # fmt: skip
            ys = [s.whole_s for c in counts.values() for s in c]
            fill = "white" if cut else style.colour
            label = (
                f"{name} (predicted)"
                if cut
                else f"{name} ({len(own)} point{'' if len(own) == 1 else 's'})"
            )
            if own:
                look: dict[str, Any] = {"marker": style.marker, "markersize": 4, "linestyle": ""}
                ax.plot(xs, ys, color=style.colour, markerfacecolor=fill, label=label, **look)
        lost = [s for s in searches if not s.found and not s.cut]
        ax.plot([s.n for s in lost], [s.whole_s for s in lost], "x", color="#222222", markersize=7)
        shown += [s.whole_s for s in searches]
    return shown


def searches_of(run: Observed) -> dict[tuple[str, str], list[Search]]:
    """The searches of a run by system and proposal, in the order of ``SEARCHES``."""
    found: dict[tuple[str, str], list[Search]] = {}
    for point in run.data.points:
        proposal = str(point.level("proposal"))
        key = (point.system, "uniform" if proposal == "-" else proposal)
        value = point.estimate(TIME)
        if key not in SEARCHES or not point.ok or value is None:
            continue
        search = _search(point, value.value)
        if search not in found.setdefault(key, []):
            found[key].append(search)
    return {key: found[key] for key in SEARCHES if key in found}


def _search(point: PointResult, time_s: float) -> Search:
    """The whole search: the one that ran, or the rest of its walk with it."""
    from nqbench.workloads.fitness.annealing import expected, full_length

    limit, done = point.level("max_evaluations"), float(point.detail("evaluations") or 0)
    found, seed = bool(float(point.detail("found") or 0)), int(point.level("seed"))
    if limit in ("-", 0) or not done or found:
        return Search(point.n, time_s, False, found, done, seed)
    given: dict[str, Level] = {k: v for k, v in point.levels.items() if not isinstance(v, float)}
    levels: dict[str, Level] = given | {"n": point.n}
    whole = full_length(levels)
    if whole <= done:
        return Search(point.n, time_s, False, found, done, seed)
    reached = expected({**levels, "max_evaluations": 0}) == 0
    return Search(point.n, time_s * whole / done, True, reached, whole, seed)


def evaluation_share(
    _paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Share of the evaluation in the time of a search, against N."""
    drawing = new_figure(3.8)
    ax = drawing.subplots()
    top = 0.0
    systems = ("fitness_schemes.sa_cpu", "fitness_schemes.sa_gpu")
    for i, (run, system) in enumerate((run, system) for run in runs for system in systems):
        shares = {
            p.n: share for p in run.data.points if p.system == system and (share := _share(p))
        }
        values = [shares[n] for n in sorted(shares)]
        if values:
            heights = [v.value for v in values]
            label = f"{system.partition('.')[2]}, {run.name if i % 2 else run.data.host} (measured)"
            look: dict[str, Any] = dict(series_style(i).keywords) | {"capsize": 2}
            ax.errorbar(sorted(shares), heights, yerr=whiskers(values), label=label, **look)
            top = max(top, *(v.high or v.value for v in values))
    if not top:
        refuse(runs[0], systems[0], "no search that tells its evaluation apart")
    for known in (k for k in figure.known if k.n and k.value):
        label = f"published: above {known.value:g}% beyond N = {known.n}"
        look = {"marker": "^", "markersize": 8, "linestyle": "", "markerfacecolor": "white"}
        ax.plot([float(known.n or 0)], [known.value or 0.0], color=GREY, label=label, **look)
    sizes_axis(ax)
    ax.set_ylim(0, max(FULL, top) * HEADROOM)
    ax.set_ylabel("evaluation, % of the search")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=7)
    title = f"Figure {figure.number}: {figure.title}"
    alt = "Share of the evaluation in the time of a search against N."
    subtitle = "the paper's curve is lost; what it says of it is drawn"
    return [finish(drawing, slug("paper", figure.id), title, source, alt=alt, subtitle=subtitle)]


def _share(point: PointResult) -> Estimate | None:
    """Percent of the evaluation, over the rounds."""
    parts = point.values(quantity("evaluation"))
    totals = point.values(quantity("total"))
    shares = [100 * parts[r] / totals[r] for r in sorted(set(parts) & set(totals)) if parts[r] > 0]
    return combine(shares) if shares else None
