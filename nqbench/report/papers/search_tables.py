"""Twins of a local search's tables: a profile beside today's, times of whole searches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nqbench.analysis.claims.functions import first_counted
from nqbench.analysis.data.dataset import Dataset, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured, main_point
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import Counterpart, PaperTable, Series
from nqbench.report.papers.phase_bars import PARTS, shares_s
from nqbench.report.table import Cell, Column, Table, slug, source_of
from nqbench.report.tables.common import interval_note
from nqbench.vocabulary import of_kernel

VERSIONS: tuple[str, str] = ("gpu_v1", "gpu_v8")
"""The paper's first and last: what speed-ups refer to."""
ITERATIONS = "iterations"
_NAMES = "NAMES"
"""Stands for the names of counters in a reason that several share."""


def counters(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Each printed counter with the nearest one of today, by kernel.

    Raises ``AnalysisError`` where the run has none of them.
    """
    n = _size(run, table)
    printed = {str(row[0]): [str(cell) for cell in row[1:]] for row in table.rows}
    rows: list[tuple[Cell, ...]] = []
    missing: dict[str, dict[str, None]] = {}
    for part in table.counterparts:
        row: list[Cell] = [part.label]
        for series, cell in zip(table.series, printed[part.label], strict=True):
            row.append(cell)
            try:
                row.append(_counter(run, series, n, part))
            except NotMeasured as error:
                row.append(None)
                own = of_kernel(part.counter, series.kernel)
                missing.setdefault(error.what.replace(own, _NAMES), {})[part.counter] = None
        rows.append((*row, part.counter.replace("_", " "), part.note))
    if all(cell is None for row in rows for cell in row[2:-2:2]):
        raise AnalysisError("; ".join(_told(missing)))
    pairs = [c for s in table.series for c in (Column(f"{s.label}, paper"),
             Column(f"{s.label}, here", "number"))]  # fmt: skip
    columns = (Column("counter"), *pairs, Column("here it is"), Column("difference"))
    notes = [f"here: N={n}, {table.series[0].system}, first launch of each kernel"]
    if n not in table.sizes:
        notes.append(f"the paper has N={', '.join(map(str, table.sizes))}: compare no totals")
    notes.append(f"on the paper: {table.note}")
    notes += [f"not measured: {reason}" for reason in _told(missing)]
    title = f"{paper.title}, table {table.number}: {table.title}"
    name = slug("paper", table.id)
    return Table(name, title, columns, tuple(rows), source_of(run.data), tuple(notes))


def _told(missing: Mapping[str, Iterable[str]]) -> list[str]:
    """Reasons, each with the names of all that it is the reason for."""
    return [reason.replace(_NAMES, ", ".join(names)) for reason, names in missing.items()]


def _size(run: Observed, table: PaperTable) -> int:
    """The paper's size if the run has it, else the largest at which the system was counted."""
    system = table.series[0].system
    own = sorted({p.n for p in run.data.points if p.system == system and p.ok})
    if not own:
        raise NotMeasured(f"the run has no {system} that came to an end", run.data.command)
    wanted = [n for n in table.sizes if n in own]
    return wanted[0] if wanted else own[-1]


def _counter(run: Observed, series: Series, n: int, part: Counterpart) -> float:
    name = of_kernel(part.counter, series.kernel)
    return part.scale * first_counted(run, series.system, n, name)


def searches(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Every system at every size: the printed time, ours, moves a second, speed-ups.

    Raises ``AnalysisError`` where nothing was timed.
    """
    data = run.data
    printed = {(paper.system(str(row[0])), int(str(row[1]))): str(row[2]) for row in table.rows}
    rows, missing = [], dict[str, None]()
    for n in sorted({p.n for p in data.points}):
        for system in dict.fromkeys(p.system for p in data.points if p.n == n):
            try:
                point = main_point(data, system, n)
            except NotMeasured as error:
                missing[error.what] = None
                continue
            if point.estimate(TIME) is not None:
                rows.append(_search(paper, data, point, printed.get((system, n), "")))
    if not rows:
        raise AnalysisError(next(iter(missing), "the run timed no search"))
    columns = (
        *(Column("system"), Column("N", "number"), Column("most iterations", "number")),
        *(Column("paper, a whole search", unit=table.unit), Column("here", "time", spread=True)),
        *(Column(label, "time") for _, label, _ in PARTS),
        *(Column("evaluations", "number"), Column("moves per second", "number")),
        *(Column(f"{name} / this", "ratio", spread=True) for name in VERSIONS),
        Column("final length", "number"),
    )
    notes = (
        "a time of the paper and a time of ours say nothing about each other",
        "the parts come from one more search, with events around each kernel: their sum may exceed"
        " the whole",
        "speed-ups stand where both searched with the same limit of iterations",
        interval_note(simulated=False, rounds=data.rounds),
        f"on the paper: {table.note}",
        *(f"not timed: {reason}" for reason in missing),
    )
    title = f"{paper.title}: {table.title}"
    return Table(slug("paper", table.id), title, columns, tuple(rows), source_of(data), notes)


def _search(paper: Paper, data: Dataset, point: PointResult, printed: str) -> tuple[Cell, ...]:
    evaluations = point.detail("evaluations")
    time = point.estimate(TIME)
    assert time is not None  # timed points only
    moves = point.detail("moves_evaluated")
    return (
        *(point.system, point.n, int(point.level(ITERATIONS)), printed, time),
        *(seconds or None for seconds in shares_s(point).values()),
        None if evaluations is None else int(evaluations),
        None if moves is None else float(moves) / time.value,
        *(_gain(data, paper.system(name), point) for name in VERSIONS),
        point.detail("final_length"),
    )


def _gain(data: Dataset, base: str, point: PointResult) -> Estimate | None:
    """Time of a version over that of a search as long."""
    if base == point.system:
        return None
    try:
        other = main_point(data, base, point.n)
    except NotMeasured:
        return None
    alike = other.level(ITERATIONS) == point.level(ITERATIONS)
    return point_ratio(other, point, TIME) if alike and other.values(TIME) else None
