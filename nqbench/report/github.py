"""Annotations of a check on GitHub; of a comparison also a summary that fits a comment.

Source of the form: docs.github.com, Workflow commands for GitHub Actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nqbench.analysis.compare import wording
from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.request import Findings, Gate
from nqbench.analysis.wording import amount
from nqbench.report.comparison import at_a_glance, changed, title_of
from nqbench.report.exporters import escape, macro

MOST: Final = 10
"""Annotations that GitHub shows of one step."""
ROOM: Final = 60_000
"""Characters of a summary: a comment on a pull request takes 65,536."""
_VALUE: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final = {**_VALUE, ":": "%3A", ",": "%2C"}


def commands(findings: Findings, gate: Gate | None) -> Iterator[str]:
    """A line for each point that breaks the gate, the strongest first; without a gate a warning for
    each that became slower or worse."""
    kind = "error" if gate else "warning"
    gates = [gate] if gate else [Gate("slower"), Gate("worse")]
    rows = [row for c in findings.comparisons for g in gates for row in g.broken(c)]
    named = labels([row.pair.first for row in rows])
    for row in sorted(rows, key=lambda row: -row.weight)[:MOST]:
        first, second = (amount(side.value, row.quantity) for side in (row.first, row.second))
        change = str(row.difference).rstrip(" +-")  # the sign is for tables
        said = f"{row.quantity.label}: {change} ({first} before, {second} now)"
        yield command(kind, named[row.pair.first], said)
    for comparison in findings.comparisons if gate else ():
        for point in comparison.missing:
            if point.broke:
                yield command(kind, point.label, f"ran before, and failed now: {point.reason}")


def summary(findings: Findings, said: str) -> str:
    """The verdict, ``said`` of the gate, what changed most and what could not be compared; tables
    that do not fit are left out, with a sentence."""
    told = [*wording.verdicts(findings), *filter(None, [said])]
    told += [*wording.turned(findings), *wording.missing(findings)]
    text = f"## {escape(title_of(findings))}\n\n" + "\n\n".join(map(escape, told)) + "\n"
    for table in (*at_a_glance(findings), *changed(findings)):
        block = macro("table_block")(table, (table.source,))
        more = f"\n### {escape(table.title)}\n\n{block}"
        if len(text) + len(more) > ROOM:
            return f"{text[:ROOM]}\nTables that do not fit here are left out.\n"
        text += more
    return text


def command(kind: str, title: str, message: str, **place: str | int) -> str:
    """An annotation; ``place`` is the ``file`` and ``line`` that it stands at."""
    properties = {**place, "title": f"nqbench: {title}"}
    named = [f"{k}={''.join(_PROPERTY.get(c, c) for c in str(v))}" for k, v in properties.items()]
    return f"::{kind} {','.join(named)}::{''.join(_VALUE.get(c, c) for c in message)}"
