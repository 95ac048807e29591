"""The findings of an examination, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from nqbench.facts import DeviceKind

State = Literal["ok", "warning", "missing"]

FEATURES: Final = {
    "core": "every command",
    "compile": "compiling kernels: GPU, simulator, static report",
    "gpu": "measuring on a GPU",
    "dynamic parallelism": "kernels that launch kernels",
    "sim": "the simulator",
    "cpu": "CPU baselines",
    "results": "keeping results",
    "speed": "not compiling twice",
    "steadiness": "repeatable times",
    "telemetry": "clocks, temperature and power of each measurement",
    "counters": "hardware counters by ncu",
    "cross-check": "comparison with nvbench",
    "rooflines": "comparing kernels with their GPU's limits: nqbench roofline",
}
"""What a row is needed for: the part of nqbench that fails, or gets worse, without it."""

NEEDED: Final[Mapping[DeviceKind, frozenset[str]]] = {
    "cuda": frozenset({"core", "compile", "gpu", "cpu", "results"}),
    "sim": frozenset({"core", "compile", "sim", "cpu", "results"}),
    "cpu": frozenset({"core", "cpu", "results"}),
}
"""Features without which a device cannot be used. The papers' baselines run on the CPU
whatever the device, so ``cpu`` is always among them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One finding.

    ``name``    what was looked at
    ``state``   ``ok``; ``warning``: works, but read this; ``missing``: its feature does not work
    ``found``   what was seen, in words
    ``feature`` key of ``FEATURES``
    ``remedy``  the command that fixes it, or what to do; empty where nothing needs fixing
    """

    name: str
    state: State
    found: str
    feature: str
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.feature not in FEATURES:
            raise ValueError(f"row {self.name!r}: unknown feature {self.feature!r}")


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one system.

    ``device``  the chosen device, e.g. ``cuda:0`` or ``sim``; ``why`` says why this one
    """

    device: str
    kind: DeviceKind
    why: str
    rows: tuple[Row, ...]

    @property
    def lacking(self) -> tuple[Row, ...]:
        """Rows of what is missing and needed by the chosen device."""
        return tuple(row for row in self.rows if row.state == "missing" and self._needed(row))

    @property
    def usable(self) -> bool:
        """Whether everything that the chosen device needs is there."""
        return not self.lacking

    def summary(self) -> str:
        """One sentence."""
        if self.usable:
            warned = sum(row.state == "warning" for row in self.rows)
            extra = f"; {warned} warnings" if warned > 1 else "; 1 warning" if warned else ""
            return f"{self.device} can be used{extra}"
        return f"{self.device} cannot be used: {', '.join(row.name for row in self.lacking)}"

    def as_json(self) -> dict[str, Any]:
        """Plain form, as ``nqbench doctor --json`` prints it."""
        return {
            "device": self.device,
            "why": self.why,
            "usable": self.usable,
            "summary": self.summary(),
            "rows": [asdict(row) | {"needed": self._needed(row)} for row in self.rows],
        }

    def _needed(self, row: Row) -> bool:
        return row.feature in NEEDED[self.kind]
