"""What this system has and lacks for nqbench, and the commands that fix it: choose the device,
gather the facts, make every row.

The doctor only reads: it changes no setting and runs none of the commands that it shows. Drivers
and compiled packages, which may hang or crash, are queried in separate processes with a time limit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

import yaml

from nqbench.doctor import facts, probe
from nqbench.errors import DeviceUnavailable
from nqbench.facts import DeviceKind
from nqbench.system.files import chosen_cache

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


def row_of(check: Check, known: Mapping[str, Any]) -> DoctorRow | None:
    """The first case of a check that applies, as a row; ``None`` where no case applies."""
    for case in check["cases"]:
        if "when" not in case or known.get(case["when"]):
            return filled(check, case, known)
    return None


def filled(
    check: Mapping[str, Any], case: Mapping[str, str], known: Mapping[str, Any]
) -> DoctorRow:
    """One of the cases of a check as a row, its templates filled in by facts."""
    state = next(state for state in STATES if state in case)
    texts = (check["name"], case[state], case.get("do", ""))
    name, found, remedy = (text.format_map(known) for text in texts)
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


def examine(
    device: str = "auto",
    *,
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    results: Path = Path("results"),
    ask: Callable[[], probe.ProbeResults] = lambda: probe.ask_all(),
    load: Callable[[], float] = lambda: os.getloadavg()[0],
) -> Report:
    """Look at everything; ``device`` is ``auto``, ``cuda``, ``cuda:N``, ``sim``, ``cpu``.

    ``auto`` is the GPU where there is a sign of one (driver, kernel module or card), even if it
    cannot be used, else the simulator. Raises ``DeviceUnavailable`` for anything else.

    Tests give other surroundings: where ``/proc`` and ``/sys`` are, the environment, the folder of
    results, the answers of all questions, the load of the last minute.
    """
    if not re.fullmatch(r"cuda(:\d+)?|sim(:.*)?|cpu|auto", device):
        said = f"doctor knows no device {device!r}; write --device auto, cuda:0, sim or cpu"
        raise DeviceUnavailable(said)
    # The load is read first: the questions themselves are work.
    load_1min = load()
    answers = ask()
    cache = chosen_cache() / "kernels"
    seen = {
        **facts.of_software(answers),
        **facts.of_driver(answers, root, environment),
        **facts.of_system(root, load_1min, cache, results, environment.get("PATH")),
    }
    kind, why = cast("DeviceKind", device.partition(":")[0]), "asked for"
    if device == "auto":
        kind, why = _auto(seen)
        device = {"cuda": "cuda:0"}.get(kind, kind)
    if kind == "cuda":
        count = answers["driver"].value.get("count", 0)
        absent = count and int(device.partition(":")[2] or 0) >= count
        there = f"{count}: cuda:0 to cuda:{count - 1}"
        seen |= {"device": device, "no_such_gpu": absent, "gpu_range": there}
    gpus = map(facts.of_gpu, answers["nvml"].value.get("gpus", ()))
    groups = [("software", seen), ("driver", seen), *(("gpu", gpu) for gpu in gpus)]
    groups += [("profiler", seen), ("system", seen)]
    found = (row_of(check, known) for group, known in groups for check in CHECKS[group])
    return Report(device, kind, why, tuple(filter(None, found)))


def _auto(seen: Mapping[str, object]) -> tuple[DeviceKind, str]:
    if seen["driver_ok"]:
        return "cuda", "there is an NVIDIA driver"
    if seen["kernel_module"] or seen["card"]:
        return "cuda", "there is an NVIDIA GPU"
    return "sim", "there is no sign of an NVIDIA GPU"
