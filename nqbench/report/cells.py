"""Cells as text: for people (rounded, with intervals) and as data (all digits, plain)."""

from __future__ import annotations

import math
from typing import Final

from nqbench.analysis import wording
from nqbench.analysis.data.estimate import Estimate
from nqbench.report.table import Cell, Column

EMPTY: Final = "\u2013"
"""A dash: nothing is known here, which is not zero."""
WIDE: Final = 0.1
"""Half-width above which an interval is visibly lopsided and ``±`` would hide that."""


def cell_text(cell: Cell, column: Column) -> str:
    """A cell for people."""
    if cell is None or cell == "":
        return EMPTY
    if isinstance(cell, Estimate):
        return _estimate(cell, column)
    if isinstance(cell, str):
        return cell
    return _number(float(cell), column)


def _number(value: float, column: Column) -> str:
    if math.isnan(value):
        return EMPTY
    if column.kind == "time":
        return wording.time(value)
    if column.kind == "ratio":
        return wording.ratio(Estimate(value))
    return wording.number(value)


def _estimate(cell: Estimate, column: Column) -> str:
    if math.isnan(cell.value):
        return "0 in both" if column.kind == "ratio" else EMPTY
    if cell.value == math.inf:
        return "from 0"
    if cell.low is None or cell.high is None:
        return _number(cell.value, column)
    if column.kind == "time":
        half = math.sqrt(cell.high / cell.low) - 1
        if half > WIDE:
            return (
                f"{wording.time(cell.value)} [{wording.time(cell.low)}, {wording.time(cell.high)}]"
            )
        return f"{wording.time(cell.value)} ±{100 * half:.2g}%"
    return wording.ratio(cell)


def data_headings(column: Column) -> list[str]:
    """Headings of a column in a data format: an estimate takes three."""
    name = column.name.replace(" ", "_")
    unit = "_s" if column.kind == "time" else f"_{column.unit}" if column.unit else ""
    head = name if name.endswith(unit) else name + unit
    return [head, f"{head}_low", f"{head}_high"] if column.spread else [head]


def data_cells(cell: Cell, column: Column) -> list[str]:
    """A cell in a data format: every digit, empty where nothing is known."""
    if isinstance(cell, Estimate):
        values = [cell.value, cell.low, cell.high] if column.spread else [cell.value]
        return [_plain(v) for v in values]
    text = cell if isinstance(cell, str) else _plain(cell)
    return [text, "", ""] if column.spread else [text]


def _plain(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    if math.isfinite(value) and float(value).is_integer():
        return str(int(value))
    return repr(float(value))
