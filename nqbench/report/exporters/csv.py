"""Tables as CSV: data, all digits, intervals in columns of their own."""

from __future__ import annotations

import csv
import io

from nqbench.report.table import Table


class Csv:
    """RFC 4180 with a header line, in which no name stands twice.

    A CSV file has no place for remarks that every reader skips, so the device of the run, the
    provenance and the command are the last three columns of every row.
    """

    suffix = ".csv"

    def render(self, table: Table) -> str:
        """The whole file."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(table.data_headings)
        writer.writerows(table.data())
        return out.getvalue()
