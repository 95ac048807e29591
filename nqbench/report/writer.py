"""Writes a report: every table and figure of the study's list, and a page that links them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.findings import findings
from nqbench.errors import AnalysisError
from nqbench.report import circumstances, opening
from nqbench.report.bottleneck import bottleneck_figure, bottleneck_table
from nqbench.report.figures import effects, heatmap, line, ranking
from nqbench.report.figures.style import styled
from nqbench.report.items import DEFAULT_ITEMS, items_of
from nqbench.report.page import FORMATS, Bullets, Cards, Origin, Page, Paragraph, Shown
from nqbench.report.table import source_of
from nqbench.report.tables import results
from nqbench.runs.reading import default_out
from nqbench.study.report_items import ReportItem
from nqbench.system.suggest import many

BUILDERS: Final[Mapping[str, Mapping[str, Callable[[Dataset, ReportItem], list[Any]]]]] = {
    "table": {
        "results": results.results,
        "effects": results.effects,
        "interactions": results.interactions,
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
"""Tables with more rows are linked, not shown on a Markdown page."""
FIRST: Final = ("ranking", "effects")
"""Figures that open a page."""
SECTIONS: Final = {
    "What limits the kernels": ("figure bottleneck", "table bottleneck"),
    "Effects": ("table effects", "figure effects"),
    "Interactions": ("table interactions",),
    "Parameters": ("figure heatmap", "figure line"),
    "Scaling": ("figure scaling",),
    "Results": ("figure ranking", "table results"),
    "Resources": ("table resources",),
    "What did not run, and why": ("table skipped",),
}
"""What stands in the sections of a page, in this order; the last two are closed."""
CLOSED: Final = ("Resources", "What did not run, and why")


@dataclass(frozen=True, slots=True)
class RunReport:
    """The files written, the page first.

    ``not_made`` has a sentence for each table or figure that could not be made.
    """

    paths: tuple[Path, ...]
    not_made: tuple[str, ...]


def write_report(
    answer: Answer, out: Path | None = None, formats: Sequence[str] = (), *, home: str = ""
) -> RunReport:
    """Write the tables and figures that the study of a run asks for, and ``report.md``, into
    ``out``, by default where the run's report goes.

    The format ``html`` is one page, ``report.html``, that needs no other file. Raises
    ``StoreError`` (the folder cannot be written, a manifest is damaged) and ``StudyError`` (an
    unknown format). An item whose data are missing becomes a sentence on the page. ``home`` is the
    page's link to the one that leads here.
    """
    out = out or default_out(answer.data.path)
    page = Page(out, formats or FORMATS, inline_rows=INLINE_ROWS, home=home)
    not_made = _RunPage(answer, page).write()
    return RunReport(tuple(page.write("report")), tuple(not_made))


class _RunPage:
    """One run on a page: the answer, then what it rests on, then how it came about."""

    def __init__(self, answer: Answer, page: Page) -> None:
        self.answer, self.data, self.page = answer, answer.data, page
        self.source = source_of(self.data)
        self.not_made: list[str] = []
        self.made = list(self._made())
        self.said: set[str] = set()

    def write(self) -> list[str]:
        """Put everything on the page; returns a sentence for each item that could not be made."""
        self._opening()
        for title in SECTIONS:
            if title == CLOSED[0] and self.page.wants_html:
                self.page.heading("Every point", folded=True)
                self.page.add(*circumstances.details(self.data))
            self._section(title)
        if self.not_made:
            self.page.heading("What could not be made", folded=True)
            self.page.add(Bullets(tuple(self.not_made)))
        page, data = self.page, self.data
        page.heading(f"How it was {'counted' if data.simulated else 'measured'}", folded=True)
        page.add(*circumstances.how_measured(data))
        page.heading("Device and environment", folded=True)
        page.add(*circumstances.device_facts(data), *circumstances.environment(data))
        page.heading("How to repeat it", folded=True)
        page.add(*circumstances.repeat(data))
        return self.not_made

    def _made(self) -> Iterator[tuple[ReportItem, Any]]:
        """The tables and figures of the study's list, and the usual ones that it leaves out."""
        listed = items_of(self.data)
        asked = {(item.form, item.name) for item in listed}
        sweep = self.answer.sweep
        usual = [ReportItem("table", name, of=sweep) for name in ("effects", "interactions")]
        usual = [i for i in (*usual, *DEFAULT_ITEMS) if (i.form, i.name) not in asked]
        for item in (*listed, *usual):
            if self.data.simulated and item.name == "resources":
                continue  # no simulator has any; `nqbench static` does
            try:
                with styled():  # tables are ready, figures drawn here
                    parts = [p() if callable(p) else p for p in prepare(self.data, item)]
            except AnalysisError as error:
                if item in listed and self.data.study.get("report"):
                    name = f"{item.form}: {item.name}{f' of {item.of}' if item.of else ''}"
                    counts = self.data.simulated and not any(p.timed for p in self.data.points)
                    hint = " (a simulator counts, it does not time)" * bool(counts and item.value)
                    self.not_made.append(f"{name}. Not made: {error}{hint}.")
                continue
            if item in listed or item.name != "interactions" or parts[0].shown.rows:
                yield from ((item, part) for part in parts)

    def _opening(self) -> None:
        data, page, answer = self.data, self.page, self.answer
        title = answer.question or data.name
        page.heading(title, 1, short=data.name)
        about = str(data.study.get("about") or "").strip()
        if about and " ".join(about.split()) != title:
            page.add(Paragraph(about if about[-1] in ".!?" else f"{about}."))
        ok = sum(p.ok for p in data.points)
        page.add(Origin(self.source, f"{ok} of {many(len(data.points), 'point')} right"))
        if found := opening.cards(answer):
            page.add(Cards(tuple(found)))
        if shown := opening.hero(answer, page):
            page.add(shown)
        page.heading("Findings")
        page.add(Bullets(tuple(findings(answer))))

    def _section(self, title: str) -> None:
        """A section, if there is anything in it; its tables that repeat a figure are closed."""
        parts = [
            (item, part)
            for kind in SECTIONS[title]
            for item, part in self.made
            if f"{item.form} {item.name}" == kind
        ]
        if not parts:
            return
        self.page.heading(title, folded=title in CLOSED)
        alone = sum(not self._opens(item) for item, _ in parts) == 1
        for item, part in parts:
            self._part(item, part, alone=alone, section=title)

    def _opens(self, item: ReportItem) -> bool:
        """Whether a figure opens the HTML page: it does not stand there again."""
        answers = item.of in (self.answer.sweep, None) and not item.value
        return answers and item.form == "figure" and item.name in FIRST

    def _part(self, item: ReportItem, part: Any, *, alone: bool, section: str) -> None:
        page = self.page
        if item.form == "figure":
            opens, folded = self._opens(item), item.name == "effects"
            page.drawing(part, self.source, level=0 if opens else 3, folded=folded, html=not opens)
            return
        level = 3
        if not item.title:
            answers = part.shown and item.of in (self.answer.sweep, None)
            plain = answers or part.title == section or (alone and not self.data.sweeps[1:])
            level = 0 if plain else 3
        named: dict[str, Any] = {"size": f"{part.size}: ", "said": {*self.said}}
        self.said.update(part.notes)
        if item.name != "interactions":
            page.table(part, level=level, **named)
            return
        every = replace(part, shown=None, title=f"All interactions: {part.size}")
        if part.shown.rows:
            page.table(part, level=level, **named)
            page.heading(every.title, 3, folded=True)
            page.add(Shown(replace(every, notes=()), inline=False))
        else:
            page.add(Paragraph("No interaction changes an effect by 10% or more."))
            page.table(every, level=3, folded=True, **named)


def prepare(data: Dataset, item: ReportItem) -> list[Any]:
    """The tables of an item, or the functions that draw its figures.

    Raises ``AnalysisError`` where data are missing.
    """
    known = BUILDERS[item.form]
    if item.name not in known:
        raise AnalysisError(f"no {item.form} is called {item.name!r}; known: {', '.join(known)}")
    return known[item.name](data, item)
