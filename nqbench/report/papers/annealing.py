"""Simulated annealing: how long searches take over many seeds, and the share of evaluation."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.data.select import no_time
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Known, Paper, PaperFigure, PaperTable
from nqbench.point import Level
from nqbench.report.figures.axes import sizes_axis, value_axis
from nqbench.report.figures.style import GREY, Drawing, finish, new_figure, panels, series_style
from nqbench.report.papers.common import (
    FULL,
    finished,
    host,
    measured,
    refuse,
    reproduced,
    share,
    timed_on,
)
from nqbench.report.table import Cell, Column, Source, Table, slug
from nqbench.system.suggest import many

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
"""Seeds are drawn side by side, offset by this part of N, because their times are similar."""

HEADROOM: Final = 1.04
"""Evaluations are timed in a separate walk, so noise may push their share above 100%."""


MIN_SEEDS: Final = 2
"""The fewest seeds that make a distribution."""
QUARTILES: Final = (0, 25, 50, 75, 100)


@dataclass(frozen=True, slots=True)
class Search:
    """One run of a search. ``whole_s`` is predicted where ``cut`` says it was cut short.

    ``found`` and ``evaluations`` are those of the whole walk, which is known even if it was cut.
    """

    n: int
    whole_s: float
    cut: bool
    found: bool
    evaluations: float
    seed: int


Found = Mapping[tuple[str, str], Sequence[Search]]
"""Searches by system and proposal."""


def annealing(
    _paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time of a whole search against N: every seed a mark, medians joined by lines."""
    ours = [(run, found) for run in runs if (found := searches_of(run))]
    if not ours:
        refuse(runs[0], SEARCHES[0][0], "no time of a search")
    drawing, axes = panels(len(ours), 1.6, 4.0, most=2)
    for ax, (run, found) in zip(axes, ours, strict=True):
        shown = _draw(ax, found)
        known = [k for k in figure.known if k.n and k.value and "seconds" in k.relation]
        for one in known:
            label = f"published: {one.system}, {one.value:g} s at N = {one.n}"
            _published(ax, float(one.n or 0), one.value or 0.0, label)
        value_axis(ax, "y", [*shown, *(k.value for k in known if k.value)], TIME, log=True)
        sizes_axis(ax)
        ax.set_ylabel("time of a search")
        searched = (p for p in run.data.points if p.system in dict(SEARCHES) and p.ok)
        ax.set_title(f"{timed_on(run, searched)} (measured)", fontsize=8)
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.14), fontsize=6.5, ncols=2)
    alt = f"Time of {len(SEARCHES)} kinds of search against N, one mark per seed."
    subtitle = (
        "one mark per seed, side by side; hollow: predicted for the whole walk from a truncated"
        " search; cross: no board found"
    )
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def _published(
    ax: Axes, x: float, y: float, label: str, marker: str = "*", size: float = 11
) -> None:
    """A mark of the paper, hollow and grey."""
    look: dict[str, Any] = {"marker": marker, "markersize": size, "markerfacecolor": "white"}
    ax.plot([x], [y], color=GREY, linestyle="", label=label, **look)


def _draw(ax: Axes, found: Found) -> list[float]:
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
            label = f"{name} (predicted)" if cut else f"{name} ({many(len(own), 'point')})"
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
    from nqbench.workloads.fitness.annealing.points import expected, full_length

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
        points = (p for p in run.data.points if p.system == system)
        shares = {p.n: part for p in points if (part := share(p, quantity("evaluation"), FULL))}
        label = f"{system.partition('.')[2]}, {run.name if i % 2 else host(run, runs)} (measured)"
        measured(ax, dict(sorted(shares.items())), label, i)
        top = max([top, *(v.high or v.value for v in shares.values())])
    if not top:
        refuse(runs[0], systems[0], "no search that times its evaluation separately")
    for known in (k for k in figure.known if k.n and k.value):
        label = f"published: above {known.value:g}% beyond N = {known.n}"
        _published(ax, float(known.n or 0), known.value or 0.0, label, "^", 8)
    sizes_axis(ax)
    ax.set_ylim(0, max(FULL, top) * HEADROOM)
    ax.set_ylabel("evaluation, % of the search")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=7)
    alt = "Share of the evaluation in the time of a search against N."
    subtitle = "the paper's curve is not available; what its text says is drawn"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def quartiles(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A row per kind of search and size: minimum, quartiles and maximum over the seeds.

    Raises ``NotMeasured`` where the run has no time of a search.
    """
    found = searches_of(run)
    if not found:
        refuse(run, SEARCHES[0][0], "no time of a search")
    published = {(paper.system(str(row[0])), str(row[1])): str(row[2]) for row in table.rows}
    rows: list[tuple[Cell, ...]] = []
    for (system, proposal), searches in found.items():
        for n in sorted({s.n for s in searches}):
            own = [s for s in searches if s.n == n]
            times = [float(t) for t in np.percentile([s.whole_s for s in own], QUARTILES)]
            rows.append(
                (
                    *(system, proposal, n, len({s.seed for s in own})),
                    f"{sum(s.found for s in own)} of {len(own)}",
                    *times,
                    round(float(np.median([s.evaluations for s in own]))),
                    "predicted" if any(s.cut for s in own) else "measured",
                    published.get((system, str(n)), ""),
                )
            )
    columns = (
        *(Column("system"), Column("proposal"), Column("N", "number"), Column("seeds", "number")),
        Column("found a board"),
        *(Column(f"{name} time", "time") for name in ("minimum", "lower quartile", "median")),
        *(Column(f"{name} time", "time") for name in ("upper quartile", "maximum")),
        *(
            Column("evaluations, median", "number"),
            Column("times are"),
            Column("paper", "text", "s"),
        ),
    )
    notes = (
        "a seed's time is the geometric mean of its rounds; the spread here is that of the seeds",
        "uniform: the cooling schedule of sa_cpu and sa_gpu, the same walk for the same seed;"
        " attacked: only queens in conflict move, at a constant temperature",
        "predicted: truncated; the rest of the walk is known, and its evaluations are taken to cost"
        " the same",
        "sa_chains: until the first of its chains finds a board; evaluations of that chain",
        table.note,
    )
    return reproduced(paper, table, run, columns, rows, notes)


def distribution(
    _paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Times of all seeds at one size with the paper's two searches, and their spread about the
    median: one figure per run.

    The size is the largest with several seeds. Raises ``AnalysisError`` without one.
    """
    drawings = []
    for run in runs:
        found = searches_of(run)
        n = _size(found)
        if n is not None:
            name = slug("paper", figure.id, run.device_id if len(runs) > 1 else "")
            drawings.append(_figure(figure, found, n, name, source))
    if not drawings:
        if runs[0].data.simulated:
            raise AnalysisError(no_time(runs[0].data))
        raise AnalysisError("the run has no size with several seeds of one search")
    return drawings


def _size(found: Found) -> int | None:
    counts: dict[int, int] = {}
    for searches in found.values():
        for n in {s.n for s in searches}:
            counts[n] = max(counts.get(n, 0), len({s.seed for s in searches if s.n == n}))
    several = [n for n, count in counts.items() if count >= MIN_SEEDS]
    return max(several) if several else None


def _figure(figure: PaperFigure, found: Found, n: int, name: str, source: Source) -> Drawing:
    drawing = new_figure(4.2)
    left, right = drawing.subplots(1, 2, width_ratios=(1.35, 1))
    here = {key: own for key, every in found.items() if (own := [s for s in every if s.n == n])}
    known = [k for k in figure.known if k.n == n and k.value]
    _strip(left, here, known)
    _spread(right, here)
    most = max(len(own) for own in here.values())
    title = f"{figure.title[0].upper()}{figure.title[1:]}: N = {n}"
    alt = f"Times of searches over up to {most} seeds, and their distribution about the median."
    subtitle = "left: one mark per seed, hollow: predicted for the whole walk; right: share of"
    subtitle += " the seeds that have found a board by then"
    return finish(drawing, name, title, source, alt=alt, subtitle=subtitle)


def _strip(ax: Axes, here: Found, known: Sequence[Known]) -> None:
    """All times on one axis, a row per kind of search."""
    labels, shown = [], []
    for row, (key, own) in enumerate(here.items()):
        style = series_style(SEARCHES.index(key))
        labels.append(f"{_name(key)} ({many(len(own), 'seed')})")
        lift = np.linspace(-0.28, 0.28, len(own)) if len(own) > 1 else np.zeros(1)
        for search, dy in zip(own, lift, strict=True):
            look: dict[str, Any] = {"marker": style.marker, "markersize": 4, "linestyle": ""}
            look["markerfacecolor"] = "white" if search.cut else style.colour
            ax.plot([search.whole_s], [row + float(dy)], color=style.colour, **look)
            if not search.found and not search.cut:
                ax.plot([search.whole_s], [row + float(dy)], "x", color="#222222", markersize=7)
            shown.append(search.whole_s)
    for one in known:
        labels.append(f"{one.system} (published)")
        _published(ax, one.value or 0.0, len(labels) - 1, f"published: {one.value:g} s")
        shown.append(one.value or 0.0)
    value_axis(ax, "x", shown, TIME, log=True)
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.set_xlabel("time of a search")


def _spread(ax: Axes, here: Found) -> None:
    """Empirical distributions of the times, each relative to its median."""
    for key, own in here.items():
        if len(own) < MIN_SEEDS:
            continue
        style = series_style(SEARCHES.index(key))
        times = sorted(s.whole_s for s in own if s.found)
        middle = float(np.median([s.whole_s for s in own]))
        xs = [t / middle for t in times]
        shares = [100 * (i + 1) / len(own) for i in range(len(times))]
        ax.step([xs[0], *xs] if xs else [], [0, *shares] if xs else [], where="post",
                color=style.colour, linestyle=style.line, label=_name(key))  # fmt: skip
    ax.set_ylim(0, 104)
    ax.set_ylabel("found a board, % of the seeds")
    ax.set_xlabel("time of a search / its median")
    ax.legend(loc="lower right", fontsize=6.5)


def _name(key: tuple[str, str]) -> str:
    system, proposal = key
    return f"{system.partition('.')[2]}{', attacked' if proposal == 'attacked' else ''}"
