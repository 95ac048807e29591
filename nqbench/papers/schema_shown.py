"""The form of what a paper shows: its tables, figures and long series of times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

Words = dict[str, str]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Ratio(_Part):
    """The quotient that the paper draws from a series.

    ``series`` of ``table``  what it is divided into (``speedup``) or divided by (``share``)
    ``printed``  label of the printed quotient, in ``printed_in`` (default: the same table)
    """

    table: str
    series: str
    form: Literal["speedup", "share"] = "speedup"
    of: str = ""
    printed: str = ""
    printed_in: str = ""


class Series(_Part):
    """A row or column of a table: which system it is and what was recorded of it.

    ``quantity``  ``time``, a phase, ``jobs``, ``iterations``, ``cycles``, or ``ratio`` where the
                  printed cell is itself the quotient
    ``levels``    launch factors that tell it from others of the same system
    ``choose``    ``main``: the configuration of the study's first sweep; ``best``: the fastest
    ``kernel``    which of a program's kernels (``quantity: counter``)
    """

    label: str
    system: str
    quantity: str
    hardware: str = ""
    levels: Words = {}
    ratio: Ratio | None = None
    choose: Literal["main", "best"] = "main"
    kernel: str = ""


class Counterpart(_Part):
    """What stands today for a counter that the paper prints in the row ``label``.

    ``scale`` turns our unit into the paper's; ``note`` says how the two differ.
    """

    label: str
    counter: str
    scale: float = 1.0
    note: str = ""


Twin = Literal[
    "series",
    "printed",
    "environment",
    "best",
    "launch",
    "granularity",
    "divergence",
    "speedups",
    "threads",
    "thresholds",
    "counters",
    "searches",
    "against_limits",
    "limits",
    "annealing",
]
DATA_TWINS = ("speedups", "threads", "thresholds")
"""Twins of a data file: such a table has no rows of its own."""


class PaperTable(_Part):
    """A table as printed. ``twin`` says how it is made again, ``data`` names its data file."""

    id: str
    number: str
    title: str
    hardware: list[str] = []
    unit: str
    n_axis: Literal["rows", "columns", "none"]
    n: list[int] = []
    columns: list[str] = []
    rows: list[list[str | list[str]]] = []
    twin: Twin
    data: str = ""
    series: list[Series] = []
    counterparts: list[Counterpart] = []
    note: str = ""

    @property
    def sizes(self) -> list[int]:
        """Problem sizes of the table."""
        if self.n_axis == "rows":
            return [int(str(row[0])) for row in self.rows]
        return [int(c) for c in self.columns[1:]] if self.n_axis == "columns" else list(self.n)

    def printed(self, label: str, n: int) -> str:
        """The cell of a row or column at a size; empty if there is none."""
        if self.n_axis == "rows" and label in self.columns:
            for row in self.rows:
                if str(row[0]) == str(n):
                    return str(row[self.columns.index(label)])
        if self.n_axis == "columns" and str(n) in self.columns:
            for row in self.rows:
                if row[0] == label:
                    return str(row[self.columns.index(str(n))])
        return ""


class Known(_Part):
    """One value of a figure that the text states."""

    system: str = ""
    n: int | None = None
    hardware: str = ""
    value: float | None = None
    pool_size: int | None = None
    relation: str = ""
    role: str = ""


Draw = Literal[
    "none",
    "bars",
    "pool",
    "kernels",
    "speedup",
    "times",
    "speedups",
    "thread_curves",
    "best_threads",
    "thresholds",
    "boards",
    "annealing",
    "distribution",
    "evaluation_share",
    "limits",
    "parts",
    "phases",
    "requests",
    "mapping",
    "versions",
]


class PaperFigure(_Part):
    """A figure. ``unknown`` is drawn without printed numbers; ``draw`` says how it is made;
    ``data`` names the data file of its published points."""

    id: str
    number: str
    title: str
    hardware: list[str]
    n: list[int]
    unit: str
    draw: Draw = "none"
    data: str = ""
    known: list[Known] = []
    unknown: list[str] = []
    note: str = ""


@dataclass(frozen=True, slots=True)
class DataRow:
    """One published time: of a system of nqbench, at a size, with the levels of some factors.

    ``digits`` is half a unit of the last digit given, in seconds: how far the true value may be.
    """

    n: int
    system: str
    seconds: float
    levels: Mapping[str, int] = field(default_factory=dict)
    digits: float = 0.0


class DataFile(_Part):
    """A CSV file of published times beside ``published.yaml``.

    Its header names ``n``, ``system`` (or the key ``system`` gives one for all rows), factors, and
    ``seconds`` or ``milliseconds``. ``origin`` says whose numbers they are; ``rows`` are filled by
    the reader.
    """

    id: str
    file: str
    origin: str
    hardware: list[str] = []
    system: str = ""
    note: str = ""
    rows: tuple[DataRow, ...] = ()

    def times(self, system: str, **levels: int) -> dict[int, float]:
        """Seconds by N of a system of nqbench at the given levels."""
        return {
            row.n: row.seconds
            for row in self.rows
            if row.system == system and all(row.levels.get(k) == v for k, v in levels.items())
        }
