"""Systems side by side, a column per size (a row per size for the simulator's counters)."""

from __future__ import annotations

from collections.abc import Sequence

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.quantities import CPU_TIME, TIME, quantity
from nqbench.errors import AnalysisError
from nqbench.report.items import columns_of, sweep_of, title_of
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


def systems(data: Dataset, item: ReportItem) -> list[Table]:
    """Times with a column per N; counters with a column each and a row per N."""
    sweep = sweep_of(data, item)
    points = data.select(sweep, item.n)
    if not any(p.ok for p in points):
        raise AnalysisError(f"sweep {sweep!r} has no finished point")
    title = title_of(item, f"Systems of sweep {sweep}")
    name = slug("systems", sweep, item.value or "")
    kernels = [p for p in points if not p.cpu]
    hosts = [p for p in points if p.cpu]
    if not data.simulated:
        return [_by_size(data, name, title, sweep, [*kernels, *hosts], item)]
    tables = [_by_counter(data, name, title, sweep, kernels, item)] if kernels else []
    if any(p.ok for p in hosts):
        heading = f"{title}: CPU baselines, measured times"
        tables.append(_by_size(data, slug(name, "cpu"), heading, sweep, hosts, item))
    return tables


def _by_size(
    data: Dataset,
    name: str,
    title: str,
    sweep: str,
    points: Sequence[PointResult],
    item: ReportItem,
) -> Table:
    factors = columns_of(data, sweep)
    baselines = data.simulated  # a table of times in a simulated run holds nothing else
    what = quantity(item.value) if item.value and not baselines else TIME
    what = CPU_TIME if baselines else what
    sizes = sorted({p.n for p in points})
    rows: dict[tuple[Cell, ...], dict[int, Cell]] = {}
    for point in points:
        value = point.estimate(what)
        key = tuple(level_cells(point, factors))
        rows.setdefault(key, {})[point.n] = value if point.ok else point.status
    columns = (*level_columns(factors), *(Column(f"N={n}", "time", spread=True) for n in sizes))
    notes = [f"{what.label}; {interval_note(False, data.rounds)}"]
    notes += host_notes(points) + program_notes(points)
    cells = tuple((*key, *(found.get(n) for n in sizes)) for key, found in rows.items())
    source = source_of(data, host=baselines)
    return Table(name, title, columns, cells, source, tuple(notes))


def _by_counter(
    data: Dataset,
    name: str,
    title: str,
    sweep: str,
    points: Sequence[PointResult],
    item: ReportItem,
) -> Table:
    factors = columns_of(data, sweep)
    shown = data.quantities(item.value)
    columns = (
        *level_columns(factors),
        Column("N", "number"),
        *map(value_column, shown),
        Column("status"),
    )
    rows = tuple(
        (*level_cells(p, factors), p.n, *(p.estimate(what) for what in shown), p.status)
        for p in points
    )
    return Table(name, title, columns, rows, source_of(data), (interval_note(True, 0),))
