"""Plans in the simulator: kernels compiled and laid out, one alone or several as a program, and
their launches.

A program has one memory, and one run of its CPU function drives all kernels.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench import multi_launch
from nqbench.compiler.compile import compile_kernel
from nqbench.compiler.compiled import check_arguments, occupancy, resources_of, shared_storage
from nqbench.device import Launch, Prepared
from nqbench.errors import DeviceError, KernelFault, LaunchError, LaunchTimeout
from nqbench.plan import Buffer, CachePreference, Kernel, KernelPlan, MultiLaunchPlan, Outputs
from nqbench.simulator import reports, timing
from nqbench.simulator.engine import SimLaunch, parameter_bytes
from nqbench.simulator.findings import Finding
from nqbench.simulator.global_memory import GRID_SYNC, GlobalMemory, with_own
from nqbench.simulator.layout import OTHER_BYTES, UNWRITTEN_BYTE, LaunchShape, Outcome, align
from nqbench.simulator.models import CACHE, TIME
from nqbench.simulator.ptx import UnsupportedPtx
from nqbench.simulator.rules import MAX_SHARED_BYTES
from nqbench.simulator.sanitizer import LaunchWatch
from nqbench.simulator.sass import machine_code
from nqbench.simulator.simulation import Simulation
from nqbench.simulator.tally import Tally, combined
from nqbench.simulator.translation import Translation, build
from nqbench.vocabulary import of_kernel

MAX_WAITING: Final = 1024
"""Loop iterations of a turn at most, in a cooperative launch."""


def load(simulation: Simulation, kernel: Kernel, buffers: tuple[Buffer, ...]) -> Translation:
    """Compile a kernel to PTX and to native code; module variables start as the plan says.

    Raises ``CompileError``, ``KernelFault`` for PTX that is not simulated, or ``DeviceError`` for a
    kernel that launches kernels.
    """
    if kernel.device_launch:
        raise DeviceError(
            f"kernel {kernel.entry} launches kernels itself, and dynamic parallelism is not"
            " simulated; run it on a GPU (--device cuda:0)"
        )
    compiled = compile_kernel(kernel, simulation.facts.arch, "ptx")
    text = compiled.image.decode()
    try:
        code = build(text, compiled.symbol, simulation.rules, watched=simulation.checked)
    except UnsupportedPtx as error:
        raise KernelFault(f"kernel {kernel.entry}: the simulator does not know {error}") from error
    sizes = [nbytes for _, nbytes in code.kernel.parameters.values()]
    check_arguments(kernel, compiled.symbol, sizes, {b.name: b.dtype for b in buffers})
    given = {compiled.variables[name]: name for name in kernel.symbols}
    module = []  # variables start as the plan says
    for variable in code.symbols.module:
        if variable.name in given:
            name = given[variable.name]
            data = multi_launch.symbol_bytes(kernel, name, variable.nbytes)
            variable = replace(variable, initial=data + variable.initial[len(data) :])
        module.append(variable)
    return replace(code, symbols=replace(code.symbols, module=tuple(module))) if given else code


def geometry(simulation: Simulation, kernel: Kernel, code: Translation) -> LaunchShape:
    """Check the launch against the model's limits, as a driver does. Raises ``LaunchError``."""
    facts = simulation.facts
    threads = int(np.prod(kernel.block))
    if not 1 <= threads <= facts.max_threads_per_block:
        raise LaunchError(
            f"kernel {kernel.entry}: {threads} threads per block; {simulation.spec} takes 1 to"
            f" {facts.max_threads_per_block}"
        )
    if threads > (code.kernel.most_threads or threads):
        raise LaunchError(
            f"kernel {kernel.entry}: {threads} threads per block; its __launch_bounds__ allow"
            f" {code.kernel.most_threads}"
        )
    if min(kernel.grid) < 1:
        raise LaunchError(f"kernel {kernel.entry}: the grid {kernel.grid} has no blocks")
    static = code.symbols.static_shared_bytes
    shared = static + kernel.shared_bytes
    limit = facts.shared_per_block_optin if kernel.shared_bytes else facts.shared_per_block
    limit = min(limit, MAX_SHARED_BYTES)
    if shared > limit:
        raise LaunchError(
            f"kernel {kernel.entry}: {shared} bytes of shared memory per block;"
            f" {simulation.spec} has {limit}"
        )
    blocks = int(np.prod(kernel.grid))
    # Registers do not limit it, because PTX has no register count.
    each = occupancy(facts, 0, shared, threads, kernel.cache).blocks_per_multiprocessor
    resident = min(max(each, 1) * facts.multiprocessors, blocks)
    if kernel.cooperative and resident < blocks:
        raise LaunchError(
            f"kernel {kernel.entry}: a cooperative launch of {blocks} blocks, of which"
            f" {simulation.spec} holds {resident} at a time; use fewer or smaller blocks"
        )
    # Blocks that wait for one another must take turns.
    quantum = min(simulation.quantum, MAX_WAITING) if kernel.cooperative else simulation.quantum
    return LaunchShape(
        kernel.grid, kernel.block, shared, kernel.shared_bytes, resident, facts.multiprocessors,
        simulation.order, quantum, kernel.cooperative,
        _caches(simulation, kernel.cache, shared, resident),
    )  # fmt: skip


def _caches(
    simulation: Simulation, cache: CachePreference, shared: int, resident: int
) -> tuple[int, int] | None:
    """Bytes of the L1 and L2 caches of a launch with ``resident`` blocks of ``shared`` bytes. What
    L1 gets of the storage that it has in common with shared memory follows the preference; without
    one it gets least before compute capability 7.0, and then whatever the blocks leave."""
    if CACHE not in simulation.modes:
        return None
    facts, chip = simulation.facts, simulation.model.chip
    storage, l2 = chip.l1_shared_bytes or 0, chip.l2_bytes or 0
    if not storage or not facts.shared_carveouts:
        return storage, l2
    each = align(shared + facts.shared_reserved_per_block, facts.shared_allocation_unit)
    needed = each * -(-resident // facts.multiprocessors) if shared else 0
    given = facts.shared_carveouts[-1]
    if cache == "prefer_l1":
        given = shared_storage(facts, each if shared else 0, cache)
    elif cache == "default" and facts.compute_capability >= (7, 0):
        given = next((size for size in facts.shared_carveouts if size >= needed), given)
    return storage - given, l2


class SimKernel:
    """One kernel of a plan: its code, and the state that all its launches share."""

    def __init__(self, simulation: Simulation, kernel: Kernel, buffers: tuple[Buffer, ...]) -> None:
        self.simulation, self.kernel = simulation, kernel
        self.code = load(simulation, kernel, buffers)
        g = self.geometry = geometry(simulation, kernel, self.code)
        self.resources = {"resident_blocks": g.resident_blocks, "warps_per_block": g.warps}
        self.launches = 0
        self.printed: list[str] = []
        self.run: SimLaunch | None = None
        self.time: timing.Modelled | None = None

    def begin(self) -> None:
        """Forget the counts of the last run."""
        self.launches, self.printed = 0, []
        if self.run is not None:
            self.run.forget()

    def launch(
        self, memory: GlobalMemory, parameters: bytes, max_steps: int,
        timeout_s: float | None = None, left_s: float | None = None,
    ) -> SimLaunch:  # fmt: skip
        """Launch it once, for at most ``left_s`` of a run's ``timeout_s`` seconds.

        Raises ``KernelFault`` or ``LaunchTimeout``."""
        memory.use(self.code)
        self.launches += 1
        if self.run is None:
            modelled = TIME in self.simulation.modes
            self.run = SimLaunch(self.code, memory, parameters, self.geometry, per_warp=modelled)
        else:
            self.run.again(parameters)
        run, entry = self.run, self.kernel.entry
        outcome = run.go(max_steps, left_s)
        if self.code.prints:
            self.printed += reports.printed(run)
        reasons = {Outcome.FAULT: reports.fault, Outcome.DEADLOCK: reports.deadlock}
        if outcome in reasons:
            error = reasons[outcome](run, entry)
            error.printed = "".join(self.printed)
            raise error
        if outcome is Outcome.PAUSE:
            limit = "" if timeout_s is None else f"{timeout_s:g} s"
            if run.idle:
                limit = f"{run.idle:,} loop iterations without a change in memory or at a barrier"
            elif run.steps >= max_steps:
                limit = (
                    f"{run.steps:,} loop iterations; it may be endless, or max_steps of SimDevice"
                    " is too small for it"
                )
            where, place = reports.standing(run)
            late = LaunchTimeout(f"kernel {entry}: still running after {limit}{where}")
            late.finding = Finding("endless", place, message=str(late)) if run.idle else None
            raise late
        return run

    def counters(self) -> dict[str, int | float]:
        """Sums over the launches of one run; in the mode ``time`` with their modelled time, each as
        if it were the mean. Raises ``LaunchError`` if the registers do not suffice for a block."""
        if self.run is None:
            return {}
        counters = Tally(self.run).totals()
        if TIME in self.simulation.modes and self.launches:
            hits = [counters.get(f"{level}_hit_percent", 100.0) / 100 for level in ("l1", "l2")]
            most = self.run.contended.reshape(2, -1).max(axis=1, initial=0) // self.launches
            blocks, sites = (np.divide(of, self.launches) for of in self.run.counts())
            facts, model = self.simulation.facts, self.simulation.model
            cubin = compile_kernel(self.kernel, facts.arch)
            # Without these clocks, which are measured, its time would be that of lanes that agree.
            known = model.chip.divergence_clocks is not None and not facts.compiled_for
            own = machine_code(cubin, facts.arch) if known else []
            work = timing.work_of(self.code, blocks, sites, model, hits, most, own)
            self.time = self._modelled(work, resources_of(cubin).registers)
            counters["modelled_ms"] = 1e3 * self.time.seconds * self.launches
        return counters

    def _modelled(self, work: timing.KernelWork, taken: int) -> timing.Modelled:
        facts, g = self.simulation.facts, self.geometry
        registers = min(taken, facts.max_registers_per_thread)
        fits = occupancy(facts, registers, g.shared_bytes, g.threads, self.kernel.cache)
        if not fits.blocks_per_multiprocessor:
            raise LaunchError(
                f"kernel {self.kernel.entry}: no block of {g.threads} threads with {registers}"
                f" registers each (of {facts.arch} code) and {g.shared_bytes} bytes of shared"
                f" memory fits on a multiprocessor of {self.simulation.spec}"
            )
        return timing.modelled(work, self.simulation.model, g.warps, fits.blocks_per_multiprocessor)


class SimPlan(Prepared):
    """What a kernel and a program in the simulator's memory have in common.

    ``kernels`` by name, and those that run ``before``, once, and are not counted."""

    def __init__(
        self, simulation: Simulation, plan: KernelPlan | MultiLaunchPlan,
        kernels: Mapping[str, Kernel], before: tuple[Kernel, ...] = (),
    ) -> None:  # fmt: skip
        self.simulation = simulation
        self.kernels = {
            name: SimKernel(simulation, kernel, plan.buffers) for name, kernel in kernels.items()
        }
        self.before = [SimKernel(simulation, kernel, plan.buffers) for kernel in before]
        codes = [kernel.code for kernel in (*self.kernels.values(), *self.before)]
        self.buffers = with_own(plan.buffers, kernels.values(), codes)
        self.name = plan.name
        self._memory: GlobalMemory | None = GlobalMemory(codes[0], self.buffers, *codes[1:])
        self.memory.begin(self.buffers)

    @property
    def memory(self) -> GlobalMemory:
        """The simulated memory. Raises ``LaunchError`` if the plan was closed."""
        if self._memory is None:
            raise LaunchError(f"{self.name}: the plan was closed")
        return self._memory

    def close(self) -> None:
        """Free the memory."""
        self._memory = None

    def renew(self) -> None:
        """Make the memory ready for a launch of the plan."""
        self.memory.renew_module()
        self.memory.renew(self.buffers)
        for kernel in self.kernels.values():
            kernel.begin()

    def refill(self, data: Outputs, *, again: bool = True) -> bool:
        """See ``Prepared``."""
        self.buffers = tuple(
            replace(b, data=data[b.name]) if b.name in data else b for b in self.buffers
        )
        wanted = [b for b in self.buffers if b.name in data or (b.output and b.blank)]
        self.memory.begin(wanted, again=again)
        return bool(wanted)

    def by_source(self) -> list[tuple[Kernel, list[dict[str, Any]]]]:
        """What each line of the source cost in the last run, by kernel; see ``Tally.by_source``."""
        ran = [(k.kernel, k.run) for k in self.kernels.values()]
        return [(kernel, Tally(run).by_source() if run else []) for kernel, run in ran]

    def watches(self) -> list[tuple[Kernel, LaunchWatch]]:
        """What the checked mode saw in the last run, by kernel."""
        every = [(k.kernel, k.run) for k in (*self.before, *self.kernels.values())]
        return [(kernel, run.watch) for kernel, run in every if run and run.watch is not None]


class SimPrepared(SimPlan):
    """A kernel in the simulator's memory."""

    def __init__(self, simulation: Simulation, plan: KernelPlan) -> None:
        """Raises what :func:`prepare` raises."""
        before = () if plan.prepare is None else (plan.prepare,)
        super().__init__(simulation, plan, {plan.entry: plan}, before)
        self.plan = plan
        (self.kernel,) = self.kernels.values()
        self.code, self.resources = self.kernel.code, self.kernel.resources
        self.note = ""
        self._fill()
        self.parameters = parameter_bytes(self.code, plan.arguments, self.memory)

    def _fill(self) -> None:
        """What the kernels before make."""
        for kernel in self.before:
            self.memory.renew(self.buffers)
            parameters = parameter_bytes(kernel.code, kernel.kernel.arguments, self.memory)
            kernel.launch(self.memory, parameters, self.simulation.max_steps)

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Run the kernel once. The same plan gives the same counters, bit for bit."""
        kernel, simulation = self.kernel, self.simulation
        try:
            run = self._launch(timeout_s)
        except KernelFault as error:
            kind = error.finding.kind, error.finding.space
            if self.note or kind != ("uninitialised", "shared"):
                raise
            run = self._with_any_shared(error, timeout_s)
        counters = kernel.counters()
        detail = {
            "resident_blocks": kernel.geometry.resident_blocks,
            "order": simulation.order,
            "quantum": simulation.quantum,
            "steps": run.steps,
        }
        if self.code.prints or self.note:
            detail["printed"] = [*filter(None, [self.note]), *kernel.printed]
        if kernel.time is not None:
            detail["modelled_clocks"] = dict(kernel.time.clocks)
        return Launch(None, counters, detail)

    def _launch(self, timeout_s: float | None) -> SimLaunch:
        self.renew()
        limits = self.simulation.max_steps, timeout_s, timeout_s
        return self.kernel.launch(self.memory, self.parameters, *limits)

    def _with_any_shared(self, error: KernelFault, timeout_s: float | None) -> SimLaunch:
        """The launch that stopped at a shared word that nothing wrote, with several values there.
        Raises ``error`` if a branch, an address or any memory follows from them."""
        seen, stopped = set[bytes](), self.kernel.run
        assert stopped is not None
        for byte in OTHER_BYTES:
            self.memory.begin(self.buffers)  # the launch that stopped has written already
            self._fill()
            stopped.fill_shared(byte, known=True)
            try:
                run = self._launch(timeout_s)
            except KernelFault:
                seen |= {b"", b"another fault"}
                break
            parts = b"".join(part.tobytes() for part in (self.memory.data, *run.counts()))
            seen.add(hashlib.sha256(parts).digest())
        if len(seen) > 1:
            stopped.fill_shared(UNWRITTEN_BYTE, known=False)
            raise error
        self.note = f"note: {error}; no result depends on it\n"
        return run

    def fetch(self) -> Outputs:
        """Copies of the output buffers and module variables."""
        found = self.memory.outputs(self.plan.buffers)
        if self.plan.results:
            arch = self.simulation.facts.arch
            symbols = compile_kernel(self.plan, arch, "ptx").variables
            for name in self.plan.results:
                data = self.plan.symbols[name]
                raw = self.memory.variable(symbols[name])[: data.nbytes]
                found[name] = raw.view(data.dtype).copy()
        return found


class SimContext(multi_launch.ProgramContext):
    """A program context over simulated memory; every operation is done at once."""

    def __init__(
        self, simulation: Simulation, plan: MultiLaunchPlan, kernels: Mapping[str, SimKernel],
        memory: GlobalMemory, timeout_s: float | None,
    ) -> None:  # fmt: skip
        super().__init__(simulation.facts, plan)
        self.steps = 0
        self._kernels, self._memory = kernels, memory
        self._max_steps = simulation.max_steps
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for name in self._own:
            memory.hide(name)

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``. Raises ``KernelFault`` and ``LaunchTimeout`` as a launch does."""
        described = multi_launch.kernel_of(self._plan, kernel)
        arguments = multi_launch.launch_arguments(kernel, described, variables)
        loaded = self._kernels[kernel]
        parameters = parameter_bytes(loaded.code, arguments, self._memory)
        if described.cooperative:
            self._memory.bytes_of(GRID_SYNC.name)[:] = 0
        left = max(self._max_steps - self.steps, 1)
        left_s = None if self._deadline is None else self._deadline - time.monotonic()
        if left_s is not None and left_s <= 0:
            raise LaunchTimeout(f"{self._plan.name}: still running after {self._timeout_s:g} s")
        run = loaded.launch(self._memory, parameters, left, self._timeout_s, left_s)
        self.steps += run.steps

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


class SimProgram(SimPlan):
    """A program in the simulator's memory; every kernel is compiled and laid out once."""

    def __init__(self, simulation: Simulation, plan: MultiLaunchPlan) -> None:
        """Raises what :func:`prepare` raises."""
        multi_launch.check_kernels(plan)
        self.function = multi_launch.find_function(plan.function)
        super().__init__(simulation, plan, plan.kernels)
        self.plan = plan
        found: dict[str, int | float | str] = {}
        for name, kernel in self.kernels.items():
            found = {**kernel.resources, **found}  # the plain names are the main, first kernel's
            found |= {of_kernel(what, name): value for what, value in kernel.resources.items()}
        self.resources = found
        self._kept: Outputs = {}
        self._ran = False

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Run the program once. The same plan gives the same counters, bit for bit."""
        self.renew()
        context = SimContext(self.simulation, self.plan, self.kernels, self.memory, timeout_s)
        self.function(context, *self.plan.arguments)
        context.end()
        self._kept, self._ran = context.kept, True
        kernels = self.kernels.items()
        parts = {name: {**k.counters(), "launches": k.launches} for name, k in kernels}
        counters = combined(list(parts.values()))
        for name, part in parts.items():
            counters |= {of_kernel(what, name): value for what, value in part.items()}
        detail = {
            "order": self.simulation.order,
            "quantum": self.simulation.quantum,
            "steps": context.steps,
            "printed": [line for kernel in self.kernels.values() for line in kernel.printed],
        }
        return Launch(None, counters, detail)

    def fetch(self) -> Outputs:
        """Copies of the output buffers, and what the program kept."""
        if not self._ran:
            raise DeviceError(f"nothing to fetch: {self.plan.name} was not run yet")
        lasting = tuple(b for b in self.plan.buffers if not b.per_run)
        return {**self.memory.outputs(lasting), **self._kept}


def prepare(simulation: Simulation, plan: KernelPlan | MultiLaunchPlan) -> SimPlan:
    """Compile a plan to PTX and to native code, allocate, copy.

    Raises ``CompileError``, ``DeviceError`` (the plan does not fit), or ``KernelFault`` for PTX
    that is not simulated.
    """
    if isinstance(plan, KernelPlan):
        return SimPrepared(simulation, plan)
    return SimProgram(simulation, plan)
