"""What is looked at, and what was found, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


Check = Mapping[str, Any]
CHECKS: Final[Mapping[str, Sequence[Check]]] = _DATA["checks"]
"""Everything that is looked at, by group, in the order of the rows."""


def row_of(check: Check, facts: Mapping[str, Any]) -> DoctorRow | None:
    """The first case of a check that applies, as a row; ``None`` where no case applies."""
    for case in check["cases"]:
        if "when" not in case or facts.get(case["when"]):
            return filled(check, case, facts)
    return None


def filled(
    check: Mapping[str, Any], case: Mapping[str, str], facts: Mapping[str, Any]
) -> DoctorRow:
    """One of the cases of a check as a row, its templates filled in by facts."""
    state = next(state for state in STATES if state in case)
    texts = (check["name"], case[state], case.get("do", ""))
    name, found, remedy = (text.format_map(facts) for text in texts)
    return DoctorRow(name, state, found, check["for"], remedy)


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
