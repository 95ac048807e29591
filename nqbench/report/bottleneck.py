"""Bottleneck analysis: kernels and their variants without arithmetic and without memory, as a table
and as dots. Method: Brodtkorb et al., section 6.5 and figure 7."""

from __future__ import annotations

from functools import partial
from typing import Final

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.limits.bottleneck import BEYOND, NEAR, bottlenecks
from nqbench.analysis.wording import Difference
from nqbench.errors import AnalysisError
from nqbench.report.figures import effects, style
from nqbench.report.table import Column, Table, source_of, tabulate
from nqbench.report.tables.common import interval_note, level_fields, varied_levels
from nqbench.study.report_items import ReportItem

METHOD: Final = (
    "math_only: loads are replaced by values computed from indices and stores never execute;"
    " memory_only: everything loaded is summed and the sum stored (Brodtkorb et al., section 6.5)"
)
RULE: Final = (
    f"A variant is close to the full kernel if its whole interval is at {NEAR:.0%} of that time or"
    " above. Both close: balanced; one: bound by it; neither: latency bound. A variant slower than"
    f" the full kernel by more than {BEYOND - 1:.0%}, or an interval that contains a limit: unclear"
)
UNMATCHED: Final = (
    "a variant's occupancy differs from the full kernel's (*): more or fewer warps hide latency, so"
    " treat the verdict with caution"
)


def bottleneck_table(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per kernel; of a simulated run without times, and so without a verdict."""
    found = bottlenecks(data)
    columns, rows = tabulate(
        found,
        (Column("system"), lambda b: b.system),
        *level_fields(found),
        (Column("N", "number"), lambda b: b.n),
        (Column("total", "time", spread=True), lambda b: b.total),
        (Column("math / total", "ratio", spread=True), lambda b: b.math),
        (Column("memory / total", "ratio", spread=True), lambda b: b.memory),
        (Column("(math + memory) / total", "ratio", spread=True), lambda b: b.both),
        (Column("verdict"), lambda b: b.judged.word + ("" if b.matched else " *")),
        (Column("because"), lambda b: b.judged.reason),
    )
    unmatched = () if all(b.matched for b in found) else (UNMATCHED,)
    notes = (METHOD, RULE, interval_note(data.simulated, data.rounds), *unmatched)
    title = item.title or "Bottleneck analysis"
    return [Table("bottleneck", title, columns, rows, source_of(data), notes)]


def bottleneck_figure(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """How much faster each kernel is without its memory accesses, and without its arithmetic.

    Raises ``AnalysisError`` where nothing was timed.
    """
    found = bottlenecks(data)
    factors, rows, marks = varied_levels(found), [], []
    for one in found:
        levels = [f"{name} {one.levels.get(name, '-')}" for name in factors]
        row = f"{', '.join([one.system, *levels])}, N = {one.n}"
        rows.append((row, one.judged.word))
        for name, part in (("without memory", one.math), ("without arithmetic", one.memory)):
            marks += [effects.mark(row, name, Difference(part, TIME))] if part is not None else []
    if not marks:
        raise AnalysisError(f"no kernel has all three times: {found[0].judged.reason}")
    verdicts = "; ".join(f"{row}: {word}" for row, word in rows)
    title = item.title or "Bottleneck analysis"
    draw = partial(effects.draw, data, "bottleneck", title, rows, marks)
    subtitle = "The kernel without memory accesses, and without arithmetic, against all of it"
    alt = f"Dot plot of {len(found)} kernels: {verdicts}."
    return [partial(draw, axis="◂ slower · faster ▸", subtitle=subtitle, alt=alt)]
