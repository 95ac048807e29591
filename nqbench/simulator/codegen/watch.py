"""The watcher of the checked mode (``watcher.py``): calls of it in the generated code, and the
layout of its state, which ``sanitizer.py`` allocates and reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from nqbench.simulator.codegen.reach import SpaceAccess
from nqbench.simulator.codegen.writer import KernelWriter
from nqbench.simulator.ir import I32, I64, NULL, Function, Value, const, vector
from nqbench.simulator.layout import CACHE_LINE, Context, Warp
from nqbench.simulator.ptx import Instruction, Memory
from nqbench.simulator.waiting import STRONG, changes

ACCESS, BARRIER = "sim_watch_access", "sim_watch_barrier"
SPACES = ("shared", "local", "global")
STORE, COPY, LOAD, RETRIED_LOAD, STRONG_LOAD, STRONG_STORE, EXCHANGE, ATOMIC = range(8)
"""What an access does; those from the retried load on are strong, and do not race with one another.
``COPY`` is a store that goes on until it is waited for; an atomic that adds nothing is a load."""
RELEASES, ACQUIRES, AWAITS, NEAR = 8, 16, 32, 64
"""Added to these: who sees it sees what the thread did before, and the reverse; the thread relies
on it (``waiting.waits``); the first two are meant for its block alone."""
ARRIVE, PASS, RESUME, MEET, CONVERGE, FENCE, COMMIT, WAIT = range(8)
"""What happens at a barrier: a warp arrives, arrives and goes on, continues; lanes of a warp meet,
or vote. Besides: a fence (``number`` 1: for its block alone); copies become a group; groups are
waited for, all but the last ``number``."""


class Field(IntEnum):
    """The header of the watcher's state: 64-bit numbers, most of them addresses of arrays."""

    FIRST = 0  # number of the launch's first thread
    THREADS = 1  # per block
    WARPS = 2  # per block
    CELLS = 3  # of shared memory, slot by slot
    CELLS_PER_SLOT = 4
    GLOBAL_CELLS = 5
    KNOWN = 6  # bytes of shared memory that were written, slot by slot
    GLOBAL_KNOWN = 7
    LOCAL_KNOWN = 8
    LOCAL_BYTES = 9
    OWNERS = 10  # first thread of the block in each slot
    EPOCHS = 11  # slot, warp, warp
    JOINS = 12  # slot, barrier, warp
    LANES = 13  # slot, warp, writers or readers, lane, lane
    RINGS = 14  # thread, entries about its last atomics
    TIME = 15
    SHARED_SHIFT = 16  # bytes of a cell, as a power of two
    GLOBAL_SHIFT = 17
    FOUND = 18  # rows of ``Found``
    FOUND_COUNT = 19
    MEETINGS = 20  # slot, barrier: instruction and thread of who waits there; who had left then
    BLOCK_RINGS = 21
    EXTENTS = 22  # instruction: first byte of the one array that it is about, and its end
    FENCES = 23  # thread: when its last fence for all blocks was, and its last one
    PENDING = 24  # thread of a slot: its asynchronous copies (``PENDING``)
    CHANGES = 25  # how often memory or a barrier changed
    COPY = 26  # instruction: number of a load that only feeds stores to local memory, or -1
    COPIED = 27  # instruction, element: 4 x number + element of such a load that is stored, or -1
    COPIES = 28  # how many such loads there are
    COPY_KNOWN = 29  # thread of a slot, such a load: bit mask of its bytes that were written
    HANDED = 30  # when the last atomic that hands something over was
    POLLS = 31  # how many strong accesses there were
    BLOCKS = 32
    MIDDLE = 33  # the block that handed something over last between two others
    MISSES = 34  # how often none had
    END = 35


Found = IntEnum(
    "Found", "KIND WHERE OTHER_WHERE COUNT ADDRESS THREAD OTHER OLD NEW SIZE SPACE END", start=0
)
"""A row of what was found: one for each kind and pair of instructions."""

KINDS: Final = (
    ("out of bounds",), ("misaligned",), ("uninitialised",), ("race", "writes", "wrote"),
    ("race", "reads", "wrote"), ("race", "writes", "read"), ("lost update", "writes", "wrote"),
    ("divergent barrier",), ("unfinished copy", "reads", "copied"),
)  # fmt: skip
"""What can be found, from number 1 on: its name, and what the two threads of a race do."""

UNFENCED, UNSEEN, FAR = 4, 8, 16
"""Added to the space of a race that an atomic would order, but for a fence before or after it; and
to that of any between blocks."""
MAX_FOUND: Final = 512
MAX_MISSES: Final = 1000
"""Of searches among all blocks: with so many races, one more is none that matters."""
ROLE: Final = 6
"""Numbers about each thread of a cell."""
CELL: Final = 4 * ROLE + 2
"""32-bit numbers of a cell; the last two: whether several lanes of the writer's warp wrote the same
value, and what the last atomic found."""
RING, BLOCK_RING = 8, 16
ENTRY: Final = 10
"""Numbers about an atomic: see ``ordering._ring``."""
MAX_PENDING: Final = 32
PENDING: Final = 2 + 4 * MAX_PENDING
"""Numbers about a thread's copies: groups, copies; of each offset, bytes, group, instruction."""
NOWHERE = const(I64, -1)


def what_of(k: KernelWriter, i: Instruction, space: str) -> int:
    """What an access is. Volatile ones that warps once relied on in lock step race: those of
    shared memory but flags, and loads from beside what was just stored in global memory."""
    volatile = "volatile" in i.modifiers and (space == "global" or i in k.flags)
    strong = volatile or not STRONG.isdisjoint(i.modifiers)
    if i.opcode == "st":
        return STRONG_STORE if strong else STORE
    if changes(i):
        return EXCHANGE if "exch" in i.modifiers else ATOMIC
    if i in k.retried and (strong or "volatile" not in i.modifiers):
        return RETRIED_LOAD
    plain = i.opcode == "ld" and (not strong or _in_step(k.block.instructions, i))
    return LOAD if plain else STRONG_LOAD


def _in_step(block: Sequence[Instruction], load: Instruction) -> bool:
    """Whether a volatile load follows a store to another place from the same register, without a
    branch or a fence between: as in a sum, whose lanes read what others have just written."""
    _, place = load.operands
    for i in reversed(block[: block.index(load)]) if "volatile" in load.modifiers else ():
        if i.opcode in ("fence", "membar"):
            break
        if i.opcode == "st" and "volatile" in i.modifiers and isinstance(place, Memory):
            to = i.operands[0]
            if isinstance(to, Memory) and to.base == place.base and to.offset != place.offset:
                return True
    return False


@contextmanager
def watched(
    k: KernelWriter, a: SpaceAccess, what: int, values: Sequence[Value] = ()
) -> Iterator[None]:
    """Code of an access for the lanes that may do it: in the checked mode, those that the watcher
    finds inside memory. ``values`` are what each element of a store gets."""
    if not k.watched or a.space not in SPACES:
        yield
        return
    good = tell(k, a, what, values)
    with k.f.when(k.f.nonzero(good)), k.only(k.f.as_lanes(good)):
        yield


def tell(k: KernelWriter, a: SpaceAccess, what: int, values: Sequence[Value] = ()) -> Value:
    """Tell the watcher about an access, in the checked mode; gives the lanes inside memory."""
    if not k.watched:
        return k.lanes
    f, type_ = k.f, vector(f"i{a.bits}")
    given = NULL
    if values:
        given = f.slot(type_, a.count)
        for e, value in enumerate(values):
            f.store(value, f.offset(given, e, type_), CACHE_LINE)
    memory = k.pointer(Warp.SHARED) if a.space == "shared" else k.pointer(Context.GLOBAL)
    words = {*a.i.modifiers}
    if a.i.opcode in ("mbarrier", "cp") and "relaxed" not in words:
        words.add("acq_rel")  # that is how barriers count threads and bytes of copies
    what += RELEASES * (not words.isdisjoint({"release", "acq_rel"}))
    what += ACQUIRES * (not words.isdisjoint({"acquire", "acq_rel"}))
    what += AWAITS * (a.i in k.awaited) + NEAR * ("cta" in words)
    numbers = [const(I64, n) for n in (a.bits // 8, a.count, SPACES.index(a.space), what)]
    return f.call(
        I32, ACCESS, f.pointer(k.number(Context.WATCH)), k.context, k.warp, memory, given,
        f.spilled(f.resize(a.address, 64)), k.lanes, k.place(a.i), *numbers,
    )  # fmt: skip


def at_barrier(
    k: KernelWriter, lanes: Value, number: int | Value, how: int, place: Instruction | None = None
) -> None:
    """Tell the watcher about a barrier; nothing outside the checked mode. ``place`` is the
    instruction where all threads of the block must meet."""
    if k.watched:
        where = () if place is None else (k.place(place),)
        call_barrier(k.f, k.context, k.warp, lanes, number, how, *where)


def call_barrier(
    f: Function, context: Value, warp: Value, lanes: Value, number: int | Value, how: int,
    where: Value = NOWHERE,
) -> None:  # fmt: skip
    """The call itself."""
    state = f.pointer(f.load(I64, f.offset(context, 8 * Context.WATCH), 8))
    which = number if isinstance(number, Value) else const(I64, number)
    f.call("void", BARRIER, state, context, warp, lanes, which, where, const(I64, how))
