"""Reads ``experiments/PAPER/published.yaml``, digits as printed, and the CSV files of published
times next to it. Every mistake is reported with its file and line.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from nqbench.errors import FileLine, StudyError
from nqbench.papers.check import check
from nqbench.papers.schema import DataFile, DataRow, Paper
from nqbench.study.packaged import papers_with
from nqbench.system.suggest import listing, suggestion
from nqbench.system.yaml_marks import ParsedFile, fit, read
from nqbench.workloads import get

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


def load_paper(name: str) -> Paper:
    """A paper by name. Raises ``StudyError``: no such paper, or a mistake in its file."""
    file = paper_folder(name) / PUBLISHED
    changed = max(part.stat().st_mtime_ns for part in (file, *file.parent.glob("*.csv")))
    return _cached(file.resolve(), changed)


@lru_cache(maxsize=16)
def _cached(file: Path, modified_ns: int) -> Paper:  # noqa: ARG001 (an edited file is another one)
    return read_paper(file)


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
        filled.append(part.model_copy(update={"rows": _PaperReader(paper, part, file).rows()}))
    return paper.model_copy(update={"data": filled})


class _PaperReader:
    """Reads one file; ``line`` is the current one."""

    def __init__(self, paper: Paper, part: DataFile, file: Path) -> None:
        workload = get(paper.workload)
        self.paper, self.part, self.file = paper, part, file
        self.systems = set(workload.systems)
        self.factors = set(workload.factors) - {"n"}
        self.line = 1

    def error(self, message: str) -> StudyError:
        return StudyError(message, FileLine(self.file, self.line))

    def rows(self) -> tuple[DataRow, ...]:
        """Every row. Raises ``StudyError`` for the first mistake."""
        try:
            text = self.file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.error(f"the file cannot be read: {error}") from error
        found: dict[tuple[object, ...], DataRow] = {}
        header: Sequence[str] = ()
        for self.line, cells in enumerate(csv.reader(text.splitlines()), 1):
            if self.line == 1:
                header = self._header(cells)
                continue
            if len(cells) != len(header):
                raise self.error(f"{len(cells)} cells, but the header names {len(header)} columns")
            row = self._row(dict(zip(header, cells, strict=True)))
            key = (row.n, row.system, *sorted(row.levels.items()))
            if key in found:
                raise self.error(f"N={row.n} is given twice; keep one of the rows")
            found[key] = row
        if not found:
            raise self.error("the file has no data, only a header")
        return tuple(found.values())

    def _header(self, names: Sequence[str]) -> Sequence[str]:
        known = ("n", "system", *UNITS, *sorted(self.factors))
        for name in names:
            if name not in known:
                raise self.error(f"unknown column '{name}'; {suggestion(name, known)}")
        if len(set(names)) < len(names):
            raise self.error("a column is named twice")
        if "n" not in names or len(set(names) & set(UNITS)) != 1:
            raise self.error(f"the header needs n and one of {listing(UNITS, 'or')}")
        if ("system" in names) == bool(self.part.system):
            raise self.error(
                "say whose times these are, either in a column 'system' or with the key 'system' of"
                " the YAML file"
            )
        return names

    def _row(self, cells: Mapping[str, str]) -> DataRow:
        name = self.part.system or cells["system"]
        system = self.paper.system(name)
        if system not in self.systems:
            short = [s.id for s in self.paper.systems if s.system]
            raise self.error(f"there is no system '{name}'; {suggestion(name, short)}")
        unit = next(u for u in UNITS if u in cells)
        levels = {k: self._whole(k, v) for k, v in cells.items() if k in self.factors}
        seconds = self._number(unit, cells[unit]) * UNITS[unit]
        return DataRow(self._whole("n", cells["n"]), system, seconds, levels)

    def _whole(self, name: str, text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise self.error(f"{name} is '{text}', which is not a whole number above 0")
        return int(text)

    def _number(self, name: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0:
            raise self.error(f"{name} is '{text}', which is not a time")
        return value
