"""Main effects and two-way interactions as ratios."""

from __future__ import annotations

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.factorial import effects as factorial
from nqbench.errors import AnalysisError
from nqbench.report.items import sweep_of, title_of
from nqbench.report.table import Cell, Column, Table, slug, source_of
from nqbench.report.tables.common import interval_note
from nqbench.study.report_items import ReportItem

_DIRECTION = "Below 1 means less (for times: faster), above 1 more"


def effects(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per quantity, size, factor and level."""
    sweep = sweep_of(data, item)
    rows: list[tuple[Cell, ...]] = []
    for what in data.quantities(item.value):
        for e in factorial.effects(data, sweep, what, sizes=item.n):
            levels = (str(e.base), str(e.level))
            rows.append((what.label, e.n, e.factor, *levels, e.ratio, e.pairs, e.method))
    columns = (
        Column("quantity"),
        Column("N", "number"),
        Column("factor"),
        Column("from"),
        Column("to"),
        Column("ratio", "ratio", spread=True),
        Column("pairs", "number"),
        Column("mean"),
    )
    notes = [
        "Each ratio compares points that differ in this factor only, within the same round, and"
        " averages over all such pairs",
        _DIRECTION,
        interval_note(data.simulated, data.rounds),
    ]
    if any(row[-1] == "totals" for row in rows):
        notes.append("Where a count is zero there is no geometric mean, so totals are compared")
    if any(row[-1] == "least squares" for row in rows):
        notes.append(
            "least squares: combinations are missing, so too few pairs exist; a model of main"
            " effects without interactions was fitted to all points"
        )
    title = title_of(item, f"Main effects of sweep {sweep}")
    name = slug("effects", sweep, item.value or "")
    return [Table(name, title, columns, tuple(rows), source_of(data), tuple(notes))]


def interactions(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per quantity, size and pair of changes."""
    sweep = sweep_of(data, item)
    rows: list[tuple[Cell, ...]] = []
    for what in data.quantities(item.value):
        try:
            found = factorial.interactions(data, sweep, what, sizes=item.n)
        except AnalysisError:
            if not data.simulated:
                raise
            continue  # other counters may have what this one lacks
        for i in found:
            change = f"{i.factor}: {i.base} → {i.level}"
            other = f"{i.other}: {i.other_base} → {i.other_level}"
            ratios: tuple[Estimate, ...] = (i.at_base, i.at_level, i.ratio)
            says = " and ".join(i.reversed)
            rows.append((what.label, i.n, change, other, *ratios, i.squares, says))
    if not rows:
        raise AnalysisError(f"sweep {sweep!r} has no two factors that were varied together")
    columns = (
        Column("quantity"),
        Column("N", "number"),
        Column("change"),
        Column("other factor"),
        Column("effect before", "ratio", spread=True),
        Column("effect after", "ratio", spread=True),
        Column("interaction", "ratio", spread=True),
        Column("squares", "number"),
        Column("reversed"),
    )
    notes = (
        "The effect of the change before and after the other factor changes; the interaction is"
        " their ratio, and 1 means no interaction",
        "reversed: a factor whose effect changes direction with the level of the other (both"
        " intervals exclude 1)",
        interval_note(data.simulated, data.rounds),
    )
    title = title_of(item, f"Two-way interactions of sweep {sweep}")
    name = slug("interactions", sweep, item.value or "")
    return [Table(name, title, columns, tuple(rows), source_of(data), notes)]
