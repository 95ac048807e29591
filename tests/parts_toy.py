"""A workload whose kernel comes apart, for the test device: it is told the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nqbench.facts import DeviceFacts
from nqbench.plan import KernelPlan, Plan
from nqbench.point import Level
from nqbench.workloads.ceilings import Ceilings


class Toy(Ceilings):
    """The ceilings, with the answer in the plan."""

    name = "tests.parts_toy:TOY"

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        plan = super().plan(factors, system, device)
        assert isinstance(plan, KernelPlan)
        return replace(plan, about={**plan.about, "answer": self.expected(factors) or 0})


TOY: Final = Toy()
