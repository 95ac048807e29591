"""The items of a study's report list, and the part of a run that each is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.quantities import Quantity, quantity
from nqbench.analysis.factorial.design import swept_factors, telling_factors
from nqbench.errors import AnalysisError, StoreError
from nqbench.study.report_items import OPTIONS, ReportItem

DEFAULT_ITEMS: Final = (
    ReportItem("table", "results"),
    ReportItem("table", "resources"),
    ReportItem("table", "skipped"),
)
"""What is written for a study without a report list: everything that needs no choice."""


def items_of(data: Dataset) -> list[ReportItem]:
    """The report list of the run's study. Raises ``StoreError`` for one that no study gives."""
    given = data.study.get("report") or ()
    try:
        return [_item(entry) for entry in given] or list(DEFAULT_ITEMS)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"the manifest of run {data.name!r} is damaged: its report list has an entry that"
            " is neither a table nor a figure; delete study.report from it to get the default"
            " tables"
        ) from error


def _item(entry: Mapping[str, Any]) -> ReportItem:
    options = {key: entry[key] for key in OPTIONS if entry.get(key) is not None and key != "n"}
    sizes = entry.get("n") or ()
    numbers = tuple(int(n) for n in sizes) if isinstance(sizes, Sequence) else (int(sizes),)
    if "figure" in entry:
        return ReportItem("figure", str(entry["figure"]), n=numbers, **options)
    return ReportItem("table", str(entry["table"]), n=numbers, **options)


def title_of(item: ReportItem, default: str) -> str:
    """The title that the study gives, else one that names the value asked for."""
    return item.title or (f"{default}: {quantity(item.value).label}" if item.value else default)


def sizes_of(
    item: ReportItem, sweep: str, drawable: Sequence[PointResult], what: Quantity
) -> list[int]:
    """Sizes that a figure of one board shows: all that the item asks for, else the largest.

    Raises ``AnalysisError`` where no point of the sweep can be drawn.
    """
    if not drawable:
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a {what.label}")
    sizes = sorted({point.n for point in drawable})
    return sizes if item.n else sizes[-1:]


def sweep_of(data: Dataset, item: ReportItem) -> str:
    """The one sweep an item is made from. Raises ``AnalysisError`` where that is not clear."""
    if item.of is not None:
        if item.of in data.sweeps:
            return item.of
        known = ", ".join(data.sweeps) or "none"
        raise AnalysisError(f"the run has no sweep {item.of!r} (it has: {known})")
    if len(data.sweeps) == 1:
        return data.sweeps[0]
    raise AnalysisError(
        f"the run has several sweeps ({', '.join(data.sweeps)}): say which with `of`"
    )


def sweeps_of(data: Dataset, item: ReportItem) -> tuple[str, ...]:
    """The sweeps of an item that may be about all of them."""
    return (sweep_of(data, item),) if item.of is not None else data.sweeps


def columns_of(data: Dataset, sweep: str) -> tuple[str, ...]:
    """Factors that distinguish the points of a sweep, ``system`` first if there is one.

    The swept ones, and where they do not suffice (for points on the CPU, which have no effects)
    others that vary.
    """
    factors = swept_factors(data, sweep)
    if "system" not in factors and any(p.system for p in data.select(sweep)):
        factors = ("system", *factors)
    return telling_factors(data, sweep, factors)
