"""The simulator as a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, overload

from nqbench.devices.base import Device, Launch, Prepared
from nqbench.devices.models import load_model
from nqbench.devices.sim.counters import Tally
from nqbench.devices.sim.engine import (
    Run,
    parameter_bytes,
)
from nqbench.devices.sim.global_memory import GlobalMemory
from nqbench.devices.sim.launching import access_names, check, geometry, load
from nqbench.devices.sim.program import Program
from nqbench.devices.sim.program_plan import SimProgram
from nqbench.errors import DeviceError, LaunchError
from nqbench.plan import KernelPlan, Outputs, Plan, ProgramPlan

ORDERS: Final = ("round_robin", "reverse", "greedy")
"""Which warp runs next: all in turn, all in turn backwards, or each until it must wait."""

DEFAULT_QUANTUM: Final = 32
"""Loop iterations before the next warp's turn: few against the life of a job, so that warps share a
job pool evenly; many against the cost of a change of warps."""

GREEDY_QUANTUM: Final = 1 << 40
DEFAULT_MAX_STEPS: Final = 1 << 33
"""Loop iterations before a launch counts as endless: a board of N = 18 needs about a tenth."""


class SimDevice(Device):
    """A simulated GPU. ``model`` is a name of ``nqbench.devices.models`` or a path.

    ``order``     which warp runs next, one of ``ORDERS``
    ``quantum``   loop iterations per turn
    ``max_steps`` loop iterations, over all warps, after which a launch is given up
    Raises ``DeviceUnavailable`` for an unknown model and ``DeviceError`` for an unknown order.
    """

    timed = False
    deterministic = True

    def __init__(
        self,
        model: str = "mini",
        *,
        order: str = "round_robin",
        quantum: int = DEFAULT_QUANTUM,
        max_steps: int = DEFAULT_MAX_STEPS,
    ) -> None:
        if order not in ORDERS:
            raise DeviceError(f"warp order {order!r} is not known; choose {', '.join(ORDERS)}")
        if quantum < 1 or max_steps < 1:
            raise DeviceError("quantum and max_steps must be at least 1")
        self.model = load_model(model)
        self.facts = self.model.facts
        self.spec = f"sim:{model}"
        self.order = order
        self.quantum = GREEDY_QUANTUM if order == "greedy" else quantum
        self.max_steps = max_steps

    def identity(self) -> Mapping[str, object]:
        """Everything that can change a counter."""
        from nqbench.compiler.nvrtc import compiler_version

        return {
            "kind": "sim",
            "name": self.facts.name,
            "model": self.model.name,
            "memory": dict(self.model.memory),
            "order": self.order,
            "quantum": self.quantum,
            "ptx_compiler": compiler_version(),
            "arch": self.facts.arch,
        }

    @overload
    def prepare(self, plan: KernelPlan) -> SimPrepared: ...

    @overload
    def prepare(self, plan: ProgramPlan) -> SimProgram: ...

    @overload
    def prepare(self, plan: Plan) -> SimPrepared | SimProgram: ...

    def prepare(self, plan: Plan) -> SimPrepared | SimProgram:
        """Compile to PTX and to native code, allocate, copy.

        Raises ``CompileError``, ``DeviceError`` (a plan for the host, or one that does not fit), or
        ``KernelFault`` for PTX that is not simulated.
        """
        if isinstance(plan, ProgramPlan):
            return SimProgram(self, plan)
        if not isinstance(plan, KernelPlan):
            raise DeviceError(
                f"{self.spec} runs kernels; {plan.name} is a computation for the cpu device"
            )
        return SimPrepared(self, plan, load(self, plan))


class SimPrepared(Prepared):
    """A plan in the simulator's memory."""

    def __init__(self, device: SimDevice, plan: KernelPlan, program: Program) -> None:
        self.device = device
        self.plan = plan
        self.program = program
        self.geometry = geometry(device, plan, program)
        self.memory: GlobalMemory | None = GlobalMemory(program, plan.buffers)
        self.memory.begin(plan.buffers)
        addresses = {b.name: self.memory.address(b.name) for b in plan.buffers}
        self.parameters = parameter_bytes(program, plan.arguments, addresses)
        self.names = access_names(program, plan.arguments)
        self.resources: Mapping[str, int | float | str] = {
            "resident_blocks": self.geometry.resident_blocks,
            "warps_per_block": self.geometry.warps,
        }

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Run the kernel once. The same plan gives the same counters, bit for bit."""
        memory = self._memory()
        memory.renew_module()
        memory.renew(self.plan.buffers)
        run = Run(self.program, memory, self.parameters, self.geometry)
        outcome = run.go(self.device.max_steps, timeout_s)
        check(run, outcome, self.plan.entry, timeout_s, run.steps >= self.device.max_steps)
        tally = Tally(run)
        detail = {
            "lines": tally.lines(self.names),
            "resident_blocks": self.geometry.resident_blocks,
            "order": self.device.order,
            "quantum": self.device.quantum,
            "steps": run.steps,
        }
        return Launch(None, tally.totals(), detail)

    def fetch(self) -> Outputs:
        """Copies of the output buffers."""
        return self._memory().outputs(self.plan.buffers)

    def close(self) -> None:
        """Free the memory."""
        self.memory = None

    def _memory(self) -> GlobalMemory:
        if self.memory is None:
            raise LaunchError(f"kernel {self.plan.entry}: the plan was closed")
        return self.memory
