"""Twins of data files: published times of many sizes beside ours, as speed-ups and best levels.

Only sizes that the run has are listed; the whole published series is the CSV file itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

from nqbench.analysis.data.dataset import Dataset, PointResult, point_ratio
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import (
    NotMeasured,
    best_point,
    launch_text,
    main_point,
    no_time,
    timed_points,
    timed_s,
)
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import DataFile, PaperTable
from nqbench.report.table import Cell, Column, Table, slug, source_of
from nqbench.report.tables.common import interval_note

BASELINE: Final = "cpu_serial"
"""What every speed-up of the fitness paper refers to."""
COARSE: Final = "gpu_coarse"
TUNED: Final = ("cpu_threads",)
"""Systems of which the paper shows the best configuration."""
_MILLI: Final = 1e3


def chosen(data: Dataset, system: str, n: int) -> PointResult:
    """The configuration of a system that stands for it. Raises ``NotMeasured``."""
    short = system.partition(".")[2]
    point = best_point(data, system, n) if short in TUNED else main_point(data, system, n)
    if point.estimate(TIME) is None:
        raise NotMeasured(no_time(data))
    return point


def refuse(run: Observed, system: str, what: str) -> NoReturn:
    """Say why a run has nothing to show of a system, else that it lacks ``what``.

    Raises ``NotMeasured``: a simulated run has no times, and a point that was skipped its reason.
    """
    sizes = sorted({p.n for p in run.data.points if p.system == system})
    if sizes:
        best_point(run.data, system, sizes[-1])
    raise NotMeasured(f"the run has {what if sizes else f'no {system}'}")


def timed_on(run: Observed, points: Iterable[PointResult]) -> str:
    """Whose times these are, for a title: the processor's name where none is a GPU's."""
    on_host = all(point.host for point in points)
    return run.data.host.removesuffix(" (cpu)") if on_host else run.name


def found_points(data: Dataset, system: str, sizes: Sequence[int] = ()) -> dict[int, PointResult]:
    """The timed points of a system by size; empty where there is none."""
    found = {}
    for n in sizes or sorted({p.n for p in data.points if p.system == system}):
        try:
            found[n] = chosen(data, system, n)
        except NotMeasured:
            continue
    return found


def speedups(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Times and speed-ups of every published system at every size that both have."""
    published, data = paper.series(table.data), run.data
    base = paper.system(BASELINE)
    ours = found_points(data, base)
    rows: list[tuple[Cell, ...]] = []
    for system in dict.fromkeys(row.system for row in published.rows):
        theirs = published.times(system)
        bases = published.times(base)
        for n, point in found_points(data, system).items():
            if n not in theirs:
                continue
            own = point_ratio(ours[n], point, TIME) if n in ours and system != base else None
            paper_ratio = _quotient(bases.get(n), theirs[n]) if system != base else ""
            here = point.estimate(TIME)
            text = f"{theirs[n]:g}"
            rows.append(
                (_short(system), str(n), text, here, paper_ratio, own, launch_text(data, point))
            )
    if not rows:
        refuse(run, base, "no size of the published series")
    columns = (
        *(Column("system"), Column("N"), Column("paper", "text", "s")),
        *(Column("here", "time", spread=True), Column("speed-up, paper", "text")),
        *(Column("speed-up, here", "ratio", spread=True), Column("configuration here")),
    )
    return _table(paper, table, published, run, columns, rows)


def threads(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The best number of threads by size, its speed-up, and what too many threads cost."""
    published, data = paper.series(table.data), run.data
    system, base = paper.system(published.system), paper.system(BASELINE)
    serial = found_points(data, base)
    bases = next(part for part in paper.data if not part.system).times(base)
    rows: list[tuple[Cell, ...]] = []
    for n in sorted({p.n for p in data.points if p.system == system}):
        theirs = thread_times(published, n)
        try:
            ours = by_level(data, system, n, "threads")
        except NotMeasured:
            continue
        if len(ours) < 2 or not theirs:
            continue
        best, most = min(ours, key=lambda t: timed_s(ours[t])), max(ours)
        their_best = min(theirs, key=lambda t: theirs[t])
        rows.append(
            (
                *(str(n), str(their_best), str(best)),
                _quotient(bases.get(n), theirs[their_best]),
                point_ratio(serial[n], ours[best], TIME) if n in serial else None,
                f"{theirs[max(theirs)] / theirs[their_best]:.3g} ({max(theirs)})",
                *(point_ratio(ours[most], ours[best], TIME), str(most)),
            )
        )
    if not rows:
        refuse(run, system, "no published size with several numbers of threads")
    columns = (
        *(Column("N"), Column("best threads, paper"), Column("best threads, here")),
        Column("speed-up, paper", "text"),
        Column("speed-up, here", "ratio", spread=True),
        Column("most threads / best, paper (threads)", "text"),
        *(Column("most threads / best, here", "ratio", spread=True), Column("most threads, here")),
    )
    return _table(paper, table, published, run, columns, rows)


def thresholds(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The dynamic-parallelism scheme over the coarse one, by size and threshold."""
    published, data = paper.series(table.data), run.data
    system = paper.system(published.system)
    coarse = next(part for part in paper.data if not part.system).times(paper.system(COARSE))
    rows: list[tuple[Cell, ...]] = []
    for n in sorted({p.n for p in data.points if p.system == system}):
        try:
            ours = by_level(data, system, n, "threshold")
            base = chosen(data, paper.system(COARSE), n)
        except NotMeasured:
            continue
        if len(ours) < 2:
            continue
        theirs = {row.levels["threshold"]: row.seconds for row in published.rows if row.n == n}
        for level in sorted({*ours, *theirs}):
            point = ours.get(level)
            text = f"{_MILLI * theirs[level]:.0f}" if level in theirs else ""
            rows.append(
                (
                    *(str(n), str(level), str(max(0, n - 1 - level)), text),
                    point.estimate(TIME) if point else None,
                    _quotient(theirs.get(level), coarse.get(n)),
                    point_ratio(point, base, TIME) if point else None,
                )
            )
    if not rows:
        refuse(run, system, "no size with several thresholds")
    columns = (
        *(Column("N"), Column("threshold"), Column("sub-kernels")),
        *(Column("paper", "text", table.unit), Column("here", "time", spread=True)),
        Column("over the coarse scheme, paper", "text"),
        Column("over the coarse scheme, here", "ratio", spread=True),
    )
    return _table(paper, table, published, run, columns, rows)


def by_level(data: Dataset, system: str, n: int, factor: str) -> dict[int, PointResult]:
    """The timed points of a system at a size, by the numbers of a factor. Raises ``NotMeasured``.

    ``auto`` is no number; where two points share one (other factors differ) the first stays.
    """
    found: dict[int, PointResult] = {}
    for point in timed_points(data, system, n):
        level = point.level(factor)
        if isinstance(level, int) and point.level("nesting") in ("-", 1):
            found.setdefault(level, point)
    return dict(sorted(found.items()))


def thread_times(published: DataFile, n: int) -> dict[int, float]:
    """Published seconds by number of threads at a size."""
    return {row.levels["threads"]: row.seconds for row in published.rows if row.n == n}


def _short(system: str) -> str:
    return system.partition(".")[2]


def _quotient(above: float | None, below: float | None) -> str:
    return f"({above / below:#.3g})" if above and below else ""


def _table(
    paper: Paper,
    table: PaperTable,
    published: DataFile,
    run: Observed,
    columns: Sequence[Column],
    rows: Sequence[tuple[Cell, ...]],
) -> Table:
    devices = ", ".join(paper.device(d).name for d in table.hardware)
    notes = (
        f"paper: {devices}; {published.origin}: {published.file}"
        + (f" ({published.note})" if published.note else ""),
        "Compare the ratios: a time of the paper and a time of ours say nothing about each other",
        "in brackets: quotients of the published numbers",
        interval_note(run.data.simulated, run.data.rounds),
        *([table.note] if table.note else []),
    )
    title = f"{paper.title}, table {table.number}: {table.title}"
    name = slug("paper", table.id)
    return Table(name, title, tuple(columns), tuple(rows), source_of(run.data), notes)
