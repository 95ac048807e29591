"""What did not run, or did not come out right, and why."""

from __future__ import annotations

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.wording import describe
from nqbench.report.items import columns_of, sweeps_of
from nqbench.report.table import Column, Table, slug, source_of
from nqbench.study.report_items import ReportItem


def skipped(data: Dataset, item: ReportItem) -> list[Table]:
    """Every point without a value, and every point that lost blocks."""
    rows = []
    for sweep in sweeps_of(data, item):
        factors = columns_of(data, sweep)
        for point in data.select(sweep, item.n):
            if not point.ok or point.reason:
                what = describe(point, factors)
                rows.append((sweep, what, point.n, point.status, point.reason))
    columns = (
        Column("sweep"),
        Column("point"),
        Column("N", "number"),
        Column("status"),
        Column("reason"),
    )
    note = f"{len(rows)} of {len(data.points)} points" if rows else "Every planned point ran"
    title = item.title or "What did not run, and why"
    name = slug("skipped", item.of or "")
    return [Table(name, title, columns, tuple(rows), source_of(data), (note,))]
