"""Writes the tables, figures and the page of a comparison into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nqbench.analysis.compare.request import Findings
from nqbench.errors import AnalysisError
from nqbench.report.comparison import sentences, source_of, tables_of
from nqbench.report.exporters import exporter
from nqbench.report.exporters.markdown import body, escape
from nqbench.report.figures.comparison import ratios
from nqbench.report.figures.style import Drawing, save, styled
from nqbench.report.table import Source
from nqbench.report.writer import FIGURE_FORMATS, Folder

INLINE_ROWS = 60
"""Rows up to which a table stands on the page; longer ones are linked."""


def write_comparison(
    findings: Findings,
    out: Path,
    formats: Sequence[str] = ("md", "csv"),
    figure_formats: Sequence[str] = FIGURE_FORMATS,
) -> list[Path]:
    """Write everything; the page ``compare.md`` comes first in the returned paths.

    Raises ``StudyError`` for an unknown format and ``StoreError`` where the folder refuses.
    """
    chosen = [exporter(name) for name in formats]
    folder = Folder(out)
    lines = ["# Comparison", "", *(f"- {escape(s)}" for s in sentences(findings)), ""]
    for drawing, source in _drawings(findings):
        names = []
        for form in figure_formats:
            name = f"figure-{drawing.name}.{form}"
            folder.put(name, lambda path, d=drawing, s=source: save(d, path, s))  # type: ignore[misc]
            names.append(name)
        if names:
            lines += [f"![{escape(drawing.alt)}](<{names[0]}>)", ""]
    for table in tables_of(findings):
        names = [f"table-{table.name}{e.suffix}" for e in chosen]
        for name, e in zip(names, chosen, strict=True):
            folder.text(name, e.render(table))
        links = " \u00b7 ".join(f"[{Path(name).suffix[1:]}](<{name}>)" for name in names)
        lines += [f"## {escape(table.title)}", ""]
        if len(table.rows) <= INLINE_ROWS:
            lines += [body(table), ""]
        lines += [f"{table.size}: {links}", ""]
    page = folder.page("compare.md", "\n".join(lines).rstrip() + "\n")
    return [page, *(path for path in folder.written if path != page)]


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
