"""A comparison on a terminal: the verdict, then tables of at most a few rows, then the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nqbench.analysis.compare import wording
from nqbench.cli.show.console import say, show_report_table
from nqbench.cli.show.results import show_paths
from nqbench.report import comparison as tables

if TYPE_CHECKING:
    from pathlib import Path

    from nqbench.analysis.compare.request import Findings
    from nqbench.report.table import Table


def show_comparison(findings: Findings, paths: Sequence[Path]) -> None:
    """The verdict, the best variant of each side, what each change does there, what changes order,
    within one device the points that changed most, what is missing, and the files."""
    for sentence in wording.verdicts(findings):
        say(sentence)
    _tables(tables.at_a_glance(findings))
    _paragraph([*wording.turned(findings)])
    if not findings.several_devices:
        _tables(tables.changed(findings))
    equal = all(comparison.equal_everywhere for comparison in findings.comparisons)
    _paragraph([*wording.missing(findings), *(() if equal else findings.notes)])
    if paths:
        show_paths(paths)
    elif not equal:
        say("--format html: a page with every point; --out FOLDER: all tables", bullet="More   ")


def _tables(shown: Iterable[Table]) -> None:
    for table in shown:
        say("")
        show_report_table(table, source=False)


def _paragraph(told: Sequence[str]) -> None:
    for sentence in ["", *told] if told else []:
        say(sentence)
