"""The simulator as a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nqbench.device import Device
from nqbench.errors import DeviceError
from nqbench.plan import Plan
from nqbench.simulator.simulation import simulation

if TYPE_CHECKING:
    from nqbench.simulator.launching import SimPlan


class SimDevice(Device):
    """A simulated GPU; arguments and errors are those of ``nqbench.simulator.simulation``."""

    timed = False
    deterministic = True

    def __init__(self, model: str = "mini", **settings: Any) -> None:
        self.simulation = simulation(model, **settings)
        self.model, self.spec = self.simulation.model, self.simulation.spec
        self.facts, self.remark = self.model.facts, self.model.remark

    def identity(self) -> Mapping[str, object]:
        """Everything that can change a counter."""
        return self.simulation.identity()

    def prepare(self, plan: Plan) -> SimPlan:
        """See ``simulator.launching.prepare``; ``DeviceError`` for a plan for the CPU."""
        if plan.on_cpu:
            raise DeviceError(
                f"{self.spec} runs kernels; {plan.name} is a computation for the cpu device"
            )
        from nqbench.simulator.launching import prepare

        return prepare(self.simulation, plan)
