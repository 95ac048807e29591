"""Where the engine's state lies in memory: shared by the generated code and by Python.

Every field is 8 bytes. Three kinds of record: one context per launch, one slot per resident block,
one state per resident warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import prod

from nqbench.simulator import ptx
from nqbench.simulator.cfg import BasicBlock, skipping
from nqbench.simulator.ir import LANES

GLOBAL_BASE = 1 << 44
"""First address of global memory. Far from 0, so that an index mistaken for a pointer faults."""

SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 2 << 40
"""Generic addresses of shared and local memory; bits 40 and up tell the space."""

PAGE_BITS = 16
"""Buffers start on pages of 64 KiB and are followed by at least one empty page."""

BARRIERS = 16
"""Named barriers of a block (PTX ISA, bar)."""

UNWRITTEN_BYTE = 0xA7
"""Shared memory is filled with this when a block starts; a load that sees it asks the shadow."""
OTHER_BYTES = (UNWRITTEN_BYTE, 0x5F, 0)
"""What it is filled with to see whether anything depends on words that nothing wrote: of either
sign, tiny and huge as floats."""

UNDEFINED_WORD = 0x7FF7A5A5
"""Buffers that start undefined are filled with this: NaN as a float, and as a double twice in a
row."""

CACHE_LINE = 64


Context = IntEnum(
    "Context",
    "GLOBAL PAGE_LOW PAGE_HIGH PAGES PARAMETERS THREAD_INDICES THREAD_STRIDE"
    " GRID_X GRID_Y GRID_Z BLOCK_X BLOCK_Y BLOCK_Z SHARED_BYTES BLOCK_COUNTS SITE_COUNTS"
    " WARPS WARP_STRIDE WARPS_PER_BLOCK SLOTS SLOT_STRIDE SLOT_COUNT SHARED SHARED_STRIDE"
    " TOTAL_BLOCKS THREADS_PER_BLOCK QUANTUM REVERSE MULTIPROCESSORS DYNAMIC_SHARED_BYTES"
    " NEXT_BLOCK LIVE_SLOTS STEPS"
    " FAULT_KIND FAULT_INSTRUCTION FAULT_LANE FAULT_ADDRESS FAULT_WARP FAULT_LANES PRINTED"
    " WARP_MASKS WARP_LOCAL WARP_LOCAL_BYTES PRINTS PRINT_ROOM"
    " GRID_SYNC PARAMETER_COPY L1 L1_BYTES L2 L2_BYTES CACHE_COUNTS WATCH"
    " BLOCK_COUNTS_STRIDE SITE_COUNTS_STRIDE SHARED_FILL SHADOW_FILL CONTENDED"
    " ROUND",
    start=0,
)
"""Fields of a launch; it changes those from NEXT_BLOCK to PRINTED, which start as 0."""

PRINTED_BYTES = 256
"""Of the values of one ``printf``, which follow the address of its text."""

PRINT_RECORD = 8 + PRINTED_BYTES


class BlockSlot(IntEnum):
    """Fields of a resident block; the barrier fields have one word per barrier. ``MET`` are how
    many threads were alive when they met at several places in the code, the place that some passed
    by, and a warp of theirs; 0 before that."""

    ALIVE = 0
    WARPS_LEFT = 1
    ARRIVED = 2
    EXPECTED = ARRIVED + BARRIERS
    TRUE_LANES = EXPECTED + BARRIERS
    RESULT_TRUE = TRUE_LANES + BARRIERS
    RESULT_ALL = RESULT_TRUE + BARRIERS
    MET_ALIVE = RESULT_ALL + BARRIERS
    MET_SITE = MET_ALIVE + 1
    MET_WARP = MET_ALIVE + 2
    END = MET_ALIVE + 3


Warp = IntEnum(
    "Warp",
    "STATE ALIVE WAITING SLOT SHARED SHADOW INDEX CTAID_X CTAID_Y CTAID_Z SMID CLOCK NUMBER"
    " ORDINAL BITS",
    start=0,
)
"""Fields of a resident warp. NUMBER is its place among the resident warps, those of one
multiprocessor side by side, as their local memory lies; ORDINAL its number in the grid; BITS is
followed by one word per 64 basic blocks."""

State = IntEnum("State", "EMPTY READY PARKED DONE", start=0)
"""What a warp is doing. EMPTY is 0: a slot that never got a block has such warps."""

Step = IntEnum("Step", "QUANTUM IDLE FAULT", start=0)
"""Why a warp came back to the scheduler."""

Outcome = IntEnum("Outcome", "DONE PAUSE FAULT DEADLOCK", start=0)
"""Why the scheduler came back to Python."""

Fault = IntEnum(
    "Fault",
    "NONE OUT_OF_BOUNDS UNWRITTEN DIVISION BARRIER_SPLIT MEMBERS"
    " INACTIVE_SOURCE TRAP SPACE ASSERTION NOT_A_FUNCTION SKIPPED BARRIER_NUMBER",
    start=0,
)
"""Kinds of fault, as recorded in the context."""


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """A launch's shape. ``order`` is ``round_robin``, ``reverse`` or ``greedy``."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    dynamic_shared_bytes: int
    resident_blocks: int
    multiprocessors: int
    order: str
    quantum: int
    cooperative: bool = False
    caches: tuple[int, int] | None = None
    """Bytes of each multiprocessor's L1 and of the L2, where they are simulated."""

    @property
    def threads(self) -> int:
        """Threads per block."""
        return prod(self.block)

    @property
    def warps(self) -> int:
        """Warps per block."""
        return -(-self.threads // LANES)


@dataclass(frozen=True, slots=True)
class WarpLayout:
    """Byte offsets in a warp's state: lane masks per block, barrier waits, how often each lane went
    past a barrier (for each barrier of ``skipped``), registers, local memory.

    ``skipped`` has, by the basic block of a barrier, the ways past it (see ``cfg.skipping``).
    ``local_bytes`` is per lane; local memory is interleaved by 4-byte words between lanes.
    """

    words: int
    masks: int
    waits: int
    skips: int
    registers: int
    local: int
    nbytes: int
    local_bytes: int
    skipped: dict[int, list[tuple[int, int]]]

    def counter(self, barrier: int) -> int:
        """Where the lanes' counts of ways past a barrier are."""
        return self.skips + 4 * LANES * list(self.skipped).index(barrier)


def barrier_numbers(instruction: ptx.Instruction) -> Sequence[int]:
    """The barriers of a block that an instruction may mean: all, where a register says which."""
    operands = instruction.operands["red" in instruction.modifiers :]
    number = operands[0] if operands else ptx.Immediate(-1)
    return [number.value] if isinstance(number, ptx.Immediate) else range(BARRIERS)


def warp_layout(blocks: list[BasicBlock], register_bytes: int, local_bytes: int) -> WarpLayout:
    """Lay out a warp's state for one kernel."""
    words = -(-len(blocks) // 64)
    masks = 8 * (Warp.BITS + words)
    waits = masks + 4 * len(blocks)
    closing = {b.index: b.closing for b in blocks if b.closing and b.ending == "barrier"}
    barriers = sum(len(barrier_numbers(i)) for i in closing.values())
    skipped = {b: w for b, w in skipping(blocks).items() if len(barrier_numbers(closing[b])) == 1}
    skips = align(waits + 4 * barriers) if skipped else waits + 4 * barriers
    registers = align(skips + 4 * LANES * len(skipped))
    local = align(registers + register_bytes)
    local_bytes = align(local_bytes, 16)
    end = align(local + LANES * local_bytes)
    return WarpLayout(words, masks, waits, skips, registers, local, end, local_bytes, skipped)


def place_in(shape: tuple[int, int, int], number: int) -> tuple[int, int, int]:
    """The x, y and z of a thread in its block, or of a block in the grid."""
    x, y, _ = shape
    return number % x, number // x % y, number // (x * y)


def align(value: int, step: int = CACHE_LINE) -> int:
    """The next multiple of ``step``."""
    return -(-value // step) * step


@dataclass(frozen=True, slots=True)
class Symbols:
    """``addresses`` are offsets in shared and local memory, and simulated addresses of global and
    constant variables; ``module`` lists the latter in address order."""

    addresses: dict[str, int]
    parameters: dict[str, tuple[int, int]]
    static_shared_bytes: int
    local_bytes: int
    module: tuple[ptx.PtxVariable, ...]
    shared: tuple[tuple[str, int, int], ...]
    """Static shared variables: name, offset, size."""

    def address(self, name: ptx.Name) -> int | None:
        """Address of a variable, or ``None`` if the name is not one."""
        base = self.addresses.get(name.name)
        return None if base is None else base + name.offset

    def parameter(
        self, source: ptx.Operand, extra: int, nbytes: int, instruction: ptx.Instruction
    ) -> int:
        """Byte offset of a parameter access; raises ``UnsupportedPtx`` if it is not plain."""
        if isinstance(source, ptx.Memory) and isinstance(source.base, ptx.Name):
            place = self.parameters.get(source.base.name)
            if place is not None and 0 <= source.offset + extra <= place[1] - nbytes:
                return place[0] + source.offset + extra
        raise ptx.UnsupportedPtx(
            "a parameter access that is not inside one parameter", instruction.where
        )


def assign(kernel: ptx.PtxKernel) -> Symbols:
    """Place every variable. Dynamic shared memory (``extern``) follows the static variables."""
    addresses: dict[str, int] = {}
    ends = {"shared": 0, "local": 0}
    shared = []
    dynamic = [v for v in kernel.variables.values() if v.space == "shared" and not v.nbytes]
    for variable in kernel.variables.values():
        if variable.space in ends and variable not in dynamic:
            offset = align(ends[variable.space], variable.align)
            addresses[variable.name] = offset
            ends[variable.space] = offset + variable.nbytes
            if variable.space == "shared":
                shared.append((variable.name, offset, variable.nbytes))
    # Its alignment counts as static memory, as it does on a GPU.
    static = align(ends["shared"], max([v.align for v in dynamic], default=1))
    addresses.update((v.name, static) for v in dynamic)
    module = tuple(v for v in kernel.variables.values() if v.space in ("global", "const"))
    page = 1
    for variable in module:
        addresses[variable.name] = GLOBAL_BASE + (page << PAGE_BITS)
        page += pages(variable.nbytes)
    module = tuple(_resolved(variable, addresses | kernel.functions) for variable in module)
    return Symbols(addresses, kernel.parameters, static, ends["local"], module, tuple(shared))


def _resolved(variable: ptx.PtxVariable, addresses: dict[str, int]) -> ptx.PtxVariable:
    """A variable whose initial value holds the addresses of others."""
    data = bytearray(variable.initial)
    for place, name in variable.references:
        if name.name in addresses:
            address = addresses[name.name] + name.offset
            data[place : place + 8] = address.to_bytes(8, "little")
    return replace(variable, initial=bytes(data)) if variable.references else variable


def pages(nbytes: int) -> int:
    """Pages that a buffer takes, the empty one behind it included."""
    return -(-max(nbytes, 1) // (1 << PAGE_BITS)) + 1
