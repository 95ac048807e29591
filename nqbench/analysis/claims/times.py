"""Whose time a paper prints: the kernel's, or that of the whole computation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from nqbench.analysis.claims.runs import Observed
from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.papers.schema import Paper

TOTAL: Final = Quantity(TIME.name, "total time", TIME.columns, TIME.kind, TIME.unit)
"""``TIME`` of a run that :func:`in_times_of` has turned to totals."""
TOTALS: Final = (
    "times are totals here as they are in the paper: split, transfers, kernel and reduction"
)
"""For the notes of tables."""


def in_times_of(paper: Paper, run: Observed) -> Observed:
    """The run with the times that the paper's own are to be set against.

    A paper that times the whole computation pays for its host part too: six rows of jobs instead
    of five quicken its kernel and slow its split, and the kernels alone would turn that verdict
    round. For such a paper the time of a point is the ``total`` of each of its blocks; a block
    that has none has no time. Phases stay what they are, and so do host programs and programs of
    several kernels, whose time is whole anyway.
    """
    if paper.timed != "total":
        return run
    points = tuple(_whole(point) for point in run.data.points)
    return replace(run, data=replace(run.data, points=points))


def time_of(paper: Paper) -> Quantity:
    """What the times of a paper's page are, in words and unit."""
    return TOTAL if paper.timed == "total" else TIME


def _whole(point: PointResult) -> PointResult:
    if point.host or not point.timed:
        return point
    blocks = {round_: _with_total(row) for round_, row in point.blocks.items()}
    return replace(point, blocks=blocks)


def _with_total(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**row, "value_s": row.get("total_s", math.nan)}
