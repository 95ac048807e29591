"""What is looked at, and what was found, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from nqbench.facts import DeviceKind

RowState = Literal["ok", "warning", "missing"]
STATES: Final[tuple[RowState, ...]] = ("ok", "warning", "missing")

_DATA: Final = yaml.safe_load(Path(__file__).with_name("checks.yaml").read_text(encoding="utf-8"))
FEATURES: Final[Mapping[str, str]] = _DATA["features"]
"""What a row is needed for: the part of nqbench that fails, or gets worse, without it."""

NEEDED: Final[Mapping[DeviceKind, frozenset[str]]] = {
    "cuda": frozenset({"core", "compile", "gpu", "cpu", "results"}),
    "sim": frozenset({"core", "compile", "sim", "cpu", "results"}),
    "cpu": frozenset({"core", "cpu", "results"}),
}
"""Features without which a device cannot be used. The papers' baselines run on the CPU
whatever the device, so ``cpu`` is always among them."""


@dataclass(frozen=True, slots=True)
class DoctorRow:
    """One finding.

    ``name``    what was looked at
    ``state``   ``ok``; ``warning``: works, but read this; ``missing``: its feature does not work
    ``found``   what was seen, in words
    ``feature`` key of ``FEATURES``
    ``remedy``  the command that fixes it, or what to do; empty where nothing needs fixing
    """

    name: str
    state: RowState
    found: str
    feature: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What is said in one state of something that is looked at.

    ``found``, ``remedy``  as in ``Row``; templates that facts fill in
    ``when``               the fact that must be true; empty: always
    """

    state: RowState
    found: str
    remedy: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Something that is looked at: the first of its cases that applies becomes its row."""

    name: str
    feature: str
    cases: tuple[Case, ...]

    def row(self, facts: Mapping[str, Any]) -> DoctorRow | None:
        """What the facts say of it; ``None`` where no case applies."""
        for case in self.cases:
            if not case.when or facts.get(case.when):
                return self.filled(case, facts)
        return None

    def filled(self, case: Case, facts: Mapping[str, Any]) -> DoctorRow:
        """One of the cases as a row."""
        name, found, remedy = (
            text.format_map(facts) for text in (self.name, case.found, case.remedy)
        )
        return DoctorRow(name, case.state, found, self.feature, remedy)


def _case(entry: Mapping[str, str]) -> Case:
    state = next(state for state in STATES if state in entry)
    return Case(state, entry[state], entry.get("do", ""), entry.get("when", ""))


CHECKS: Final[Mapping[str, tuple[Check, ...]]] = {
    group: tuple(Check(c["name"], c["for"], tuple(map(_case, c["cases"]))) for c in found)
    for group, found in _DATA["checks"].items()
}
"""Everything that is looked at, by group, in the order of the rows."""


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one system.

    ``device``  the chosen device, e.g. ``cuda:0`` or ``sim``; ``why`` says why this one
    """

    device: str
    kind: DeviceKind
    why: str
    rows: tuple[DoctorRow, ...]

    @property
    def lacking(self) -> tuple[DoctorRow, ...]:
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

    def _needed(self, row: DoctorRow) -> bool:
        return row.feature in NEEDED[self.kind]
