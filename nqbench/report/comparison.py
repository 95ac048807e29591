"""A comparison: its tables, its sentences, and the page with its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from nqbench.analysis.compare.devices import RankCorrelation
from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.request import Findings
from nqbench.analysis.compare.runs import Compared, Comparison, Section
from nqbench.analysis.compare.statistics import ALPHA
from nqbench.analysis.data.estimate import CONFIDENCE
from nqbench.analysis.data.quantities import CPU_TIME
from nqbench.analysis.wording import number
from nqbench.analysis.wording import ratio as ratio_text
from nqbench.errors import AnalysisError
from nqbench.report import table
from nqbench.report.figures.comparison import ON_CPU, file_part, ratios
from nqbench.report.figures.style import Drawing, styled
from nqbench.report.page import FIGURE_FORMATS, Bullets, Page
from nqbench.report.table import Column, Source, Table, joint, slug, tabulate

QUIET: Final = ("same", "equal")
"""Verdicts that a reader in a hurry may skip."""
INLINE_ROWS: Final = 60
"""Rows up to which a table stands on the page; longer ones are linked."""


def tables_of(findings: Findings) -> list[Table]:
    """Every table: a summary first, then points, then what could not be compared."""
    tables = [_summary(findings)]
    for index, comparison in enumerate(findings.comparisons, 1):
        which = str(index) if len(findings.comparisons) > 1 else ""
        tables += [_points(findings, comparison, b, which) for b in comparison.sections]
        if comparison.missing:
            tables.append(_missing(findings, comparison, which))
    if findings.ranks:
        tables.append(_ranks(findings))
    if findings.reversals:
        tables.append(_reversals(findings))
    return tables


def rendered(findings: Findings, form: str) -> str:
    """Every table in one format, one after the other. Raises ``StudyError`` for an unknown one."""
    from nqbench.report.exporters import exporter

    chosen = exporter(form)
    return "\n".join(chosen.render(table) for table in tables_of(findings))


def sentences(findings: Findings) -> list[str]:
    """What came out, in words: one sentence per comparison and quantity, then the reversals."""
    said = []
    for comparison in findings.comparisons:
        for section in comparison.sections:
            counts = ", ".join(f"{n} {_plural(v, n)}" for v, n in section.counts.items() if n)
            mean = ""
            if section.overall is not None:
                mean = f"; geometric mean of the ratios {ratio_text(section.overall)}"
            said.append(
                f"{comparison.names[1]} against {comparison.names[0]}, {section.quantity.label}"
                f" of {len(section.rows)} points: {counts}{mean}."
            )
        if comparison.missing:
            first, many = comparison.missing[0], comparison.unmatched
            said.append(
                f"{many} point{'s' if many > 1 else ''} could not be compared with"
                f" {comparison.names[1]}; e.g. {first.label} (in {first.where}): {first.reason}."
            )
    said += _told_ranks(findings.ranks)
    said += [reversal.sentence() for reversal in findings.reversals]
    if findings.several_devices and not findings.reversals:
        said.append("No optimization clearly helps on one device and hurts on another.")
    return said


def _plural(verdict: str, count: int) -> str:
    return "differ" if verdict == "differs" and count != 1 else verdict


def changed(findings: Findings) -> list[tuple[Comparison, Compared]]:
    """Rows other than ``same`` and ``equal``, the largest change first."""
    rows = [(c, row) for c in findings.comparisons for row in c.rows if row.verdict not in QUIET]
    return sorted(rows, key=lambda item: -_size(item[1]))


def point_label(comparison: Comparison, row: Compared) -> str:
    """A pair of points in words, with what tells it from the others."""
    return labels([r.pair.first for r in comparison.rows])[row.pair.first]


def quantity_label(row: Compared) -> str:
    """What a row compares; the time of a CPU program is not that of a kernel."""
    timed_on_cpu = row.pair.first.cpu and row.quantity.kind == "time"
    return CPU_TIME.label if timed_on_cpu else row.quantity.label


def source_of(findings: Findings, comparison: Comparison) -> Source:
    """Where the numbers of a comparison come from."""
    return joint([table.source_of(side) for side in comparison.sides], findings.command)


def write_comparison(
    findings: Findings,
    out: Path,
    formats: Sequence[str] = ("md", "csv"),
    figure_formats: Sequence[str] = FIGURE_FORMATS,
) -> list[Path]:
    """Write everything; the page ``compare.md`` comes first in the returned paths.

    Raises ``StudyError`` for an unknown format and ``StoreError`` where the folder refuses.
    """
    page = Page(out, formats, figure_formats, inline_rows=INLINE_ROWS)
    page.heading("Comparison", 1)
    page.add(Bullets(tuple(sentences(findings))))
    for drawing, source in _drawings(findings):
        page.drawing(drawing, source, level=0)
    for one in tables_of(findings):
        page.table(one, size=f"{one.size}: ")
    return page.write("compare")


def _drawings(findings: Findings) -> list[tuple[Drawing, Source]]:
    """A figure per comparison and quantity, except where every count is equal."""
    found = []
    with styled():
        for index, comparison in enumerate(findings.comparisons, 1):
            which = str(index) if len(findings.comparisons) > 1 else ""
            source = source_of(findings, comparison)
            for section in comparison.sections:
                if section.counts.get("equal") == len(section.rows):
                    continue
                try:
                    found.append((ratios(comparison, section, source, which), source))
                except AnalysisError:
                    continue  # counts of zero have no ratio; the table has them
    return found


def _size(row: Compared) -> float:
    value = row.ratio.value
    return abs(math.log(value)) if 0 < value < math.inf else math.inf


def _told_ranks(ranks: Sequence[RankCorrelation]) -> list[str]:
    """Of each sweep and quantity the largest size."""
    largest = {(r.names, r.of, r.quantity.name): r for r in sorted(ranks, key=lambda r: r.n)}
    return [
        f"{r.names[0]} and {r.names[1]} order the {r.points} points of sweep {r.of} at N={r.n} by"
        f" {r.quantity.label} with Spearman {r.spearman:.2f} and Kendall {r.kendall:.2f}."
        for r in largest.values()
    ]


def _all(findings: Findings) -> Source:
    return joint([source_of(findings, c) for c in findings.comparisons], findings.command)


def _summary(findings: Findings) -> Table:
    found = [(c.names, s) for c in findings.comparisons for s in c.sections]
    verdicts = list(dict.fromkeys(v for _, section in found for v in section.counts))
    columns, rows = tabulate(
        found,
        (Column("compared"), lambda one: one[0][1]),
        (Column("with reference"), lambda one: one[0][0]),
        (Column("quantity"), lambda one: one[1].quantity.label),
        (Column("points", "number"), lambda one: len(one[1].rows)),
        *((Column(v, "number"), lambda one, v=v: one[1].counts.get(v)) for v in verdicts),
        (Column("geometric mean", "ratio", spread=True), lambda one: one[1].overall),
    )
    return Table("summary", "Comparison", columns, rows, _all(findings), findings.notes)


def _points(findings: Findings, comparison: Comparison, section: Section, which: str) -> Table:
    what, sides = section.quantity, comparison.names
    timed = what.kind == "time"
    kind: Literal["time", "number"] = "time" if timed else "number"
    names = labels([r.pair.first for r in section.rows])
    columns, rows = tabulate(
        section.rows,
        (Column("point"), lambda row: names[row.pair.first]),
        (Column(sides[0], kind, spread=timed), lambda row: row.first),
        (Column(sides[1], kind, spread=timed), lambda row: row.second),
        (Column("ratio", "ratio", spread=timed), lambda row: row.ratio),
        (Column("verdict"), lambda row: row.verdict),
        (Column("corrected p"), _p_text) if timed else (Column("difference"), difference),
        (Column("remark"), lambda row: row.reason),
    )
    title = f"{what.label}: {sides[1]} against {sides[0]}"
    notes = (*_meaning(comparison, section), *comparison.notes)
    name = slug("points", which, file_part(what))
    return Table(name, title, columns, rows, source_of(findings, comparison), notes)


def difference(row: Compared) -> str:
    """The difference of two exact counts."""
    gap = row.second.value - row.first.value
    if not gap:
        return ""
    sign = "+" if gap > 0 else "-"
    share = f" ({100 * (row.ratio.value - 1):+.3g}%)" if row.ratio.value < math.inf else ""
    return f"{sign}{number(abs(gap))}{share}"


def _p_text(row: Compared) -> str:
    return "" if math.isnan(row.p) else f"{row.p:.2g}"


def _meaning(comparison: Comparison, section: Section) -> tuple[str, ...]:
    if section.quantity.kind == "counter":
        return ("Counts compare exactly; ratio: compared over reference",)
    host = (ON_CPU,) if section.quantity == CPU_TIME else ()
    return (
        *host,
        f"ratio: compared over reference, below 1 is faster; brackets: {CONFIDENCE:.0%} interval",
        f"same: the interval lies within {comparison.margin:.3g} of 1; verdicts keep the"
        f" false-discovery rate over all points at {ALPHA:.0%} (Benjamini-Hochberg)",
    )


def _missing(findings: Findings, comparison: Comparison, which: str) -> Table:
    columns, rows = tabulate(
        comparison.missing,
        (Column("point"), lambda m: m.label),
        (Column("missing in"), lambda m: m.where),
        (Column("reason"), lambda m: m.reason),
    )
    title = f"Not compared: {comparison.names[1]} against {comparison.names[0]}"
    source = source_of(findings, comparison)
    return Table(slug("missing", which), title, columns, rows, source)


def _ranks(findings: Findings) -> Table:
    columns, rows = tabulate(
        findings.ranks,
        (Column("one"), lambda r: r.names[0]),
        (Column("other"), lambda r: r.names[1]),
        (Column("quantity"), lambda r: r.quantity.label),
        (Column("sweep"), lambda r: r.of),
        (Column("N", "number"), lambda r: r.n),
        (Column("points", "number"), lambda r: r.points),
        (Column("Spearman", "number"), lambda r: r.spearman),
        (Column("Spearman p", "number"), lambda r: r.spearman_p),
        (Column("Kendall", "number"), lambda r: r.kendall),
        (Column("Kendall p", "number"), lambda r: r.kendall_p),
    )
    notes = ("1: both devices rank the points the same; p: test of unrelated ranks",)
    title = "Rank correlation between devices"
    return Table("ranks", title, columns, rows, _all(findings), notes)


def _reversals(findings: Findings) -> Table:
    columns, rows = tabulate(
        findings.reversals,
        (Column("change"), lambda r: r.change),
        (Column("quantity"), lambda r: r.quantity.label),
        (Column("N", "number"), lambda r: r.n),
        (Column("on"), lambda r: r.names[0]),
        (Column("ratio", "ratio", spread=True), lambda r: r.ratios[0]),
        (Column("but on"), lambda r: r.names[1]),
        (Column("other ratio", "ratio", spread=True), lambda r: r.ratios[1]),
    )
    notes = ("Changes that clearly help on one device and clearly hurt on the other",)
    return Table("reversals", "Effects that reverse", columns, rows, _all(findings), notes)
