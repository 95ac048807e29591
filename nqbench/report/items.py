"""The items of a study's report list, and the part of the run that each is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.factorial.effects import distinct_factors, swept_factors
from nqbench.errors import AnalysisError, StoreError
from nqbench.study.report_items import REMOVED_TABLES, ReportItem

DEFAULT_ITEMS: Final = (
    ReportItem("table", "results"),
    ReportItem("table", "resources"),
    ReportItem("table", "skipped"),
)
"""The report of a study without a report list: the items that need no options."""


def items_of(data: Dataset) -> list[ReportItem]:
    """The report list of the run's study, without tables that there are no more. Raises
    ``StoreError`` for a damaged one."""
    given = data.study.get("report") or ()
    try:
        items = list(map(ReportItem.from_json, given)) or DEFAULT_ITEMS
        return [one for one in items if one.form == "figure" or one.name not in REMOVED_TABLES]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"the manifest of run {data.name!r} is damaged: its report list has an entry that"
            " is neither a table nor a figure; delete study.report from it to get the default"
            " tables"
        ) from error


def title_of(data: Dataset, item: ReportItem, default: str) -> str:
    """The study's title, else the default with the requested quantity."""
    named = f"{default}: {data.quantity(item.value).label}" if item.value else default
    return item.title or named


def quantities_of(data: Dataset, item: ReportItem) -> tuple[Quantity, ...]:
    """What an item shows of kernels: what it asks for, else the time, or the counters with those
    that answer first."""
    usual = data.quantities(item.value)
    if item.value or not data.simulated:
        return usual
    return tuple(dict.fromkeys((*Answer(data).telling, *usual)))


def largest_of(sweep: str, drawable: Sequence[PointResult], what: Quantity) -> int:
    """The largest size. Raises ``AnalysisError`` where no point of the sweep can be drawn."""
    if not drawable:
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a {what.label}")
    return max(point.n for point in drawable)


def sweep_of(data: Dataset, item: ReportItem) -> str:
    """The one sweep of an item. Raises ``AnalysisError`` if that is ambiguous."""
    if item.of is not None:
        if item.of in data.sweeps:
            return item.of
        known = ", ".join(data.sweeps) or "none"
        raise AnalysisError(f"the run has no sweep {item.of!r} (it has: {known})")
    if len(data.sweeps) == 1:
        return data.sweeps[0]
    several = ", ".join(data.sweeps)
    raise AnalysisError(f"the run has several sweeps ({several}): say which with `of`")


def sweeps_of(data: Dataset, item: ReportItem) -> tuple[str, ...]:
    """The sweep that an item names, else all sweeps."""
    return (sweep_of(data, item),) if item.of is not None else data.sweeps


def columns_of(data: Dataset, sweep: str) -> tuple[str, ...]:
    """Factors that distinguish the points of a sweep, ``system`` first if there is one.

    The swept factors, and others that vary if those are not enough (for points on the CPU, which
    have no effects).
    """
    factors = swept_factors(data, sweep)
    if "system" not in factors and any(p.system for p in data.select(sweep)):
        factors = ("system", *factors)
    return distinct_factors(data, sweep, factors)
