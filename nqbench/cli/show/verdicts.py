"""Verdicts, as ``claims`` and ``reproduce`` show them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from nqbench.analysis.claims.judge import ENUMERATED
from nqbench.cli.show.console import console, say
from nqbench.cli.show.results import show_files
from nqbench.cli.show.tables import plain_table, print_fitting
from nqbench.report.table import EMPTY

if TYPE_CHECKING:
    from pathlib import Path

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
DECIDED: Final = ("verdict", "size", "statement", "measured", "paper")
"""What a newcomer wants to know of a claim."""


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
    print_fitting(console(), plain_table(), shown, rows, colours=COLOURS)
    for note in table.notes:
        say(note)


def show_decided(report: PaperReport) -> None:
    """The claims that could be tested, in the paper's words, and why most others could not."""
    names = [column.name for column in report.claims.columns]
    columns = [names.index(name) for name in DECIDED]
    for row in report.claims.texts():
        word, size, statement, measured, printed = (row[i] for i in columns)
        if word != "not measured":
            head = word if size == EMPTY else f"{word}, {size}"
            here = f"Here: {measured}" + ("" if printed == EMPTY else f"; paper: {printed}")
            say(f"{statement} {here}.", bullet=f"{head:<19}")
    reasons = Counter(v.reason for v in report.verdicts if v.word == "not measured")
    for reason, number in reasons.most_common(1):
        say(f"Not measured: {reasons.total()} claims, {number} of them because {reason}")


def show_paper(report: PaperReport, records: Path | None = None) -> None:
    """The verdicts in one line, and where the files are."""
    counts = Counter(verdict.word for verdict in report.verdicts)
    say(f"verdicts: {', '.join(f'{number} {word}' for word, number in counts.items())}")
    show_files(report, records)
