"""The simulator as a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.closing import Closing
from nqbench.compile import compile_ptx
from nqbench.devices.models import load_model
from nqbench.devices.protocol import Launch
from nqbench.devices.sim import reports
from nqbench.devices.sim.attribution import readable, targets
from nqbench.devices.sim.counters import Tally
from nqbench.devices.sim.engine import (
    UNDEFINED_BYTE,
    Geometry,
    GlobalMemory,
    Run,
    parameter_bytes,
    resident_blocks,
)
from nqbench.devices.sim.layout import Outcome
from nqbench.devices.sim.program import Program, build
from nqbench.devices.sim.ptx import UnsupportedPtx
from nqbench.devices.sim.rules import MAX_SHARED_BYTES
from nqbench.errors import DeviceError, KernelFault, LaunchError, LaunchTimeout
from nqbench.plan import KernelPlan, Outputs, Plan

ORDERS: Final = ("round_robin", "reverse", "greedy")
"""Which warp runs next: all in turn, all in turn backwards, or each until it must wait."""

DEFAULT_QUANTUM: Final = 32
"""Loop iterations before the next warp's turn: few against the life of a job, so that warps share a
job pool evenly; many against the cost of a change of warps."""

GREEDY_QUANTUM: Final = 1 << 40
DEFAULT_MAX_STEPS: Final = 1 << 33
"""Loop iterations before a launch counts as endless: a board of N = 18 needs about a tenth."""


class SimDevice:
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
        from nqbench.nvrtc import compiler_version

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

    def prepare(self, plan: Plan) -> SimPrepared:
        """Compile to PTX and to native code, allocate, copy.

        Raises ``CompileError``, ``DeviceError`` (a plan for the host, or one that does not fit), or
        ``KernelFault`` for PTX that is not simulated.
        """
        if not isinstance(plan, KernelPlan):
            raise DeviceError(
                f"{self.spec} runs kernels; {plan.title} is a computation for the cpu device"
            )
        compiled = compile_ptx(plan.source, plan.entry, self.facts.arch, plan.options)
        memory = tuple(sorted(self.model.memory.items()))
        try:
            program = build(compiled.image.decode(), compiled.symbol, memory)
        except UnsupportedPtx as error:
            raise KernelFault(
                f"kernel {plan.entry}: the simulator does not know {error}"
            ) from error
        return SimPrepared(self, plan, program)

    def close(self) -> None:
        """Nothing to release."""


class SimPrepared(Closing):
    """A plan in the simulator's memory."""

    transfer_s: float | None = None

    def __init__(self, device: SimDevice, plan: KernelPlan, program: Program) -> None:
        self.device = device
        self.plan = plan
        self.program = program
        self.geometry = _geometry(device, plan, program)
        self.memory: GlobalMemory | None = GlobalMemory(program, plan.buffers)
        for buffer in plan.buffers:
            if buffer.data is not None:
                self._copy(buffer.name, buffer.data, buffer.dtype)
            elif not buffer.zero:
                self.memory.bytes_of(buffer.name)[:] = UNDEFINED_BYTE
        addresses = {b.name: self.memory.address(b.name) for b in plan.buffers}
        self.parameters = parameter_bytes(program, plan.arguments, addresses)
        self.resources: Mapping[str, int | float | str] = {
            "resident_blocks": self.geometry.resident_blocks,
            "warps_per_block": self.geometry.warps,
        }
        self.names = self._names()

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Run the kernel once. The same plan gives the same counters, bit for bit."""
        memory = self._memory()
        memory.renew_module()
        for buffer in self.plan.buffers:
            if buffer.zero:
                memory.bytes_of(buffer.name)[:] = 0
            elif buffer.restore and buffer.data is not None:
                self._copy(buffer.name, buffer.data, buffer.dtype)
        run = Run(self.program, memory, self.parameters, self.geometry)
        outcome = run.go(self.device.max_steps, timeout_s)
        if outcome is Outcome.FAULT:
            raise reports.fault(run, self.plan.entry)
        if outcome is Outcome.DEADLOCK:
            raise reports.deadlock(run, self.plan.entry)
        if outcome is Outcome.PAUSE:
            raise LaunchTimeout(self._late(run, timeout_s))
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
        memory = self._memory()
        return {
            b.name: memory.bytes_of(b.name).view(b.dtype).copy()
            for b in self.plan.buffers
            if b.output
        }

    def close(self) -> None:
        """Free the memory."""
        self.memory = None

    def _memory(self) -> GlobalMemory:
        if self.memory is None:
            raise LaunchError(f"kernel {self.plan.entry}: the plan was closed")
        return self.memory

    def _copy(self, name: str, data: NDArray[Any], dtype: str) -> None:
        raw = np.ascontiguousarray(data, dtype=dtype).view(np.uint8)
        self._memory().bytes_of(name)[: len(raw)] = raw

    def _late(self, run: Run, timeout_s: float | None) -> str:
        if run.steps >= self.device.max_steps:
            return (
                f"kernel {self.plan.entry}: still running after {run.steps:,} loop iterations;"
                " it may be endless, or max_steps of SimDevice is too small for it"
            )
        return f"kernel {self.plan.entry}: still running after {timeout_s:g} s"

    def _names(self) -> dict[Any, str]:
        parameters = {
            name: argument
            for name, argument in zip(
                self.program.kernel.parameters, self.plan.arguments, strict=True
            )
            if isinstance(argument, str)
        }
        variables = {name: readable(name) for name in self.program.kernel.variables}
        return targets(self.program.blocks, variables, parameters)


def _geometry(device: SimDevice, plan: KernelPlan, program: Program) -> Geometry:
    """Check the launch against the model's limits, as a driver does."""
    facts = device.facts
    threads = int(np.prod(plan.block))
    if not 1 <= threads <= facts.max_threads_per_block:
        raise LaunchError(
            f"kernel {plan.entry}: {threads} threads per block; {device.spec} takes 1 to"
            f" {facts.max_threads_per_block}"
        )
    if min(plan.grid) < 1:
        raise LaunchError(f"kernel {plan.entry}: the grid {plan.grid} has no blocks")
    static = program.symbols.static_shared_bytes
    shared = static + plan.shared_bytes
    limit = facts.shared_per_block_optin if plan.shared_bytes else facts.shared_per_block
    limit = min(limit, MAX_SHARED_BYTES)
    if shared > limit:
        raise LaunchError(
            f"kernel {plan.entry}: {shared} bytes of shared memory per block; {device.spec} has"
            f" {limit}"
        )
    resident = resident_blocks(facts, threads, shared, int(np.prod(plan.grid)))
    return Geometry(
        plan.grid, plan.block, shared, plan.shared_bytes, resident, facts.multiprocessors,
        device.order, device.quantum,
    )  # fmt: skip
