"""Reads ``experiments/PAPER/published.yaml``, digits as printed, and the CSV files of published
times next to it. Every name in it must exist, and every mistake is reported with its file and line.
"""

from __future__ import annotations

import ast
import csv
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel

from nqbench import expressions
from nqbench.errors import FileLine, StudyError
from nqbench.papers import formula as language
from nqbench.papers.schema import DIRECTIONS, DataFile, DataRow, Effect, Paper, PaperTable
from nqbench.point import PART
from nqbench.study.packaged import papers_with
from nqbench.system.suggest import listing, suggestion
from nqbench.system.yaml_marks import KeyPath, ParsedFile, fit, read
from nqbench.vocabulary import COUNTERS, PROFILER_COUNTERS
from nqbench.workloads import get, names, phases

PUBLISHED: Final = "published.yaml"
UNITS: Final = {"seconds": 1.0, "milliseconds": 1e-3}
"""Names of the column that holds the time, and its unit in seconds."""


def paper_names() -> tuple[str, ...]:
    """Names of all papers: those in ``./experiments``, and those that come with nqbench."""
    return tuple(sorted(papers_with(PUBLISHED)))


def paper_folder(name: str) -> Path:
    """The folder of a paper. Raises ``StudyError`` with the nearest name for an unknown one."""
    found = papers_with(PUBLISHED)
    if name not in found:
        raise StudyError(f"there is no paper '{name}'; {suggestion(name, sorted(found))}")
    return found[name]


_read_once = lru_cache(maxsize=16)(lambda file, _changed: read_paper(file))  # until it changes


def load_paper(name: str) -> Paper:
    """A paper by name. Raises ``StudyError``: no such paper, or a mistake in its file."""
    file = paper_folder(name) / PUBLISHED
    changed = max(part.stat().st_mtime_ns for part in (file, *file.parent.glob("*.csv")))
    return _read_once(file.resolve(), changed)


def read_paper(file: Path) -> Paper:
    """Read and check one file. Raises ``StudyError`` with file:line for the first mistake."""
    source = read(Path(file), "paper", as_text=True)
    paper = fit(source, Paper)
    check(paper, source)
    return with_data(paper, source)


def with_data(paper: Paper, source: ParsedFile) -> Paper:
    """The paper with the rows of its data files. Raises ``StudyError`` with file and line."""
    filled = []
    for i, part in enumerate(paper.data):
        at = ("data", i)
        if part.rows:
            raise source.error(f"the rows of {part.id} are read from {part.file}", (*at, "rows"))
        if Path(part.file).name != part.file:
            raise source.error(
                f"'{part.file}' is not a plain file name; put the file next to {source.path.name}",
                (*at, "file"),
            )
        file = source.path.parent / part.file
        if not file.is_file():
            raise source.error(f"there is no file {file}", (*at, "file"))
        filled.append(part.model_copy(update={"rows": _rows(paper, part, file)}))
    return paper.model_copy(update={"data": filled})


def _rows(paper: Paper, part: DataFile, file: Path) -> tuple[DataRow, ...]:
    """Every row of a data file. Raises ``StudyError`` with its line for the first mistake."""
    found: dict[tuple[object, ...], DataRow] = {}
    line = 1
    try:
        text = file.read_text(encoding="utf-8")
        header, *rows = [*csv.reader(text.splitlines())] or [[]]
        _check_header(paper, part, header)
        for cells in rows:
            line += 1
            if len(cells) != len(header):
                raise StudyError(f"{len(cells)} cells, but the header names {len(header)} columns")
            row = _row(paper, part, dict(zip(header, cells, strict=True)))
            if found.setdefault((row.n, row.system, *sorted(row.levels.items())), row) is not row:
                raise StudyError(f"N={row.n} is given twice; keep one of the rows")
        if not found:
            raise StudyError("the file has no data, only a header")
    except StudyError as error:
        raise StudyError(error.message, FileLine(file, line)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"the file cannot be read: {error}", FileLine(file, line)) from error
    return tuple(found.values())


def _check_header(paper: Paper, part: DataFile, names: Sequence[str]) -> None:
    known = list(dict.fromkeys(("n", "system", *UNITS, *sorted(get(paper.workload).factors))))
    for name in names:
        if name not in known:
            raise StudyError(f"unknown column '{name}'; {suggestion(name, known)}")
    if len(set(names)) < len(names):
        raise StudyError("a column is named twice")
    if "n" not in names or len(set(names) & set(UNITS)) != 1:
        raise StudyError(f"the header needs n and one of {listing(UNITS, 'or')}")
    if ("system" in names) == bool(part.system):
        raise StudyError(
            "say whose times these are, either in a column 'system' or with the key 'system' of"
            " the YAML file"
        )


def _row(paper: Paper, part: DataFile, cells: Mapping[str, str]) -> DataRow:
    name = part.system or cells["system"]
    system = paper.system(name)
    if system not in get(paper.workload).systems:
        short = [s.id for s in paper.systems if s.system]
        raise StudyError(f"there is no system '{name}'; {suggestion(name, short)}")
    numbers = {name: _number(name, text) for name, text in cells.items() if name != "system"}
    seconds = sum(numbers.pop(unit) * UNITS[unit] for unit in UNITS if unit in numbers)
    levels = {name: int(level) for name, level in numbers.items()}
    return DataRow(levels.pop("n"), system, seconds, levels)


def _number(name: str, text: str) -> float:
    """A time, or a whole number above 0."""
    with suppress(ValueError):
        value = float(text)
        if math.isfinite(value) and value >= 0 if name in UNITS else text.isdecimal() and value:
            return value
    what = "a time" if name in UNITS else "a whole number above 0"
    raise StudyError(f"{name} is '{text}', which is not {what}")


RESOURCES: Final = ("registers", "static_shared_bytes", "dynamic_shared_bytes")
"""What compiler and launch report about a kernel, in addition to the counters."""
RATIOS: Final = ("ratio", "invariance")
"""Kinds of claims whose value says how many times as fast something is."""
_OTHER_ARGUMENTS: Final = (
    *("hw", "N", "config", "stat", "system", "kernel", "least", PART),
    *("phase", "sweep", "skipped", "compute_capability", "registers", "shared_bytes"),
    *("alike", "best", "probe"),
)
"""Named arguments in formulas that are not factors."""


def check(paper: Paper, source: ParsedFile) -> None:
    """Names of systems, devices, series, phases and factors; formulas. Raises ``StudyError``."""
    for part, items in paper:
        ids = [getattr(item, "id", None) for item in items] if isinstance(items, list) else []
        for i, name in enumerate(ids):
            if name is not None and name in ids[:i]:
                raise source.error(f"two entries of {part} are called '{name}'", (part, i, "id"))
    if paper.workload not in names():
        said = f"there is no workload '{paper.workload}'; {suggestion(paper.workload, names())}"
        raise source.error(said, ("workload",))
    checked = _Check(paper, source)
    for path, kind, text, whose in _named(paper, None, (), ""):
        checked.name(kind, text, path, whose)
    for i, table in enumerate(paper.tables):
        checked.table(table, ("tables", i))
    for i, figure in enumerate(paper.figures):
        key = {"curves": "curves", "stacked": "bars", "grid": "bars"}.get(figure.draw)
        if key and getattr(figure, key) is None:
            said = f"{figure.id} cannot be drawn: say under '{key}' what it shows"
            raise source.error(said, ("figures", i, "draw"))
        if figure.curves and figure.curves.x not in ("n", figure.curves.points.by):
            said = f"curves over {figure.curves.x} need points by {figure.curves.x}"
            raise source.error(f"{figure.id}: {said}", ("figures", i, "curves", "x"))
    for i, claim in enumerate(paper.claims):
        if claim.kind == "bound" and claim.size:
            said = f"claim {claim.id}: a bound has no size: a smaller value is no weaker effect"
            raise source.error(said, ("claims", i, "size"))
    for i, effect in enumerate(paper.effects):
        checked.effect(effect, ("effects", i))


def _named(
    value: object, form: Any, path: KeyPath, whose: str
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Each text of a part that names something: its place, what it names, and in which entry."""
    if isinstance(value, BaseModel):
        if path[:1] in (("claims",), ("effects",)) and len(path) == 2:
            whose = f"{str(path[0]).removesuffix('s')} {getattr(value, 'id', '')}: "
        for key, field in type(value).model_fields.items():
            kind = next((mark for mark in field.metadata if isinstance(mark, str)), None)
            own = getattr(value, key)
            yield from _named(own, kind or field.annotation, (*path, key), whose)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _named(item, next(iter(get_args(form)), None), (*path, i), whose)
    elif isinstance(value, dict):
        forms = (*get_args(form), None, None)
        for key, item in value.items():
            yield from _named(key, forms[0], path, whose)
            yield from _named(item, forms[1], (*path, key), whose)
    elif isinstance(value, str) and value:
        marks = [form] if isinstance(form, str) else getattr(form, "__metadata__", ())
        yield from ((path, str(mark), value, whose) for mark in marks)


class _Check:
    """The names that a paper's file may use."""

    def __init__(self, paper: Paper, source: ParsedFile) -> None:
        workload = get(paper.workload)
        self.paper, self.source = paper, source
        self.systems = set(workload.systems)
        self.own = {s.system for s in paper.systems}
        self.labels = {t.id: {*t.columns, *(str(r[0]) for r in t.rows)} for t in paper.tables}
        self.known: dict[str, Collection[str]] = {
            "hardware": [h.id for h in paper.hardware],
            "data": [*(part.id for part in paper.data), *(table.id for table in paper.tables)],
            "factor": ("sweep", *sorted(workload.factors)),
            "phase": phases(),
            "counter": (*COUNTERS, *PROFILER_COUNTERS, *RESOURCES),
            "quantity": ("time", "ratio", *phases()),
            "caveat": [c.id for c in paper.caveats],
        }

    def name(self, kind: str, text: str, path: KeyPath, whose: str = "") -> None:
        """A name of a kind, or a formula with its names. Raises ``StudyError``."""
        if kind in self.known:
            self.one_of(f"there is no {kind}", text, self.known[kind], path)
        elif kind == "system" or (kind == "shown system" and text not in language.SHOWN):
            self.system(text, path)
        elif kind in ("claim formula", "cell formula"):
            try:
                self.formula(text, path, of_cell=kind == "cell formula")
            except StudyError as error:
                if error.place is not None:
                    raise
                raise self.source.error(f"{whose}{error.message}", path) from error

    def one_of(self, absence: str, name: str, known: Collection[str], path: KeyPath) -> None:
        """Raise ``StudyError`` with a suggestion unless ``name`` is among ``known``."""
        if name not in known:
            raise self.source.error(f"{absence} '{name}'; {suggestion(name, known)}", path)

    def system(self, name: str, path: KeyPath) -> None:
        """A system of nqbench, or the short name of one of this paper's."""
        full = self.paper.system(name)
        if full not in self.systems:
            short = {s.id for s in self.paper.systems if s.system}
            known = self.systems if "." in name else short
            self.one_of("there is no system", name, known, path)
        if full.startswith(f"{self.paper.id}.") and full not in self.own:
            raise self.source.error(f"the paper has no system '{full}'; add it to 'systems'", path)

    def formula(self, text: str, path: KeyPath, *, of_cell: bool) -> None:
        """A formula of a claim or of a cell, and the names in it."""
        if "over(" in text:
            said = f"`{text}`: write [... for N in [15, 16]], not over(..., lambda N: ...)"
            raise StudyError(said)
        arguments = language.CELL_ARGUMENTS if of_cell else language.CLAIM_ARGUMENTS
        parsed = expressions.parse(text, language.CELLS if of_cell else language.CLAIMS)
        if of_cell:
            known = (*language.CELL_NAMES, *language.RECORDED, *self.known["factor"])
            for name in sorted(parsed.names.difference(known)):
                raise StudyError(expressions.unknown_name(text, name, known, language.CELLS))
        for call in parsed.calls():
            function = call.func.id if isinstance(call.func, ast.Name) else ""
            words = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
            given = {k.arg: k.value for k in call.keywords if k.arg}
            if not of_cell and function == "counter" and words[:1] == [language.DEVICE]:
                number = str(words[1] if len(words) > 1 else language.DEVICE)
                self.one_of("a device has no number", number, language.DEVICE_NUMBERS, path)
                continue
            meant = [*zip(arguments.get(function, ()), words, strict=False)]
            by_name = ("phase", "system") if function == "count" else ("phase",)
            meant += [
                (kind, value.value)
                for kind in by_name
                if isinstance(value := given.get(kind), ast.Constant)
            ]
            for kind, word in meant:
                if isinstance(word, str):
                    self.name(kind, word, path)
            for factor in (k for k in given if k not in _OTHER_ARGUMENTS):
                self.name("factor", factor, path)

    def table(self, table: PaperTable, path: KeyPath) -> None:
        """A table: its form, its rows, their counterparts today, and its series."""
        if (table.reproduce == "points") != bool(table.shown):
            wanted = "takes no 'shown'" if table.shown else "needs its columns under 'shown'"
            said = f"reproduce '{table.reproduce}' of {table.id} {wanted}"
            raise self.source.error(said, (*path, "reproduce"))
        for i, row in enumerate(table.rows):
            if len(row) != len(table.columns):
                said = f"has {len(row)} cells, but there are {len(table.columns)} columns"
                raise self.source.error(f"a row of {table.id} {said}", (*path, "rows", i))
        rows = [str(r[0]) for r in table.rows]
        for i, part in enumerate(table.counterparts):
            self.one_of(f"{table.id} has no row", part.label, rows, (*path, "counterparts", i))
        for i, series in enumerate(table.series):
            at = (*path, "series", i)
            labelled = [] if series.ours else [(table.id, series.label)]
            if ratio := series.ratio:
                bases = [
                    s.label for t in self.paper.tables if t.id == ratio.table for s in t.series
                ]
                self.one_of(f"{ratio.table} has no series", ratio.series, bases, at)
                if ratio.printed:
                    labelled.append((ratio.printed_in or table.id, ratio.printed))
            for where, label in labelled:
                self.one_of("there is no table", where, self.labels, at)
                self.one_of(f"{where} has no row or column", label, self.labels[where], at)

    def effect(self, effect: Effect, path: KeyPath) -> None:
        """A row of the matrix: its claim or formula, and its printed values."""
        if bool(effect.claim) == bool(effect.expr):
            said = f"effect {effect.id} needs either a claim or an expr"
            raise self.source.error(said, path)
        if effect.claim:
            ratios = {c.id: c for c in self.paper.claims if c.kind in RATIOS}
            absence = f"there is no claim on a ratio (kind {' or '.join(RATIOS)})"
            self.one_of(absence, effect.claim, ratios, (*path, "claim"))
            sizes = ratios[effect.claim].n
            if foreign := [str(n) for n in effect.n if sizes and n not in sizes]:
                said = f"claim {effect.claim} says nothing about N={', '.join(foreign)}"
                raise self.source.error(said, (*path, "n"))
        for n in effect.n:
            for device, value in self.paper.printed(effect, n).items():
                if value not in DIRECTIONS and not value.replace(".", "", 1).isdecimal():
                    said = f"'{value}' of {device} is neither a number nor {listing(DIRECTIONS)}"
                    raise self.source.error(f"effect {effect.id}: {said}", (*path, "published"))
