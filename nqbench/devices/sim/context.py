"""What a program sees of the simulator while it runs (``nqbench.plan.ProgramContext``)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.devices.program import (
    buffer_of,
    check_group,
    contents,
    elements,
    kernel_of,
    launch_arguments,
)
from nqbench.devices.sim.counters import Tally
from nqbench.devices.sim.engine import Geometry, Run, parameter_bytes
from nqbench.devices.sim.global_memory import UNDEFINED_BYTE, GlobalMemory
from nqbench.devices.sim.launching import access_names, check
from nqbench.devices.sim.program import Program
from nqbench.devices.sim.ptx import Instruction
from nqbench.errors import DeviceError, LaunchTimeout
from nqbench.plan import Kernel, Outputs, ProgramPlan

if TYPE_CHECKING:
    from nqbench.devices.sim.device import SimDevice

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


class SimContext:
    """``nqbench.plan.ProgramContext`` over simulated memory; every operation is done at once."""

    def __init__(
        self,
        device: SimDevice,
        plan: ProgramPlan,
        kernels: Mapping[str, LoadedKernel],
        memory: GlobalMemory,
        timeout_s: float | None,
    ) -> None:
        self.facts = device.facts
        self.steps = 0
        self.kept: Outputs = {}
        self._plan, self._kernels, self._memory = plan, kernels, memory
        self._max_steps = device.max_steps
        self._addresses = {b.name: memory.address(b.name) for b in plan.buffers}
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._absent = {b.name for b in self._plan.buffers if b.per_run}
        for name in self._absent:
            memory.hide(name)

    def close(self) -> None:
        """The run is over. Raises ``DeviceError`` if it left a buffer of its own allocated."""
        own = {b.name for b in self._plan.buffers if b.per_run}
        left = sorted(own - self._absent)
        if left:
            raise DeviceError(
                f"{self._plan.name} ends without freeing {', '.join(left)}, which it allocated"
            )

    def allocate(self, *names: str) -> None:
        """See ``ProgramContext``; the contents are bytes that look wrong."""
        for name in names:
            buffer_of(self._plan, name, per_run=True)
            if name not in self._absent:
                raise DeviceError(f"{self._plan.name} allocates buffer {name!r} twice")
            self._absent.remove(name)
            self._memory.show(name)
            self._memory.bytes_of(name)[:] = UNDEFINED_BYTE

    def free(self, *names: str) -> None:
        """See ``ProgramContext``; a kernel that still reaches the buffer is then at fault."""
        for name in names:
            buffer_of(self._plan, name, per_run=True)
            self._here(name)
            self._absent.add(name)
            self._memory.hide(name)

    def upload(self, name: str, data: NDArray[Any] | None = None) -> None:
        """See ``ProgramContext``."""
        buffer = buffer_of(self._plan, name)
        values = contents(self._plan, buffer, data)
        self._here(name)
        self._memory.fill(name, values, buffer.dtype)

    def clear(self, name: str) -> None:
        """See ``ProgramContext``."""
        buffer_of(self._plan, name)
        self._here(name)
        self._memory.bytes_of(name)[:] = 0

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

    def download(self, name: str, count: int | None = None) -> NDArray[Any]:
        """See ``ProgramContext``."""
        buffer = buffer_of(self._plan, name)
        wanted = elements(self._plan, buffer, count)
        self._here(name)
        return self._memory.bytes_of(name).view(buffer.dtype)[:wanted].copy()

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:  # noqa: ARG002 (the protocol has it)
        """Time has no meaning here."""
        yield

    @contextmanager
    def group(self, name: str) -> Iterator[None]:
        """See ``ProgramContext``; only the name is checked."""
        check_group(self._plan, name)
        yield

    def keep(self, name: str, value: NDArray[Any]) -> None:
        """See ``ProgramContext``."""
        self.kept[name] = np.array(value)

    def _here(self, name: str) -> None:
        if name in self._absent:
            raise DeviceError(
                f"{self._plan.name} uses buffer {name!r}, which is not allocated at that time"
            )

    def _left_s(self) -> float | None:
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise LaunchTimeout(f"{self._plan.name}: still running after {self._timeout_s:g} s")
        return left
