"""What the table builders share: columns, notes, cells of a point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from nqbench.analysis.answer import MODELLED
from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import CONFIDENCE
from nqbench.analysis.data.quantities import Quantity
from nqbench.report.table import Column, Field

PROGRAM_NOTE = (
    "The kernel time of a program (rows with a time `other`) covers a whole run with all its"
    " launches and copies, from an idle device to an idle device"
)
EXACT_NOTE = (
    "Simulated counters are exact for the compiled PTX and repeat bit for bit; they are not times,"
    " and none of them alone is the cost"
)
MODELLED_NOTE = (
    "The modelled time is what a formula makes of the counters: a model's answer, not a measurement"
)


def factor_fields(factors: Sequence[str]) -> list[Field[PointResult]]:
    """A column per factor with the levels of points."""
    return [(Column(name), partial(lambda name, p: str(p.level(name)), name)) for name in factors]


def value_fields(shown: Sequence[Quantity]) -> list[Field[PointResult]]:
    """A column per quantity with the values of points, times with their intervals."""
    fields: list[Field[PointResult]] = []
    for what in shown:
        timed = what.kind == "time"
        spread = timed or what.measured
        column = Column(what.label, "time" if timed else "number", spread=spread)
        fields.append((column, partial(PointResult.estimate, what=what)))
    return fields


def is_program(points: Iterable[PointResult]) -> bool:
    """Whether points on the GPU were timed as whole programs: several launches with copies."""
    return any(not p.cpu and p.timed and p.detail("other_s") is not None for p in points)


def timing_notes(points: Sequence[PointResult]) -> list[str]:
    """What the times of CPU programs and of whole programs on the GPU cover, if there are any."""
    names = ", ".join(dict.fromkeys(p.system for p in points if p.cpu and p.ok))
    on_cpu = f"On the CPU, timed as a whole: {names}; kernel times cover the kernel alone"
    return [on_cpu] * bool(names) + [PROGRAM_NOTE] * is_program(points)


def interval_note(simulated: bool, rounds: int, shown: Sequence[Quantity] = ()) -> str:
    """What the intervals are; of counters, that they are no times, and the modelled time is a
    model's."""
    if simulated:
        return MODELLED_NOTE if any(q.name == MODELLED for q in shown) else EXACT_NOTE
    if rounds < 2:
        return "Only one round was measured: no interval, as the round is the unit of replication"
    return (
        f"± and brackets are {CONFIDENCE:.0%} intervals over {rounds} rounds (Student's t on"
        " the logarithms of the round medians)"
    )


def varied_levels(rows: Sequence[Any]) -> list[str]:
    """Factors that distinguish rows of one ``system`` and size ``n``; each has its ``levels``."""
    seen: dict[tuple[str, int, str], set[str]] = {}
    names = list(dict.fromkeys(name for row in rows for name in row.levels))
    for row in rows:
        for name in names:
            seen.setdefault((row.system, row.n, name), set()).add(str(row.levels.get(name)))
    return [name for name in names if any(len(s) > 1 for k, s in seen.items() if k[2] == name)]


def level_fields(rows: Sequence[Any]) -> list[Field[Any]]:
    """A column for each of those factors, with the levels of rows."""
    return [
        (Column(name), partial(lambda name, row: str(row.levels.get(name, "-")), name))
        for name in varied_levels(rows)
    ]
