"""What ``claims`` and ``reproduce`` show: verdicts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as RichTable

from nqbench.analysis.claims.judge import ENUMERATED
from nqbench.cli.show.console import console, say

if TYPE_CHECKING:
    from nqbench.report.papers.write import PaperReport
    from nqbench.report.table import Table

COLOURS: Final = {"holds": "green", "fails": "red", "unclear": "yellow", "not measured": "dim"}
SHOWN: Final = ("claim", "verdict", "measured", "paper", "remark")
"""Columns that fit a terminal; the statement and the device are in the written table."""


def show_claims(table: Table) -> None:
    """The verdict table."""
    names = [column.name for column in table.columns]
    say(table.title)
    say(str(table.source))
    devices = {row[names.index("device")] for row in table.rows} - {ENUMERATED}
    shown = [*SHOWN[:2], *(("device",) if len(devices) > 1 else ()), *SHOWN[2:]]
    made = RichTable(box=SIMPLE_HEAD)
    for name in shown:
        made.add_column(name, no_wrap=name in ("claim", "verdict"), overflow="fold")
    for row in table.texts():
        cells = dict(zip(names, row, strict=True))
        colour = COLOURS.get(cells["verdict"], "")
        texts = [escape(cells[name]) for name in shown]
        texts[1] = f"[{colour}]{texts[1]}[/{colour}]" if colour else texts[1]
        made.add_row(*texts)
    console().print(made)
    for note in table.notes:
        say(note)


def show_paper(report: PaperReport) -> None:
    """The page, the number of files beside it, and the verdicts in one line."""
    page, *others = report.paths
    say(str(page))
    say(f"{len(others)} tables and figures beside it")
    counts = Counter(verdict.word for verdict in report.verdicts)
    say(", ".join(f"{number} {word}" for word, number in counts.items()))
