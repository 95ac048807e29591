"""The doctor's findings: a line for each, and below it the command that fixes it."""

from __future__ import annotations

from typing import Final

from rich.markup import escape

from nqbench.cli.show.console import console, say, wrapped
from nqbench.doctor import FEATURES, Report, Row

STYLES: Final = {"ok": "green", "warning": "yellow", "missing": "red"}


def show_doctor(report: Report) -> None:
    """All rows in order, then one sentence about the chosen device."""
    say(f"device: {report.device} ({report.why})")
    width = max(len(row.name) for row in report.rows)
    lacking = report.lacking
    out = console()
    for row in report.rows:
        first, *others = _lines(row, width, needed=row in lacking)
        state = len(row.state)
        rest = escape(wrapped(first, out, width + 11)[state:])
        out.print(f"[{STYLES[row.state]}]{row.state}[/]{rest}", soft_wrap=True)
        for line in others:
            say(line, out, hang=width + 11)
    say(report.summary())


def _lines(row: Row, width: int, *, needed: bool) -> list[str]:
    lines = [f"{row.state:<8} {row.name:<{width}}  {row.found}"]
    margin = " " * (width + 11)
    if row.state == "missing":
        verb = "needed for" if needed else "only for"
        lines.append(f"{margin}{verb}: {FEATURES[row.feature]}")
    if row.remedy:
        lines.append(f"{margin}do: {row.remedy}")
    return lines
