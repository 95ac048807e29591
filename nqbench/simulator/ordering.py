"""What orders two accesses in the checked mode (``watcher.py``): the clocks of warps and lanes, and
what atomics handed over. Numba compiles it into the functions that generated code calls.

Two accesses are ordered if a barrier lies between them that both threads took part in:

- warps have vector clocks, joined at barriers of the block (``ARRIVE``, ``RESUME``);
- lanes of a warp have vector clocks, joined at ``__syncwarp`` (``MEET``). Votes and shuffles are no
  memory barriers, but what a lane read before one it has read: a second set of clocks, for readers,
  is joined at these too (``CONVERGE``);
- threads that used the same atomic variable one after the other are ordered by it, as in a lock or
  in a grid sync, if the first had a fence before, and the second, where it reads, a fence or a
  barrier of its block after. Within a block fences of any scope do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numba
import numpy as np
from llvmlite import ir

from nqbench.simulator.codegen import watch
from nqbench.simulator.layout import BARRIERS, Context, Warp

SHARED, LOCAL, GLOBAL = range(len(watch.SPACES))
constant: Any = np.int64
"""Numba compiles a function for each ``int`` among its arguments, and once for all of these."""
NOBODY: Final[int] = constant(-1)
THREAD, EPOCH, LANE, WHERE, WHEN, STRONG = range(watch.ROLE)
WRITER, READER, OTHER_READER, UPDATER = range(0, 4 * watch.ROLE, watch.ROLE)
# Where fences are needed beside an atomic that hands something over; or none, if it is awaited.
AWAITED, NONE, BEFORE, BOTH = map(constant, range(4))
ZERO, ONE = constant(0), constant(1)
ENDLESS: Final = constant(1 << 40)  # accesses are checked, arrays are not

C_SHARED_BYTES: Final = int(Context.SHARED_BYTES)
C_GRID_X, C_GRID_Y = int(Context.GRID_X), int(Context.GRID_Y)
C_SLOTS, C_SLOT_STRIDE = int(Context.SLOTS), int(Context.SLOT_STRIDE)
W_INDEX, W_SLOT = int(Warp.INDEX), int(Warp.SLOT)
W_X, W_Y, W_Z = int(Warp.CTAID_X), int(Warp.CTAID_Y), int(Warp.CTAID_Z)
# fmt: off
(FIRST, THREADS, WARPS, CELLS, CELLS_PER_SLOT, GLOBAL_CELLS, KNOWN, GLOBAL_KNOWN,
 LOCAL_KNOWN, LOCAL_BYTES, OWNERS, EPOCHS, JOINS, LANES, RINGS, TIME,
 SHARED_SHIFT, GLOBAL_SHIFT, FOUND, FOUND_COUNT, MEETINGS, BLOCK_RINGS, EXTENTS, FENCES,
 PENDING, CHANGES, COPY, COPIED, COPIES, COPY_KNOWN, HANDED, POLLS, BLOCKS,
 MIDDLE, MISSES) = (
    constant(field) for field in [*watch.Field][:-1]
)
# fmt: on

nb: Any = numba
types: Any = numba.types
carray: Any = nb.carray
Told = tuple[int, int, int]
"""Of an access: thread, its warp's epoch, time."""
P = ParamSpec("P")
R = TypeVar("R")
compiled: Callable[[Callable[P, R]], Callable[P, R]] = nb.njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""Compiles for the entry points below, which are cached on disk."""
inlined: Callable[[Callable[P, R]], Callable[P, R]] = nb.njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True,
    forceinline=True,
)  # fmt: skip
"""The same for what every lane runs: a call of it would take as long as its work."""


def _to_pointer(_context: Any, _number: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


pointer: Any = nb.extending.intrinsic(_to_pointer)


@compiled
def longs(h: Any, field: int, start: int = 0) -> Any:
    return carray(pointer(h[field] + 8 * start), ENDLESS, nb.int64)


@compiled
def ints(h: Any, field: int, start: int = 0) -> Any:
    return carray(pointer(h[field] + 4 * start), ENDLESS, nb.int32)


@compiled
def octets(address: int) -> Any:
    return carray(pointer(address), ENDLESS, nb.uint8)


@compiled
def _slot(h: Any, c: Any, w: Any) -> Any:
    """The warp's slot; a new block in it starts with fresh clocks and memory."""
    slot = (w[W_SLOT] - c[C_SLOTS]) // c[C_SLOT_STRIDE]
    block = w[W_X] + c[C_GRID_X] * (w[W_Y] + c[C_GRID_Y] * w[W_Z])
    first = h[FIRST] + block * h[THREADS]
    owners = longs(h, OWNERS)
    if owners[slot] != first:
        owners[slot] = first
        warps = h[WARPS]
        epochs = ints(h, EPOCHS, slot * warps * warps)
        epochs[: warps * warps] = 0
        epochs[: warps * warps : warps + 1] = 1
        ints(h, JOINS, slot * BARRIERS * warps)[: BARRIERS * warps] = 0
        lanes = ints(h, LANES, slot * warps * 2048)
        lanes[: warps * 2048] = 0
        for matrix in range(2 * warps):
            lanes[matrix * 1024 : (matrix + 1) * 1024 : 33] = 1
        nbytes = c[C_SHARED_BYTES]
        octets(h[KNOWN] + slot * nbytes)[:nbytes] = 0
        nbytes = warps * 32 * h[LOCAL_BYTES]
        octets(h[LOCAL_KNOWN] + slot * nbytes)[:nbytes] = 0
        for thread in range(32 * warps if h[PENDING] else 0):
            longs(h, PENDING, (slot * warps * 32 + thread) * watch.PENDING)[:2] = 0
        h[CHANGES] += 1
        longs(h, MEETINGS, 3 * slot * BARRIERS)[: 3 * BARRIERS] = 0
    return slot


@compiled
def _warp_of(h: Any, thread: int) -> Any:
    return (thread - h[FIRST]) % h[THREADS] >> 5


@compiled
def block_of(h: Any, thread: int) -> Any:
    return (thread - h[FIRST]) // h[THREADS]


@compiled
def fences(h: Any, thread: int) -> Any:
    """When a thread's last fence for all blocks was, and its last one of any scope."""
    return longs(h, FENCES, 2 * (thread - h[FIRST]))


@compiled
def _met(
    h: Any, field: int, told: Told, thread: int, now: int, needs: int, end: int, between: int
) -> bool:
    """Whether who did what ``told`` tells used an atomic variable after it that ``thread`` used
    later, but not after ``end``; ``between``: with a fence before, and not only at some time.

    Threads of their blocks stand in for them: of the same warp, or of another if a barrier lies
    between (their warps' epochs tell: that of ``told``, ``now`` now). A thread sees only what came
    before a fence, of either thread, if ``needs`` says so, and ``BOTH``: after a fence or a barrier
    that follows theirs."""
    other, epoch, when = told
    near = nb.int64(block_of(h, other) == block_of(h, thread))
    early = between or fences(h, other)[near] <= when
    a, b = _ring(h, field, other), _ring(h, field, thread)
    for i in range(0, len(a), watch.ENTRY):
        if a[i + 1] <= when or a[i + 4]:
            continue
        if needs > NONE and a[i + 6 + near] <= when and (early or a[i + 2] == other):
            continue
        if a[i + 3] <= epoch and _warp_of(h, a[i + 2]) != _warp_of(h, other):
            continue
        for j in range(0, len(b), watch.ENTRY):
            if b[j] != a[i] or not a[i + 1] < b[j + 1] <= end:
                continue
            if needs == AWAITED and not b[j + 5]:
                continue
            seen = needs < BOTH or b[j + 8 + near] > a[i + 1]
            seen |= max(fences(h, thread)[near], fences(h, b[j + 2])[near]) > b[j + 1]
            if b[j + 3] < now or (seen and _warp_of(h, b[j + 2]) == _warp_of(h, thread)):
                return True
    return False


@compiled
def _ring(h: Any, field: int, thread: int) -> Any:
    """The last atomics of a thread, or of its block: place, time, thread, its warp's epoch, whether
    it only read (who only reads hands nothing over), whether it relies on what it saw, until when
    what the thread did is released, for all blocks and for its own, and what it saw is acquired."""
    number, length = thread - h[FIRST], watch.RING * watch.ENTRY
    if field == BLOCK_RINGS:
        number, length = block_of(h, thread), watch.BLOCK_RING * watch.ENTRY
    return longs(h, field, number * length)[:length]


@compiled
def remember(h: Any, thread: int, place: int, epoch: int, reads: bool, how: int) -> None:
    """``how`` is the access, as a multiple of ``watch.RELEASES``."""
    time = h[TIME]
    for ring in (_ring(h, RINGS, thread), _ring(h, BLOCK_RINGS, thread)):
        oldest, least, now, again = 0, ENDLESS, False, False
        for i in range(0, len(ring), watch.ENTRY):
            if ring[i] == place:
                # Lanes of one access must not push out the rest, nor must a loop that waits.
                now = ring[i + 1] == time
                same = _warp_of(h, ring[i + 2]) == _warp_of(h, thread) and ring[i + 3] == epoch
                again = now or (same and reads and ring[i + 4])
                if again:
                    oldest = i
                    break
            age = ring[i + 1] - (ring[i + 4] << 38) if ring[i + 1] else -ENDLESS  # readers first
            if age < least:
                oldest, least = i, age
        last = ring[oldest : oldest + watch.ENTRY]
        for near in range(2):
            reaches = near or not how & 8
            until = time if reaches and how & 1 else fences(h, thread)[near]
            acquired = time if reaches and how & 2 else ZERO
            if again:
                fenced = fences(h, last[2])[near] > last[1]
                acquired = max(acquired, last[1] if fenced else last[8 + near])
            last[6 + near] = max(until, last[6 + near]) if now else until
            last[8 + near] = acquired
        last[5] = how & 4 | (last[5] if again else 0)
        last[0], last[1], last[2], last[3], last[4] = place, time, thread, epoch, reads
    if not reads:
        h[HANDED] = time


class Sight(NamedTuple):
    """A warp and what it sees: its slot, the first thread of its block, its place in the block and
    its epoch; where what it knows of others' epochs, and its lanes' clocks begin."""

    slot: int
    block: int
    warp: int
    epoch: int
    epochs: int
    clocks: int


@inlined
def sight(h: Any, c: Any, w: Any) -> Sight:
    slot, warp, warps = _slot(h, c, w), w[W_INDEX], h[WARPS]
    place = slot * warps + warp
    epoch = nb.int64(ints(h, EPOCHS, place * warps)[warp])
    return Sight(slot, longs(h, OWNERS)[slot], warp, epoch, place * warps, place * 2048)


@inlined
def _clock(h: Any, s: Sight, role: int, thread: int, of: int) -> Any:
    """What a lane of the warp knows of another one's clock, as readers or writers do."""
    matrix = s.clocks + 1024 * (READER <= role < UPDATER)
    return ints(h, LANES, matrix)[(thread - s.block & 31) * 32 + (of - s.block & 31)]


@inlined
def ordered(
    h: Any, s: Sight, cells: Any, cell: int, role: int, thread: int, space: int, needs: int
) -> bool:
    """Whether the access that a role of the cell describes certainly happened before now."""
    at = cell + role
    other = nb.int64(cells[at + THREAD])
    if other < h[FIRST] or other == thread:
        return True
    epoch = cells[at + EPOCH]
    if s.block <= other < s.block + h[THREADS]:
        warp = other - s.block >> 5
        known = ints(h, EPOCHS, s.epochs)[warp]
        if known > epoch or (known == epoch and warp != s.warp):
            return True
        if warp == s.warp and _clock(h, s, role, thread, other) >= cells[at + LANE]:
            return True
    elif space == SHARED:
        return True  # of the block that was in the slot before
    return handed(h, s, cells, at, thread, needs)


@inlined
def _told(cells: Any, at: int) -> Told:
    return nb.int64(cells[at + THREAD]), nb.int64(cells[at + EPOCH]), nb.int64(cells[at + WHEN])


@compiled
def handed(h: Any, s: Sight, cells: Any, at: int, thread: int, needs: int) -> bool:
    """Whether atomics handed over to a thread what ``at`` describes: see ``_met``."""
    told = _told(cells, at)
    if h[HANDED] <= told[2]:
        return False
    more = told, thread, s.epoch, needs, ENDLESS, ZERO
    return _met(h, RINGS, *more) or _met(h, BLOCK_RINGS, *more)


@compiled
def passed_on(h: Any, s: Sight, cells: Any, at: int, thread: int, needs: int) -> bool:
    """Whether a third thread handed over what ``at`` describes, after it was handed over to it: as
    where the last of all blocks to arrive sets the flag that the others wait for."""
    told, blocks = _told(cells, at), h[BLOCKS]
    if h[HANDED] <= told[2] or h[MISSES] > watch.MAX_MISSES:
        return False
    for number in range(blocks):
        block = (h[MIDDLE] + number) % blocks
        m = _ring(h, BLOCK_RINGS, h[FIRST] + block * h[THREADS])
        for i in range(0, len(m), watch.ENTRY):
            time, middle, then = m[i + 1], m[i + 2], m[i + 3]
            if time <= told[2]:
                continue
            if not _met(h, BLOCK_RINGS, told, middle, then, BEFORE, time, ZERO):
                continue
            on = middle, then, time
            if _met(h, BLOCK_RINGS, on, thread, s.epoch, needs, ENDLESS, ONE):
                h[MIDDLE] = block
                return True
    h[MISSES] += 1
    return False


@inlined
def note(h: Any, s: Sight, cells: Any, cell: int, role: int, thread: int, where: int) -> None:
    at = cell + role
    cells[at + THREAD], cells[at + EPOCH] = thread, s.epoch
    cells[at + LANE] = _clock(h, s, role, thread, thread)
    cells[at + WHERE], cells[at + WHEN] = where, h[TIME]


@compiled
def join(clocks: Any, lanes: int) -> None:
    """These lanes now know what each of them knew; their own clocks go on."""
    for of in range(32):
        latest = 0
        for lane in range(32):
            latest = max(latest, clocks[lane * 32 + of] * (lanes >> lane & 1))
        for lane in range(32):
            if lanes >> lane & 1:
                clocks[lane * 32 + of] = latest + (lane == of)
