"""Points of the fitness workload, run for its tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nqbench.device import Device, Launch
from nqbench.devices.registry import SimDevice
from nqbench.plan import Outputs
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.annealing.cooling import Cooling
from nqbench.workloads.fitness.annealing.walks import Walk
from tests.workloads import running

PAPER = "fitness_schemes"
OWN = "fitness"
COOLING = Cooling(0.5, 0.01, 0.8, 20)
"""The paper's search."""
ATTACKED = Cooling.constant(200)
SIM = SimDevice()


def evaluate(device: Device, system: str | None, **given: Level) -> int:
    """The right answer of a point, the same in two runs."""
    return launch(device, system, given)[0]


def launch(device: Device, system: str | None, given: Mapping[str, Level]) -> tuple[int, Launch]:
    """The same, and what a run gave."""
    ran = running.run(WORKLOAD, device, given, system)
    assert ran.answer is not None
    return ran.answer, ran.launch


def search(device: Any, system: str, **given: Level) -> tuple[int, Outputs, Any]:
    """Answer, outputs and findings of a search, right in two runs."""
    ran = running.run(WORKLOAD, device, given, system)
    assert ran.answer is not None
    return ran.answer, ran.outputs, WORKLOAD.findings(ran.plan, ran.outputs)


def same(first: Walk, second: Walk) -> bool:
    """Whether two walks ended alike, board included."""
    ends = [(w.conflicts, w.evaluations, w.accepted, w.board.tolist()) for w in (first, second)]
    return ends[0] == ends[1]
