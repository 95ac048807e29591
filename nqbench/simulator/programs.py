"""A program of several kernels in the simulator: one memory, one run of the CPU function."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench import multi_launch
from nqbench.device import Launch, Prepared
from nqbench.errors import DeviceError, LaunchError, LaunchTimeout
from nqbench.plan import Buffer, Kernel, KernelPlan, MultiLaunchPlan, Outputs
from nqbench.simulator import reports
from nqbench.simulator.engine import LaunchShape, SimLaunch, parameter_bytes
from nqbench.simulator.global_memory import GRID_SYNC, GlobalMemory, with_own
from nqbench.simulator.launching import SimPrepared, access_names, check, geometry, load
from nqbench.simulator.models import TIME
from nqbench.simulator.ptx import Instruction
from nqbench.simulator.sanitizer import LaunchWatch
from nqbench.simulator.simulation import Simulation
from nqbench.simulator.tally import Tally, combined
from nqbench.simulator.translation import Translation
from nqbench.vocabulary import of_kernel

LAUNCHES: Final = "launches"


class SimKernel:
    """One kernel of a program: its code, and the state that all its launches share."""

    def __init__(self, name: str, kernel: Kernel, code: Translation, shape: LaunchShape) -> None:
        self.name = name
        self.kernel = kernel
        self.code = code
        self.geometry = shape
        self.launches = 0
        self.printed: list[str] = []
        self._names: dict[Instruction, str] | None = None
        self._run: SimLaunch | None = None

    def begin(self) -> None:
        """Forget the counts of the last run."""
        self.launches, self.printed = 0, []
        if self._run is not None:
            self._run.forget()

    def run(self, memory: GlobalMemory, parameters: bytes) -> SimLaunch:
        """A launch, ready to go."""
        self.launches += 1
        if self._run is None:
            self._run = SimLaunch(self.code, memory, parameters, self.geometry)
        else:
            self._run.again(parameters)
        return self._run

    @property
    def watch(self) -> LaunchWatch | None:
        """What the checked mode saw in the launches."""
        return None if self._run is None else self._run.watch

    @property
    def tally(self) -> Tally | None:
        """Sums over the launches of one run."""
        return None if self._run is None else Tally(self._run)

    def counters(self) -> dict[str, int | float]:
        """These sums by name."""
        tally = self.tally
        return {**(tally.totals() if tally else {}), LAUNCHES: self.launches}

    def lines(self) -> list[dict[str, Any]]:
        """The same for each access and branch."""
        tally = self.tally
        if self._names is None and tally:
            self._names = access_names(self.code, self.kernel.arguments)
        return tally.lines(self._names or {}) if tally else []


class SimContext(multi_launch.ProgramContext):
    """A program context over simulated memory; every operation is done at once."""

    def __init__(
        self,
        simulation: Simulation,
        plan: MultiLaunchPlan,
        kernels: Mapping[str, SimKernel],
        memory: GlobalMemory,
        timeout_s: float | None,
    ) -> None:
        super().__init__(simulation.facts, plan)
        self.steps = 0
        self._kernels, self._memory = kernels, memory
        self._max_steps = simulation.max_steps
        self._addresses = {b.name: memory.address(b.name) for b in plan.buffers}
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for name in self._own:
            memory.hide(name)

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``. Raises ``KernelFault`` and ``LaunchTimeout`` as a launch does."""
        described = multi_launch.kernel_of(self._plan, kernel)
        arguments = multi_launch.launch_arguments(kernel, described, variables)
        loaded = self._kernels[kernel]
        parameters = parameter_bytes(loaded.code, arguments, self._addresses)
        self._memory.use(loaded.code)
        if described.cooperative:
            self._memory.bytes_of(GRID_SYNC.name)[:] = 0
        run = loaded.run(self._memory, parameters)
        left = self._max_steps - self.steps
        outcome = run.go(max(left, 1), self._left_s())
        check(run, outcome, described.entry, self._timeout_s, run.steps >= left)
        self.steps += run.steps
        if loaded.code.prints:
            loaded.printed += reports.printed(run)

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def _allocate(self, buffer: Buffer) -> None:
        """The contents are bytes that look wrong."""
        self._memory.show(buffer.name)
        self._memory.undefine(buffer.name)

    def _free(self, buffer: Buffer) -> None:
        """A kernel that still reaches the buffer is at fault from now on."""
        self._memory.hide(buffer.name)

    def _write(self, buffer: Buffer, values: NDArray[Any]) -> None:
        self._memory.fill(buffer.name, values, buffer.dtype)

    def _zero(self, buffer: Buffer) -> None:
        self._memory.clear(buffer.name)

    def _read(self, buffer: Buffer, count: int) -> NDArray[Any]:
        return self._memory.bytes_of(buffer.name).view(buffer.dtype)[:count].copy()

    def _left_s(self) -> float | None:
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise LaunchTimeout(f"{self._plan.name}: still running after {self._timeout_s:g} s")
        return left


class SimProgram(Prepared):
    """A program in the simulator's memory; every kernel is compiled and laid out once."""

    def __init__(self, simulation: Simulation, plan: MultiLaunchPlan) -> None:
        """Raises what ``SimDevice.prepare`` raises."""
        multi_launch.check_kernels(plan)
        self.simulation, self.plan = simulation, plan
        self.function = multi_launch.find_function(plan.function)
        codes = {
            name: load(simulation, kernel, plan.buffers) for name, kernel in plan.kernels.items()
        }
        first, *others = codes.values()
        self.buffers = with_own(plan.buffers, plan.kernels.values(), codes.values())
        self.memory: GlobalMemory | None = GlobalMemory(first, self.buffers, *others)
        self.kernels = {
            name: SimKernel(name, kernel, codes[name], geometry(simulation, kernel, codes[name]))
            for name, kernel in plan.kernels.items()
        }
        self.memory.begin(self.buffers)
        self.resources: Mapping[str, int | float | str] = self._resources()
        self._kept: Outputs = {}
        self._ran = False

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Run the program once. The same plan gives the same counters, bit for bit."""
        memory = self._memory()
        memory.renew_module()
        memory.renew(self.buffers)
        for kernel in self.kernels.values():
            kernel.begin()
        context = SimContext(self.simulation, self.plan, self.kernels, memory, timeout_s)
        self.function(context, *self.plan.arguments)
        context.end()
        self._kept, self._ran = context.kept, True
        return Launch(None, self._counters(), self._detail(context))

    def by_source(self) -> list[tuple[Kernel, list[dict[str, Any]]]]:
        """What each line of the source cost in the last run, by kernel."""
        tallies = [(k.kernel, k.tally) for k in self.kernels.values()]
        return [(kernel, tally.by_source() if tally else []) for kernel, tally in tallies]

    def watches(self) -> list[tuple[Kernel, LaunchWatch]]:
        """What the checked mode saw in the last run, by kernel."""
        return [(k.kernel, k.watch) for k in self.kernels.values() if k.watch is not None]

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
            "order": self.simulation.order,
            "quantum": self.simulation.quantum,
            "steps": context.steps,
            "kernels": {
                name: {"launches": kernel.launches, "lines": kernel.lines()}
                | ({"printed": kernel.printed} if kernel.code.prints else {})
                for name, kernel in self.kernels.items()
            },
        }


def prepare(simulation: Simulation, plan: KernelPlan | MultiLaunchPlan) -> SimPrepared | SimProgram:
    """Compile a plan to PTX and to native code, allocate, copy.

    Raises ``CompileError``, ``DeviceError`` (the plan does not fit), or ``KernelFault`` for PTX
    that is not simulated.
    """
    if isinstance(plan, KernelPlan):
        return SimPrepared(simulation, plan)
    if TIME in simulation.modes:
        raise DeviceError(
            f"{simulation.spec}: {plan.name} is a program of several kernels; the time of single"
            " kernels is modelled"
        )
    return SimProgram(simulation, plan)
