"""Modelled time: the makespan of a launch's warps over the multiprocessors of a model.

The formula is in docs/simulator.md. Each warp has the time that it would take alone (instructions
in order, each when its operands are there) and the work that it asks of what the warps of a
multiprocessor share. Blocks go to multiprocessors as the occupancy allows; warps of one
multiprocessor go on at the same fraction of their own speed, so that nothing shared is used beyond
its rate. The result is bounded below by the chip's L2 and memory bandwidth and by the atomics on a
word; a launch itself takes a few microseconds.

It is a model. Its result is called ``modelled`` and never stands with a measured time.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add, mul, sub
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.simulator.codegen.kernel import BLOCK_FIELDS
from nqbench.simulator.codegen.writer import SITE_FIELDS
from nqbench.simulator.liveness import results, sources
from nqbench.simulator.models import Model
from nqbench.simulator.ptx import ATOMICS, WIDTHS, Instruction, Name, Register
from nqbench.simulator.ptxas import Assembled
from nqbench.simulator.rules import SECTOR_BITS
from nqbench.simulator.sass import MachineBlocks, MachineInstruction
from nqbench.simulator.tally import float_operations, integer_operations

if TYPE_CHECKING:
    from nqbench.simulator.translation import Translation

LANES: Final = 32
CASES: Final = 128
"""Of which a mean is taken: of where the loads of a basic block find their words."""
OFF_CHIP: Final = ("LD", "LDG", "LDL", "ATOM", "ATOMG")
SCHEDULED: Final = ("issue", "integer", "products", "doubles")
"""What each scheduler of a multiprocessor has of its own, for its warps alone."""
SECTOR_BYTES: Final = 1 << SECTOR_BITS
PRODUCTS: Final = ("mul", "mad", "fma")
"""Opcodes of the multiply-add lanes, of whatever type."""

CACHES: Final = {"l1": "l1_shared_bytes", "l2": "l2_bytes"}
"""Caches, from the multiprocessor on, and the fact that is 0 where there is none."""
FREE: Final = {
    *("l1_line_bytes", "l1_holds", "l2_gb_per_s", "l2_partial_cost"),
    *("double_per_clock", "reconvergence_latency", "block_clocks", "integer_atomic_clocks"),
    *("memory_gb_per_s", "warp_clocks", "restart_clocks", "divergence_clocks", "yield_clocks"),
    "bsync_clocks",
}
"""Facts that a chip may do without: it has no such thing, or nobody states it."""

Float = NDArray[np.float64]
Waits = Mapping[Instruction, Float]


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What the warps of a launch do, one element per warp of the grid, in order of blocks.

    ``alone``    clocks of the warp on an idle multiprocessor
    ``shared``   clocks that it takes of each thing that its multiprocessor shares, by name
    ``l2_bytes``, ``memory_bytes``  to and from the L2 cache and the device memory
    ``contended``  atomics of the launch on the word of global memory that has most, and those on
                   whole numbers in the piece of it that has most
    ``rounds``     of the loop that the warp goes through most often, at least 1
    """

    alone: Float
    shared: Mapping[str, Float]
    l2_bytes: Float
    memory_bytes: Float
    contended: Sequence[int] = (0, 0)
    rounds: Float | float = 1.0


@dataclass(frozen=True, slots=True)
class Modelled:
    """Seconds, and the clocks behind them: ``makespan`` of the warps, the longest warp's
    ``alone``, and what each shared thing would take by itself."""

    seconds: float
    clocks: Mapping[str, float]


def required(model: Model) -> Mapping[str, Any]:
    """The model's rates and latencies by name, without those that it does not state. Raises
    ``DeviceError`` if one of them is needed."""
    chip = asdict(model.chip)
    free = FREE | {f"{level}_latency" for level, size in CACHES.items() if chip[size] == 0}
    if missing := [name for name, value in chip.items() if value is None and name not in free]:
        raise DeviceError(
            f"sim:{model.name}: the model does not state {', '.join(missing)}, which a modelled"
            " time needs; add them to its facts"
        )
    return {name: value for name, value in chip.items() if value is not None}


def work_of(
    code: Translation,
    block_counts: NDArray[np.int64],
    site_counts: NDArray[np.int64],
    model: Model,
    hits: Sequence[float] = (1.0, 1.0),
    contended: Sequence[int] | NDArray[np.int64] = (0, 0),
    machine_code: Sequence[MachineInstruction] = (),
) -> KernelWork:
    """The work of a launch from its counts by warp (``engine.SimLaunch.counts``). ``hits`` are the
    shares of the off-chip sectors that hit in L1 and, of the others, in L2. Without machine code of
    the chip's own architecture the instructions are those of the PTX, in its order."""
    chip, blocks, assembled = required(model), code.blocks, code.assembled
    left = [[*block.instructions, *assembled.closing(block)] for block in blocks]
    rates = Rates(chip, assembled)
    executions = block_counts[:, :, 0].astype(float)
    issues = executions.copy()
    for side, head in assembled.predicated.items():
        issues[:, side] = executions[:, head]
    each = [np.sum([(0, 0, 0, 0), *map(rates.units, of)], axis=0) for of in left]
    issued, integer, products, doubles = (issues @ np.array(each)).T
    hit1, hit2 = hits
    held = chip.get("l1_holds", ()) if chip["l1_shared_bytes"] else ()
    warps, waits = len(executions), dict[Instruction, Float]()
    passes, lines, again, parted, met, loaded, stored, partial, alone = np.zeros((9, warps))
    own = [line for block in blocks for line in {i.where.line for i in block.code}]
    # A function that is called from several places has no blocks of its own.
    known = bool(machine_code) and len(own) == len(set(own))
    machine = MachineBlocks(machine_code, blocks, assembled.expanded) if known else None
    reconvergence, gone = chip.get("reconvergence_latency", 0), assembled.predicated.values()
    divergent = block_counts[:, :, BLOCK_FIELDS.index("divergent")]
    if machine is not None:
        issued = issues @ machine.issued
        branches = [b.index for b in blocks if b.index not in gone]
        alone += divergent[:, branches].sum(axis=1) * chip.get("divergence_clocks", 0)
    elif reconvergence:
        # Where lanes may part and meet again: an instruction before the branch, and one where each
        # side ends (compute capability 7.0 and later).
        parting = [
            b.index for b in blocks if b.ending == "branch" and b.index not in gone
            and all(target.index > b.index for target in b.targets)
        ]  # fmt: skip
        parted = executions[:, parting].sum(axis=1)
        met = parted + divergent[:, parting].sum(axis=1)
    apart = parted * rates.step + met * reconvergence
    pipe = "lines" if code.rules.transactions == "sectors" else "passes"
    for site in code.sites:
        counts = dict(zip(SITE_FIELDS, site_counts[:, site.index].T.astype(float), strict=True))
        requests = executions[:, site.block] if site.always else counts["requests"]
        if site.space == "shared":
            passes += counts["passes"]
            again += counts["passes"] - requests
        elif site.space in ("global", "local"):
            if site.instruction.opcode != "st":
                whole = max(float(np.sum(requests)), 1.0)
                shares = (float(np.sum(counts[of])) / whole for of in ("from_l2", "from_memory"))
                near = site.space in held and site.instruction.opcode not in ATOMICS
                waits[site.instruction] = rates.off_chip(near, *shares)
            lines += counts[pipe]
            again += counts[pipe] - requests
            sectors = counts["sectors"]
            if site.space in held and site.instruction.opcode in ("ld", "ldu"):
                loaded += sectors * SECTOR_BYTES
                continue
            stored += sectors * SECTOR_BYTES
            if site.instruction.opcode == "st":
                # Sectors that lanes write in part, as if each had one lane of it: fewer than there
                # are where lanes lie side by side in a sector that is not full.
                width = site.instruction.elements * WIDTHS[site.instruction.modifiers[-1]] // 8
                lanes = block_counts[:, site.block, 1] if site.always else counts["lanes"]
                missing = np.maximum(0, sectors * SECTOR_BYTES - lanes * width)
                partial += missing / max(SECTOR_BYTES - width, 1)
    l2_bytes = stored + (1 - hit1) * loaded
    memory = l2_bytes * (1 - hit2) if chip["l2_bytes"] else l2_bytes
    l2_bytes = l2_bytes + partial * SECTOR_BYTES * (chip.get("l2_partial_cost", 1) - 1)
    per_pass, per_line = chip["shared_clocks_per_pass"], 1 / chip["l1_transactions_per_clock"]
    alone += apart + again * per_pass + issues @ rates.blocks(machine, left, waits)
    shared = {
        "issue": (issued + parted + met) / rates.issue_per_clock,
        "integer": integer / (chip["integer_per_clock"] / LANES),
        "products": products / (chip["float_per_clock"] / LANES),
        "memory_pipe": passes * per_pass + lines * per_line,
        "starts": np.full(warps, chip.get("warp_clocks", 0.0)),
    }
    if doubles.any() and "double_per_clock" in chip:
        shared["doubles"] = doubles / (chip["double_per_clock"] / LANES)
    rounds = executions.max(axis=1, initial=1.0)
    return KernelWork(alone, shared, l2_bytes, memory, [*map(int, contended)], rounds)


class Rates:
    """How fast a chip's multiprocessor issues, and when results are there. Accesses that are part
    of a wider one do not issue, and their words come with it."""

    def __init__(self, chip: Mapping[str, Any], assembled: Assembled) -> None:
        self.chip, self.assembled, self.step = chip, assembled, chip["issue_clocks"]
        self.issue_per_clock = chip["schedulers"] * chip["issue_width"] / self.step
        self.branch, self.predicate = chip["branch_latency"], chip["predicate_latency"]
        below = [chip[f"{of}_latency"] for of, size in CACHES.items() if chip[size]]
        below.append(chip["memory_latency"])
        self.levels: Float = np.array([below[0], below[-2:][0], below[-1]], float)
        self.random = np.random.default_rng(0)

    def off_chip(self, held: bool, from_l2: float, from_memory: float) -> Float:
        """Clocks of ``CASES`` accesses off the chip, of which such parts wait for L2 or more and
        for the memory; for L2 all, where L1 does not hold what they ask for."""
        part = (np.arange(CASES) + 0.5) / CASES
        depth = (part < from_l2).astype(int) + (part < from_memory)
        found: Float = self.levels[np.maximum(depth, 1 - held)]
        return found

    def blocks(
        self, machine: MachineBlocks | None, left: Sequence[Sequence[Instruction]], waits: Waits
    ) -> Float:
        """``alone`` of each basic block, by the machine code if there is any. ``waits``: what each
        access off the chip takes in ``CASES`` cases."""
        if machine is None:
            return np.array([self.alone(of, waits) for of in left])
        of_line = {i.where.line: cases for i, cases in waits.items()}
        others, read = float(self.chip["shared_latency"]), float(self.chip["arithmetic_latency"])
        more = {name: self.chip.get(f"{name.lower()}_clocks", 0.0) for name in ("YIELD", "BSYNC")}

        def latency(i: MachineInstruction) -> Float:
            known = i.name in OFF_CHIP and i.line in of_line
            found: Float = self.random.permutation(of_line[i.line] if known else [others])
            return found

        return machine.clocks(latency, read, more)

    def alone(self, instructions: Sequence[Instruction], waits: Waits) -> float:
        """Clocks that a lone warp takes for one execution of a basic block: every instruction
        issues in order, when its operands are there; what the block leaves is waited for."""
        now, start = np.zeros(CASES), np.zeros(CASES)
        ready, made = dict[Register, Float](), dict[Register, Float]()
        for i in instructions:
            start = reduce(np.maximum, (ready[r] for r in sources(i) if r in ready), now)
            if i.guard and i.guard in made:
                start = np.maximum(start, made[i.guard] + self.predicate)
            issues = self.units(i)[0]
            start = start + max(issues - 1, 0) * self.chip["arithmetic_latency"]  # one by one
            step = self.branch if i.opcode in ("bra", "brx") else self.step
            now = start + step * (issues > 0)
            takes = self.random.permutation(waits[i]) if i in waits else self._latency(i)
            for register in results(i):
                made[register] = start
                ready[register] = start + (0 if _copies(i) else takes)
        return float(np.mean(reduce(np.maximum, ready.values(), now)))

    def units(self, i: Instruction) -> tuple[float, float, float, float]:
        """Machine instructions that ptxas makes of an instruction; those of the integer lanes (of
        the sequence of a division every second one), of the multiply-add lanes, which also add
        floats, and of the lanes for 64-bit floats."""
        length = self.assembled.length(i)
        integer = float(i.opcode not in PRODUCTS and (integer_operations(i) or i.opcode == "selp"))
        products = float(i.opcode in PRODUCTS or float_operations(i) > 0)
        if i in self.assembled.expanded:
            integer = integer_operations(i) * length / 2
            products = length - integer
        issues = 0 if _copies(i) or i in self.assembled.dropped else length
        return issues, integer, products, products * ("f64" in i.modifiers)

    def _latency(self, i: Instruction) -> float:
        shared, arithmetic = self.chip["shared_latency"], self.chip["arithmetic_latency"]
        if i.opcode in ("ld", "ldu", *ATOMICS):
            if "shared" in i.modifiers:
                return float(shared)
            if "param" not in i.modifiers and "const" not in i.modifiers:
                return float(self.off_chip(i.opcode not in ATOMICS, 0, 0)[0])
        if i.opcode == "mov" and isinstance(i.operands[-1], Name):
            special = i.operands[-1].name.startswith("%")  # it takes the way of shared memory
            return float(shared if special else arithmetic)
        return float(arithmetic)


def _copies(i: Instruction) -> bool:
    """Whether an instruction copies a register: ptxas removes it."""
    return i.opcode == "mov" and len(i.operands) == 2 and isinstance(i.operands[1], Register)


def modelled(work: KernelWork, model: Model, warps_per_block: int, resident: int) -> Modelled:
    """The time of a launch whose blocks have ``warps_per_block`` warps, ``resident`` of them at a
    time on each multiprocessor."""
    chip, multiprocessors = required(model), model.facts.multiprocessors
    hertz = 1e6 * chip["clock_mhz"]
    rate = chip.get("memory_gb_per_s", chip["bandwidth_gb_per_s"])
    together = {"device_memory": work.memory_bytes / (1e9 * rate) * hertz}
    if "l2_gb_per_s" in chip:
        together["l2"] = work.l2_bytes / (1e9 * chip["l2_gb_per_s"]) * hertz
    each = [chip.get(f"{of}atomic_clocks", chip["atomic_clocks"]) for of in ("", "integer_")]
    # The place of a block that has ended is empty for a while.
    later = np.arange(len(work.alone)) >= warps_per_block * max(resident, 1) * multiprocessors
    alone = work.alone + later * chip.get("restart_clocks", 0.0)
    parts = {name: chip["schedulers"] if name in SCHEDULED else 1 for name in work.shared}
    alone = alone + turns(work, warps_per_block, parts)
    span = makespan(alone, work.shared, together, warps_per_block, resident, multiprocessors, parts)
    clocks = {
        "makespan": span,
        "longest_warp": float(work.alone.max(initial=0.0)),
        **{name: float(of.sum()) / multiprocessors for name, of in work.shared.items()},
        **{name: float(of.sum()) for name, of in together.items()},
        "atomics": max(map(mul, work.contended, each)),
        "blocks": len(work.alone) // warps_per_block * chip.get("block_clocks", 0.0),
    }
    whole = max(span, clocks["atomics"], clocks["blocks"])
    return Modelled(whole / hertz + 1e-6 * chip["launch_us"], clocks)


def turns(work: KernelWork, warps_per_block: int, parts: Mapping[str, int]) -> Float:
    """Clocks that the warps of a block wait for each other, which start in step: one after another
    takes what is scarcest, in the first round."""
    waits = np.zeros(len(work.alone) // warps_per_block)
    for name, of in work.shared.items():
        of_block = (of / work.rounds).reshape(-1, warps_per_block).sum(axis=1)
        waits = np.maximum(waits, of_block * _others(parts[name], warps_per_block))
    return np.repeat(waits, warps_per_block)


def _others(parts: int, warps: int) -> float:
    """Which part of what ``warps`` ask for a warp may have to wait for, if they are spread over
    ``parts`` of a multiprocessor: not for its own."""
    return max(0.0, 1 - parts / max(warps, 1))


def makespan(
    alone: Float,
    shared: Mapping[str, Float],
    together: Mapping[str, Float],
    warps_per_block: int,
    resident: int,
    multiprocessors: int,
    parts: Mapping[str, int] | None = None,
) -> float:
    """Clocks until the last warp has ended. ``together``: clocks that each warp takes of each thing
    that all multiprocessors share.

    A multiprocessor whose warps, each at its own speed, would use something shared ``f`` > 1 times
    as fast as it works slows all of them down by ``f``; so does the chip all its multiprocessors.
    Short of that they meet too: if they kept in step, the times of the others would come on top,
    and if they were evenly spread, they would not matter. The root of the sum of squares is taken.
    The next block of a multiprocessor starts when one has ended; where blocks of several end at
    once, they take turns. ``parts``: in how many parts a multiprocessor has a shared thing, 1 if
    not given, each for as many of its warps.
    """
    uses = [*shared.values(), *together.values()]
    rates = np.stack([of / np.maximum(alone, 1) for of in uses], axis=1).tolist()
    split = [(parts or {}).get(name, 1) for name in shared]
    crew = [_Multiprocessor(split, len(together)) for _ in range(multiprocessors)]
    waiting = iter(range(len(alone) // warps_per_block))
    left = [warps_per_block] * (len(alone) // warps_per_block)
    takes: list[float] = alone.tolist()

    def start(on: _Multiprocessor) -> None:
        block = next(waiting, None)
        if block is not None:
            for warp in range(block * warps_per_block, (block + 1) * warps_per_block):
                on.used = [*map(add, on.used, rates[warp])]
                heapq.heappush(on.ends, (on.progress + takes[warp], warp))

    for _ in range(max(resident, 1)):
        for on in crew:
            start(on)
    asked = [0.0] * len(together)
    for on in crew:
        asked = on.settle(asked)
    running = sum(len(on.ends) for on in crew)
    events = [(on.next_end(), number) for number, on in enumerate(crew) if on.ends]
    heapq.heapify(events)
    clocks = before = 0.0
    while events:
        now, turn = events[0]
        clocks += (now - before) * _slower(max(asked, default=0.0), 1, running)
        on, before = crew[turn % multiprocessors], now
        on.now, (on.progress, warp) = now, heapq.heappop(on.ends)
        on.used = [*map(sub, on.used, rates[warp])]
        running -= 1
        left[warp // warps_per_block] -= 1
        if not left[warp // warps_per_block]:
            running -= len(on.ends)
            start(on)
            running += len(on.ends)
        asked = on.settle(asked)
        if on.ends:
            heapq.heapreplace(events, (on.next_end(), turn + multiprocessors))
        else:
            heapq.heappop(events)
    return clocks


def _slower(use: float, parts: int, warps: int) -> float:
    """How much longer warps take that ask for ``use`` of something if each goes at its own speed,
    ``warps`` of them spread over ``parts``."""
    return max(use, math.hypot(1.0, use * _others(parts, warps)))


class _Multiprocessor:
    """One multiprocessor and its warps, by the ``progress`` (clocks at full speed) at which they
    end. Its clock ``now`` stands still while the chip slows it down."""

    def __init__(self, parts: Sequence[int], chip: int) -> None:
        self.now = self.progress = 0.0
        self.slower, self.parts, self.own = 1.0, parts, len(parts)
        self.used, self.asks = [0.0] * (self.own + chip), [0.0] * chip
        self.ends: list[tuple[float, int]] = []

    def settle(self, asked: list[float]) -> list[float]:
        """Its warps have changed: what all multiprocessors now ask of what the chip shares."""
        uses = zip(self.used, self.parts, strict=False)
        self.slower = max(_slower(use, parts, len(self.ends)) for use, parts in uses)
        before, self.asks = self.asks, [use / self.slower for use in self.used[self.own :]]
        return [all_ - old + new for all_, old, new in zip(asked, before, self.asks, strict=True)]

    def next_end(self) -> float:
        """When its next warp ends."""
        return self.now + (self.ends[0][0] - self.progress) * self.slower
