"""A comparison: its tables, and the page with its sentences and figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import shorten
from typing import Final, Literal

from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.request import Findings, Ranking
from nqbench.analysis.compare.runs import ComparedPoint, ComparedQuantity, Comparison
from nqbench.analysis.compare.wording import sentences
from nqbench.analysis.data.estimate import ALPHA, CONFIDENCE
from nqbench.analysis.data.quantities import CPU_TIME
from nqbench.analysis.wording import number
from nqbench.errors import AnalysisError
from nqbench.report import table
from nqbench.report.exporters import exporter
from nqbench.report.figures import style
from nqbench.report.figures.axes import ratio_axis
from nqbench.report.page import Bullets, Page
from nqbench.report.table import Column, Source, Table, joint, slug, tabulate

QUIET: Final = ("same", "equal")
"""Verdicts that a reader in a hurry may skip."""
INLINE_ROWS: Final = 60
"""Tables with more rows are linked, not shown on the page."""
ON_CPU: Final = "CPU time: whole programs on the CPU, independent of the GPU"
MAX_ROWS: Final = 60
"""More rows than this are no longer legible on one page; the largest changes are shown."""
_ROW_IN: Final = 0.17
MAX_NAME: Final = 60
"""Characters of a run's name in the subtitle: two of them fill a line."""
LOOKS: Final = {
    "faster": ("#0072B2", "<"),
    "slower": ("#D55E00", ">"),
    "same": ("#009E73", "o"),
    "unclear": (style.GREY, "D"),
    "equal": ("#009E73", "o"),
    "better": ("#0072B2", "^"),
    "worse": ("#D55E00", "v"),
    "fewer": ("#CC79A7", "s"),
    "more": ("#CC79A7", "P"),
}
"""Colour and marker by verdict; either one identifies it."""


def tables_of(findings: Findings) -> list[Table]:
    """Every table: a summary first, then the best variants, groups and points of each comparison,
    and what could not be compared; effects that reverse last.
    """
    numbered = list(_numbered(findings))
    source = joint([one for _, _, one in numbered], findings.command)
    tables = [_summary(findings, source)]
    for which, comparison, own in numbered:
        rankings = [r for r in findings.rankings if r.comparison is comparison and r.best]
        tables += [_best(ranking, own, which) for ranking in rankings]
        if any(section.groups for section in comparison.sections):
            tables.append(_groups(comparison, own, which))
        tables += [_points(comparison, section, own, which) for section in comparison.sections]
        if comparison.missing:
            tables.append(_missing(comparison, own, which))
    if findings.reversals:
        tables.append(_reversals(findings, source))
    return tables


def rendered(findings: Findings, form: str) -> str:
    """Every table in one format, one after the other. Raises ``StudyError`` for an unknown one."""
    return "\n".join(map(exporter(form), tables_of(findings)))


def changed(findings: Findings) -> list[tuple[Comparison, ComparedPoint]]:
    """Rows other than ``same`` and ``equal``, the largest change first."""
    rows = [(c, row) for c in findings.comparisons for row in c.rows if row.verdict not in QUIET]
    return sorted(rows, key=lambda item: -item[1].ratio.distance)


def write_comparison(
    findings: Findings,
    out: Path,
    formats: Sequence[str] = ("md", "csv"),
    *,
    home: str = "",
) -> list[Path]:
    """Write everything; the page ``compare.md`` comes first in the returned paths.

    ``home`` is the page's link to the one that leads here.

    Raises ``StudyError`` for an unknown format, ``StoreError`` if the folder cannot be written.
    """
    page = Page(out, formats, inline_rows=INLINE_ROWS, home=home)
    page.heading(title_of(findings), 1)
    page.add(Bullets(tuple(sentences(findings))))
    with style.styled():
        for which, comparison, source in _numbered(findings):
            for section in comparison.sections:
                # Counts that are equal everywhere, or zero and without a ratio, stay in the table.
                with suppress(AnalysisError):
                    if not section.equal_everywhere:
                        page.drawing(ratios(comparison, section, source, which), source, level=0)
    for one in tables_of(findings):
        page.table(one, size=f"{one.size}: ")
    return page.write("compare")


def title_of(findings: Findings) -> str:
    """What is compared with what: the study, and each side against the reference."""
    first = findings.comparisons[0]
    compared = ", ".join(comparison.names[1] for comparison in findings.comparisons)
    return f"{first.sides[0].name}: {compared} against {first.names[0]}"


def _numbered(findings: Findings) -> Iterator[tuple[str, Comparison, Source]]:
    """Each comparison with its number in file names (empty for the only one) and its source."""
    for index, comparison in enumerate(findings.comparisons, 1):
        which = str(index) if len(findings.comparisons) > 1 else ""
        sources = [table.source_of(side) for side in comparison.sides]
        yield which, comparison, joint(sources, findings.command)


def _summary(findings: Findings, source: Source) -> Table:
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
    return Table("summary", "Summary", columns, rows, source, findings.notes)


def _best(ranking: Ranking, source: Source, which: str) -> Table:
    """The fastest variant of each size on either side."""
    found = [
        (best, name, lead)
        for best in ranking.best
        for name, lead in zip(ranking.comparison.names, best.leaders, strict=True)
    ]
    columns, rows = tabulate(
        found,
        (Column("N", "number"), lambda one: one[0].n),
        (Column("variants", "number"), lambda one: one[0].variants),
        (Column("on"), lambda one: one[1]),
        (Column("fastest"), lambda one: one[0].called[one[2].point]),
        (Column(ranking.section.quantity.label, "time", spread=True), lambda one: one[2].value),
        (Column("next"), lambda one: one[0].called[one[2].next]),
        (Column("next / fastest", "ratio", spread=True), lambda one: one[2].lead),
        (Column("told apart"), lambda one: "yes" if one[2].clear else "no"),
    )
    notes = (
        "Variants of one size compute the same answer; a configuration in several sweeps is one",
        "told apart: the interval, widened for the number of variants, excludes 1",
    )
    return Table(slug("best", which), "Fastest variants", columns, rows, source, notes)


def _groups(comparison: Comparison, source: Source, which: str) -> Table:
    columns, rows = tabulate(
        [(section, group) for section in comparison.sections for group in section.groups],
        (Column("quantity"), lambda one: one[0].quantity.label),
        (Column("by"), lambda one: one[1].factor),
        (Column("level"), lambda one: one[1].level),
        (Column("points", "number"), lambda one: one[1].points),
        (Column("geometric mean", "ratio", spread=True), lambda one: one[1].ratio),
        (Column("verdict"), lambda one: one[1].verdict or ""),
    )
    title = f"By system and memory: {comparison.names[1]} against {comparison.names[0]}"
    notes = ("Geometric means over the points that were compared; another choice has another mean",)
    return Table(slug("groups", which), title, columns, rows, source, notes)


def _points(comparison: Comparison, section: ComparedQuantity, source: Source, which: str) -> Table:
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
        (Column("corrected p"), lambda row: "" if math.isnan(row.p) else f"{row.p:.2g}")
        if timed
        else (Column("difference"), difference),
        (Column("remark"), lambda row: row.reason),
    )
    notes = ["Counts compare exactly; ratio: compared over reference"]
    if timed:
        notes = [
            *([ON_CPU] if what == CPU_TIME else []),
            "ratio: compared over reference, below 1 is faster; brackets:"
            f" {CONFIDENCE:.0%} interval",
            f"same: the interval lies within {comparison.margin:.3g} of 1; verdicts keep the"
            f" false-discovery rate over all points at {ALPHA:.0%} (Benjamini-Hochberg)",
        ]
    title = f"{what.label}: {sides[1]} against {sides[0]}"
    name = slug("points", which, _file_part(section))
    return Table(name, title, columns, rows, source, (*notes, *comparison.notes))


def difference(row: ComparedPoint) -> str:
    """The difference of two exact counts."""
    gap = row.second.value - row.first.value
    if not gap:
        return ""
    sign = "+" if gap > 0 else "-"
    share = f" ({100 * (row.ratio.value - 1):+.3g}%)" if row.ratio.value < math.inf else ""
    return f"{sign}{number(abs(gap))}{share}"


def _missing(comparison: Comparison, source: Source, which: str) -> Table:
    columns, rows = tabulate(
        comparison.missing,
        (Column("point"), lambda m: m.label),
        (Column("missing in"), lambda m: m.where),
        (Column("reason"), lambda m: m.reason),
    )
    title = f"Not compared: {comparison.names[1]} against {comparison.names[0]}"
    return Table(slug("missing", which), title, columns, rows, source)


def _reversals(findings: Findings, source: Source) -> Table:
    columns, rows = tabulate(
        findings.reversals,
        (Column("change"), lambda r: str(r.change)),
        (Column("quantity"), lambda r: r.quantity.label),
        (Column("N", "number"), lambda r: r.change.n),
        (Column("on"), lambda r: r.names[0]),
        (Column("ratio", "ratio", spread=True), lambda r: r.ratios[0]),
        (Column("but on"), lambda r: r.names[1]),
        (Column("other ratio", "ratio", spread=True), lambda r: r.ratios[1]),
    )
    notes = ("Changes that clearly help on one device and clearly hurt on the other",)
    return Table("reversals", "Effects that reverse", columns, rows, source, notes)


def ratios(
    comparison: Comparison, section: ComparedQuantity, source: Source, which: str = ""
) -> style.Drawing:
    """One dot per point, the largest change on top. Raises ``AnalysisError`` without a ratio."""
    what = section.quantity
    usable = [row for row in section.rows if 0 < row.ratio.value < math.inf]
    if not usable:
        raise AnalysisError(f"no point has a ratio of {what.label} that can be drawn")
    ranked = sorted(usable, key=lambda row: -row.ratio.distance)[:MAX_ROWS]
    names = labels([row.pair.first for row in section.rows])
    figure = style.new_figure(1.3 + _ROW_IN * max(len(ranked), 4))
    ax = figure.subplots()
    shown = [b for row in ranked for b in (row.ratio.value, row.ratio.low, row.ratio.high) if b]
    ratio_axis(ax, shown)
    for verdict, (colour, marker) in LOOKS.items():
        rows = [(y, row.ratio) for y, row in enumerate(ranked) if row.verdict == verdict]
        if rows:
            style.dots(ax, rows, colour, marker, markersize=4.5, linewidth=1, label=verdict)
    named = [style.label_of(names[row.pair.first], 80) for row in ranked]
    ax.set_yticks(range(len(ranked)), named, fontsize=6.5)
    ax.set_ylim(len(ranked) - 0.5, -0.5)
    ax.set_xlabel(f"{what.label}, compared / reference")
    style.legend(figure, ax)
    cut = f" (of {len(usable)}, the largest changes)" if len(ranked) < len(usable) else ""
    subtitle = f"{len(ranked)} points{cut}"
    if what.kind == "time":
        low, high = 1 / (1 + comparison.margin), 1 + comparison.margin
        ax.axvspan(low, high, color="#009E73", alpha=0.12, linewidth=0)
        subtitle += f"; whiskers: {CONFIDENCE:.0%} interval; band: margin {comparison.margin:.1%}"
    if what == CPU_TIME:
        subtitle += f"\n{ON_CPU}"
    sides = (shorten(n, MAX_NAME, placeholder="...") for n in comparison.names[::-1])
    subtitle += f"\n{' against '.join(sides)}"
    name = slug("ratios", which, _file_part(section))
    alt = f"Dot plot of the ratios of {len(ranked)} points."
    title = f"Ratio of {what.label} per point"
    return style.finish(figure, name, title, source, alt=alt, subtitle=subtitle)


def _file_part(section: ComparedQuantity) -> str:
    """The quantity as part of a file name; times of CPU programs get separate files."""
    return CPU_TIME.label if section.quantity == CPU_TIME else section.quantity.name
