"""Where the engine's state lies in memory: shared by the generated code and by Python.

Every field is 8 bytes. Three kinds of record: one context per launch, one slot per resident block,
one state per resident warp.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

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

UNDEFINED_WORD = 0x7FF7A5A5
"""Buffers that start undefined are filled with this: NaN as a float, and as a double twice in a
row. A load that sees it asks whether the buffer started so."""

CACHE_LINE = 64


class Context(IntEnum):
    """Fields of a launch."""

    GLOBAL = 0
    PAGE_LOW = 1
    PAGE_HIGH = 2
    PAGES = 3
    PARAMETERS = 4
    THREAD_INDICES = 5
    THREAD_STRIDE = 6
    GRID_X = 7
    GRID_Y = 8
    GRID_Z = 9
    BLOCK_X = 10
    BLOCK_Y = 11
    BLOCK_Z = 12
    SHARED_BYTES = 13
    BLOCK_COUNTS = 14
    SITE_COUNTS = 15
    WARPS = 16
    WARP_STRIDE = 17
    WARPS_PER_BLOCK = 18
    SLOTS = 19
    SLOT_STRIDE = 20
    SLOT_COUNT = 21
    SHARED = 22
    SHARED_STRIDE = 23
    NEXT_BLOCK = 24
    TOTAL_BLOCKS = 25
    LIVE_SLOTS = 26
    THREADS_PER_BLOCK = 27
    QUANTUM = 28
    REVERSE = 29
    STEPS = 30
    MULTIPROCESSORS = 31
    DYNAMIC_SHARED_BYTES = 32
    FAULT_KIND = 33
    FAULT_INSTRUCTION = 34
    FAULT_LANE = 35
    FAULT_ADDRESS = 36
    FAULT_WARP = 37
    FAULT_LANES = 38
    WARP_MASKS = 39
    WARP_LOCAL = 40
    WARP_LOCAL_BYTES = 41
    PRINTED = 42
    PRINTS = 43
    PRINT_ROOM = 44
    PAGE_UNDEFINED = 45
    GRID_SYNC = 46
    PARAMETER_COPY = 47
    L1 = 48
    L1_BYTES = 49
    L2 = 50
    L2_BYTES = 51
    CACHE_COUNTS = 52
    WATCH = 53
    BLOCK_COUNTS_STRIDE = 54
    SITE_COUNTS_STRIDE = 55


PRINTED_BYTES = 256
"""Of the values of one ``printf``."""


class Print(IntEnum):
    """Fields of what one lane printed; the values follow."""

    TEXT = 0
    THREAD = 1
    BLOCK_X = 2
    BLOCK_Y = 3
    BLOCK_Z = 4
    END = 5


PRINT_RECORD = 8 * Print.END + PRINTED_BYTES


class BlockSlot(IntEnum):
    """Fields of a resident block; the barrier fields have one word per barrier."""

    ALIVE = 0
    WARPS_LEFT = 1
    ARRIVED = 2
    EXPECTED = ARRIVED + BARRIERS
    TRUE_LANES = EXPECTED + BARRIERS
    RESULT_TRUE = TRUE_LANES + BARRIERS
    RESULT_ALL = RESULT_TRUE + BARRIERS
    END = RESULT_ALL + BARRIERS


class Warp(IntEnum):
    """Fields of a resident warp. NUMBER is its place among the resident warps, ORDINAL its number
    in the grid; BITS is followed by one word per 64 basic blocks."""

    STATE = 0
    ALIVE = 1
    WAITING = 2
    SLOT = 3
    SHARED = 4
    SHADOW = 5
    INDEX = 6
    CTAID_X = 7
    CTAID_Y = 8
    CTAID_Z = 9
    SMID = 10
    CLOCK = 11
    NUMBER = 12
    ORDINAL = 13
    BITS = 14


class State(IntEnum):
    """What a warp is doing. EMPTY is 0: a slot that never got a block has such warps."""

    EMPTY = 0
    READY = 1
    PARKED = 2
    DONE = 3


class Step(IntEnum):
    """Why a warp came back to the scheduler."""

    QUANTUM = 0
    IDLE = 1
    FAULT = 2


class Outcome(IntEnum):
    """Why the scheduler came back to Python."""

    DONE = 0
    PAUSE = 1
    FAULT = 2
    DEADLOCK = 3


class Fault(IntEnum):
    """Kinds of fault, as recorded in the context."""

    NONE = 0
    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    UNWRITTEN = 3
    DIVISION = 4
    BARRIER_SPLIT = 5
    STUCK = 6
    MEMBERS = 7
    INACTIVE_SOURCE = 8
    TRAP = 9
    BARRIER_COUNT = 10
    SPACE = 11
    ASSERTION = 12
    DEPTH = 13
    NOT_A_FUNCTION = 14
    UNDEFINED = 15
    SKIPPED = 16


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


def warp_layout(blocks: list[BasicBlock], register_bytes: int, local_bytes: int) -> WarpLayout:
    """Lay out a warp's state for one kernel."""
    words = -(-len(blocks) // 64)
    masks = 8 * (Warp.BITS + words)
    waits = masks + 4 * len(blocks)
    barriers = sum(block.ending == "barrier" for block in blocks)
    skipped = skipping(blocks)
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
