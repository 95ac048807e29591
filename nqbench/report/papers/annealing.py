"""Simulated annealing: how long whole searches take over many seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.papers.schema import Paper, PaperFigure, PaperTable
from nqbench.point import Level
from nqbench.report.figures.axes import sizes_axis, value_axis
from nqbench.report.figures.style import Drawing, panels, series_style
from nqbench.report.papers import common
from nqbench.report.table import Cell, Column, Source, Table
from nqbench.system.suggest import many

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
"""Seeds are drawn side by side, offset by this part of N, because their times are similar."""
QUARTILES: Final = {
    "minimum": 0, "lower quartile": 25, "median": 50, "upper quartile": 75, "maximum": 100
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeededSearch:
    """One run of a search. ``whole_s`` is predicted where ``cut`` says it was cut short.

    ``found`` and ``evaluations`` are those of the whole walk, which is known even if it was cut.
    """

    n: int
    whole_s: float
    cut: bool
    found: bool
    evaluations: float
    seed: int


def searches_of(run: Observed) -> dict[tuple[str, str], list[SeededSearch]]:
    """The searches of a run by system and proposal, in the order of ``SEARCHES``."""
    found: dict[tuple[str, str], list[SeededSearch]] = {key: [] for key in SEARCHES}
    for point in run.data.points:
        proposal = str(point.level("proposal"))
        searches = found.get((point.system, "uniform" if proposal == "-" else proposal))
        value = point.estimate(TIME)
        if searches is not None and point.ok and value is not None:
            search = _search(point, value.value)
            searches += [search] * (search not in searches)
    return {key: searches for key, searches in found.items() if searches}


def _search(point: PointResult, time_s: float) -> SeededSearch:
    """The whole search: the one that ran, or the rest of its walk with it."""
    from nqbench.workloads.fitness.annealing.points import expected, full_length

    limit, done = point.level("max_evaluations"), float(point.detail("evaluations") or 0)
    found, seed = bool(float(point.detail("found") or 0)), int(point.level("seed"))
    if limit not in ("-", 0) and done and not found:
        levels: dict[str, Level] = {"n": point.n}
        levels |= {k: v for k, v in point.levels.items() if k != "n" and not isinstance(v, float)}
        whole = full_length(levels)
        if whole > done:
            reached = expected({**levels, "max_evaluations": 0}) == 0
            return SeededSearch(point.n, time_s * whole / done, True, reached, whole, seed)
    return SeededSearch(point.n, time_s, False, found, done, seed)


def annealing(
    _paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time of a whole search against N: every seed a mark, medians joined by lines."""
    ours = [(run, found) for run in runs if (found := searches_of(run))]
    if not ours:
        common.refuse(runs[0], SEARCHES[0][0], "no time of a search")
    drawing, axes = panels(len(ours), 1.6, 4.0, most=2)
    for ax, (run, found) in zip(axes, ours, strict=True):
        shown = []
        for i, ((system, proposal), searches) in enumerate(found.items()):
            style = series_style(i)
            name = common.short(system) + (", attacked queens" if proposal == "attacked" else "")
            by_size = _by_size(searches)
            medians = [statistics.median(s.whole_s for s in own) for own in by_size.values()]
            ax.plot(list(by_size), medians, color=style.colour, linestyle=style.line, linewidth=0.9)
            for cut in (False, True):
                places = [
                    (n * (1 + SPREAD * (k - len(own) / 2)), search.whole_s)
                    for n, own in _by_size([s for s in searches if s.cut == cut]).items()
                    for k, search in enumerate(own)
                ]
                label = f"{name} ({'predicted' if cut else many(len(places), 'point')})"
                look: dict[str, Any] = {"marker": style.marker, "markersize": 4, "linestyle": ""}
                look |= {"color": style.colour, "markerfacecolor": "white" if cut else style.colour}
                if places:
                    ax.plot(*zip(*places, strict=True), label=label, **look)
            lost = [(s.n, s.whole_s) for s in searches if not s.found and not s.cut]
            ax.plot([n for n, _ in lost], [s for _, s in lost], "x", color="#222222", markersize=7)
            shown += [s.whole_s for s in searches]
        shown += [value for known in figure.known if (value := common.mark(ax, known)) is not None]
        value_axis(ax, "y", shown, TIME, log=True)
        sizes_axis(ax)
        ax.set_ylabel("time of a search")
        searched = [p for p in run.data.points if p.system in dict(SEARCHES) and p.ok]
        ax.set_title(f"{common.timed_on(run, searched)} (measured)", fontsize=8)
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.14), fontsize=6.5, ncols=2)
    alt = f"Time of {len(SEARCHES)} kinds of search against N, one mark per seed."
    return common.finished(figure, drawing, source, alt=alt)


def _by_size(searches: Sequence[SeededSearch]) -> Mapping[int, list[SeededSearch]]:
    return {n: [s for s in searches if s.n == n] for n in sorted({s.n for s in searches})}


def quartiles(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A row per kind of search and size: minimum, quartiles and maximum over the seeds.

    Raises ``NotMeasured`` where the run has no time of a search.
    """
    found = searches_of(run)
    if not found:
        common.refuse(run, SEARCHES[0][0], "no time of a search")
    published = {(paper.system(str(row[0])), str(row[1])): str(row[2]) for row in table.rows}
    rows: list[tuple[Cell, ...]] = []
    for (system, proposal), searches in found.items():
        for n, own in _by_size(searches).items():
            times = np.percentile([s.whole_s for s in own], list(QUARTILES.values()))
            rows.append(
                (
                    *(system, proposal, n, len({s.seed for s in own})),
                    f"{sum(s.found for s in own)} of {len(own)}",
                    *map(float, times),
                    round(float(np.median([s.evaluations for s in own]))),
                    "predicted" if any(s.cut for s in own) else "measured",
                    published.get((system, str(n)), ""),
                )
            )
    columns = (
        *(Column("system"), Column("proposal"), Column("N", "number"), Column("seeds", "number")),
        Column("found a board"),
        *(Column(f"{name} time", "time") for name in QUARTILES),
        *(Column("evaluations, median", "number"), Column("times are")),
        Column("paper", "text", "s"),
    )
    return common.reproduced(paper, table, run, columns, rows, (*table.notes, table.note))
