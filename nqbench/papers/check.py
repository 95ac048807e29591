"""Checks what the schema of a paper's file cannot: every name in it must exist."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from typing import Final

from nqbench import expressions
from nqbench.errors import StudyError
from nqbench.papers.formula import (
    CELL_ARGUMENTS,
    CELL_NAMES,
    CELLS,
    DEVICE,
    DEVICE_NUMBERS,
    OF_SYSTEM,
    OF_SYSTEMS,
    RECORDED,
    Formula,
    parse,
)
from nqbench.papers.schema import (
    DIRECTIONS,
    Bars,
    Claim,
    Curves,
    Effect,
    Paper,
    PaperFigure,
    PaperTable,
    Points,
    Series,
)
from nqbench.point import PART
from nqbench.system.suggest import listing, suggestion
from nqbench.system.yaml_marks import Key, KeyPath, Source
from nqbench.vocabulary import COUNTERS, PROFILER_COUNTERS
from nqbench.workloads import get, names, phases

OWN_QUANTITIES: Final = ("time", "ratio", "jobs", "iterations", "cycles", "divergence", "counter")
RESOURCES: Final = ("registers", "static_shared_bytes", "dynamic_shared_bytes")
"""What compiler and launch report about a kernel, in addition to the counters."""
_COUNTERS: Final = (*COUNTERS, *PROFILER_COUNTERS, *RESOURCES)
_OTHER_WORDS: Final = ("alike", "best", "stat", "probe")
"""Named arguments in formulas of cells that are not factors."""
_LISTS: Final = (
    *("hardware", "systems", "tables", "figures"),
    *("claims", "effects", "caveats", "data"),
)
"""Keys of lists whose entries have an ``id``."""
RATIOS: Final = ("ratio", "invariance")
"""Kinds of claims whose value says how many times as fast something is."""
_OTHER_ARGUMENTS: Final = (
    *("hw", "N", "config", "stat", "system", "kernel", "least", PART),
    *("phase", "sweep", "skipped"),
    *("compute_capability", "registers", "shared_bytes"),
)


def check(paper: Paper, source: Source) -> None:
    """Names of systems, devices, series, phases and factors; formulas. Raises ``StudyError``."""
    for part in _LISTS:
        seen: set[str] = set()
        for i, item in enumerate(getattr(paper, part)):
            if item.id in seen:
                raise source.error(f"two entries of {part} are called '{item.id}'", (part, i, "id"))
            seen.add(item.id)
    _known(source, "there is no workload", paper.workload, names(), ("workload",))
    _Check(paper, source).run()


def _known(source: Source, absence: str, name: str, known: Collection[str], path: KeyPath) -> None:
    """Raise ``StudyError`` with a suggestion unless ``name`` is among ``known``."""
    if name not in known:
        raise source.error(f"{absence} '{name}'; {suggestion(name, known)}", path)


def _is_number(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


class _Check:
    """The names that a paper's file may use."""

    def __init__(self, paper: Paper, source: Source) -> None:
        workload = get(paper.workload)
        self.paper, self.source = paper, source
        self.systems = set(workload.systems)
        self.factors = sorted(workload.factors)
        self.hardware = [h.id for h in paper.hardware]
        self.data = [part.id for part in paper.data]
        self.own = {s.system for s in paper.systems}
        self.labels = {t.id: {*t.columns, *(str(r[0]) for r in t.rows)} for t in paper.tables}

    def run(self) -> None:
        """Everything in the order of the file."""
        for i, system in enumerate(self.paper.systems):
            if system.system:
                self.system(system.system, ("systems", i, "system"))
        for i, part in enumerate(self.paper.data):
            self.devices(part.hardware, ("data", i))
            if part.system:
                self.system(part.system, ("data", i, "system"))
        for i, table in enumerate(self.paper.tables):
            self.table(table, ("tables", i))
        for i, figure in enumerate(self.paper.figures):
            self.devices(figure.hardware, ("figures", i))
            self.figure(figure, ("figures", i))
            self.file(figure.data, ("figures", i))
            for j, known in enumerate(figure.known):
                if known.system:
                    self.system(known.system, ("figures", i, "known", j))
        for i, claim in enumerate(self.paper.claims):
            self.claim(claim, ("claims", i))
        for i, effect in enumerate(self.paper.effects):
            self.effect(effect, ("effects", i))

    def system(self, name: str, path: KeyPath) -> None:
        """A system of nqbench, or the short name of one of this paper's."""
        full = self.paper.system(name)
        if full not in self.systems:
            short = {s.id for s in self.paper.systems if s.system}
            known = self.systems if "." in name else short
            _known(self.source, "there is no system", name, known, path)
        if full.startswith(f"{self.paper.id}.") and full not in self.own:
            raise self.source.error(f"the paper has no system '{full}'; add it to 'systems'", path)

    def devices(self, ids: Iterable[str], path: KeyPath, key: str = "hardware") -> None:
        """Devices of the paper."""
        for name in ids:
            _known(self.source, "the paper has no hardware", name, self.hardware, (*path, key))

    def file(self, name: str, path: KeyPath) -> None:
        """A data file of the paper, or none."""
        if name:
            _known(self.source, "the paper has no data", name, self.data, (*path, "data"))

    def factor_names(self, levels: Iterable[str], path: KeyPath) -> None:
        """Factors of the workload."""
        for name in levels:
            _known(self.source, "there is no factor", name, self.factors, path)

    def table(self, table: PaperTable, path: KeyPath) -> None:
        """A table: its rows, their counterparts today, and its series."""
        self.devices(table.hardware, path)
        self.file(table.data, path)
        if (table.reproduce == "points") != bool(table.shown):
            wanted = "takes no 'shown'" if table.shown else "needs its columns under 'shown'"
            said = f"reproduce '{table.reproduce}' of {table.id} {wanted}"
            raise self.source.error(said, (*path, "reproduce"))
        self.points(table.points, (*path, "points"))
        for i, column in enumerate(table.shown):
            self.cell(column.value, (*path, "shown", i, "value"))
        for i, here in enumerate(table.here):
            for j, text in enumerate(here.cells):
                self.cell(text, (*path, "here", i, "cells", j))
        for i, row in enumerate(table.rows):
            if len(row) != len(table.columns):
                said = f"has {len(row)} cells, but there are {len(table.columns)} columns"
                raise self.source.error(f"a row of {table.id} {said}", (*path, "rows", i))
        rows = [str(r[0]) for r in table.rows]
        for i, part in enumerate(table.counterparts):
            at = (*path, "counterparts", i)
            _known(self.source, f"{table.id} has no row", part.label, rows, at)
            _known(self.source, "there is no counter", part.counter, _COUNTERS, at)
        for i, series in enumerate(table.series):
            self.series(table, series, (*path, "series", i))

    def figure(self, figure: PaperFigure, path: KeyPath) -> None:
        """What a figure shows, under the key of its form."""
        key = {"curves": "curves", "stacked": "bars", "grid": "bars"}.get(figure.draw)
        if key is None:
            return
        shown: Curves | Bars | None = figure.curves if key == "curves" else figure.bars
        if shown is None:
            said = f"{figure.id} cannot be drawn: say under '{key}' what it shows"
            raise self.source.error(said, (*path, "draw"))
        at = (*path, key)
        self.points(shown.points, (*at, "points"))
        heights = shown.y if isinstance(shown, Curves) else shown.parts
        texts = [text for height in heights for text in (height.value, height.line)]
        texts += [shown.whole, *shown.inside] if isinstance(shown, Bars) else []
        for text in (*texts, *(known.at for known in figure.known)):
            self.cell(text, at)

    def points(self, points: Points, path: KeyPath) -> None:
        """Systems and factors of a selection of points."""
        words = ("kernels", "others", "every")
        for name in (*points.systems, *points.best, *points.levels):
            if name not in words:
                self.system(name, (*path, "systems"))
        levels = (name for levels in points.levels.values() for name in levels)
        self.factor_names((*levels, *filter(None, (points.by, points.several))), path)

    def cell(self, text: str, path: KeyPath) -> None:
        """A formula of a table or figure, if there is one, and the names in it."""
        if not text:
            return
        known = (*CELL_NAMES, *RECORDED, *self.factors)
        try:
            formula = expressions.parse(text, CELLS)
            for name in sorted(formula.names.difference(known)):
                raise StudyError(expressions.unknown_name(text, name, known, CELLS))
        except StudyError as error:
            raise self.source.error(error.message, path) from error
        for call in formula.calls():
            function = call.func.id if isinstance(call.func, ast.Name) else ""
            words = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
            meant = dict(zip(CELL_ARGUMENTS.get(function, ()), words, strict=False))
            if isinstance(system := meant.get("system"), str):
                self.system(system, path)
            if isinstance(phase := meant.get("phase"), str):
                _known(self.source, "there is no phase", phase, phases(), path)
            if isinstance(counter := meant.get("counter"), str):
                _known(self.source, "there is no counter", counter, _COUNTERS, path)
            named = [k.arg for k in call.keywords if k.arg and k.arg not in _OTHER_WORDS]
            self.factor_names(named, path)

    def series(self, table: PaperTable, series: Series, path: KeyPath) -> None:
        """A series of a table, and the quotient that the paper derives from it."""
        self.system(series.system, path)
        self.devices([series.hardware] if series.hardware else [], path)
        quantities = (*OWN_QUANTITIES, *phases())
        _known(self.source, "there is no quantity", series.quantity, quantities, path)
        self.factor_names(series.levels, path)
        labelled = [] if series.ours else [(table.id, series.label)]
        if ratio := series.ratio:
            bases = [s.label for t in self.paper.tables if t.id == ratio.table for s in t.series]
            _known(self.source, f"{ratio.table} has no series", ratio.series, bases, path)
            if ratio.printed:
                labelled.append((ratio.printed_in or table.id, ratio.printed))
        for where, label in labelled:
            _known(self.source, "there is no table", where, self.labels, path)
            _known(self.source, f"{where} has no row or column", label, self.labels[where], path)

    def claim(self, claim: Claim, path: KeyPath) -> None:
        """A claim: its devices, its caveat and its formulas."""
        self.devices(claim.hardware, path)
        if claim.caveat:
            caveats = [c.id for c in self.paper.caveats]
            _known(self.source, "there is no caveat", claim.caveat, caveats, (*path, "caveat"))
        texts: dict[tuple[Key, ...], str] = {("expr",): claim.expr, ("expect",): claim.expect}
        if claim.today:
            texts |= {("today", "expr"): claim.today.expr, ("today", "expect"): claim.today.expect}
        for where, text in texts.items():
            if text:
                self.formula(f"claim {claim.id}", text, (*path, *where))

    def effect(self, effect: Effect, path: KeyPath) -> None:
        """A row of the matrix: its claim or formula, and its printed values."""
        if bool(effect.claim) == bool(effect.expr):
            said = f"effect {effect.id} needs either a claim or an expr"
            raise self.source.error(said, path)
        if effect.expr:
            self.formula(f"effect {effect.id}", effect.expr, (*path, "expr"))
        else:
            self.ratio(effect, path)
        self.devices(effect.published, path, "published")
        for n in effect.n:
            for device, value in self.paper.printed(effect, n).items():
                if value not in DIRECTIONS and not _is_number(value):
                    said = f"'{value}' of {device} is neither a number nor {listing(DIRECTIONS)}"
                    raise self.source.error(f"effect {effect.id}: {said}", (*path, "published"))

    def ratio(self, effect: Effect, path: KeyPath) -> None:
        """The claim of an effect: about a ratio, and about the sizes of the effect."""
        ratios = {c.id: c for c in self.paper.claims if c.kind in RATIOS}
        absence = f"there is no claim on a ratio (kind {' or '.join(RATIOS)})"
        _known(self.source, absence, effect.claim, ratios, (*path, "claim"))
        sizes = ratios[effect.claim].n
        if foreign := [str(n) for n in effect.n if sizes and n not in sizes]:
            said = f"claim {effect.claim} says nothing about N={', '.join(foreign)}"
            raise self.source.error(said, (*path, "n"))

    def formula(self, whose: str, text: str, path: KeyPath) -> None:
        """A formula, and the names in it."""
        try:
            formula = parse(text)
        except StudyError as error:
            raise self.source.error(f"{whose}: {error.message}", path) from error
        self.calls(formula, path)

    def calls(self, formula: Formula, path: KeyPath) -> None:
        """Systems, phases and factors that a formula names literally."""
        for call in formula.calls():
            function = call.func.id if isinstance(call.func, ast.Name) else ""
            words = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
            given = {k.arg: k.value for k in call.keywords if k.arg}
            if function == "counter" and words[:1] == [DEVICE]:
                number = str(words[1] if len(words) > 1 else DEVICE)
                _known(self.source, "a device has no number", number, DEVICE_NUMBERS, path)
                continue
            systems = words if function in OF_SYSTEMS else words[: function in OF_SYSTEM]
            named = given.get("system")
            if function == "count" and isinstance(named, ast.Constant):
                systems = [named.value]
            for name in systems:
                if isinstance(name, str):
                    self.system(name, path)
            phase = words[1] if function == "phase" and len(words) > 1 else None
            if isinstance(given.get("phase"), ast.Constant):
                phase = given["phase"].value  # type: ignore[attr-defined]
            if phase is not None:
                _known(self.source, "there is no phase", str(phase), phases(), path)
            self.factor_names([k for k in given if k not in _OTHER_ARGUMENTS], path)
