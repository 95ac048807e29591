"""A comparison on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.request import Findings
from nqbench.analysis.compare.runs import ComparedPoint, Comparison
from nqbench.analysis.compare.wording import sentences
from nqbench.analysis.wording import ratio
from nqbench.cli.show.console import say
from nqbench.cli.show.results import show_paths
from nqbench.cli.show.tables import show_table
from nqbench.report.comparison import changed, difference

MAX_ROWS: Final = 30
"""Points listed on a screen, the largest changes; files hold all of them."""


def show_comparison(findings: Findings, paths: Sequence[Path]) -> None:
    """The findings in words, the points that changed, and the files."""
    for sentence in sentences(findings):
        say(sentence, bullet="* ")
    rows = changed(findings)
    if rows:
        _show_changes(findings, rows[:MAX_ROWS])
        if len(rows) > MAX_ROWS:
            say(f"... and {len(rows) - MAX_ROWS} more; --out FOLDER writes all of them")
    for note in findings.notes:
        say(note)
    show_paths(paths)


def _show_changes(findings: Findings, rows: Sequence[tuple[Comparison, ComparedPoint]]) -> None:
    several = len(findings.comparisons) > 1
    named = {id(c): labels([row.pair.first for row in c.rows]) for c in findings.comparisons}
    heads = ["point", *(["compared"] if several else []), "quantity", "verdict", "ratio", "remark"]
    cells = [
        [
            named[id(comparison)][row.pair.first],
            *([comparison.names[1]] if several else []),
            row.quantity.label,
            row.verdict,
            ratio(row.ratio),
            difference(row) if row.quantity.kind == "counter" else row.reason,
        ]
        for comparison, row in rows
    ]
    show_table(heads, cells)
