"""A comparison: its tables, and the page with its sentences and figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from nqbench.analysis.answer import Best
from nqbench.analysis.compare import wording
from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.request import Findings
from nqbench.analysis.compare.runs import ComparedQuantity, Comparison
from nqbench.analysis.data.estimate import ALPHA, CONFIDENCE
from nqbench.analysis.data.quantities import CPU_TIME, Quantity
from nqbench.analysis.findings import superlative
from nqbench.analysis.wording import Difference, amount, short
from nqbench.report import table
from nqbench.report.exporters import exporter
from nqbench.report.page import Bullets, Origin, Page, Paragraph
from nqbench.report.table import Body, Column, Source, Table, joint, slug, tabulate
from nqbench.system.suggest import many

MAX_EFFECTS: Final = 8
"""Changes on a screen, the strongest; the page has all of them."""
MAX_CHANGES: Final = 10
"""Compared points on a screen, those that changed most; files hold all of them."""
RATIO: Final = "compared over reference"
CHANGE: Final = "to over from"
FASTEST: Final = "fastest over next"
"""What the plain ratios of data formats are: they have a direction, which their columns name."""
INLINE_ROWS: Final = 60
"""Tables with more rows are linked, not shown on the page."""
OPEN: Final = ("best", "best-counts", "effects")
"""Tables that stand open on the page."""
IN_FILES: Final = ("variants", "told apart")
"""Columns of the best variants that are left out at a glance."""
ON_CPU: Final = "CPU time: whole programs on the CPU, independent of the GPU"


def tables_of(findings: Findings) -> list[Table]:
    """Every table: the best variants, what each change does on each side, a summary; then of each
    comparison the points of each quantity, and what could not be compared."""
    tables = [*best_variants(findings), *_effects(findings), _summary(findings)]
    for index, comparison in enumerate(findings.comparisons, 1):
        which = str(index) if len(findings.comparisons) > 1 else ""
        source = _source([comparison], findings.command)
        told = [section for section in comparison.sections if not section.equal_everywhere]
        tables += [_points(comparison, section, source, which) for section in told]
        if comparison.missing:
            tables.append(_missing(comparison, source, which))
    return tables


def rendered(findings: Findings, form: str) -> str:
    """Every table in one format, one after the other. Raises ``StudyError`` for an unknown one."""
    return "\n".join(map(exporter(form), tables_of(findings)))


def write_comparison(
    findings: Findings, out: Path, formats: Sequence[str] = ("md", "csv"), *, home: str = ""
) -> list[Path]:
    """Write everything; the page ``compare.md`` comes first in the returned paths.

    ``home`` is the page's link to the one that leads here.

    Raises ``StudyError`` for an unknown format, ``StoreError`` if the folder cannot be written.
    """
    page = Page(out, formats, inline_rows=INLINE_ROWS, home=home)
    page.heading(title_of(findings), 1)
    page.add(*(Paragraph(sentence, lead=True) for sentence in wording.verdicts(findings)))
    shared = many(len(findings.answers[0].data.points), "point")
    page.add(Origin(_source(findings.comparisons, findings.command), f"{shared} in common"))
    for one in tables_of(findings):
        told = tuple(wording.turned(findings)) if one.name == "summary" else ()
        if told:
            page.heading("What changes order")
            page.add(Bullets(told))
        page.table(one, size=f"{one.size}: ", folded=one.name not in OPEN)
    return page.write("compare")


def title_of(findings: Findings) -> str:
    """What is compared with what: the study, and each side against the reference."""
    first = findings.comparisons[0]
    compared = ", ".join(comparison.names[1] for comparison in findings.comparisons)
    return f"{first.sides[0].name}: {compared} against {first.names[0]}"


def _source(comparisons: Sequence[Comparison], command: str) -> Source:
    sides = [comparisons[0].sides[0], *(c.sides[1] for c in comparisons)]
    return joint([table.source_of(side) for side in sides], command)


def _table(findings: Findings, name: str, title: str, made: Body, *notes: str) -> Table:
    return Table(name, title, *made, _source(findings.comparisons, findings.command), notes)


def best_variants(findings: Findings) -> list[Table]:
    """The fastest variant of each size on each side; of counts each side's best by each count."""
    tables = []
    timed = {
        (best.n, name, best.name): (name, best)
        for ranking in findings.rankings
        for pair in ranking.best
        for name, best in zip(ranking.names, pair, strict=True)
    }
    if timed:
        what = findings.rankings[0].quantity
        ahead = Column("ahead of the next", "ratio", spread=True, plain=FASTEST)
        made = tabulate(
            sorted(timed.values(), key=lambda one: -one[1].n),
            (Column("N", "number"), lambda one: one[1].n),
            (Column("variants", "number"), lambda one: one[1].of),
            (Column("on"), lambda one: one[0]),
            (Column("fastest"), lambda one: short(one[1].name)),
            (Column(what.label, "time", spread=True), lambda one: one[1].value),
            (ahead, lambda one: _lead(one[1])),
            (Column("next"), lambda one: short(one[1].next_name)),
            (Column("told apart"), lambda one: "yes" if one[1].ahead else "no"),
        )
        notes = (
            "Variants of one size give the same answer; a configuration in several sweeps is one",
            "told apart: the interval, widened for the number of variants, excludes 1",
        )
        tables.append(_table(findings, "best", "Fastest variant", made, *notes))
    counted = list(_best_counts(findings))
    if counted:
        made = tabulate(
            counted,
            (Column("N", "number"), lambda one: one[1].n),
            (Column("count"), lambda one: superlative(one[1])),
            (Column("on"), lambda one: one[0]),
            (Column("best"), lambda one: short(one[1].name)),
            (Column("value"), lambda one: amount(one[1].value.value, one[1].what)),
        )
        tables.append(_table(findings, "best-counts", "Best variant by each count", made))
    return [replace(best, shown=best) for best in tables]


def _lead(best: Best) -> Difference:
    assert best.over_next is not None
    return Difference(best.over_next.inverse(), best.what, verdict="" if best.ahead else "unclear")


def at_a_glance(findings: Findings) -> Iterator[Table]:
    """What a terminal has room for: the best of the largest size, and the strongest effects."""
    for best in best_variants(findings):
        kept = [i for i, column in enumerate(best.columns) if column.name not in IN_FILES]
        rows = [tuple(row[i] for i in kept) for row in best.rows if row[0] == best.rows[0][0]]
        columns = tuple(best.columns[i] for i in kept)
        yield replace(best, columns=columns, rows=tuple(rows), notes=())
    for one in _effects(findings):
        more = len(one.rows) - MAX_EFFECTS
        notes = (f"... and {more} more on the page",) if more > 0 else ()
        yield replace(one, rows=one.rows[:MAX_EFFECTS], notes=notes)


def changed(findings: Findings) -> Iterator[Table]:
    """The points that changed most, of each quantity and comparison: the first of its table."""
    told = [(c, s) for c in findings.comparisons for s in c.sections if s.differing]
    for comparison, section in told:
        kept = section.differing[: max(MAX_CHANGES // len(told), 2)]
        source = _source([comparison], findings.command)
        one = _points(comparison, replace(section, rows=tuple(kept)), source, "")
        more = len(section.differing) - len(kept)
        notes = (f"... and {more} more points that changed",) if more else ()
        end = [column.name for column in one.columns].index("verdict")  # what follows is for pages
        rows = tuple(row[:end] for row in one.rows)
        yield replace(one, columns=one.columns[:end], rows=rows, notes=notes)


def _best_counts(findings: Findings) -> Iterator[tuple[str, Best]]:
    """On which sides, and the best point there, by each count."""
    if not findings.answers[0].data.simulated:
        return
    for what in findings.answers[0].quantities:
        alike: dict[tuple[str, float], tuple[Best, list[str]]] = {}
        for name, answer in zip(findings.names, findings.answers, strict=True):
            every = answer.best_of(answer.sweep, answer.quantities)
            if best := next((one for one in every if one.what.name == what.name), None):
                found = alike.setdefault((best.name, best.value.value), (best, []))
                found[1].append(wording.side(name))
        for best, on in alike.values():
            yield "all" if len(on) == len(findings.names) else ", ".join(on), best


def _effects(findings: Findings) -> Iterator[Table]:
    if not findings.effects:
        return
    change, told = findings.effects[0].change, {one.quantity for one in findings.effects}
    turns = any(one.turns for one in findings.effects)
    made = tabulate(
        findings.effects,
        (
            Column("change"),
            lambda one: f"{one.change.factor}: {one.change.base} → {one.change.level}",
        ),
        *([(Column("quantity"), lambda one: one.quantity.plain)] if len(told) > 1 else []),
        *(
            (
                Column(wording.side(name), "ratio", spread=True, plain=f"{name} {CHANGE}"),
                lambda one, i=i: one.effects[i],
            )
            for i, name in enumerate(findings.names)
        ),
        *([(Column("direction"), lambda one: "turns" if one.turns else "")] * turns),
    )
    where = f"{change.sweep}, N = {change.n}; + better, - worse"
    title = f"What each change does, everything else equal ({where})"
    yield _table(findings, "effects", title, made, "Over the points that all sides have")


def _summary(findings: Findings) -> Table:
    found = [(c.names, s) for c in findings.comparisons for s in c.sections]
    verdicts = list(dict.fromkeys(v for _, section in found for v in section.counts))
    mean = Column("mean", "ratio", spread=True, plain=f"mean {RATIO}")
    made = tabulate(
        found,
        (Column("quantity"), lambda one: one[1].quantity.label),
        (Column("compared"), lambda one: one[0][1]),
        (Column("with reference"), lambda one: one[0][0]),
        (Column("points", "number"), lambda one: len(one[1].rows)),
        *((Column(v, "number"), lambda one, v=v: one[1].counts.get(v)) for v in verdicts),
        (mean, lambda one: one[1].difference),
    )
    means = "mean: geometric, over the points; of counts of zero the totals"
    return _table(findings, "summary", "How many points differ", made, means, *findings.notes)


def _notes(comparison: Comparison, what: Quantity) -> list[str]:
    if what.kind != "time":
        return ["Counts compare exactly; 0 -> 576: from none to 576"]
    return [
        *([ON_CPU] if what == CPU_TIME else []),
        f"±, or both bounds in brackets: {CONFIDENCE:.0%} interval",
        f"same: the interval lies within {comparison.margin:.3g} of 1; verdicts keep the"
        f" false-discovery rate over all points at {ALPHA:.0%} (Benjamini-Hochberg)",
    ]


def _points(comparison: Comparison, section: ComparedQuantity, source: Source, which: str) -> Table:
    what, sides = section.quantity, comparison.names
    timed = what.kind == "time"
    kind: Literal["time", "number"] = "time" if timed else "number"
    names = labels([r.pair.first for r in section.rows])
    columns, rows = tabulate(
        sorted(section.rows, key=lambda row: -row.weight),
        (Column("point"), lambda row: names[row.pair.first]),
        (Column(sides[0], kind, spread=timed), lambda row: row.first),
        (Column(sides[1], kind, spread=timed), lambda row: row.second),
        (Column("difference", "ratio", spread=timed, plain=RATIO), lambda row: row.difference),
        (Column("verdict"), lambda row: row.verdict),
        *(
            [(Column("corrected p"), lambda row: "" if math.isnan(row.p) else f"{row.p:.2g}")]
            * timed
        ),
        (Column("remark"), lambda row: row.reason),
    )
    title = f"{what.label}: {sides[1]} against {sides[0]}"
    # Times of CPU programs get separate files.
    name = slug("points", which, what.label if what == CPU_TIME else what.name)
    return Table(name, title, columns, rows, source, (*_notes(comparison, what), *comparison.notes))


def _missing(comparison: Comparison, source: Source, which: str) -> Table:
    columns, rows = tabulate(
        comparison.missing,
        (Column("point"), lambda m: m.label),
        (Column("missing in"), lambda m: m.where),
        (Column("reason"), lambda m: m.reason),
    )
    title = f"Not compared: {comparison.names[1]} against {comparison.names[0]}"
    return Table(slug("missing", which), title, columns, rows, source)
