"""Running searches of the fitness workload, for its tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from nqbench.devices.sim import SimDevice
from nqbench.plan import Outputs
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.annealing.cooling import Cooling, Walk

PAPER = Cooling(0.5, 0.01, 0.8, 20)
ATTACKED = Cooling.constant(200)
SIM = SimDevice()


def same(first: Walk, second: Walk) -> bool:
    """Whether two walks ended alike, board included."""
    ends = [(w.conflicts, w.evaluations, w.accepted, w.board.tolist()) for w in (first, second)]
    return ends[0] == ends[1]


def run(device: Any, system: str, **given: Level) -> tuple[int, Outputs, Any]:
    """Answer, outputs and findings of a search, the same in two runs and right."""
    resolved = WORKLOAD.resolve(given, system, device.facts)
    plan = WORKLOAD.plan(resolved.factors, system, device.facts)
    with device.prepare(plan) as prepared:
        prepared.launch()
        first = prepared.fetch()
        prepared.launch()
        outputs = prepared.fetch()
    for name, values in first.items():
        assert np.array_equal(values, outputs[name]), name
    answer = WORKLOAD.answer(plan, outputs)
    assert answer == WORKLOAD.expected(resolved.factors)
    return answer, outputs, WORKLOAD.findings(plan, outputs)
