"""From a kernel to a launch: what a single kernel and a program of several have in common."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from nqbench.compiler.compile import compile_ptx
from nqbench.devices.models import Model
from nqbench.devices.sim import reports
from nqbench.devices.sim.attribution import readable, targets
from nqbench.devices.sim.engine import Geometry, Run, resident_blocks
from nqbench.devices.sim.layout import Outcome
from nqbench.devices.sim.program import Program, build
from nqbench.devices.sim.ptx import Instruction, UnsupportedPtx
from nqbench.devices.sim.rules import MAX_SHARED_BYTES
from nqbench.errors import DeviceError, KernelFault, LaunchError, LaunchTimeout
from nqbench.facts import DeviceFacts
from nqbench.plan import Kernel


class Settings(Protocol):
    """What a launch needs of its device, ``SimDevice``."""

    spec: str
    facts: DeviceFacts
    model: Model
    order: str
    quantum: int
    max_steps: int


def load(device: Settings, kernel: Kernel) -> Program:
    """Compile a kernel to PTX and to native code.

    Raises ``CompileError``, ``KernelFault`` for PTX that is not simulated, or ``DeviceError`` for a
    kernel that launches kernels.
    """
    if kernel.device_launch:
        raise DeviceError(
            f"kernel {kernel.entry} launches kernels itself, and dynamic parallelism is not"
            " simulated; run it on a GPU (--device cuda:0)"
        )
    compiled = compile_ptx(kernel.source, kernel.entry, device.facts.arch, kernel.options)
    memory = tuple(sorted(device.model.memory.items()))
    try:
        return build(compiled.image.decode(), compiled.symbol, memory)
    except UnsupportedPtx as error:
        raise KernelFault(f"kernel {kernel.entry}: the simulator does not know {error}") from error


def geometry(device: Settings, kernel: Kernel, program: Program) -> Geometry:
    """Check the launch against the model's limits, as a driver does. Raises ``LaunchError``."""
    facts = device.facts
    threads = int(np.prod(kernel.block))
    if not 1 <= threads <= facts.max_threads_per_block:
        raise LaunchError(
            f"kernel {kernel.entry}: {threads} threads per block; {device.spec} takes 1 to"
            f" {facts.max_threads_per_block}"
        )
    if min(kernel.grid) < 1:
        raise LaunchError(f"kernel {kernel.entry}: the grid {kernel.grid} has no blocks")
    static = program.symbols.static_shared_bytes
    shared = static + kernel.shared_bytes
    limit = facts.shared_per_block_optin if kernel.shared_bytes else facts.shared_per_block
    limit = min(limit, MAX_SHARED_BYTES)
    if shared > limit:
        raise LaunchError(
            f"kernel {kernel.entry}: {shared} bytes of shared memory per block; {device.spec} has"
            f" {limit}"
        )
    resident = resident_blocks(facts, threads, shared, int(np.prod(kernel.grid)))
    return Geometry(
        kernel.grid, kernel.block, shared, kernel.shared_bytes, resident, facts.multiprocessors,
        device.order, device.quantum,
    )  # fmt: skip


def check(run: Run, outcome: Outcome, entry: str, timeout_s: float | None, exhausted: bool) -> None:
    """Raise the error of a launch that did not end well: ``KernelFault`` or ``LaunchTimeout``.

    ``exhausted`` tells a launch that took all the steps it had from one that took too long.
    """
    if outcome is Outcome.FAULT:
        raise reports.fault(run, entry)
    if outcome is Outcome.DEADLOCK:
        raise reports.deadlock(run, entry)
    if outcome is Outcome.PAUSE and exhausted:
        raise LaunchTimeout(
            f"kernel {entry}: still running after {run.steps:,} loop iterations;"
            " it may be endless, or max_steps of SimDevice is too small for it"
        )
    if outcome is Outcome.PAUSE:
        raise LaunchTimeout(f"kernel {entry}: still running after {timeout_s:g} s")


def access_names(program: Program, arguments: tuple[Any, ...]) -> dict[Instruction, str]:
    """Which buffer or variable an access reaches, where the code tells."""
    parameters = {
        name: argument
        for name, argument in zip(program.kernel.parameters, arguments, strict=True)
        if isinstance(argument, str)
    }
    variables = {name: readable(name) for name in program.kernel.variables}
    return targets(program.blocks, variables, parameters)
