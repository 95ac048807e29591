"""What larger boards would cost on one GPU and on many, and how good such predictions were."""

from __future__ import annotations

from typing import Final

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.scale import GPUS, MIN_BASE_S, SIZES, Scale, scale_of
from nqbench.report.table import Column, Field, Table, source_of, tabulate
from nqbench.study.report_items import ReportItem
from nqbench.workloads.counting.known import SOLUTIONS, solutions

SPANS: Final = ((31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min"))
FULL: Final = 1000
"""Numbers from here on are written in full."""
KWH_J: Final = 3.6e6


def scale(data: Dataset, item: ReportItem) -> list[Table]:
    """The tables of the fastest system of a run."""
    return scale_tables(data, scale_of(data), item.title or "")


def scale_tables(data: Dataset, found: Scale, title: str = "") -> list[Table]:
    """Predicted costs, and past predictions beside what was measured."""
    return [_costs(data, found, title), *([_past(data, found)] if found.past else [])]


def _costs(data: Dataset, found: Scale, title: str) -> Table:
    def on(gpus: int) -> Field[int]:
        name = f"{gpus:,} GPU" + "s" * (gpus > 1)
        return Column(name), lambda n: span(found.seconds(n)[0] / gpus)

    columns, rows = tabulate(
        SIZES,
        (Column("N", "number"), lambda n: n),
        (Column("growth of nodes", "number"), lambda n: found.tree(n) / found.tree(n - 1)),
        (Column("growth of solutions", "number"), lambda n: solutions(n) / solutions(n - 1)),
        *map(on, GPUS),
        (Column("1 GPU, by solutions"), lambda n: span(found.seconds(n)[1])),
        (Column("energy", "number", "kWh"), lambda n: _kwh(found, n)),
    )
    power = f"{found.watts:.4g} W, " if found.watts else ""
    notes = (
        f"From {span(found.base.seconds)} of {found.system} at N = {found.base.n}, times the growth"
        " of the nodes that it walks, or of the solutions",
        f"The nodes of large boards, and the solutions beyond N = {max(SOLUTIONS)}, are"
        " extrapolated by their trend",
        "More GPUs: divided by their number, since chunks of a board do not depend on one another;"
        " this holds while each GPU has seconds of work",
        f"Energy of the GPUs: {power}{found.watts_of}",
    )
    heading = title or f"What larger boards would cost by {found.system}"
    return Table("scale", heading, columns, rows, source_of(data), notes)


def _kwh(found: Scale, n: int) -> float | None:
    return None if found.watts is None else found.watts * found.seconds(n)[0] / KWH_J


def _past(data: Dataset, found: Scale) -> Table:
    columns, rows = tabulate(
        found.past,
        (Column("from N", "number"), lambda p: p.base),
        (Column("N", "number"), lambda p: p.n),
        (Column("measured", "time"), lambda p: p.measured_s),
        (Column("by nodes", "time"), lambda p: p.by_nodes_s),
        (Column("error"), lambda p: _error(p.by_nodes_s, p.measured_s)),
        (Column("by solutions", "time"), lambda p: p.by_solutions_s),
        (Column("error"), lambda p: _error(p.by_solutions_s, p.measured_s)),
    )
    notes = (
        "Each measured board predicts those above it, as the costs of larger boards are predicted"
        " from the largest; +10%: the prediction is too long",
        "Small boards do not fill a GPU, so that predictions from them are too long; those of less"
        f" than {span(MIN_BASE_S)} predict nothing",
    )
    title = f"Past predictions of {found.system}, and what was measured"
    return Table("scale-past", title, columns, rows, source_of(data), notes)


def _error(predicted_s: float, measured_s: float) -> str:
    return f"{predicted_s / measured_s - 1:+.1%}"


def span(seconds: float) -> str:
    """A time in the largest unit that it has two of: ``3.25 days``."""
    unit_s, name = next((u for u in SPANS if seconds >= 2 * u[0]), (1.0, "s"))
    count = seconds / unit_s
    return f"{count:,.0f} {name}" if count >= FULL else f"{count:.3g} {name}"
