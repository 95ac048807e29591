"""Tables that are series of printed times, counts or quotients: every one with ours next to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nqbench.analysis.data import select
from nqbench.analysis.data.observed import TOTALS, Observed
from nqbench.analysis.data.select import NotMeasured
from nqbench.analysis.wording import grouped
from nqbench.papers.schema import Paper, PaperTable, Series
from nqbench.report.papers import common
from nqbench.report.papers.cells import PointRow
from nqbench.report.table import Cell, Column, Field, Source, Table, tabulate
from nqbench.report.tables.common import interval_note
from nqbench.workloads import get

ENUMERATED: Final = "counted by enumeration"
_RATIO_NAMES: Final = {"speedup": "speed-up", "share": "share of total"}


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A printed cell and what was measured for it. Empty texts: the paper prints none.

    ``missing``  why nothing was measured, and the ``command`` that would do it
    """

    series: Series
    n: int
    printed: str
    printed_ratio: str
    here: Cell = None
    ratio: Cell = None
    launch: str = ""
    missing: str = ""
    command: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing of ours stands in it."""
        return self.here is None and self.ratio is None


def compared(
    paper: Paper, run: Observed, table: PaperTable, series: Series, n: int
) -> ComparedCell:
    """The cell of a series at a size."""
    printed = table.printed(series.label, n)
    quotient = printed_ratio(paper, table, series, n)
    if series.quantity == "jobs":  # by enumeration: no run is needed
        depth = int(series.levels["depth"])
        jobs = get("counting").count("jobs", n=n, system=series.system, depth=depth)
        return ComparedCell(series, n, printed, quotient, jobs)
    row = PointRow(paper, run, series.system, n)
    point = row.chosen(series.system, series.choose == "best", series.levels)
    row = replace(row, point=point)
    formula = "time()" if series.quantity == "time" else f'phase("{series.quantity}")'
    here = None if series.quantity == "ratio" else row.value(formula)
    ratio = row.value(_ratio(paper, series)) if series.ratio and point else None
    missing, command = next(iter(row.lacks.items()), ("", ""))
    launch = select.launch_text(run.data, point) if point else ""
    return ComparedCell(series, n, printed, quotient, here, ratio, launch, missing, command)


def _ratio(paper: Paper, series: Series) -> str:
    """The formula of the quotient that the paper draws."""
    assert series.ratio is not None
    if series.ratio.form == "share":
        return f'phase("{series.ratio.of or series.quantity}") / phase("total")'
    every = paper.table(series.ratio.table).series
    base = next(one for one in every if one.label == series.ratio.series)
    function = "best" if base.choose == "best" else "time"
    levels = "".join(f', {name}="{level}"' for name, level in base.levels.items())
    return f'{function}("{base.system}"{levels}) / time()'


def printed_ratio(paper: Paper, table: PaperTable, series: Series, n: int) -> str:
    """The paper's quotient: printed, or (in brackets) worked out from the printed values."""
    ratio = series.ratio
    if ratio is None:
        return ""
    if series.quantity == "ratio":
        return table.printed(series.label, n)
    if ratio.printed:
        where = paper.table(ratio.printed_in) if ratio.printed_in else table
        return where.printed(ratio.printed, n)
    if (ratio.table, ratio.series) == (table.id, series.label):
        return ""
    own = table.printed(series.label, n)
    base = paper.table(ratio.table).printed(ratio.series, n)
    return common.bracketed(float(base) / float(own)) if own and base else ""


def by_size(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Every printed number and quotient with ours."""
    asked = [compared(paper, run, table, series, n) for series in table.series for n in table.sizes]
    cells = [cell for cell in asked if not (cell.series.ours and cell.empty)]
    if all(cell.empty for cell in cells):
        command = next((cell.command for cell in asked if cell.command), "")
        raise NotMeasured(cells[0].missing, command)
    counted = any(s.quantity == "jobs" for s in table.series)
    quotient = next((_RATIO_NAMES[s.ratio.form] for s in table.series if s.ratio), "")
    fields: list[Field[ComparedCell]] = [
        (Column("series"), lambda cell: cell.series.label),
        (Column("N"), lambda cell: str(cell.n)),
    ]
    if any(s.quantity != "ratio" for s in table.series):
        here = Column("here", "number") if counted else Column("here", "time", spread=True)
        fields.append((Column("paper", unit=table.unit), lambda cell: cell.printed))
        fields.append((here, lambda cell: cell.here))
    if quotient:
        here = Column(f"{quotient}, here", "ratio", spread=True)
        fields.append((Column(f"{quotient}, paper"), lambda cell: cell.printed_ratio))
        fields.append((here, lambda cell: cell.ratio))
    launches = list(dict.fromkeys(cell.launch for cell in cells if cell.launch))
    if len(launches) > 1:
        said = Column("configuration here")
        fields.append((said, lambda c: "not measured" if c.empty else c.launch))
    columns, rows = tabulate(cells, *fields)
    source = Source("CPU", ENUMERATED, run.data.command, run.data.name) if counted else None
    notes = [f"configuration here: {launches[0]}"] if len(launches) == 1 else []
    notes += _notes(paper, table, asked, run)
    return common.reproduced(paper, table, run, columns, rows, notes, source=source)


def _notes(
    paper: Paper, table: PaperTable, cells: Sequence[ComparedCell], run: Observed
) -> Iterator[str]:
    if devices := ", ".join(paper.device(d).name for d in table.hardware):
        yield f"paper: {devices}"
    if any(s.quantity != "jobs" for s in table.series):
        yield common.COMPARE_RATIOS
        if paper.timed == "total":
            yield TOTALS
        yield interval_note(run.data.simulated, run.data.rounds)
    if any(cell.printed_ratio.startswith("(") for cell in cells):
        yield common.IN_BRACKETS
    for cell in cells:
        if isinstance(cell.here, int) and cell.printed != str(cell.here):
            yield f"N={cell.n}, {cell.series.label}: {cell.printed} printed, {cell.here} counted"
    if table.note:
        yield f"on the paper: {table.note}"
    for ours, words in ((False, "not measured"), (True, "beyond the paper, not measured")):
        lacking = (c.missing for c in cells if c.missing and c.series.ours == ours)
        for reason in grouped(lacking):
            yield f"{words}: {reason}"
    for command in dict.fromkeys(cell.command for cell in cells if cell.command):
        yield f"`{command}` resumes and measures what is missing"
