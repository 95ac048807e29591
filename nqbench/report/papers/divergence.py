"""Twin of a paper's divergence counters: a profiler's, and those of an instrumented kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nqbench.analysis.claims.bootstrap import Resamples
from nqbench.analysis.claims.functions import Values
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.select import NotMeasured
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperTable
from nqbench.report.table import Cell, Column, Table, slug, source_of


def divergence(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Share of divergent branches of each kernel, in percent.

    A simulated run has smaller boards than the paper: its largest one that was counted is taken.
    Raises ``AnalysisError`` where the run counted nothing of the kind.
    """
    values = Values(paper, (run,), Resamples.of([run.data]))
    sizes = list(reversed(run.sizes)) if run.data.simulated else list(table.sizes)
    rows = []
    reasons: dict[str, None] = {}
    for series, cells in zip(table.series, table.rows, strict=True):
        branches, n = _first(values, sizes, series.system, _branches, reasons)
        split, at = _first(values, sizes, series.system, _split, reasons)
        told = [f"N={size}" for size in dict.fromkeys((n, at)) if size is not None]
        rows.append((series.label, str(cells[1]), branches, split, ", ".join(told)))
    if all(row[2] is None and row[3] is None for row in rows):
        raise AnalysisError("; ".join(reasons))
    columns = (
        *(Column("kernel"), Column("divergent branches, paper", unit="%")),
        Column("divergent branches, here", "number", unit="%"),
        *(Column("split iterations, here", "number", unit="%"), Column("counted at")),
    )
    notes = (
        "divergent branches: of all conditional branches of the compiled kernel, as the simulator"
        " or Nsight Compute counts them; the paper's are those of its profiler",
        "split iterations: passes of the loop in which a warp's lanes both place and step back,"
        " counted inside the kernel",
        *([table.note] if table.note else []),
        *(f"not counted: {reason}" for reason in reasons),
    )
    title = f"{paper.title}, {table.number}: {table.title}"
    name = slug("paper", table.id)
    return Table(name, title, columns, tuple(rows), source_of(run.data), notes)


def _branches(values: Values, system: str) -> float:
    return values.counter(system, "divergent_branches") / values.counter(system, "branches")


def _split(values: Values, system: str) -> float:
    return values.counter(system, "split_iteration_share")


def _first(
    values: Values,
    sizes: Sequence[int],
    system: str,
    share: Callable[[Values, str], float],
    reasons: dict[str, None],
) -> tuple[Cell, int | None]:
    """The share in percent at the first size that has it, and that size."""
    missing = ""
    for n in sizes:
        values.n = n
        try:
            return 100 * share(values, system), n
        except NotMeasured as error:
            missing = missing or error.what
    reasons[missing] = None
    return None, None
