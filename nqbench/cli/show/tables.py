"""Tables that keep every cell, however narrow the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

if TYPE_CHECKING:
    from nqbench.report.table import Table as ReportTable

UNBOUND_WIDTH: Final = 10_000
"""Columns that no table needs: what it would take if the terminal were wide enough."""
INDENT: Final = 4


def print_fitting(
    out: Console, table: Table, names: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print ``rows`` in ``table``, which has its columns, title and caption but no rows yet.

    Where the terminal is too narrow for the words of a line, each row becomes a paragraph under
    its first cell: rich would drop the columns that do not fit.
    """
    for row in rows:
        table.add_row(*map(escape, row))
    unbound = out.options.update(width=UNBOUND_WIDTH)
    if Measurement.get(out, unbound, table).minimum <= out.width:
        out.print(table)
        return
    if table.title:
        out.print(table.title)
    for row in rows:
        out.print(escape(row[0] or "-"), soft_wrap=True)
        pairs = [f"{name}={cell}" for name, cell in zip(names[1:], row[1:], strict=True) if cell]
        if pairs:
            out.print(Padding(escape(", ".join(pairs)), (0, 0, 0, INDENT)))
    if table.caption:
        out.print(table.caption)


def show_table(out: Console, table: ReportTable) -> None:
    """A table of a report, with its source and notes."""
    names = [column.heading for column in table.columns]
    made = Table(box=SIMPLE_HEAD)
    for index, name in enumerate(names):
        made.add_column(escape(name), no_wrap=index == 0, overflow="fold")
    out.print(escape(table.title))
    out.print(escape(str(table.source)))
    print_fitting(out, made, names, list(table.texts()))
    for note in table.notes:
        out.print(escape(note), soft_wrap=True)
