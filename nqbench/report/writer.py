"""Writes a report: every table and figure of the study's list, and a page that links them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.dataset import Dataset, PointResult, collect
from nqbench.errors import AnalysisError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.papers.load import load_paper, paper_names
from nqbench.point import Point
from nqbench.report import circumstances
from nqbench.report.bottleneck import bottleneck_figure, bottleneck_table
from nqbench.report.figures import effects, heatmap, line, ranking
from nqbench.report.figures.style import styled
from nqbench.report.items import DEFAULT_ITEMS, ReadRun, items_of
from nqbench.report.page import FORMATS, Bullets, Origin, Page, Paragraph
from nqbench.report.papers.verdicts import claims_table
from nqbench.report.table import slug, source_of
from nqbench.report.tables import results
from nqbench.study.report_items import REMOVED_TABLES, ReportItem
from nqbench.system.files import shown_path
from nqbench.vocabulary import CACHE_COUNTERS, COUNTERS, PROGRAM_COUNTERS, TIME_COUNTERS
from nqbench.workloads import phases

BUILDERS: Final[Mapping[str, Mapping[str, Callable[[Dataset, ReportItem], list[Any]]]]] = {
    "table": {
        "results": results.results,
        "effects": results.effects,
        "interactions": results.interactions,
        "systems": results.systems,
        "resources": results.resources,
        "skipped": results.skipped,
        "bottleneck": bottleneck_table,
    },
    "figure": {
        "effects": effects.effects,
        "ranking": ranking.ranking,
        "heatmap": heatmap.heatmap,
        "line": line.line,
        "scaling": line.scaling,
        "bottleneck": bottleneck_figure,
    },
}
"""What makes the tables of an item, or prepares its figures, by the name that studies use. Each
raises ``AnalysisError`` where the run holds nothing to show."""
INLINE_ROWS: Final = 30
"""Tables with more rows are linked, not shown on the page."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The files written, the page first, and the findings in sentences.

    ``not_made`` has a sentence for each table or figure that could not be made.
    """

    paths: tuple[Path, ...]
    not_made: tuple[str, ...]
    findings: tuple[str, ...]


def write_report(
    runs: Sequence[ReadRun],
    out: Path,
    formats: Sequence[str] = FORMATS,
    *,
    home: str = "",
) -> RunReport:
    """Write the tables and figures that the runs' studies ask for, and ``report.md``.

    The format ``html`` is one page, ``report.html``, that needs no other file. Several runs get a
    folder each: different devices never share a table or an axis. Raises ``StoreError`` (the folder
    cannot be written, a manifest is damaged) and ``StudyError`` (an unknown format). An item whose
    data are missing becomes a sentence on the page. ``home`` is the page's link to the one that
    leads here.
    """
    page = Page(out, formats, inline_rows=INLINE_ROWS, home=home)
    if not runs:
        raise StudyError("a report needs at least one run folder")
    not_made: list[str] = []
    for run in runs:
        if len(runs) > 1:
            page.enter(slug(run.data.name, run.data.device))
        _opening(run, page)
        not_made += _items(run.data, page)
        if page.wants_html:
            with page.only_html():
                _circumstances(run, page)
    found = tuple(sentence for run in runs for sentence in run.findings)
    return RunReport(tuple(page.write("report")), tuple(not_made), found)


def _opening(run: ReadRun, page: Page) -> None:
    """What the run is, its findings, and the device."""
    data = run.data
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
    page.add(Bullets(tuple(run.findings)))
    if page.wants_html:
        with page.only_html():
            page.heading("Device")
            page.add(*circumstances.device_facts(data))
            if (state := circumstances.device_state(data, run.records)).rows:
                page.table(state, level=3)


def _items(data: Dataset, page: Page) -> list[str]:
    """The study's list, and on an HTML page the default tables that it leaves out.

    Returns a sentence for each item that could not be made.
    """
    not_made = []
    items = items_of(data)
    for item in items:
        if data.simulated and item.name == "resources":
            continue  # no simulator has any; `nqbench static` does
        try:
            _write(data, item, page)
        except AnalysisError as error:
            name = f"{item.form}: {item.name}{f' of {item.of}' if item.of else ''}"
            hint = ""
            if data.simulated and item.value and not any(p.timed for p in data.points):
                hint = " (a simulator counts, it does not time)"
            why = f"Not made: {error}{hint}."
            page.heading(name)
            page.add(Paragraph(why))
            if data.study.get("report"):  # else nobody asked for it
                not_made.append(f"{name}. {why}")
    asked = {item.name for item in items}
    with page.only_html():
        for item in DEFAULT_ITEMS if page.wants_html else ():
            if item.name not in asked:
                with suppress(AnalysisError):
                    _write(data, item, page)
    return not_made


def _circumstances(run: ReadRun, page: Page) -> None:
    """Verdicts, every point, and how the numbers came about."""
    data = run.data
    if data.name in paper_names():
        paper = load_paper(data.name)
        verdicts = judge(paper, [run.observed])
        page.table(replace(claims_table(paper, verdicts, source_of(data)), title="Verdicts"))
    page.heading("How it was measured")
    page.add(*circumstances.how_measured(data, run.records))
    page.heading("Every point")
    page.add(*circumstances.details(data, run.records, page.run))
    page.heading("Environment")
    page.add(*circumstances.environment(data))
    page.heading("How to repeat it")
    page.add(*circumstances.repeat(data, shown_path(run.observed.path)))


def prepare(data: Dataset, item: ReportItem) -> list[Any]:
    """The tables of an item, or the functions that draw its figures.

    Raises ``AnalysisError`` where data are missing.
    """
    known = BUILDERS[item.form]
    if item.form == "table" and item.name in REMOVED_TABLES:  # of an old run's study
        raise AnalysisError(REMOVED_TABLES[item.name].partition(";")[0])
    if item.name not in known:
        raise AnalysisError(f"no {item.form} is called {item.name!r}; known: {', '.join(known)}")
    return known[item.name](data, item)


def _write(data: Dataset, item: ReportItem, page: Page) -> None:
    prepared = prepare(data, item)
    if item.form == "table":
        if several := len(prepared) > 1:
            page.heading(item.title or item.name.capitalize())
        for table in prepared:
            page.table(
                table, level=2 + several, size=f"{table.size}: ", switched=bool(table.points)
            )
        return
    with styled():
        drawings = [draw() for draw in prepared]
    for drawing in drawings:
        page.drawing(drawing, source_of(data))


# Before a run: what its report could not show.

PLANNED_ROUNDS: Final = 3


def report_problems(
    study: Mapping[str, Any], points: Sequence[Point], facts: DeviceFacts, spec: str = ""
) -> list[tuple[int, str]]:
    """Entries of a study's report list that cannot be made, by position, each with the reason.

    Every table, and the data of every figure, is made from made-up values of the planned points:
    what these do not allow, measured values do not allow either. Nothing is drawn. ``study`` is its
    plain form, ``points`` are what it expands to on the device. ``spec`` is the device's name on
    the command line: a simulator of caches or times has more counters.
    """
    planned = [{**point.as_json(), "key": str(i)} for i, point in enumerate(points)]
    device = {"kind": facts.kind, "spec": facts.kind}
    data = collect({"study": study, "device": device, "points": planned}, ())
    more = {"cache": CACHE_COUNTERS, "time": TIME_COUNTERS}
    modes = [more[word] for word in spec.split(":") if word in more]
    counted = [*COUNTERS, *PROGRAM_COUNTERS, *(name for mode in modes for name in mode)]
    made_up = tuple(
        _made_up(one, points[int(one.key)], counted, data.simulated) for one in data.points
    )
    data = replace(data, points=made_up, rounds=PLANNED_ROUNDS)
    found: list[tuple[int, str]] = []
    for index, item in enumerate(items_of(data) if study.get("report") else ()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of fits to made-up values
                prepare(data, item)
        except AnalysisError as error:
            found.append((index, f"the {item.form} '{item.name}' cannot be made: {error}"))
    return found


def _made_up(
    result: PointResult, point: Point, counted: Collection[str], simulated: bool
) -> PointResult:
    """A planned point with values that differ between points, and a little between rounds."""
    if point.skip:
        return result
    rows, index = {}, int(result.key)
    for number in range(1, PLANNED_ROUNDS + 1):
        value = 1 + (37 * index % 101) / 100 + (53 * (index + number) % 7) / 1000
        times = {f"{name}_s": value for name in ("value", *phases())}
        counts = dict.fromkeys(counted, value)
        resources = {"registers": 32, "stack_bytes": 0, "occupancy": 0.5}
        rows[number] = {**point.derived, **point.factors, **counts, **times, **resources}
    timed = result.cpu or not simulated
    return replace(result, timed=timed, status="ok", reason="", measurements=rows)
