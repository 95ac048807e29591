"""Tables as CSV: data, all digits, intervals in columns of their own."""

from __future__ import annotations

import csv
import io

from nqbench.report.cells import data_cells, data_headings
from nqbench.report.table import Table


class Csv:
    """RFC 4180 with a header line; source and notes follow the device in columns of every row.

    A CSV file has no place for remarks that every reader skips, so device, manner and command are
    the last three columns.
    """

    suffix = ".csv"

    def render(self, table: Table) -> str:
        """The whole file."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        heads = [head for column in table.columns for head in data_headings(column)]
        writer.writerow([*heads, "device", "manner", "command"])
        source = [table.source.device, table.source.manner, table.source.command]
        for row in table.rows:
            cells = [
                text
                for cell, column in zip(row, table.columns, strict=True)
                for text in data_cells(cell, column)
            ]
            writer.writerow([*cells, *source])
        return out.getvalue()
