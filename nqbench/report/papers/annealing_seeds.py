"""How long searches take over many seeds: a table of quartiles and a figure of the distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import no_time
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import Known, PaperFigure, PaperTable
from nqbench.report.figures.scale import value_axis
from nqbench.report.figures.style import GREY, Drawing, finish, new_figure, series_style
from nqbench.report.papers.annealing import SEARCHES, Search, searches_of
from nqbench.report.papers.data_twins import refuse
from nqbench.report.table import Cell, Column, Source, Table, slug, source_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST: Final = 2
"""Seeds from which on there is a distribution."""
QUARTILES: Final = (0, 25, 50, 75, 100)
Found = Mapping[tuple[str, str], Sequence[Search]]


def annealing_table(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A row per kind of search and size: least time, quartiles and largest over the seeds.

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
        *(Column(f"{name} time", "time") for name in ("least", "lower quartile", "median")),
        *(Column(f"{name} time", "time") for name in ("upper quartile", "largest")),
        *(
            Column("evaluations, median", "number"),
            Column("times are"),
            Column("paper", "text", "s"),
        ),
    )
    notes = (
        "a seed's time is the geometric mean of its rounds; the spread here is that of the seeds",
        "uniform: the cooling of sa_cpu and sa_gpu, the same walk for the same seed; attacked: a"
        " queen in conflict moves, at one temperature",
        "predicted: cut short; the rest of the walk is known, its evaluations take as long",
        "sa_chains: until the first of its chains finds a board; evaluations of that chain",
        *([table.note] if table.note else []),
    )
    title = f"{paper.title}, table {table.number}: {table.title}"
    name = slug("paper", table.id)
    return Table(name, title, columns, tuple(rows), source_of(run.data), notes)


def distribution(
    _paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Times of all seeds at one size beside the whole walks of the paper's two searches, and how
    they spread about their own median: one figure per run.

    The size is the largest with several seeds. Raises ``AnalysisError`` where there is none.
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
    several = [n for n, count in counts.items() if count >= FEWEST]
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
    subtitle = "left: a mark per seed, hollow: predicted for the whole walk; right: share of the" \
               " seeds that have found a board by then"  # fmt: skip
    return finish(drawing, name, title, source, alt=alt, subtitle=subtitle)


def _strip(ax: Axes, here: Found, known: Sequence[Known]) -> None:
    """All times on one axis, a row per kind of search."""
    labels, shown = [], []
    for row, (key, own) in enumerate(here.items()):
        style = series_style(SEARCHES.index(key))
        labels.append(f"{_name(key)} ({len(own)} seed{'' if len(own) == 1 else 's'})")
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
        star: dict[str, Any] = {"marker": "*", "markersize": 11, "markerfacecolor": "white"}
        star["label"] = f"published: {one.value:g} s"
        ax.plot([one.value or 0.0], [len(labels) - 1], color=GREY, linestyle="", **star)
        shown.append(one.value or 0.0)
    value_axis(ax, "x", shown, TIME, log=True)
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.set_xlabel("time of a search")


def _spread(ax: Axes, here: Found) -> None:
    """Empirical distributions of the times, each over its own median."""
    for key, own in here.items():
        if len(own) < FEWEST:
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
