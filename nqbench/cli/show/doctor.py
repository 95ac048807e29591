"""The doctor's findings: a line for each, and below it the command that fixes it."""

from __future__ import annotations

from typing import Final

from rich.markup import escape

from nqbench.cli.show.console import console, say
from nqbench.doctor import FEATURES, Report, Row

STYLES: Final = {"ok": "green", "warning": "yellow", "missing": "red"}


def show_doctor(report: Report) -> None:
    """All rows in order, then one sentence about the chosen device."""
    say(f"device: {report.device} ({report.why})")
    width = max(len(row.name) for row in report.rows)
    lacking = report.lacking
    out = console()
    for row in report.rows:
        for line in _lines(row, width, needed=row in lacking):
            out.print(line, soft_wrap=True)
    say(report.summary())


def _lines(row: Row, width: int, *, needed: bool) -> list[str]:
    state = f"[{STYLES[row.state]}]{row.state:<8}[/]"
    lines = [f"{state} {row.name:<{width}}  {escape(row.found)}"]
    margin = " " * (width + 11)
    if row.state == "missing":
        verb = "needed for" if needed else "only for"
        lines.append(escape(f"{margin}{verb}: {FEATURES[row.feature]}"))
    if row.remedy:
        lines.append(escape(f"{margin}do: {row.remedy}"))
    return lines
