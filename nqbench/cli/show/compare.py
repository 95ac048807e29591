"""What ``compare`` and ``selftest`` show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from nqbench.cli.show.console import console

if TYPE_CHECKING:
    from nqbench.report.comparison import Findings
    from nqbench.selftest.statistics import SelfTest

MOST_ROWS: Final = 30
"""Points listed on a screen, the largest changes; files hold all of them."""


def show_comparison(findings: Findings, paths: Sequence[Path]) -> None:
    """The points that changed, what came out in words, and the files."""
    from nqbench.report.comparison import changed, sentences

    out = console()
    rows = changed(findings)
    if rows:
        out.print(_changes(findings, rows[:MOST_ROWS]))
        if len(rows) > MOST_ROWS:
            out.print(f"... and {len(rows) - MOST_ROWS} more; --out FOLDER writes all of them")
    for sentence in sentences(findings):
        out.print(escape(f"* {sentence}"), soft_wrap=True)
    for note in findings.notes:
        out.print(escape(note), soft_wrap=True)
    for path in paths:
        out.print(escape(str(path)), soft_wrap=True)


def _changes(findings: Findings, rows: Sequence[tuple[object, object]]) -> Table:
    from nqbench.analysis.compare.model import Compared, Comparison
    from nqbench.analysis.wording import ratio
    from nqbench.report.comparison import difference, point_label, quantity_label

    several = len(findings.comparisons) > 1
    table = Table(box=SIMPLE_HEAD)
    heads = ["point", *(["compared"] if several else []), "quantity", "verdict", "ratio", "remark"]
    for index, head in enumerate(heads):
        table.add_column(head, no_wrap=index == 0, overflow="fold")
    for comparison, row in rows:
        assert isinstance(comparison, Comparison)
        assert isinstance(row, Compared)
        exact = row.quantity.kind == "counter"
        cells = [
            point_label(comparison, row),
            *([comparison.names[1]] if several else []),
            quantity_label(row),
            row.verdict,
            ratio(row.ratio),
            difference(row) if exact else row.reason,
        ]
        table.add_row(*map(escape, cells))
    return table


def show_self_test(result: SelfTest) -> None:
    """Every rate with its bounds and its limit; what is broken is said last."""
    out = console()
    table = Table(box=SIMPLE_HEAD)
    for head in ("noise", "design", "what", "rate", "95% bounds", "of", "limit", ""):
        table.add_column(head, no_wrap=head != "noise", overflow="fold")
    for f in result.findings:
        low, high = f.rate.bounds()
        verdict = "" if not f.limit else "holds" if f.holds else "BROKEN"
        cells = [f.scenario, f.design, f.what, f"{f.rate.value:.2%}", f"{low:.2%} to {high:.2%}"]
        table.add_row(*map(escape, [*cells, str(f.rate.trials), f.limit, verdict]))
    out.print(table)
    for note in result.notes:
        out.print(escape(note), soft_wrap=True)
    broken = sum(not f.holds for f in result.findings)
    out.print("every limit holds" if result.passed else f"{broken} limits are BROKEN")
