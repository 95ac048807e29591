"""Verdicts, as ``claims`` and ``reproduce`` show them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable

from nqbench.analysis.claims.judge import ENUMERATED
from nqbench.cli.show.console import console, say
from nqbench.cli.show.tables import print_fitting

if TYPE_CHECKING:
    from nqbench.report.papers.write import PaperReport
    from nqbench.report.table import Table

COLOURS: Final = {
    "holds": "green",
    "fails": "red",
    "no effect": "cyan",
    "unclear": "yellow",
    "not measured": "dim",
}
SHOWN: Final = ("claim", "verdict", "size", "measured", "paper", "remark")
"""Columns that fit a terminal; the statement and the device are in the written table."""


def show_claims(table: Table) -> None:
    """The verdict table."""
    names = [column.name for column in table.columns]
    say(table.title)
    say(str(table.source))
    devices = {row[names.index("device")] for row in table.rows} - {ENUMERATED}
    asked = any(row[names.index("asked of")] for row in table.rows)
    extra = [*["asked of"] * asked, *["device"] * (len(devices) > 1)]
    shown = [*SHOWN[:3], *extra, *SHOWN[3:]]
    columns = [names.index(name) for name in shown]
    rows = [[row[i] for i in columns] for row in table.texts()]
    print_fitting(console(), RichTable(box=SIMPLE_HEAD), shown, rows, colours=COLOURS)
    for note in table.notes:
        say(note)


def show_paper(report: PaperReport) -> None:
    """The page, the number of other files, and the verdicts in one line."""
    page, *others = report.paths
    say(str(page))
    say(f"{len(others)} tables and figures next to it")
    counts = Counter(verdict.word for verdict in report.verdicts)
    say(", ".join(f"{number} {word}" for word, number in counts.items()))
