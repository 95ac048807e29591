"""The twin of a paper's table: every printed cell with the fresh one beside it.

Speed-ups stand beside speed-ups. A second of the paper's device and one of ours are shown, never
divided: years and processes lie between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nqbench.analysis.data.observed import TOTALS, Observed
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperTable
from nqbench.report.papers.annealing_seeds import annealing_table
from nqbench.report.papers.cells import Beside, Cell
from nqbench.report.papers.data_twins import speedups, threads, thresholds
from nqbench.report.papers.divergence import divergence
from nqbench.report.papers.limits_table import limits_table
from nqbench.report.papers.other_twins import best, environment, granularity, launch, printed
from nqbench.report.papers.search_limits import against_limits
from nqbench.report.papers.search_tables import counters, searches
from nqbench.report.table import Cell as TableCell
from nqbench.report.table import Column, Source, Table, slug, source_of
from nqbench.report.tables.common import interval_note

ENUMERATED: Final = "counted by enumeration"
_RATIO_NAMES: Final = {"speedup": "speed-up", "share": "share of total"}


def twin(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The table made again. Raises ``AnalysisError`` with what the run lacks for it."""
    return _BUILDERS[table.twin](paper, table, run)


def _series(paper: Paper, table: PaperTable, run: Observed) -> Table:
    beside = Beside(paper, run.data)
    cells = [beside.cell(table, series, n) for series in table.series for n in table.sizes]
    if all(cell.here is None and cell.ratio is None for cell in cells):
        command = next(iter(beside.commands), "")
        hint = f"; `{command}` measures it" if command else ""
        raise AnalysisError(f"{cells[0].missing}{hint}")
    counted = any(s.quantity == "jobs" for s in table.series)
    ratios = any(s.ratio for s in table.series)
    own = any(s.quantity != "ratio" for s in table.series)
    form = next((s.ratio.form for s in table.series if s.ratio), "speedup")
    columns = [Column("series"), Column("N")]
    if own:
        columns.append(Column("paper", "text", table.unit))
        columns.append(Column("here", "number") if counted else Column("here", "time", spread=True))
    if ratios:
        columns.append(Column(f"{_RATIO_NAMES[form]}, paper", "text"))
        columns.append(Column(f"{_RATIO_NAMES[form]}, here", "ratio", spread=True))
    if not counted:
        columns.append(Column("configuration here"))
    rows = tuple(_row(cell, own=own, ratios=ratios, launch=not counted) for cell in cells)
    source = Source("host", ENUMERATED, run.data.command) if counted else source_of(run.data)
    notes = _notes(paper, table, cells, beside, run)
    return Table(slug("paper", table.id), _title(paper, table), tuple(columns), rows, source, notes)


def _row(cell: Cell, *, own: bool, ratios: bool, launch: bool) -> tuple[TableCell, ...]:
    row: list[TableCell] = [cell.series.label, str(cell.n)]
    if own:
        row += [cell.printed, cell.here]
    if ratios:
        row += [cell.printed_ratio, cell.ratio]
    if launch:
        row.append(cell.launch if cell.here or cell.ratio else "not measured")
    return tuple(row)


def _title(paper: Paper, table: PaperTable) -> str:
    return f"{paper.title}, table {table.number}: {table.title}"


def _notes(
    paper: Paper, table: PaperTable, cells: list[Cell], beside: Beside, run: Observed
) -> tuple[str, ...]:
    notes = []
    devices = ", ".join(paper.device(d).name for d in table.hardware)
    if devices:
        notes.append(f"paper: {devices}")
    if any(isinstance(s.quantity, str) and s.quantity != "jobs" for s in table.series):
        notes.append(
            "Compare the ratios: a time of the paper and a time of ours say nothing about each"
            " other"
        )
        if paper.timed == "total":
            notes.append(TOTALS)
        notes.append(interval_note(run.data.simulated, run.data.rounds))
    if any(c.printed_ratio.startswith("(") for c in cells):
        notes.append("in brackets: quotients of the printed numbers, the paper prints none")
    wrong = [c for c in cells if isinstance(c.here, int) and c.printed != str(c.here)]
    notes += [f"N={c.n}, {c.series.label}: {c.printed} printed, {c.here} counted" for c in wrong]
    if table.note:
        notes.append(f"on the paper: {table.note}")
    reasons = dict.fromkeys(c.missing for c in cells if c.missing)
    notes += [f"not measured: {reason}" for reason in reasons]
    notes += [f"`{command}` goes on with what is missing" for command in beside.commands]
    return tuple(notes)


_BUILDERS: Final[dict[str, Callable[[Paper, PaperTable, Observed], Table]]] = {
    "series": _series,
    "printed": printed,
    "environment": environment,
    "best": best,
    "launch": launch,
    "granularity": granularity,
    "divergence": divergence,
    "speedups": speedups,
    "threads": threads,
    "thresholds": thresholds,
    "counters": counters,
    "searches": searches,
    "limits": limits_table,
    "annealing": annealing_table,
    "against_limits": against_limits,
}
