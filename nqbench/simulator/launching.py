"""From a kernel to a launch: a kernel alone, and what programs of several share with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from nqbench.compiler.cache import Compiled
from nqbench.compiler.compile import compile_kernel
from nqbench.compiler.occupancy import occupancy, shared_storage
from nqbench.compiler.resources import resources_of
from nqbench.device import Launch, Prepared
from nqbench.errors import DeviceError, KernelFault, LaunchError, LaunchTimeout
from nqbench.multi_launch import symbol_bytes
from nqbench.plan import Buffer, CachePreference, Kernel, KernelPlan, Outputs
from nqbench.simulator import reports, timing
from nqbench.simulator.attribution import readable, targets
from nqbench.simulator.engine import LaunchShape, SimLaunch, parameter_bytes, resident_blocks
from nqbench.simulator.global_memory import GlobalMemory, starts_undefined, with_own
from nqbench.simulator.layout import Outcome, align
from nqbench.simulator.models import CACHE, TIME, Model
from nqbench.simulator.ptx import Instruction, UnsupportedPtx
from nqbench.simulator.rules import MAX_SHARED_BYTES
from nqbench.simulator.sanitizer import LaunchWatch
from nqbench.simulator.simulation import Simulation
from nqbench.simulator.tally import Tally
from nqbench.simulator.translation import Translation, build

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
    try:
        undefined = starts_undefined(buffers)
        code = build(
            compiled.image.decode(),
            compiled.symbol,
            simulation.rules,
            undefined=undefined,
            watched=simulation.checked,
        )
    except UnsupportedPtx as error:
        raise KernelFault(f"kernel {kernel.entry}: the simulator does not know {error}") from error
    return with_contents(kernel, compiled, code)


def with_contents(kernel: Kernel, compiled: Compiled, code: Translation) -> Translation:
    """The code with the plan's contents as initial values of its module variables."""
    given = {compiled.variables[name]: name for name in kernel.symbols}
    module = []
    for variable in code.symbols.module:
        if variable.name in given:
            name = given[variable.name]
            data = symbol_bytes(kernel, name, variable.nbytes)
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
    resident = resident_blocks(facts, threads, shared, blocks, kernel.cache)
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


def check(
    run: SimLaunch, outcome: Outcome, entry: str, timeout_s: float | None, exhausted: bool
) -> None:
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
            f"{reports.standing(run)}"
        )
    if outcome is Outcome.PAUSE:
        where = reports.standing(run)
        raise LaunchTimeout(f"kernel {entry}: still running after {timeout_s:g} s{where}")


def access_names(code: Translation, arguments: tuple[Any, ...]) -> dict[Instruction, str]:
    """Which buffer or variable an access reaches, where the code tells."""
    parameters = {
        name: argument
        for name, argument in zip(code.kernel.parameters, arguments, strict=True)
        if isinstance(argument, str)
    }
    variables = {name: readable(name) for name in code.kernel.variables}
    return targets(code.blocks, variables, parameters)


class SimPrepared(Prepared):
    """A plan in the simulator's memory."""

    def __init__(self, simulation: Simulation, plan: KernelPlan) -> None:
        """Raises what ``programs.prepare`` raises."""
        self.simulation = simulation
        self.plan = plan
        self.code = code = load(simulation, plan, plan.buffers)
        self.geometry = geometry(simulation, plan, code)
        self._watches: dict[Kernel, LaunchWatch] = {}
        self._tally: Tally | None = None
        self._work: timing.KernelWork | None = None
        before = [load(simulation, k, plan.buffers) for k in (plan.prepare,) if k is not None]
        self.buffers = with_own(plan.buffers, [plan], [code, *before])
        self.memory: GlobalMemory | None = GlobalMemory(code, self.buffers, *before)
        self.memory.begin(self.buffers)
        addresses = {b.name: self.memory.address(b.name) for b in plan.buffers}
        if plan.prepare is not None:
            self._prepare(plan.prepare, before[0], addresses)
        self.parameters = parameter_bytes(code, plan.arguments, addresses)
        self.names = access_names(code, plan.arguments)
        self.resources: Mapping[str, int | float | str] = {
            "resident_blocks": self.geometry.resident_blocks,
            "warps_per_block": self.geometry.warps,
        }

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Run the kernel once. The same plan gives the same counters, bit for bit."""
        memory = self._memory()
        memory.renew_module()
        memory.renew(self.buffers)
        per_warp = TIME in self.simulation.modes
        run = SimLaunch(self.code, memory, self.parameters, self.geometry, per_warp=per_warp)
        if run.watch is not None:
            self._watches[self.plan] = run.watch
        outcome = run.go(self.simulation.max_steps, timeout_s)
        check(run, outcome, self.plan.entry, timeout_s, run.steps >= self.simulation.max_steps)
        self._tally = tally = Tally(run)
        counters = tally.totals()
        detail = {
            "lines": tally.lines(self.names),
            "resident_blocks": self.geometry.resident_blocks,
            "order": self.simulation.order,
            "quantum": self.simulation.quantum,
            "steps": run.steps,
        }
        if self.code.prints:
            detail["printed"] = reports.printed(run)
        if per_warp:
            self._work = self._measured_work(run, counters)
            time = self.modelled(self.simulation.model)
            counters["modelled_ms"] = 1e3 * time.seconds
            detail["modelled_clocks"] = dict(time.clocks)
        return Launch(None, counters, detail)

    def _measured_work(
        self, run: SimLaunch, counters: Mapping[str, int | float]
    ) -> timing.KernelWork:
        code, model = self.code, self.simulation.model
        hits = [counters.get(f"{level}_hit_percent") for level in ("l1", "l2")]
        caches = None if None in hits else timing.Caches(*(float(h or 0) / 100 for h in hits))
        return timing.work_of(
            code.blocks, code.sites, *run.counts(), model, code.rules.transactions,
            code.assembled, caches,
        )  # fmt: skip

    def modelled(self, model: Model) -> timing.Modelled:
        """The modelled time of the last launch (mode ``time``) on a model of the same compute
        capability. Registers are those of the architecture that it compiles for."""
        if self._work is None:
            raise LaunchError(f"kernel {self.plan.entry} was not launched in the mode {TIME!r}")
        facts, g = model.facts, self.geometry
        taken = resources_of(compile_kernel(self.plan, facts.arch)).registers
        registers = min(taken, facts.max_registers_per_thread)
        fits = occupancy(facts, registers, g.shared_bytes, g.threads, self.plan.cache)
        if not fits.blocks_per_multiprocessor:
            what = {
                "registers": f"{registers} registers per thread (of {facts.arch} code)",
                "shared": f"{g.shared_bytes} bytes of shared memory",
            }.get(fits.limiter, fits.limiter)
            raise LaunchError(
                f"kernel {self.plan.entry}: no block of {g.threads} threads with {what} fits on a"
                f" multiprocessor of {self.simulation.spec}"
            )
        return timing.modelled(self._work, model, g.warps, fits.blocks_per_multiprocessor)

    def _prepare(self, kernel: Kernel, code: Translation, addresses: Mapping[str, int]) -> None:
        """Run the kernel that makes the input; it is not part of what a launch counts."""
        memory = self._memory()
        memory.renew(self.buffers)
        memory.use(code)
        parameters = parameter_bytes(code, kernel.arguments, addresses)
        run = SimLaunch(code, memory, parameters, geometry(self.simulation, kernel, code))
        if run.watch is not None:
            self._watches[kernel] = run.watch
        outcome = run.go(self.simulation.max_steps, None)
        check(run, outcome, kernel.entry, None, run.steps >= self.simulation.max_steps)
        memory.use(self.code)

    def by_source(self) -> list[tuple[Kernel, list[dict[str, Any]]]]:
        """What each line of the source cost in the last launch, see ``Tally.by_source``."""
        return [] if self._tally is None else [(self.plan, self._tally.by_source())]

    def watches(self) -> list[tuple[Kernel, LaunchWatch]]:
        """What the checked mode saw in the last launch, by kernel."""
        return list(self._watches.items())

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
