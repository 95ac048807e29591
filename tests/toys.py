"""The smallest study, the device that runs it, and a workload with variants for that device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nqbench.facts import DeviceFacts
from nqbench.plan import KernelPlan, Plan
from nqbench.point import Level
from nqbench.workloads.ceilings import Ceilings

STUDY = """\
name: tiny
workload: counting
n: [6, 7, 8]
fixed: {memory: shared, depth: 2}
measure: {rounds: 1, budget: 1s}
"""
FAKE = "fake:noise=0.001,seed=3"


class Toy(Ceilings):
    """The ceilings, with the answer in the plan: the test device computes nothing."""

    name = "tests.toys:TOY"

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        plan = super().plan(factors, system, device)
        assert isinstance(plan, KernelPlan)
        return replace(plan, about={**plan.about, "answer": self.expected(factors) or 0})


TOY: Final = Toy()
