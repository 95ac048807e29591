"""Main effects and two-way interactions as ratios."""

from __future__ import annotations

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.factorial import effects as factorial
from nqbench.errors import AnalysisError
from nqbench.report.items import sweep_of, title_of
from nqbench.report.table import Column, Table, slug, source_of, tabulate
from nqbench.report.tables.common import interval_note
from nqbench.study.report_items import ReportItem


def effects(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per quantity, size, factor and level."""
    sweep = sweep_of(data, item)
    found = [
        effect
        for what in data.quantities(item.value)
        for effect in factorial.effects(data, sweep, what, sizes=item.n)
    ]
    columns, rows = tabulate(
        found,
        (Column("quantity"), lambda e: e.quantity.label),
        (Column("N", "number"), lambda e: e.n),
        (Column("factor"), lambda e: e.factor),
        (Column("from"), lambda e: str(e.base)),
        (Column("to"), lambda e: str(e.level)),
        (Column("ratio", "ratio", spread=True), lambda e: e.ratio),
        (Column("pairs", "number"), lambda e: e.pairs),
        (Column("mean"), lambda e: e.method),
    )
    notes = [
        "Each ratio compares points that differ in this factor only, within the same round, and"
        " averages over all such pairs",
        "Below 1 means less (for times: faster), above 1 more",
        interval_note(data.simulated, data.rounds),
    ]
    methods = {effect.method for effect in found}
    if "totals" in methods:
        notes.append("Where a count is zero there is no geometric mean, so totals are compared")
    if "least squares" in methods:
        notes.append(
            "least squares: combinations are missing, so too few pairs exist; a model of main"
            " effects without interactions was fitted to all points"
        )
    title = title_of(data, item, f"Main effects of sweep {sweep}")
    name = slug("effects", sweep, item.value or "")
    return [Table(name, title, columns, rows, source_of(data), tuple(notes))]


def interactions(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per quantity, size and pair of changes."""
    sweep = sweep_of(data, item)
    found = []
    for what in data.quantities(item.value):
        try:
            found += factorial.interactions(data, sweep, what, sizes=item.n)
        except AnalysisError:
            if not data.simulated:
                raise
            # Another counter may have interactions.
    if not found:
        raise AnalysisError(f"sweep {sweep!r} has no two factors that were varied together")
    columns, rows = tabulate(
        found,
        (Column("quantity"), lambda i: i.quantity.label),
        (Column("N", "number"), lambda i: i.n),
        (Column("change"), lambda i: f"{i.factor}: {i.base} → {i.level}"),
        (Column("other factor"), lambda i: f"{i.other}: {i.other_base} → {i.other_level}"),
        (Column("effect before", "ratio", spread=True), lambda i: i.at_base),
        (Column("effect after", "ratio", spread=True), lambda i: i.at_level),
        (Column("interaction", "ratio", spread=True), lambda i: i.ratio),
        (Column("squares", "number"), lambda i: i.squares),
        (Column("reversed"), lambda i: " and ".join(i.reversed)),
    )
    notes = (
        "The effect of the change before and after the other factor changes; the interaction is"
        " their ratio, and 1 means no interaction",
        "reversed: a factor whose effect changes direction with the level of the other (both"
        " intervals exclude 1)",
        interval_note(data.simulated, data.rounds),
    )
    title = title_of(data, item, f"Two-way interactions of sweep {sweep}")
    name = slug("interactions", sweep, item.value or "")
    return [Table(name, title, columns, rows, source_of(data), notes)]
