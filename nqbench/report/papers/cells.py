"""One cell of a paper's table beside ours: the printed value, the fresh one, both quotients."""

from __future__ import annotations

from dataclasses import dataclass, field

from nqbench.analysis.data.dataset import Dataset, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import (
    NotMeasured,
    best_point,
    check_timed,
    launch_text,
    main_point,
)
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperTable, Ratio, Series

QUOTIENT_DIGITS = 3
"""Digits of a quotient of printed numbers: no printed time has more that are sure."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands beside a printed cell. Empty texts: the paper has none."""

    series: Series
    n: int
    printed: str
    printed_ratio: str
    here: Estimate | float | None
    ratio: Estimate | None
    launch: str = ""
    missing: str = ""


@dataclass(eq=False)
class Beside:
    """Makes the cells of one paper from one run."""

    paper: Paper
    data: Dataset
    commands: dict[str, None] = field(default_factory=dict)

    def cell(self, table: PaperTable, series: Series, n: int) -> Cell:
        """The cell of a series at a size."""
        printed = table.printed(series.label, n)
        ratio = printed_ratio(self.paper, table, series, n)
        if series.quantity == "jobs":
            return Cell(series, n, printed, ratio, _jobs(series, n), None)
        here = own = None
        launch = missing = ""
        try:
            point = self.point(series, n)
            launch = launch_text(self.data, point)
            here = None if series.quantity == "ratio" else point.estimate(_what(series))
            own = self.ratio(point, series, n) if series.ratio else None
        except NotMeasured as error:
            missing = error.what
            if error.command:
                self.commands[error.command] = None
        return Cell(series, n, printed, ratio, here, own, launch, missing)

    def point(self, series: Series, n: int) -> PointResult:
        """The point that a series speaks about. Raises :class:`NotMeasured`."""
        check_timed(self.data, series.system)
        choose = best_point if series.choose == "best" else main_point
        return choose(self.data, series.system, n, series.levels)

    def ratio(self, point: PointResult, series: Series, n: int) -> Estimate | None:
        """Our quotient where the paper draws one. Raises :class:`NotMeasured`."""
        assert series.ratio is not None
        if series.ratio.form == "share":
            part = quantity(series.ratio.of or series.quantity)
            return _share(point, part)
        base = self.base(series.ratio)
        if base == series:
            return None
        return point_ratio(self.point(base, n), point, TIME)

    def base(self, ratio: Ratio) -> Series:
        """The series that a quotient refers to."""
        table = self.paper.table(ratio.table)
        return next(s for s in table.series if s.label == ratio.series)


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
    if not own or not base:
        return ""
    return f"({float(base) / float(own):#.{QUOTIENT_DIGITS}g})"


def _what(series: Series) -> Quantity:
    return TIME if series.quantity == "time" else quantity(series.quantity)


def _share(point: PointResult, part: Quantity) -> Estimate | None:
    """A phase's share of the total, over the rounds."""
    parts, totals = point.values(part), point.values(quantity("total"))
    shares = [parts[r] / totals[r] for r in sorted(set(parts) & set(totals)) if parts[r] > 0]
    return combine(shares) if shares else None


def _jobs(series: Series, n: int) -> float:
    """Number of jobs, by enumeration: no run is needed."""
    from nqbench.workloads import get

    value = get("counting").count(
        "jobs", n=n, system=series.system, depth=int(series.levels["depth"])
    )
    assert isinstance(value, int)
    return value
