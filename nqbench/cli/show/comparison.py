"""A comparison on a terminal: the verdict, then tables of at most a few rows, then the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nqbench.analysis import wording
from nqbench.analysis.compare import wording as sentences
from nqbench.analysis.compare.match import labels
from nqbench.cli.show.console import say, show_report_table, show_table
from nqbench.cli.show.results import show_paths
from nqbench.report import comparison as tables

if TYPE_CHECKING:
    from pathlib import Path

    from nqbench.analysis.compare.request import Findings
    from nqbench.analysis.compare.runs import ComparedPoint, Comparison
    from nqbench.analysis.data.quantities import Quantity

MAX_EFFECTS: Final = 8
"""Changes on a screen, the strongest; the page has all of them."""
MAX_CHANGES: Final = 10
"""Compared points on a screen, those that changed most; files hold all of them."""


def show_comparison(findings: Findings, paths: Sequence[Path]) -> None:
    """The verdict, the best variant of each side, what each change does there, what changes order,
    the points that changed most, and the files."""
    for sentence in sentences.verdicts(findings):
        say(sentence)
    for table in tables.best_variants(findings):
        say("")
        show_report_table(tables.at_a_glance(table), source=False)
    _effects(findings)
    _several(list(sentences.turned(findings)))
    if not findings.several_devices:
        _points(findings)
    equal = all(comparison.equal_everywhere for comparison in findings.comparisons)
    _several([*sentences.missing(findings), *(() if equal else findings.notes)])
    if paths:
        show_paths(paths)
    elif not equal:
        say("--format html: a page with figures; --out FOLDER: all tables", bullet="Every point   ")


def _several(told: Sequence[str]) -> None:
    """Sentences below an empty line."""
    for sentence in ["", *told] if told else []:
        say(sentence)


def _effects(findings: Findings) -> None:
    """What the strongest changes do on each side."""
    shown = findings.effects[:MAX_EFFECTS]
    if not shown:
        return
    change = shown[0].change
    say("")
    title = f"What each change does, everything else equal ({change.sweep}, N = {change.n})"
    say(f"{title}    + better  - worse")
    timed, turns = shown[0].quantity.kind == "time", any(one.turns for one in shown)
    rows = [
        [
            one.change.factor,
            f"{one.change.base} -> {one.change.level}",
            *([] if timed else [one.quantity.plain]),
            *(wording.marked(effect) if effect else "" for effect in one.effects),
            *(["turns" if one.turns else ""] if turns else []),
        ]
        for one in shown
    ]
    heads = ["", "", *([] if timed else [""]), *findings.names, *([""] if turns else [])]
    show_table(heads, rows)
    if more := len(findings.effects) - len(shown):
        say(f"... and {more} more on the page")


def _points(findings: Findings) -> None:
    """The points that changed most."""
    found = [(c, row) for c, row in tables.changed(findings) if row.verdict != "unclear"]
    if not found:
        return
    by_quantity: dict[Quantity, list[tuple[Comparison, ComparedPoint]]] = {}
    for one in found:
        by_quantity.setdefault(one[1].quantity, []).append(one)
    most = max(MAX_CHANGES // len(by_quantity), 2)  # one count shall not fill the screen
    shown = [one for own in by_quantity.values() for one in own[:most]]
    named = {id(c): labels([row.pair.first for row in c.rows]) for c in findings.comparisons}
    several = len(findings.comparisons) > 1
    rows = [
        [
            named[id(comparison)][row.pair.first],
            *([sentences.side(comparison.names[1])] if several else []),
            row.quantity.label,
            *(wording.amount(value.value, row.quantity) for value in (row.first, row.second)),
            str(row.difference),
        ]
        for comparison, row in shown
    ]
    first, second = map(sentences.side, findings.comparisons[0].names)
    heads = ["point", *["compared"] * several, "quantity", first, "value" if several else second]
    say("")
    show_table([*heads, "difference"], rows)
    if more := len(found) - len(rows):
        say(f"... and {more} more points that changed")
