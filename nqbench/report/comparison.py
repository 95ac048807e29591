"""A comparison: its tables, and the page with its sentences and figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Final, Literal

from nqbench.analysis.compare.match import Matched, labels
from nqbench.analysis.compare.rates import BUSY, ENERGY_S, Rated, Rates
from nqbench.analysis.compare.request import Findings
from nqbench.analysis.compare.runs import Compared, Comparison, Group, Section
from nqbench.analysis.compare.wording import sentences
from nqbench.analysis.data.estimate import CONFIDENCE, Estimate
from nqbench.analysis.data.quantities import CPU_TIME, Quantity
from nqbench.analysis.data.statistics import ALPHA
from nqbench.analysis.wording import number
from nqbench.errors import AnalysisError
from nqbench.report import table
from nqbench.report.exporters import exporter
from nqbench.report.figures.axes import ratio_axis
from nqbench.report.figures.style import (
    GREY,
    Drawing,
    dots,
    finish,
    label_of,
    legend,
    new_figure,
    styled,
)
from nqbench.report.page import Bullets, Page
from nqbench.report.table import Cell, Column, Source, Table, joint, slug, tabulate

QUIET: Final = ("same", "equal")
"""Verdicts that a reader in a hurry may skip."""
INLINE_ROWS: Final = 60
"""Tables with more rows are linked, not shown on the page."""
MILLION: Final = 1e6
"""Rates are given in millions where most of them are above."""
RatedPair = tuple[Matched, tuple[Rates, Rates]]
"""A row of the table of rates."""

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
    "unclear": (GREY, "D"),
    "equal": ("#009E73", "o"),
    "better": ("#0072B2", "^"),
    "worse": ("#D55E00", "v"),
    "fewer": ("#CC79A7", "s"),
    "more": ("#CC79A7", "P"),
}
"""Colour and marker by verdict; either one identifies it."""


def tables_of(findings: Findings) -> list[Table]:
    """Every table: a summary first, then the best variants, groups, points and their rates, then
    what could not be compared.
    """
    tables = [_summary(findings)]
    for index, comparison in enumerate(findings.comparisons, 1):
        which = str(index) if len(findings.comparisons) > 1 else ""
        tables += _best(findings, comparison, which)
        grouped = [(s, g) for s in comparison.sections for g in s.groups]
        if grouped:
            tables.append(_groups(findings, comparison, grouped, which))
        tables += [_points(findings, comparison, b, which) for b in comparison.sections]
        tables += [_rates(findings, r, which) for r in findings.rated if r.comparison is comparison]
        if comparison.missing:
            tables.append(_missing(findings, comparison, which))
    if findings.ranks:
        tables.append(_ranks(findings))
    if findings.reversals:
        tables.append(_reversals(findings))
    return tables


def rendered(findings: Findings, form: str) -> str:
    """Every table in one format, one after the other. Raises ``StudyError`` for an unknown one."""
    return "\n".join(map(exporter(form), tables_of(findings)))


def changed(findings: Findings) -> list[tuple[Comparison, Compared]]:
    """Rows other than ``same`` and ``equal``, the largest change first."""
    rows = [(c, row) for c in findings.comparisons for row in c.rows if row.verdict not in QUIET]
    return sorted(rows, key=lambda item: -_size(item[1]))


def point_label(comparison: Comparison, row: Compared) -> str:
    """A pair of points in words that distinguish it from the others."""
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
    for drawing, source in _drawings(findings):
        page.drawing(drawing, source, level=0)
    for one in tables_of(findings):
        page.table(one, size=f"{one.size}: ")
    return page.write("compare")


def title_of(findings: Findings) -> str:
    """What is compared with what: the study, and each side against the reference."""
    first = findings.comparisons[0]
    compared = ", ".join(comparison.names[1] for comparison in findings.comparisons)
    return f"{first.sides[0].name}: {compared} against {first.names[0]}"


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
    return Table("summary", "Summary", columns, rows, _all(findings), findings.notes)


def _best(findings: Findings, comparison: Comparison, which: str) -> list[Table]:
    """The fastest variant of each size on either side."""
    own = [a for a in findings.answers if a.comparison is comparison and a.best]
    if not own:
        return []
    found = [
        (best, name, lead)
        for best in own[0].best
        for name, lead in zip(comparison.names, best.leaders, strict=True)
    ]
    columns, rows = tabulate(
        found,
        (Column("N", "number"), lambda one: one[0].n),
        (Column("variants", "number"), lambda one: one[0].variants),
        (Column("on"), lambda one: one[1]),
        (Column("fastest"), lambda one: one[0].called[one[2].point]),
        (Column(own[0].section.quantity.label, "time", spread=True), lambda one: one[2].value),
        (Column("next"), lambda one: one[0].called[one[2].next]),
        (Column("next / fastest", "ratio", spread=True), lambda one: one[2].lead),
        (Column("told apart"), lambda one: "yes" if one[2].clear else "no"),
    )
    notes = (
        "Variants of one size compute the same answer; a configuration in several sweeps is one",
        "told apart: the interval, widened for the number of variants, excludes 1",
    )
    title = "Fastest variants"
    source = source_of(findings, comparison)
    return [Table(slug("best", which), title, columns, rows, source, notes)]


def _groups(
    findings: Findings,
    comparison: Comparison,
    grouped: Sequence[tuple[Section, Group]],
    which: str,
) -> Table:
    columns, rows = tabulate(
        grouped,
        (Column("quantity"), lambda one: one[0].quantity.label),
        (Column("by"), lambda one: one[1].factor),
        (Column("level"), lambda one: one[1].level),
        (Column("points", "number"), lambda one: one[1].points),
        (Column("geometric mean", "ratio", spread=True), lambda one: one[1].ratio),
        (Column("verdict"), lambda one: one[1].verdict or ""),
    )
    title = f"By system and memory: {comparison.names[1]} against {comparison.names[0]}"
    notes = ("Geometric means over the points that were compared; another choice has another mean",)
    source = source_of(findings, comparison)
    return Table(slug("groups", which), title, columns, rows, source, notes)


def _rates(findings: Findings, rated: Rated, which: str) -> Table:
    """Work per second, per multiprocessor and GHz, share of the roof, energy: a column per side."""
    names = labels([pair.first for pair, _ in rated.rows])
    fields: list[tuple[Column, Callable[[RatedPair], Cell]]] = [
        (Column("point"), lambda row: names[row[0].first])
    ]
    rates = [one for _, both in rated.rows for one in both]
    per_s = [one.per_s.value for one in rates if one.per_s]
    large = bool(per_s) and statistics.median(per_s) >= MILLION
    scale, unit = (1 / MILLION, "10^6/s") if large else (1, "1/s")
    measures: tuple[tuple[str, str, float, Callable[[Rates], Estimate | float | None]], ...] = (
        (rated.unit, unit, scale, lambda r: r.per_s),
        (f"{rated.unit} per multiprocessor and GHz", unit, scale, lambda r: r.per_clock),
        ("share of the roof", "%", 100, lambda r: r.share),
        ("energy per launch", "J", 1, lambda r: r.energy_j),
    )
    for label, unit, scale, of in measures:
        if all(of(one) is None for one in rates):
            continue
        for side, name in enumerate(rated.comparison.names):
            spread = label != "share of the roof"
            column = Column(f"{label} on {name}", "number", unit, spread=spread)
            fields.append((column, partial(_rate, of=of, side=side, scale=scale)))
    fields.append((Column("without energy because"), lambda row: _no_energy(row[1])))
    columns, rows = tabulate(rated.rows, *fields)
    title = f"Rates: {rated.comparison.names[1]} against {rated.comparison.names[0]}"
    notes = (
        "per multiprocessor and GHz: at the SM clock that was read while the point was timed",
        *(
            [f"share of the roof: least time by {rated.roofs}, over the time taken"]
            if rated.roofs
            else []
        ),
        "energy: of the whole board by NVML, from the first to the last timed launch of a"
        f" measurement, over their number{_spanned(rated)}; the counter moves every 0.1 s, so"
        " measurements below"
        f" {ENERGY_S:g} s, or with kernels in less than {BUSY:.0%} of it, give none",
    )
    source = source_of(findings, rated.comparison)
    return Table(slug("rates", which), title, columns, rows, source, notes)


def _rate(
    row: RatedPair, of: Callable[[Rates], Estimate | float | None], side: int, scale: float
) -> Cell:
    value = of(row[1][side])
    return value.scaled(scale) if isinstance(value, Estimate) else value and value * scale


def _spanned(rated: Rated) -> str:
    """How many launches the energies of the table are of."""
    counts = [
        int(row["samples"])
        for pair, both in rated.rows
        for point, rates in zip((pair.first, pair.second), both, strict=True)
        if rates.energy_j is not None
        for row in point.measurements.values()
    ]
    return f" (here {min(counts)} to {max(counts)})" if counts else ""


def _no_energy(both: tuple[Rates, Rates]) -> str:
    """Why a point has no energy on a side; once if it is the same on both."""
    return "; ".join(dict.fromkeys(rates.no_energy for rates in both if rates.no_energy))


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
    return (
        *((ON_CPU,) if section.quantity == CPU_TIME else ()),
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
    notes = (
        "1: both devices rank the points the same; p: test of unrelated ranks. A sweep whose counts"
        " are equal everywhere is left out",
        *(
            f"{section.quantity.label}: equal everywhere"
            for section in {
                s.quantity.name: s for c in findings.comparisons for s in c.sections
            }.values()
            if section.equal_everywhere
        ),
    )
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


def ratios(comparison: Comparison, section: Section, source: Source, which: str = "") -> Drawing:
    """One dot per point, the largest change on top. Raises ``AnalysisError`` without a ratio."""
    usable = [row for row in section.rows if 0 < row.ratio.value < math.inf]
    if not usable:
        raise AnalysisError(f"no point has a ratio of {section.quantity.label} that can be drawn")
    ranked = sorted(usable, key=lambda row: -abs(math.log(row.ratio.value)))[:MAX_ROWS]
    names = labels([row.pair.first for row in section.rows])
    figure = new_figure(1.3 + _ROW_IN * max(len(ranked), 4))
    ax = figure.subplots()
    shown = [b for row in ranked for b in (row.ratio.value, row.ratio.low, row.ratio.high) if b]
    ratio_axis(ax, shown)
    if section.quantity.kind == "time":
        low, high = 1 / (1 + comparison.margin), 1 + comparison.margin
        ax.axvspan(low, high, color="#009E73", alpha=0.12, linewidth=0)
    for verdict, (colour, marker) in LOOKS.items():
        rows = [(y, row.ratio) for y, row in enumerate(ranked) if row.verdict == verdict]
        if rows:
            dots(ax, rows, colour, marker, markersize=4.5, linewidth=1, label=verdict)
    named = [label_of(names[row.pair.first], 80) for row in ranked]
    ax.set_yticks(range(len(ranked)), named, fontsize=6.5)
    ax.set_ylim(len(ranked) - 0.5, -0.5)
    ax.set_xlabel(f"{section.quantity.label}, compared / reference")
    legend(figure, ax)
    cut = f" (of {len(usable)}, the largest changes)" if len(ranked) < len(usable) else ""
    subtitle = f"{len(ranked)} points{cut}"
    if section.quantity.kind == "time":
        subtitle += f"; whiskers: {CONFIDENCE:.0%} interval; band: margin {comparison.margin:.1%}"
    sides = " against ".join(
        shorten(n, MAX_NAME, placeholder="...") for n in comparison.names[::-1]
    )
    if section.quantity == CPU_TIME:
        subtitle += f"\n{ON_CPU}"
    subtitle += f"\n{sides}"
    name = slug("ratios", which, file_part(section.quantity))
    title = f"Ratio of {section.quantity.label} per point"
    alt = f"Dot plot of the ratios of {len(ranked)} points."
    return finish(figure, name, title, source, alt=alt, subtitle=subtitle)


def file_part(what: Quantity) -> str:
    """A quantity as part of a file name; times of CPU programs get separate files."""
    return CPU_TIME.label if what == CPU_TIME else what.name
