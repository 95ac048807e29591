"""What the table builders share: columns, notes, cells of a point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from nqbench.analysis.data.dataset import INAPPLICABLE, Level, PointResult
from nqbench.analysis.data.estimate import CONFIDENCE
from nqbench.analysis.data.quantities import Quantity
from nqbench.report.table import Cell, Column, Field

_CPU_FAMILY = "cpu."
CPU_NOTE = (
    "cpu.* systems run on the CPU and are timed as a whole; kernel times cover the kernel alone"
)
PROGRAM_NOTE = (
    "The kernel time of a program (rows with a time `other`) covers a whole run with all its"
    " launches and copies, from an idle device to an idle device"
)
EXACT_NOTE = (
    "Simulated counters are exact for the compiled PTX and repeat bit for bit; they are not times,"
    " and none of them alone is the cost"
)


def factor_fields(factors: Sequence[str]) -> list[Field[PointResult]]:
    """A column per factor with the levels of points."""
    return [(Column(name), partial(_level, factor=name)) for name in factors]


def value_fields(shown: Sequence[Quantity]) -> list[Field[PointResult]]:
    """A column per quantity with the values of points, times with their intervals."""
    fields: list[Field[PointResult]] = []
    for what in shown:
        timed = what.kind == "time"
        spread = timed or what.measured
        column = Column(what.label, "time" if timed else "number", spread=spread)
        fields.append((column, partial(PointResult.estimate, what=what)))
    return fields


def level_cells(point: PointResult, factors: Sequence[str]) -> tuple[Cell, ...]:
    """Levels of a point as text; a factor that does not apply is ``-``."""
    return tuple(_level(point, name) for name in factors)


def _level(point: PointResult, factor: str) -> str:
    return str(point.level(factor)) if point.level(factor) != INAPPLICABLE else "-"


def cpu_notes(points: Sequence[PointResult]) -> list[str]:
    """A note on where the baselines ran; none without baselines."""
    names = list(dict.fromkeys(p.system for p in points if p.cpu and p.ok))
    if not names:
        return []
    if all(name.startswith(_CPU_FAMILY) for name in names):
        return [CPU_NOTE]
    verbs = ("runs", "is") if len(names) == 1 else ("run", "are")
    return [
        f"{', '.join(names)} {verbs[0]} on the CPU and {verbs[1]} timed as a whole; kernel times"
        " cover the kernel alone"
    ]


def is_program(points: Iterable[PointResult]) -> bool:
    """Whether points on the GPU were timed as whole programs: several launches with copies."""
    return any(not p.cpu and p.timed and p.detail("other_s") is not None for p in points)


def program_notes(points: Sequence[PointResult]) -> list[str]:
    """A note on the times of programs; none without programs."""
    return [PROGRAM_NOTE] if is_program(points) else []


def interval_note(simulated: bool, rounds: int) -> str:
    """What the intervals are."""
    if simulated:
        return EXACT_NOTE
    if rounds < 2:
        return "Only one round was measured: no interval, as the round is the unit of replication"
    return (
        f"± and brackets are {CONFIDENCE:.0%} intervals over {rounds} rounds (Student's t on"
        " the logarithms of the round medians)"
    )


def plain(value: Any) -> Cell:
    """A recorded fact as a cell."""
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "item"):
        item = value.item()
        return item if isinstance(item, str | int | float) else str(item)
    return str(value)


class Labelled(Protocol):
    """What a table has rows for: a system at a size, with levels."""

    @property
    def system(self) -> str:
        """Its name."""

    @property
    def n(self) -> int:
        """Its size."""

    @property
    def levels(self) -> Mapping[str, Level]:
        """Its factors."""


def varied_levels(rows: Sequence[Labelled]) -> list[str]:
    """Factors that distinguish rows of one system and size."""
    seen: dict[tuple[str, int, str], set[str]] = {}
    names = list(dict.fromkeys(name for row in rows for name in row.levels))
    for row in rows:
        for name in names:
            seen.setdefault((row.system, row.n, name), set()).add(str(row.levels.get(name)))
    return [name for name in names if any(len(s) > 1 for k, s in seen.items() if k[2] == name)]


def level_fields(rows: Sequence[Labelled]) -> list[Field[Labelled]]:
    """A column for each of those factors, with the levels of rows."""
    return [(Column(name), partial(_own_level, name=name)) for name in varied_levels(rows)]


def _own_level(row: Labelled, name: str) -> str:
    return str(row.levels.get(name, "-"))
