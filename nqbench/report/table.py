"""The one table model that every exporter writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nqbench.analysis.data.estimate import Estimate

Cell = str | int | float | Estimate | None
"""``None`` is an empty cell: nothing was measured, which is not zero."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its unit, what it holds.

    ``kind``  ``text``, ``number`` (plain), ``time`` (seconds), or ``ratio``
    ``spread`` whether its cells are estimates whose bounds belong into columns of their own
              where the format holds data
    """

    name: str
    kind: Literal["text", "number", "time", "ratio"] = "text"
    unit: str = ""
    spread: bool = False

    @property
    def heading(self) -> str:
        """Name with unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True, slots=True)
class Source:
    """Where numbers come from: every table and figure names it."""

    device: str
    manner: str
    command: str

    def __str__(self) -> str:
        return f"{self.device}, {self.manner}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table. ``notes`` say what the numbers mean and what to beware of."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    source: Source
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells")

    @property
    def size(self) -> str:
        """How many rows, in words."""
        return f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"

    def texts(self) -> Iterator[list[str]]:
        """Rows as text for people, one string per cell."""
        from nqbench.report.cells import cell_text

        for row in self.rows:
            yield [cell_text(c, column) for c, column in zip(row, self.columns, strict=True)]
