"""What a program sees of the simulator while it runs (``nqbench.plan.ProgramContext``)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.devices.program import CheckedContext, kernel_of, launch_arguments
from nqbench.devices.sim.counters import Tally
from nqbench.devices.sim.engine import Geometry, Run, parameter_bytes
from nqbench.devices.sim.global_memory import UNDEFINED_BYTE, GlobalMemory
from nqbench.devices.sim.launching import Settings, access_names, check
from nqbench.devices.sim.program import Program
from nqbench.devices.sim.ptx import Instruction
from nqbench.errors import LaunchTimeout
from nqbench.plan import Buffer, Kernel, ProgramPlan

LAUNCHES: Final = "launches"


class LoadedKernel:
    """One kernel of a program: its code, and the state that all its launches share."""

    def __init__(self, name: str, kernel: Kernel, program: Program, shape: Geometry) -> None:
        self.name = name
        self.kernel = kernel
        self.program = program
        self.geometry = shape
        self.launches = 0
        self._names: dict[Instruction, str] | None = None
        self._run: Run | None = None

    def begin(self) -> None:
        """Forget the counts of the last run."""
        self.launches = 0
        if self._run is not None:
            self._run.forget()

    def run(self, memory: GlobalMemory, parameters: bytes) -> Run:
        """A launch, ready to go."""
        self.launches += 1
        if self._run is None:
            self._run = Run(self.program, memory, parameters, self.geometry)
        else:
            self._run.again(parameters)
        return self._run

    def counters(self) -> dict[str, int | float]:
        """Sums over the launches of one run."""
        totals = {} if self._run is None else Tally(self._run).totals()
        return {**totals, LAUNCHES: self.launches}

    def lines(self) -> list[dict[str, Any]]:
        """The same for each access and branch."""
        if self._run is None:
            return []
        if self._names is None:
            self._names = access_names(self.program, self.kernel.arguments)
        return Tally(self._run).lines(self._names)


class SimContext(CheckedContext):
    """A program context over simulated memory; every operation is done at once."""

    def __init__(
        self,
        device: Settings,
        plan: ProgramPlan,
        kernels: Mapping[str, LoadedKernel],
        memory: GlobalMemory,
        timeout_s: float | None,
    ) -> None:
        super().__init__(device.facts, plan)
        self.steps = 0
        self._kernels, self._memory = kernels, memory
        self._max_steps = device.max_steps
        self._addresses = {b.name: memory.address(b.name) for b in plan.buffers}
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for name in self._own:
            memory.hide(name)

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``. Raises ``KernelFault`` and ``LaunchTimeout`` as a launch does."""
        described = kernel_of(self._plan, kernel)
        arguments = launch_arguments(kernel, described, variables)
        loaded = self._kernels[kernel]
        parameters = parameter_bytes(loaded.program, arguments, self._addresses)
        self._memory.use(loaded.program)
        run = loaded.run(self._memory, parameters)
        left = self._max_steps - self.steps
        outcome = run.go(max(left, 1), self._left_s())
        check(run, outcome, described.entry, self._timeout_s, run.steps >= left)
        self.steps += run.steps

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def _allocate(self, buffer: Buffer) -> None:
        """The contents are bytes that look wrong."""
        self._memory.show(buffer.name)
        self._memory.bytes_of(buffer.name)[:] = UNDEFINED_BYTE

    def _free(self, buffer: Buffer) -> None:
        """A kernel that still reaches the buffer is at fault from now on."""
        self._memory.hide(buffer.name)

    def _write(self, buffer: Buffer, values: NDArray[Any]) -> None:
        self._memory.fill(buffer.name, values, buffer.dtype)

    def _zero(self, buffer: Buffer) -> None:
        self._memory.bytes_of(buffer.name)[:] = 0

    def _read(self, buffer: Buffer, count: int) -> NDArray[Any]:
        return self._memory.bytes_of(buffer.name).view(buffer.dtype)[:count].copy()

    def _left_s(self) -> float | None:
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise LaunchTimeout(f"{self._plan.name}: still running after {self._timeout_s:g} s")
        return left
