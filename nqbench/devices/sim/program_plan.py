"""A program of several kernels in the simulator: one memory, one run of the host function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nqbench.devices.base import Launch, Prepared
from nqbench.devices.program import check_kernels, find_function
from nqbench.devices.sim.context import LoadedKernel, SimContext
from nqbench.devices.sim.counters import combined
from nqbench.devices.sim.global_memory import GlobalMemory
from nqbench.devices.sim.launching import Settings, geometry, load
from nqbench.errors import DeviceError, LaunchError
from nqbench.plan import Outputs, ProgramPlan
from nqbench.vocabulary import of_kernel


class SimProgram(Prepared):
    """A program in the simulator's memory; every kernel is compiled and laid out once."""

    def __init__(self, device: Settings, plan: ProgramPlan) -> None:
        """Raises what ``SimDevice.prepare`` raises."""
        check_kernels(plan)
        self.device, self.plan = device, plan
        self.function = find_function(plan.function)
        programs = {name: load(device, kernel) for name, kernel in plan.kernels.items()}
        first, *others = programs.values()
        self.memory: GlobalMemory | None = GlobalMemory(first, plan.buffers, *others)
        self.kernels = {
            name: LoadedKernel(
                name, kernel, programs[name], geometry(device, kernel, programs[name])
            )
            for name, kernel in plan.kernels.items()
        }
        self.memory.begin(plan.buffers)
        self.resources: Mapping[str, int | float | str] = self._resources()
        self._kept: Outputs = {}
        self._ran = False

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Run the program once. The same plan gives the same counters, bit for bit."""
        memory = self._memory()
        memory.renew_module()
        memory.renew(self.plan.buffers)
        for kernel in self.kernels.values():
            kernel.begin()
        context = SimContext(self.device, self.plan, self.kernels, memory, timeout_s)
        self.function(context, *self.plan.arguments)
        context.end()
        self._kept, self._ran = context.kept, True
        return Launch(None, self._counters(), self._detail(context))

    def fetch(self) -> Outputs:
        """Copies of the output buffers, and what the program kept."""
        if not self._ran:
            raise DeviceError(f"nothing to fetch: {self.plan.name} was not run yet")
        lasting = tuple(b for b in self.plan.buffers if not b.per_run)
        return {**self._memory().outputs(lasting), **self._kept}

    def close(self) -> None:
        """Free the memory."""
        self.memory = None

    def _memory(self) -> GlobalMemory:
        if self.memory is None:
            raise LaunchError(f"program {self.plan.name}: the plan was closed")
        return self.memory

    def _resources(self) -> dict[str, int | float | str]:
        found: dict[str, int | float | str] = {}
        for name, kernel in self.kernels.items():
            shape = kernel.geometry
            one = {"resident_blocks": shape.resident_blocks, "warps_per_block": shape.warps}
            found = {**one, **found}  # the plain names are the main, first kernel's
            found |= {of_kernel(what, name): value for what, value in one.items()}
        return found

    def _counters(self) -> dict[str, int | float]:
        parts = {name: kernel.counters() for name, kernel in self.kernels.items()}
        total = combined(list(parts.values()))
        return total | {
            of_kernel(what, name): value
            for name, one in parts.items()
            for what, value in one.items()
        }

    def _detail(self, context: SimContext) -> dict[str, Any]:
        return {
            "order": self.device.order,
            "quantum": self.device.quantum,
            "steps": context.steps,
            "kernels": {
                name: {"launches": kernel.launches, "lines": kernel.lines()}
                for name, kernel in self.kernels.items()
            },
        }
