"""Writes a report: every table and figure of the study's list, and a page that links them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.collect import collect
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.observed import Observed, observed
from nqbench.analysis.findings import findings
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers.load import load_paper, paper_names
from nqbench.record import Record
from nqbench.report.circumstances import (
    details,
    device_facts,
    device_state,
    environment,
    how_measured,
    repeat,
)
from nqbench.report.figures import FIGURES
from nqbench.report.figures.style import styled
from nqbench.report.items import DEFAULT_ITEMS, items_of
from nqbench.report.page import FIGURE_FORMATS, FORMATS, Bullets, Origin, Page, Paragraph
from nqbench.report.papers.verdicts import claims_table
from nqbench.report.table import slug, source_of
from nqbench.report.tables import TABLES
from nqbench.runs.reading import current, read_manifest, read_records
from nqbench.study.report_items import ReportItem
from nqbench.system.files import shown_path

INLINE_ROWS: Final = 30
"""Tables with more rows are linked, not shown on the page."""


@dataclass(frozen=True, slots=True)
class Report:
    """The files written, the page first, and the findings in sentences.

    ``not_made`` has a sentence for each table or figure that could not be made.
    """

    paths: tuple[Path, ...]
    not_made: tuple[str, ...]
    findings: tuple[str, ...]


def write_report(
    runs: Sequence[Path],
    out: Path,
    formats: Sequence[str] = FORMATS,
    figure_formats: Sequence[str] = FIGURE_FORMATS,
    *,
    home: str = "",
) -> Report:
    """Write the tables and figures that the runs' studies ask for, and ``report.md``.

    The format ``html`` is one page, ``report.html``, that needs no other file. Several runs get a
    folder each: different devices never share a table or an axis. Raises ``StoreError`` (a run
    cannot be read, the folder cannot be written) and ``StudyError`` (an unknown format). An item
    whose data are missing becomes a sentence on the page. ``home`` is the page's link to the one
    that leads here.
    """
    page = Page(out, formats, figure_formats, inline_rows=INLINE_ROWS, home=home)
    if not runs:
        raise StudyError("a report needs at least one run folder")
    not_made: list[str] = []
    found: list[str] = []
    for run in runs:
        manifest, records = read_manifest(run), read_records(run).records
        data = collect(manifest, records)
        if len(runs) > 1:
            page.enter(slug(data.name, data.device))
        sentences = findings(data)
        found += sentences
        kept = current(manifest, records)
        not_made += _section(data, kept, page, sentences)
        if page.wants_html:
            with page.only_html():
                _circumstances(page, observed(manifest, records, run), kept)
    return Report(tuple(page.write("report")), tuple(not_made), tuple(found))


def _section(
    data: Dataset, records: Sequence[Record], page: Page, sentences: Sequence[str]
) -> list[str]:
    """One run on the page. Returns a sentence for each item that could not be made."""
    page.heading(f"{data.name}: {data.device}", 1)
    about = str(data.study.get("about") or "").strip()
    if about:
        page.add(Paragraph(about if about[-1] in ".!?" else f"{about}."))
    ok = sum(p.ok for p in data.points)
    page.add(Origin(source_of(data), f"{ok} of {len(data.points)} points ok"))
    for sweep, n in data.spread:
        page.add(
            Paragraph(
                f"Sweep {sweep} N={n} was measured on several GPUs: comparisons within it include"
                " how these GPUs differ."
            )
        )
    page.heading("Findings")
    page.add(Bullets(tuple(sentences)))
    if page.wants_html:
        with page.only_html():
            page.heading("Device")
            page.add(*device_facts(data))
            if (state := device_state(data, records)).rows:
                page.table(state, level=3)
    not_made = []
    items = items_of(data)
    for item in items:
        try:
            _write(data, item, page)
        except AnalysisError as error:
            name = f"{item.form}: {item.name}{f' of {item.of}' if item.of else ''}"
            why = f"Not made: {error}{_hint(data, item)}."
            page.heading(name)
            page.add(Paragraph(why))
            not_made.append(f"{name}. {why}")
    with page.only_html():  # what the study's list leaves out
        for item in DEFAULT_ITEMS if page.wants_html else ():
            if item.name not in {given.name for given in items}:
                with suppress(AnalysisError):
                    _write(data, item, page)
    return not_made


def _circumstances(page: Page, run: Observed, records: Sequence[Record]) -> None:
    """Verdicts, every point, and how the numbers came about."""
    data = run.data
    if data.name in paper_names():
        paper = load_paper(data.name)
        verdicts = judge(paper, [run])
        page.table(replace(claims_table(paper, verdicts, source_of(data)), title="Verdicts"))
    page.heading("How it was measured")
    page.add(*how_measured(data, records))
    page.heading("Every point")
    page.add(*details(data, records, page.run))
    page.heading("Environment")
    page.add(*environment(data))
    page.heading("How to repeat it")
    page.add(*repeat(data, shown_path(run.path)))


def prepare(data: Dataset, item: ReportItem) -> list[Any]:
    """The tables of an item, or the functions that draw its figures.

    Raises ``AnalysisError`` where data are missing.
    """
    known: Mapping[str, Callable[..., list[Any]]] = TABLES if item.form == "table" else FIGURES
    if item.name not in known:
        raise AnalysisError(f"no {item.form} is called {item.name!r}; known: {', '.join(known)}")
    return known[item.name](data, item)


def _write(data: Dataset, item: ReportItem, page: Page) -> None:
    prepared = prepare(data, item)
    if item.form == "table":
        with page.group(item.title or item.name.capitalize()) if prepared[1:] else nullcontext():
            for table in prepared:
                page.table(table, size=f"{table.size}: ")
        return
    with styled():
        drawings = [draw() for draw in prepared]
    for drawing in drawings:
        page.drawing(drawing, source_of(data))


def _hint(data: Dataset, item: ReportItem) -> str:
    if data.simulated and item.value and not any(p.timed for p in data.points):
        return " (a simulator counts, it does not time)"
    return ""
