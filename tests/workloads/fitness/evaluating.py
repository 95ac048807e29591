"""Running points of the fitness workload on a device, for its tests."""

from __future__ import annotations

from collections.abc import Mapping

from nqbench.devices.base import Device, Launch
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD

PAPER = "fitness_schemes"
OWN = "fitness"


def evaluate(device: Device, system: str | None, **given: Level) -> int:
    """The answer of a point, the same in two runs."""
    return launch(device, system, given)[0]


def launch(device: Device, system: str | None, given: Mapping[str, Level]) -> tuple[int, Launch]:
    """The answer of a point, and what its first run gave."""
    factors = WORKLOAD.resolve(given, system, device.facts).factors
    plan = WORKLOAD.plan(factors, system, device.facts)
    with device.prepare(plan) as prepared:
        first = prepared.launch()
        answer = WORKLOAD.answer(plan, prepared.fetch())
        prepared.launch()  # a second run must find everything as the first one did
        assert WORKLOAD.answer(plan, prepared.fetch()) == answer
    return answer, first
