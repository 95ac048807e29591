"""The one table model that every exporter writes, and its cells as text.

Cells are written for people (rounded, with intervals) and as data (all digits, plain).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from nqbench.analysis import wording
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.wording import Difference
from nqbench.system.suggest import many

Item = TypeVar("Item")
Cell = str | int | float | Estimate | Difference | None
"""``None`` is an empty cell: nothing was measured, which is not zero."""
EMPTY: Final = "\u2013"
"""How an empty cell is shown."""
WIDE: Final = 0.1
"""Half-width above which an interval is visibly lopsided and ``±`` would hide that."""
PROVENANCE: Final = ("run_device", "provenance", "command")
"""The columns that end every table of data: where its numbers come from."""


def slug(*parts: str) -> str:
    """A file name from words."""
    joined = "-".join(part for part in parts if part)
    return re.sub(r"[^A-Za-z0-9.]+", "-", joined).strip("-.").lower() or "report"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its unit, what it holds.

    ``kind``    ``text``, ``number`` (plain), ``time`` (seconds), or ``ratio``
    ``spread``  its cells are estimates; data formats put the bounds into separate columns
    ``plain``   its name in data formats if that is another: a difference is written as the ratio
    """

    name: str
    kind: Literal["text", "number", "time", "ratio"] = "text"
    unit: str = ""
    spread: bool = False
    plain: str = ""

    @property
    def heading(self) -> str:
        """Name with unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def data_headings(self) -> list[str]:
        """Headings in a data format: an estimate takes three columns."""
        name = (self.plain or self.name).replace(" ", "_")
        unit = "_s" if self.kind == "time" else f"_{self.unit}" if self.unit else ""
        head = name if name.endswith(unit) else name + unit
        return [head, f"{head}_low", f"{head}_high"] if self.spread else [head]


@dataclass(frozen=True, slots=True)
class Source:
    """Where numbers come from; every table and figure shows it.

    ``provenance`` says whether they were measured, simulated or are synthetic; ``run`` is the name
    of the study, which keeps the labels of tables of several runs distinct.
    """

    device: str
    provenance: str
    command: str
    run: str = ""

    def __str__(self) -> str:
        return f"{self.device}, {self.provenance}"


def source_of(data: Dataset, *, cpu: bool = False) -> Source:
    """Device, provenance and command of a run, or of its CPU baselines."""
    if cpu:
        return Source(data.cpu, data.cpu_provenance, data.command, data.name)
    return Source(data.device, data.provenance, data.command, data.name)


def joint(sources: Sequence[Source], command: str = "") -> Source:
    """Several sources as one, without repetitions; ``command`` replaces all their commands."""
    return Source(
        (" and " if command else "; ").join(dict.fromkeys(s.device for s in sources)),
        "; ".join(dict.fromkeys(s.provenance for s in sources)),
        command or "; ".join(dict.fromkeys(s.command for s in sources)),
        " and ".join(dict.fromkeys(s.run for s in sources)),
    )


@dataclass(frozen=True, slots=True)
class Table:
    """A table. ``notes`` say what the numbers mean and what to beware of.

    ``points``  the key of each row's point, where rows are points
    ``shown``   what a page shows instead of it: HTML one size and one quantity at a time, Markdown
                the size of the first row
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    source: Source
    notes: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    shown: Table | None = None

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells")
        if self.points and len(self.points) != len(self.rows):
            raise ValueError(f"table {self.name}: {len(self.points)} points for its rows")

    @property
    def size(self) -> str:
        """How many rows, in words."""
        return many(len(self.rows), "row")

    @property
    def label(self) -> str:
        """A name that is unique among the tables of all runs and devices."""
        return slug(self.source.run, self.source.device, self.name)

    @property
    def data_headings(self) -> list[str]:
        """Headings in a data format, the provenance last.

        They are distinct, because programs look columns up by name: the second of two columns with
        one name becomes ``..._2``.
        """
        heads: list[str] = []
        for head in (*(h for c in self.columns for h in c.data_headings), *PROVENANCE):
            names = (head if i == 1 else f"{head}_{i}" for i in itertools.count(1))
            heads.append(next(name for name in names if name not in heads))
        return heads

    def texts(self) -> Iterator[list[str]]:
        """Rows as text for people, one string per cell."""
        for row in self.rows:
            yield [cell_text(c, column) for c, column in zip(row, self.columns, strict=True)]

    def cells(self) -> Iterator[list[tuple[str, str | None]]]:
        """Rows as text for people with the same cells as data, bounds after a space; ``None`` in
        columns of text."""
        for row, texts in zip(self.rows, self.texts(), strict=True):
            yield [
                (text, None if column.kind == "text" else " ".join(_data(cell, column, _seven)))
                for text, cell, column in zip(texts, row, self.columns, strict=True)
            ]

    def records(self) -> list[dict[str, str | float | None]]:
        """Rows as in a data format, by heading; numbers as numbers, ``None`` for an empty one."""
        text = [c.kind == "text" for c in self.columns for _ in c.data_headings]
        text += [True] * len(PROVENANCE)
        return [
            {
                name: cell if words else (float(cell) if cell else None)
                for name, cell, words in zip(self.data_headings, row, text, strict=True)
            }
            for row in self.data()
        ]

    def as_json(self, rows: str) -> dict[str, Any]:
        """Plain form; ``rows`` names the records."""
        about = {"title": self.title, "source": str(self.source), "notes": list(self.notes)}
        return {**about, rows: self.records()}

    def data(self) -> Iterator[list[str]]:
        """Rows in a data format: every digit, empty where nothing is known."""
        source = [self.source.device, self.source.provenance, self.source.command]
        for row in self.rows:
            cells = zip(row, self.columns, strict=True)
            yield [
                *(text for cell, column in cells for text in _data(cell, column, _plain)),
                *source,
            ]


Field = tuple[Column, Callable[[Item], Cell]]
"""A column, and the function that takes its cell from the item of a row."""
Body = tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...]]
"""Columns and rows of a table."""


def tabulate(items: Iterable[Item], *fields: Field[Item]) -> Body:
    """A row per item, a column per field."""
    columns = tuple(column for column, _ in fields)
    return columns, tuple(tuple(cell(item) for _, cell in fields) for item in items)


def cell_text(cell: Cell, column: Column) -> str:
    """A cell for people."""
    if cell is None or cell == "":
        return EMPTY
    if isinstance(cell, Estimate):
        return _estimate(cell, column)
    return str(cell) if isinstance(cell, str | Difference) else _number(float(cell), column)


def _number(value: float, column: Column) -> str:
    if math.isnan(value):
        return EMPTY
    if column.kind == "time":
        return wording.time(value)
    return wording.ratio(Estimate(value)) if column.kind == "ratio" else wording.number(value)


def _estimate(cell: Estimate, column: Column) -> str:
    if math.isnan(cell.value):
        return "0 in both" if column.kind == "ratio" else EMPTY
    if cell.value == math.inf:
        return "from 0"
    if cell.low is None or cell.high is None:
        return _number(cell.value, column)
    if column.kind == "time":
        half = math.sqrt(cell.high / cell.low) - 1
        middle, low, high = map(wording.time, (cell.value, cell.low, cell.high))
        return f"{middle} [{low}, {high}]" if half > WIDE else f"{middle} ±{100 * half:.2g}%"
    return wording.ratio(cell)


def _data(cell: Cell, column: Column, plain: Callable[[float | None], str]) -> list[str]:
    """A cell in a data format, with its bounds where the column has them."""
    if isinstance(cell, Difference):
        cell = cell.plain
    if isinstance(cell, Estimate):
        values = [cell.value, cell.low, cell.high] if column.spread else [cell.value]
        return [plain(v) for v in values]
    text = cell if isinstance(cell, str) else plain(cell)
    return [text, "", ""] if column.spread else [text]


def _seven(value: float | None) -> str:
    """A number to seven digits, whole ones in full: more than any interval resolves."""
    text = _plain(value)
    return text if "." not in text and "e" not in text else f"{float(text):.7g}"


def _plain(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    if math.isfinite(value) and float(value).is_integer():
        return str(int(value))
    return repr(float(value))
