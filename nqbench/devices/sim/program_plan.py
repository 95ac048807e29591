"""A program of several kernels in the simulator: one memory, one run of the host function."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.closing import Closing
from nqbench.devices.program import (
    buffer_of,
    contents,
    elements,
    find_function,
    kernel_of,
    launch_arguments,
)
from nqbench.devices.protocol import Launch
from nqbench.devices.sim.counters import Tally, combined
from nqbench.devices.sim.engine import Geometry, Run, parameter_bytes
from nqbench.devices.sim.global_memory import UNDEFINED_BYTE, GlobalMemory
from nqbench.devices.sim.launching import access_names, check, geometry, load
from nqbench.devices.sim.program import Program
from nqbench.errors import DeviceError, LaunchError, LaunchTimeout
from nqbench.plan import Kernel, Outputs, ProgramPlan
from nqbench.vocabulary import of_kernel

if TYPE_CHECKING:
    from nqbench.devices.sim.device import SimDevice

LAUNCHES: Final = "launches"


class SimProgram(Closing):
    """A program in the simulator's memory; every kernel is compiled and laid out once."""

    transfer_s: float | None = None

    def __init__(self, device: SimDevice, plan: ProgramPlan) -> None:
        """Raises what ``SimDevice.prepare`` raises."""
        if not plan.kernels:
            raise DeviceError(f"{plan.title} has no kernels; give its plan at least one")
        for name, kernel in plan.kernels.items():
            if kernel.device_launch:
                raise DeviceError(
                    f"kernel {name} of {plan.title} launches kernels itself, and dynamic"
                    " parallelism is not simulated; run it on a GPU (--device cuda:0)"
                )
        self.device, self.plan = device, plan
        self.function = find_function(plan.program)
        programs = {name: load(device, kernel) for name, kernel in plan.kernels.items()}
        self.memory: GlobalMemory | None = GlobalMemory(*_split(programs, plan))
        self.kernels = {
            name: _Loaded(name, kernel, programs[name], geometry(device, kernel, programs[name]))
            for name, kernel in plan.kernels.items()
        }
        self.addresses = {b.name: self.memory.address(b.name) for b in plan.buffers}
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
        machine = SimMachine(self, memory, timeout_s)
        self.function(machine, *self.plan.arguments)
        machine.close()
        self._kept, self._ran = machine.kept, True
        return Launch(None, self._counters(), self._detail(machine))

    def fetch(self) -> Outputs:
        """Copies of the output buffers, and what the program kept."""
        if not self._ran:
            raise DeviceError(f"nothing to fetch: {self.plan.title} was not run yet")
        lasting = tuple(b for b in self.plan.buffers if not b.per_run)
        return {**self._memory().outputs(lasting), **self._kept}

    def close(self) -> None:
        """Free the memory."""
        self.memory = None

    def _memory(self) -> GlobalMemory:
        if self.memory is None:
            raise LaunchError(f"program {self.plan.title}: the plan was closed")
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

    def _detail(self, machine: SimMachine) -> dict[str, Any]:
        return {
            "order": self.device.order,
            "quantum": self.device.quantum,
            "steps": machine.steps,
            "kernels": {
                name: {"launches": kernel.launches, "lines": kernel.lines()}
                for name, kernel in self.kernels.items()
            },
        }


def _split(
    programs: Mapping[str, Program], plan: ProgramPlan
) -> tuple[Any, ...]:  # program, buffers, other programs
    first, *others = programs.values()
    return (first, plan.buffers, *others)


class _Loaded:
    """One kernel of a program: its code, and the state that all its launches share."""

    def __init__(self, name: str, kernel: Kernel, program: Program, shape: Geometry) -> None:
        self.name = name
        self.kernel = kernel
        self.program = program
        self.geometry = shape
        self.launches = 0
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
        return Tally(self._run).lines(access_names(self.program, self.kernel.arguments))


class SimMachine:
    """``nqbench.machine.Machine`` over simulated memory; every operation is done at once."""

    def __init__(self, prepared: SimProgram, memory: GlobalMemory, timeout_s: float | None) -> None:
        self.facts = prepared.device.facts
        self.steps = 0
        self.kept: Outputs = {}
        self._prepared, self._plan, self._memory = prepared, prepared.plan, memory
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
                f"{self._plan.title} ends without freeing {', '.join(left)}, which it allocated"
            )

    def allocate(self, *names: str) -> None:
        """See ``Machine``; the contents are bytes that look wrong."""
        for name in names:
            buffer_of(self._plan, name, per_run=True)
            if name not in self._absent:
                raise DeviceError(f"{self._plan.title} allocates buffer {name!r} twice")
            self._absent.remove(name)
            self._memory.show(name)
            self._memory.bytes_of(name)[:] = UNDEFINED_BYTE

    def free(self, *names: str) -> None:
        """See ``Machine``; a kernel that still reaches the buffer is then at fault."""
        for name in names:
            buffer_of(self._plan, name, per_run=True)
            self._here(name)
            self._absent.add(name)
            self._memory.hide(name)

    def upload(self, name: str, data: NDArray[Any] | None = None) -> None:
        """See ``Machine``."""
        buffer = buffer_of(self._plan, name)
        values = contents(self._plan, buffer, data)
        self._here(name)
        self._memory.fill(name, values, buffer.dtype)

    def clear(self, name: str) -> None:
        """See ``Machine``."""
        buffer_of(self._plan, name)
        self._here(name)
        self._memory.bytes_of(name)[:] = 0

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``Machine``. Raises ``KernelFault`` and ``LaunchTimeout`` as a launch does."""
        described = kernel_of(self._plan, kernel)
        arguments = launch_arguments(kernel, described, variables)
        loaded = self._prepared.kernels[kernel]
        parameters = parameter_bytes(loaded.program, arguments, self._prepared.addresses)
        self._memory.use(loaded.program)
        run = loaded.run(self._memory, parameters)
        left = self._prepared.device.max_steps - self.steps
        outcome = run.go(max(left, 1), self._left_s())
        check(run, outcome, described.entry, self._timeout_s, run.steps >= left)
        self.steps += run.steps

    def download(self, name: str, count: int | None = None) -> NDArray[Any]:
        """See ``Machine``."""
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

    def keep(self, name: str, value: NDArray[Any]) -> None:
        """See ``Machine``."""
        self.kept[name] = np.array(value)

    def _here(self, name: str) -> None:
        if name in self._absent:
            raise DeviceError(
                f"{self._plan.title} uses buffer {name!r}, which is not allocated at that time"
            )

    def _left_s(self) -> float | None:
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise LaunchTimeout(f"{self._plan.title}: still running after {self._timeout_s:g} s")
        return left
