"""The findings of an examination, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

State = Literal["ok", "warning", "missing"]
Kind = Literal["cuda", "sim", "cpu"]

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
"""What a row is about: the part of nqbench that does not work, or works worse, without it."""

NEEDED: Final[Mapping[Kind, frozenset[str]]] = {
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
    kind: Kind
    why: str
    rows: tuple[Row, ...]

    @property
    def lacking(self) -> tuple[Row, ...]:
        """Rows that keep the chosen device from being used."""
        return lacking(self.rows, self.kind)

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


def lacking(rows: Iterable[Row], kind: Kind) -> tuple[Row, ...]:
    """Rows that are ``missing`` and needed by a device of this kind."""
    return tuple(row for row in rows if row.state == "missing" and row.feature in NEEDED[kind])
