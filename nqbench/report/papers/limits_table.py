"""Each scheme beside the limits of its device: bytes and operations per second, and their shares.

Bytes and operations are those that the workload states (docs/fitness.md), summed over the threads,
whoever serves them. The limits are measured ones where a run of ``configs/ceilings.yaml`` lies
beside the run, else the maker's figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nqbench.analysis.data.dataset import PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import NotMeasured, main_point
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperTable
from nqbench.report.papers.data_twins import COARSE, found_points, refuse
from nqbench.report.papers.limits import MOVED, measured_peaks, peaks
from nqbench.report.table import Cell, Column, Table, slug, source_of
from nqbench.report.tables.common import interval_note

BATCHES: Final = "batch"
_GIGA: Final = 1e9
_PERCENT: Final = 100.0


def limits_table(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A row per system of the table's series and size. Raises ``NotMeasured`` without any time."""
    known = peaks(run)
    coarse = found_points(run.data, paper.system(COARSE))
    rows: list[tuple[Cell, ...]] = []
    for system, n, point in _points(paper, table, run):
        what = TIME if point.host else quantity("kernel")
        here = point.estimate(what)
        if here is None or here.value <= 0:
            continue
        amounts = [_amount(point, name) for name in MOVED]
        row: list[Cell] = [system, n, here, _gain(coarse.get(n), point, what)]
        for name, amount in zip(MOVED, amounts, strict=True):
            rate = None if amount is None else amount / here.value
            limit = None if point.host else known.get(name)
            row += [amount, None if rate is None else rate / _GIGA]
            row.append(None if rate is None or limit is None else _PERCENT * rate / limit)
        rows.append(tuple(row))
    if not rows:
        refuse(run, paper.system(COARSE), "no time of a scheme")
    columns = (
        *(Column("system"), Column("N", "number"), Column("kernels", "time", spread=True)),
        Column("times as fast as the coarse scheme", "ratio", spread=True),
        *(Column("bytes moved", "number"), Column("moved", "number", "GB/s")),
        Column("of memory bandwidth", "number", "%"),
        *(Column("operations", "number"), Column("done", "number", "Gop/s")),
        Column("of integer units", "number", "%"),
    )
    notes = (
        _limits_note(run),
        "bytes and operations as the algorithm has them, summed over all threads; atomic additions"
        " of conflicts found are left out. Above 100% caches serve them",
        "kernels: the sum of a call's kernels, without allocation and transfers; of a program of"
        " the host the whole call, compared with the coarse scheme's whole call",
        interval_note(run.data.simulated, run.data.rounds),
        *([table.note] if table.note else []),
    )
    title = f"{paper.title}, table {table.number}: {table.title}"
    return Table(slug("paper", table.id), title, columns, tuple(rows), source_of(run.data), notes)


def _points(
    paper: Paper, table: PaperTable, run: Observed
) -> Iterator[tuple[str, int, PointResult]]:
    """The rows: of every system the sizes that the table asks for, and its largest."""
    for series in table.series:
        system = paper.system(series.system)
        found = _found(run, system, series.levels)
        if found:
            for n in sorted({*table.n, max(found)} & set(found)):
                batch = found[n].level(BATCHES)
                many = f", {batch} boards" if isinstance(batch, int) and batch > 1 else ""
                told = "".join(f", {k} {v}" for k, v in series.levels.items() if v != "1")
                yield f"{system}{many}{told}", n, found[n]


def _found(run: Observed, system: str, levels: Mapping[str, str]) -> dict[int, PointResult]:
    """The points of a system by size; those of the levels given, where several stand equal."""
    if not levels:
        return found_points(run.data, system)
    found = {}
    for n in sorted({p.n for p in run.data.points if p.system == system}):
        try:
            point = main_point(run.data, system, n, levels)
        except NotMeasured:
            continue
        if point.values(TIME):
            found[n] = point
    return found


def _amount(point: PointResult, name: str) -> float | None:
    value = point.detail(name)
    return None if value is None else float(value)


def _gain(coarse: PointResult | None, point: PointResult, what: Quantity) -> Estimate | None:
    """Kernels against kernels; a program of the host against the whole call."""
    several = isinstance(batch := point.level(BATCHES), int) and batch > 1
    if coarse is None or coarse.system == point.system or several or not coarse.values(what):
        return None
    return point_ratio(coarse, point, what)


def _limits_note(run: Observed) -> str:
    known = peaks(run)
    if not known:
        return "the limits of this device are not known"
    bounds = ", ".join(
        f"{known[name] / 1e12:.3g} {unit}"
        for name, unit in zip(MOVED, ("TB/s", "Top/s (32-bit)"), strict=True)
        if name in known
    )
    measured = bool(measured_peaks(run))
    how = "measured (configs/ceilings.yaml: copy; 32-bit logic)" if measured else "of its maker"
    return f"limits of the GPU, {how}: {bounds}"
