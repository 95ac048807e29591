"""Every point with its value, its interval and its status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import combine
from nqbench.analysis.data.quantities import CPU_TIME, Quantity, quantity
from nqbench.analysis.wording import describe
from nqbench.errors import AnalysisError
from nqbench.report.items import columns_of, sweeps_of, title_of
from nqbench.report.table import Cell, Column, Table, slug, source_of
from nqbench.report.tables.common import (
    host_notes,
    interval_note,
    level_cells,
    level_columns,
    program_notes,
    value_column,
)
from nqbench.study.report_items import ReportItem

_PHASES: Final = (
    *("split", "allocate", "transfer", "evaluation", "apply", "reduce", "free", "other", "total"),
)


def results(data: Dataset, item: ReportItem) -> list[Table]:
    """One table per sweep; times of CPU baselines never share one with simulated counters."""
    tables: list[Table] = []
    for sweep in sweeps_of(data, item):
        points = data.select(sweep, item.n)
        if data.simulated:
            tables += _table(data, item, sweep, [p for p in points if not p.cpu], "")
            tables += _table(data, item, sweep, [p for p in points if p.cpu], "cpu")
        else:
            tables += _table(data, item, sweep, points, "")
    if not tables:
        raise AnalysisError("the run has no points of the sizes asked for")
    return tables


def _table(
    data: Dataset, item: ReportItem, sweep: str, points: Sequence[PointResult], part: str
) -> list[Table]:
    if not points:
        return []
    factors = columns_of(data, sweep)
    timed = part == "cpu" or not data.simulated
    shown = _shown(data, item, part)
    columns = [*level_columns(factors), Column("N", "number"), *map(value_column, shown)]
    phases = [quantity(name) for name in _PHASES] if timed and not item.value else []
    phases = [p for p in phases if any(s > 0 for one in points for s in one.values(p).values())]
    columns += [Column(phase.label, "time") for phase in phases]
    if timed:
        columns += [Column("rounds", "number"), Column("samples", "number")]
    columns.append(Column("status"))
    rows = [_row(p, factors, shown, phases, timed) for p in points]
    title = title_of(item, f"Results of sweep {sweep}")
    notes = [interval_note(not timed, data.rounds)]
    notes += host_notes(points) + program_notes(points)
    if any(not p.ok for p in points):
        notes.append("Points that are not ok have no value: they are never plotted or compared")
    name = slug("results", sweep, part)
    heading = f"{title}: CPU baselines, measured times" if part else title
    source = source_of(data, host=bool(part))
    return [Table(name, heading, tuple(columns), tuple(rows), source, tuple(notes))]


def _shown(data: Dataset, item: ReportItem, part: str) -> tuple[Quantity, ...]:
    return (CPU_TIME,) if part else data.quantities(item.value)


def _row(
    point: PointResult,
    factors: Sequence[str],
    shown: Sequence[Quantity],
    phases: Sequence[Quantity],
    timed: bool,
) -> tuple[Cell, ...]:
    cells: list[Cell] = [*level_cells(point, factors), point.n]
    cells += [point.estimate(what) for what in shown]
    for phase in phases:
        values = [v for v in point.values(phase).values() if v > 0]
        cells.append(combine(values).value if values else None)
    if timed:
        samples = [int(row.get("samples") or 0) for row in point.measurements.values()]
        cells += [len(point.measurements) or None, sum(samples) or None]
    return (*cells, point.status)


def skipped(data: Dataset, item: ReportItem) -> list[Table]:
    """Every point without a value, and every point that lost measurements."""
    rows = []
    for sweep in sweeps_of(data, item):
        factors = columns_of(data, sweep)
        for point in data.select(sweep, item.n):
            if not point.ok or point.reason:
                what = describe(point, factors)
                rows.append((sweep, what, point.n, point.status, point.reason))
    columns = (
        Column("sweep"),
        Column("point"),
        Column("N", "number"),
        Column("status"),
        Column("reason"),
    )
    note = f"{len(rows)} of {len(data.points)} points" if rows else "Every planned point ran"
    title = item.title or "What did not run, and why"
    name = slug("skipped", item.of or "")
    return [Table(name, title, columns, tuple(rows), source_of(data), (note,))]
