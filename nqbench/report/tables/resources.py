"""What the compiler and the device say about every kernel."""

from __future__ import annotations

from typing import Final

from nqbench.analysis.data.dataset import Dataset
from nqbench.errors import AnalysisError
from nqbench.report.items import columns_of, sweeps_of
from nqbench.report.table import Cell, Column, Table, slug, source_of
from nqbench.report.tables.common import level_cells, level_columns, plain
from nqbench.study.report_items import ReportItem

_COLUMNS: Final = {
    "registers": ("registers per thread", ""),
    "stack_bytes": ("stack per thread", "B"),
    "spill_bytes": ("spills per thread", "B"),
    "static_shared_bytes": ("static shared per block", "B"),
    "dynamic_shared_bytes": ("dynamic shared per block", "B"),
    "shared_bytes": ("shared per block", "B"),
    "occupancy": ("theoretical occupancy", ""),
    "limiter": ("occupancy limit", ""),
    "threads": ("threads", ""),
    "blocks": ("blocks", ""),
    "jobs": ("jobs", ""),
}
_COMPILER: Final = ("registers", "stack_bytes", "spill_bytes", "occupancy")
_TEXT: Final = frozenset({"limiter"})


def resources(data: Dataset, item: ReportItem) -> list[Table]:
    """One table per sweep; sizes that share every number share a row."""
    tables = [table for sweep in sweeps_of(data, item) if (table := _table(data, item, sweep))]
    if not tables:
        raise AnalysisError(
            f"{data.device} recorded no registers or occupancy; `nqbench static` lists them for"
            " any architecture, without a GPU"
        )
    return tables


def _table(data: Dataset, item: ReportItem, sweep: str) -> Table | None:
    points = [p for p in data.select(sweep, item.n, cpu=False) if p.ok]
    if not any(p.detail(name) is not None for p in points for name in _COMPILER):
        return None
    factors = columns_of(data, sweep)
    shown = [name for name in _COLUMNS if name not in factors]  # a level has its column already
    present = [name for name in shown if any(p.detail(name) is not None for p in points)]
    rows: dict[tuple[Cell, ...], list[int]] = {}
    for point in points:
        found = tuple(plain(point.detail(name)) for name in present)
        rows.setdefault((*level_cells(point, factors), *found), []).append(point.n)
    cut = len(factors)
    cells = tuple(
        (*key[:cut], ", ".join(map(str, sizes)), *key[cut:]) for key, sizes in rows.items()
    )
    columns = (*level_columns(factors), Column("N"), *(_column(name) for name in present))
    notes = ("Registers come from the compiled cubin; occupancy is theoretical, not achieved",)
    title = item.title or f"Resources of the kernels of sweep {sweep}"
    return Table(slug("resources", sweep), title, columns, cells, source_of(data), notes)


def _column(name: str) -> Column:
    heading, unit = _COLUMNS[name]
    return Column(heading, "text" if name in _TEXT else "number", unit)
