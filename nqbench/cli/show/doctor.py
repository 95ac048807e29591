"""What ``nqbench doctor`` shows: one line per finding, and under it the command that mends it."""

from __future__ import annotations

from rich.markup import escape

from nqbench.cli.show.console import console
from nqbench.doctor import FEATURES, Report, Row

STYLES = {"ok": "green", "warning": "yellow", "missing": "red"}


def show_doctor(report: Report) -> None:
    """All rows in order, then one sentence about the device at hand."""
    out = console()
    out.print(escape(f"device: {report.device} ({report.why})"), soft_wrap=True)
    width = max(len(row.name) for row in report.rows)
    lacking = report.lacking
    for row in report.rows:
        for line in _lines(row, width, needed=row in lacking):
            out.print(line, soft_wrap=True)
    out.print(escape(report.summary()), soft_wrap=True)


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
