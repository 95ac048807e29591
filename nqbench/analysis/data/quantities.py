"""Quantities: what a table or a figure can show of a point.

Times are measured; counters are counted by the simulator. A quantity is one or the other, so that
the two never share a column or an axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from nqbench.errors import AnalysisError
from nqbench.system.suggest import suggestion
from nqbench.vocabulary import BETTER, COUNTERS, PROGRAM_COUNTERS, is_counter, plain_name
from nqbench.workloads import phases


@dataclass(frozen=True, slots=True)
class Quantity:
    """One measured time or one counter.

    ``columns``    columns of the run's frame whose sum it is
    ``unit``       ``s`` for times, empty for plain counts and fractions
    ``better``     which direction is good, or ``""`` where that is not clear by itself
    """

    name: str
    label: str
    columns: tuple[str, ...]
    kind: Literal["time", "counter"]
    unit: str = ""
    better: Literal["lower", "higher", ""] = "lower"

    def of(self, row: Mapping[str, Any]) -> float:
        """Value in one row of a run's frame; NaN where it was not recorded."""
        total = 0.0
        for column in self.columns:
            value = row.get(column)
            if value is None:
                return math.nan
            total += float(value)
        return total


TIME: Final = Quantity("time", "kernel time", ("value_s",), "time", "s")
CPU_TIME: Final = Quantity("time", "CPU time", ("value_s",), "time", "s")
"""What ``TIME`` is of a CPU baseline: a whole computation on the CPU."""
OFF_CHIP: Final = Quantity(
    "off_chip_sectors", "off-chip sectors", ("local_sectors", "global_sectors"), "counter"
)
SHOWN_COUNTERS: Final = (
    "warp_instructions",
    "lane_efficiency",
    "issue_slots",
    "divergent_branches",
    "bank_conflicts",
    "off_chip_sectors",
)
"""Counters shown side by side where none is asked for: work, how full the warps are, control flow,
on-chip and off-chip memory. None of them is the cost."""


def quantity(name: str) -> Quantity:
    """Look a quantity up: ``time``, a phase, a counter or ``off_chip_sectors``.

    A counter of one kernel of a program is ``NAME@KERNEL``.

    Raises ``AnalysisError`` for an unknown name, with the nearest known one.
    """
    if name == "time":
        return TIME
    if name in phases():
        return Quantity(name, f"{name} time", (f"{name}_s",), "time", "s")
    if name == OFF_CHIP.name:
        return OFF_CHIP
    if is_counter(name):
        plain, kernel = plain_name(name)
        label = plain.replace("_", " ") + (f" of {kernel}" if kernel else "")
        return Quantity(name, label, (name,), "counter", better=BETTER.get(plain, ""))
    known = ("time", *phases(), *COUNTERS, *PROGRAM_COUNTERS, OFF_CHIP.name)
    raise AnalysisError(f"no quantity is called {name!r}; {suggestion(name, known)}")
