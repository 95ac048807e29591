"""Quantities: what a table or a figure can show of a point.

Times are measured; counters are counted by the simulator. A quantity is one or the other, so that
the two never share a column or an axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from nqbench.errors import AnalysisError
from nqbench.runs import frame
from nqbench.system.suggest import suggestion
from nqbench.vocabulary import (
    BETTER,
    COUNTERS,
    ERRORS,
    PLAIN,
    PROGRAM_COUNTERS,
    SUMS,
    is_counter,
    plain_name,
)
from nqbench.workloads import KERNEL, phases

FRACTIONS: Final = ("lane_efficiency", "l1_hit_percent", "l2_hit_percent", "modelled_ms", *ERRORS)
"""Counters that are not whole numbers."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One measured time or one counter.

    ``columns``    columns of the run's frame whose sum it is
    ``unit``       ``s`` for times, empty for plain counts and fractions
    ``better``     which direction is good, or ``""`` where that is not clear by itself
    ``formula``    of a derived metric or of cycles: the value from a row, instead of the columns
    ``measured``   of a derived metric: it follows from a time, not from a counter
    """

    name: str
    label: str
    columns: tuple[str, ...]
    kind: Literal["time", "counter"]
    unit: str = ""
    better: Literal["lower", "higher", ""] = "lower"
    formula: Callable[[Mapping[str, Any]], float] | None = None
    measured: bool = False

    @property
    def plain(self) -> str:
        """Its name in sentences."""
        return PLAIN.get(self.name, self.label)

    @property
    def countable(self) -> bool:
        """Whether its name is a plural: fewer conflicts, but less data."""
        return self.plain.endswith("s")

    @property
    def counts(self) -> bool:
        """Whether its values are whole numbers."""
        return self.exact and self.formula is None and plain_name(self.name)[0] not in FRACTIONS

    @property
    def exact(self) -> bool:
        """Whether it is a deterministic count."""
        return self.kind == "counter" and not self.measured

    def of(self, row: Mapping[str, Any]) -> float:
        """Value in one row of a run's frame; NaN where it was not recorded."""
        if self.formula is not None:
            return self.formula(row)
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
CYCLES: Final = Quantity(
    "cycles",
    "kernel cycles",
    (),
    "time",
    formula=lambda row: float(row["value_s"]) * row.get("sm_mhz", math.nan) * 1e6,
)
"""Kernel time x SM clock while it was timed: what is left of a difference at another clock."""
OFF_CHIP: Final = Quantity(
    "off_chip_sectors", "off-chip sectors", SUMS["off_chip_sectors"], "counter"
)
SHOWN_COUNTERS: Final = (
    *("warp_instructions", "lane_efficiency", "issue_slots"),
    *("divergent_branches", "bank_conflicts", "off_chip_sectors"),
)
"""Counters shown side by side where none is asked for: work, how full the warps are, control flow,
on-chip and off-chip memory. None of them is the cost."""


def metrics_of(study: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Quantity]:
    """The derived metrics of a recorded study's own kernel, by name; ``facts`` are the device's."""
    metrics = (study.get(KERNEL) or {}).get("metrics") or {}
    found: dict[str, Quantity] = {}
    for name, formula in frame.metrics_of(study, facts).items():
        given = metrics[name]
        about = given if isinstance(given, Mapping) else {}
        better = about.get("better", "higher")
        timed = not frame.parse_metric(given).names & {*COUNTERS, *SUMS}
        found[name] = Quantity(
            name, name, (), "counter", better=better, formula=formula, measured=timed
        )
    return found


def quantity(name: str) -> Quantity:
    """Look a quantity up: ``time``, a phase, a counter or ``off_chip_sectors``.

    A counter of one kernel of a program is ``NAME@KERNEL``.

    Raises ``AnalysisError`` for an unknown name, with the nearest known one.
    """
    if name == "time":
        return TIME
    if name == OFF_CHIP.name:
        return OFF_CHIP
    if name in phases():
        return Quantity(name, f"{name} time", (f"{name}_s",), "time", "s")
    if name in ERRORS:
        return Quantity(name, name.replace("_", " "), (name,), "counter")
    if is_counter(name):
        plain, kernel = plain_name(name)
        label = plain.replace("_", " ") + (f" of {kernel}" if kernel else "")
        return Quantity(name, label, (name,), "counter", better=BETTER.get(plain, ""))
    names = ("time", *phases(), *COUNTERS, *PROGRAM_COUNTERS, *ERRORS, OFF_CHIP.name)
    raise AnalysisError(f"no quantity is called {name!r}; {suggestion(name, names)}")
