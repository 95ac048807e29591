"""What the checked mode does at each access and barrier: compiled by numba, called by the kernel.

A *cell* stands for a word of memory (a byte, where the kernel accesses parts of words). It holds
the last writer, two readers, and the last thread that updated it atomically: thread, what its
clocks said, instruction, time. Two accesses are ordered if a barrier lies between them that both
threads took part in:

- warps have vector clocks, joined at barriers of the block (``ARRIVE``, ``RESUME``);
- lanes of a warp have vector clocks, joined at ``__syncwarp`` (``MEET``). Votes and shuffles are no
  memory barriers, but what a lane read before one it has read: a second set of clocks, for readers,
  is joined at these too (``CONVERGE``);
- threads that used the same atomic variable one after the other are ordered by it, as in a lock or
  in a grid sync; those of different blocks if the first had a fence in between.

An asynchronous copy is a write that goes on until its thread has waited for it.

Importing this module imports numba (half a second).
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numba
import numpy as np
from llvmlite import ir

from nqbench.simulator import layout
from nqbench.simulator.codegen import watch
from nqbench.simulator.layout import BARRIERS, GLOBAL_BASE, PAGE_BITS, BlockSlot, Context, Warp

SHARED, LOCAL, GLOBAL = range(len(watch.SPACES))
constant: Any = np.int64
"""Numba compiles a function for each ``int`` among its arguments, and once for all of these."""
NOBODY: Final[int] = constant(-1)
THREAD, EPOCH, LANE, WHERE, WHEN, STRONG = range(watch.ROLE)
WRITER, READER, OTHER_READER, UPDATER = range(0, 4 * watch.ROLE, watch.ROLE)
SAME: Final = 4 * watch.ROLE  # several lanes of the writer's warp wrote the same value
FOUND_THERE: Final = SAME + 1
ENDLESS: Final = 1 << 40  # accesses are checked, arrays are not
LOCKS_OF_SHARED: Final = 1 << 50

C_SHARED_BYTES: Final = int(Context.SHARED_BYTES)
C_GRID_X, C_GRID_Y = int(Context.GRID_X), int(Context.GRID_Y)
C_SLOTS, C_SLOT_STRIDE = int(Context.SLOTS), int(Context.SLOT_STRIDE)
C_PAGES, C_LOW, C_HIGH = int(Context.PAGES), int(Context.PAGE_LOW), int(Context.PAGE_HIGH)
W_INDEX, W_SLOT = int(Warp.INDEX), int(Warp.SLOT)
W_X, W_Y, W_Z = int(Warp.CTAID_X), int(Warp.CTAID_Y), int(Warp.CTAID_Z)
# fmt: off
(FIRST, THREADS, WARPS, SLOTS, CELLS, CELLS_PER_SLOT, GLOBAL_CELLS, KNOWN, GLOBAL_KNOWN,
 LOCAL_KNOWN, LOCAL_BYTES, OWNERS, EPOCHS, JOINS, LANES, RINGS, TIME,
 SHARED_SHIFT, GLOBAL_SHIFT, FOUND, FOUND_COUNT, MEETINGS, BLOCK_RINGS, EXTENTS, FENCES,
 PENDING, CHANGES, COPY, COPIED, COPIES, COPY_KNOWN, HANDED, POLLS) = (
    constant(field) for field in [*watch.Field][:-1]
)
# fmt: on
S_ALIVE: Final = int(BlockSlot.ALIVE)
FOUND_END, HEADER = int(watch.Found.END), int(watch.Field.END)
(K_BOUNDS, K_ALIGN, K_INIT, K_WW, K_RAW, K_WAR, K_LOST, K_BARRIER, K_COPY) = (
    constant(1 + number) for number, _ in enumerate(watch.KINDS)
)

nb: Any = numba
types: Any = numba.types
carray: Any = nb.carray
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


_pointer: Any = nb.extending.intrinsic(_to_pointer)


@compiled
def _fill(array: Any, count: int, value: int) -> None:
    for i in range(count):
        array[i] = value


@compiled
def _longs(h: Any, field: int, start: int = 0) -> Any:
    return carray(_pointer(h[field] + 8 * start), ENDLESS, nb.int64)


@compiled
def _ints(h: Any, field: int, start: int = 0) -> Any:
    return carray(_pointer(h[field] + 4 * start), ENDLESS, nb.int32)


@compiled
def _bytes(address: int) -> Any:
    return carray(_pointer(address), ENDLESS, nb.uint8)


@compiled
def _slot(h: Any, c: Any, w: Any) -> Any:
    """The warp's slot; a new block in it starts with fresh clocks and memory."""
    slot = (w[W_SLOT] - c[C_SLOTS]) // c[C_SLOT_STRIDE]
    block = w[W_X] + c[C_GRID_X] * (w[W_Y] + c[C_GRID_Y] * w[W_Z])
    first = h[FIRST] + block * h[THREADS]
    owners = _longs(h, OWNERS)
    if owners[slot] != first:
        owners[slot] = first
        warps = h[WARPS]
        epochs = _ints(h, EPOCHS, slot * warps * warps)
        _fill(epochs, warps * warps, 0)
        for warp in range(warps):
            epochs[warp * warps + warp] = 1
        _fill(_ints(h, JOINS, slot * BARRIERS * warps), BARRIERS * warps, 0)
        lanes = _ints(h, LANES, slot * warps * 2048)
        _fill(lanes, warps * 2048, 0)
        for matrix in range(2 * warps):
            for lane in range(32):
                lanes[matrix * 1024 + 33 * lane] = 1
        nbytes = c[C_SHARED_BYTES]
        _fill(_bytes(h[KNOWN] + slot * nbytes), nbytes, 0)
        nbytes = warps * 32 * h[LOCAL_BYTES]
        _fill(_bytes(h[LOCAL_KNOWN] + slot * nbytes), nbytes, 0)
        for thread in range(32 * warps if h[PENDING] else 0):
            _fill(_longs(h, PENDING, (slot * warps * 32 + thread) * watch.PENDING), 2, 0)
        h[CHANGES] += 1
        _fill(_longs(h, MEETINGS, 2 * slot * BARRIERS), 2 * BARRIERS, 0)
    return slot


@compiled
def _report(
    h: Any, kind: int, where: int, other_where: int, address: int, thread: int, other: int,
    old: int, new: int, size: int, space: int,
) -> None:  # fmt: skip
    rows = _longs(h, FOUND)
    count = h[FOUND_COUNT]
    for row in range(count):
        at = row * FOUND_END
        if rows[at] == kind and rows[at + 1] == where and rows[at + 2] == other_where:
            rows[at + 3] += 1
            return
    if count == watch.MAX_FOUND:
        return
    h[FOUND_COUNT] = count + 1
    at = count * FOUND_END
    rows[at], rows[at + 1], rows[at + 2], rows[at + 3] = kind, where, other_where, 1
    first = h[FIRST]
    rows[at + 4], rows[at + 5] = address, thread - first
    rows[at + 6] = other - first if other != NOBODY else NOBODY
    rows[at + 7], rows[at + 8], rows[at + 9], rows[at + 10] = old, new, size, space


@inlined
def _number(address: int, size: int) -> Any:
    """The number at an address, of at most 8 bytes."""
    if size == 4:
        return nb.int64(carray(_pointer(address), 1, nb.uint32)[0])
    value = nb.int64(0)
    for byte in range(min(size, 8)):
        value |= nb.int64(_bytes(address)[byte]) << (8 * byte)
    return value


@compiled
def _warp_of(h: Any, thread: int) -> Any:
    return (thread - h[FIRST]) % h[THREADS] >> 5


@compiled
def _met(
    h: Any, field: int, length: int, other: int, epoch: int, when: int, thread: int, now: int,
    fenced: bool,
) -> bool:  # fmt: skip
    """Whether ``other`` used an atomic variable after ``when`` that ``thread`` used later.

    Threads of their blocks stand in for them: of the same warp, or of another if a barrier lies
    between (their warps' epochs tell: ``epoch`` then, ``now`` now). Threads of other blocks see
    only what came before a fence, of either thread; unless ``fenced``, whatever came before."""
    a = _ring(h, field, length, other)
    far = fenced and (other - h[FIRST]) // h[THREADS] != (thread - h[FIRST]) // h[THREADS]
    far = far and _longs(h, FENCES)[other - h[FIRST]] <= when
    b = _ring(h, field, length, thread)
    for i in range(0, length * watch.ENTRY, watch.ENTRY):
        if a[i + 1] <= when or a[i + 4] or (far and a[i + 5] <= when):
            continue
        if a[i + 3] <= epoch and _warp_of(h, a[i + 2]) != _warp_of(h, other):
            continue
        for j in range(0, length * watch.ENTRY, watch.ENTRY):
            if b[j] != a[i] or b[j + 1] <= a[i + 1]:
                continue
            if b[j + 3] < now or _warp_of(h, b[j + 2]) == _warp_of(h, thread):
                return True
    return False


@compiled
def _ring(h: Any, field: int, length: int, thread: int) -> Any:
    """The last atomics of a thread, or of its block: place, time, thread, its warp's epoch, whether
    it only read (who only reads hands nothing over), until when what the thread did is released."""
    number = thread - h[FIRST]
    if field == BLOCK_RINGS:
        number //= h[THREADS]
    return _longs(h, field, number * length * watch.ENTRY)


@compiled
def _remember(
    h: Any, field: int, length: int, thread: int, place: int, epoch: int, reads: bool, until: int
) -> None:
    ring = _ring(h, field, length, thread)
    oldest = 0
    for i in range(0, length * watch.ENTRY, watch.ENTRY):
        # A loop that waits must not push out the rest.
        again = reads and ring[i + 4] and ring[i] == place and ring[i + 3] == epoch
        if again and _warp_of(h, ring[i + 2]) == _warp_of(h, thread):
            oldest = i
            break
        if ring[i + 1] < ring[oldest + 1]:
            oldest = i
    ring[oldest], ring[oldest + 1], ring[oldest + 2] = place, h[TIME], thread
    ring[oldest + 3], ring[oldest + 4], ring[oldest + 5] = epoch, reads, until
    if not reads:
        h[HANDED] = h[TIME]


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
def _sight(h: Any, c: Any, w: Any) -> Sight:
    slot, warp, warps = _slot(h, c, w), w[W_INDEX], h[WARPS]
    place = slot * warps + warp
    epoch = _ints(h, EPOCHS, place * warps)[warp]
    return Sight(slot, _longs(h, OWNERS)[slot], warp, epoch, place * warps, place * 2048)


@inlined
def _clock(h: Any, s: Sight, role: int, thread: int, of: int) -> Any:
    """What a lane of the warp knows of another one's clock, as readers or writers do."""
    matrix = s.clocks + 1024 * (READER <= role < UPDATER)
    return _ints(h, LANES, matrix)[(thread - s.block & 31) * 32 + (of - s.block & 31)]


@inlined
def _ordered(h: Any, s: Sight, cells: Any, cell: int, role: int, thread: int, space: int) -> bool:
    """Whether the access that a role of the cell describes certainly happened before now."""
    at = cell + role
    other = cells[at + THREAD]
    if other < h[FIRST] or other == thread:
        return True
    epoch = cells[at + EPOCH]
    if s.block <= other < s.block + h[THREADS]:
        warp = other - s.block >> 5
        known = _ints(h, EPOCHS, s.epochs)[warp]
        if known > epoch or (known == epoch and warp != s.warp):
            return True
        if warp == s.warp and _clock(h, s, role, thread, other) >= cells[at + LANE]:
            return True
    elif space == SHARED:
        return True  # of the block that was in the slot before
    return _handed(h, s, cells, at, thread, fenced=True)


@compiled
def _handed(h: Any, s: Sight, cells: Any, at: int, thread: int, fenced: bool) -> bool:
    """Whether atomics handed over to a thread what ``at`` describes: see ``_met``."""
    other, epoch, when = cells[at + THREAD], cells[at + EPOCH], cells[at + WHEN]
    if h[HANDED] <= when:
        return False
    return _met(h, RINGS, watch.RING, other, epoch, when, thread, s.epoch, fenced) or _met(
        h, BLOCK_RINGS, watch.BLOCK_RING, other, epoch, when, thread, s.epoch, fenced
    )


@compiled
def _race(
    h: Any, s: Sight, cells: Any, at: int, kind: int, thread: int, where: int, space: int,
    address: int, old: int, new: int, size: int,
) -> None:  # fmt: skip
    if _handed(h, s, cells, at, thread, fenced=False):
        space += watch.UNFENCED
    _report(h, kind, where, cells[at + WHERE], address, thread, cells[at + THREAD], old, new, size,
            space)  # fmt: skip


@inlined
def _note(h: Any, s: Sight, cells: Any, cell: int, role: int, thread: int, where: int) -> None:
    at = cell + role
    cells[at + THREAD], cells[at + EPOCH] = thread, s.epoch
    cells[at + LANE] = _clock(h, s, role, thread, thread)
    cells[at + WHERE], cells[at + WHEN] = where, h[TIME]


@inlined
def _read(
    h: Any, s: Sight, cells: Any, cell: int, thread: int, where: int, strong: bool, space: int,
    address: int, memory: int, size: int,
) -> None:  # fmt: skip
    """A read races with an earlier write; atomics race with plain accesses only."""
    for role in (WRITER, UPDATER):
        if strong and role == UPDATER:
            continue
        if _ordered(h, s, cells, cell, role, thread, space):
            continue
        at, warp = cell + role, (thread - h[FIRST]) >> 5
        if role == WRITER and cells[cell + SAME] and (cells[at] - h[FIRST]) >> 5 == warp:
            continue
        _race(h, s, cells, at, K_RAW, thread, where, space, address, 0, _number(memory, size), size)
    role = OTHER_READER
    if _ordered(h, s, cells, cell, READER, thread, space):
        role = READER
    _note(h, s, cells, cell, role, thread, where)
    cells[cell + role + STRONG] = strong


@inlined
def _written(
    h: Any, s: Sight, cells: Any, cell: int, thread: int, where: int, strong: bool, silent: bool,
    space: int, address: int, old: int, new: int, size: int,
) -> None:  # fmt: skip
    """A write races with earlier writes (of another value), atomics and reads.
    ``silent``: memory holds this value already."""
    unordered = not _ordered(h, s, cells, cell, WRITER, thread, space)
    kind = K_LOST if space == GLOBAL else K_WW
    for role in (WRITER, UPDATER, READER, OTHER_READER):
        at = cell + role
        reads = role != WRITER and role != UPDATER
        if silent or (strong and (role == UPDATER or (reads and cells[at + STRONG]))):
            continue
        if unordered if role == WRITER else not _ordered(h, s, cells, cell, role, thread, space):
            _race(h, s, cells, at, K_WAR if reads else kind, thread, where, space, address, old,
                  new, size)  # fmt: skip
    if strong:
        _note(h, s, cells, cell, UPDATER, thread, where)
        return
    if silent and unordered:
        if (cells[cell + THREAD] - h[FIRST]) >> 5 == (thread - h[FIRST]) >> 5:
            cells[cell + SAME] = 1
        return
    _note(h, s, cells, cell, WRITER, thread, where)
    cells[cell + SAME] = 0


@inlined
def _in_bounds(h: Any, c: Any, space: int, address: int, nbytes: int) -> Any:
    if space == SHARED:
        return 0 <= address <= c[C_SHARED_BYTES] - nbytes
    if space == LOCAL:
        return 0 <= address <= h[LOCAL_BYTES] - nbytes
    inside = address - GLOBAL_BASE
    page = inside >> PAGE_BITS
    if page < 0 or page >= c[C_PAGES]:
        return False
    return _longs(c, C_LOW, page)[0] <= inside <= _longs(c, C_HIGH, page)[0] - nbytes


@inlined
def _uninitialised(known: Any, at: int, size: int, lenient: bool) -> bool:
    """Whether bytes of an element were never written; lenient: all of them, because the copy of a
    struct reads the holes between its members."""
    missing = 0
    for byte in range(size):
        missing += known[at + byte] == 0
    return missing == size if lenient else missing > 0


@compiled
def _copied(
    h: Any, known: Any, place: int, offset: int, nbytes: int, size: int, where: int, what: int
) -> bool:
    """Whether this is part of a copy within local memory: what is read may be unwritten there, and
    so is then what is stored."""
    masks = _ints(h, COPY_KNOWN, place * h[COPIES])
    if what == watch.LOAD:
        number = _ints(h, COPY)[where]
        if number < 0:
            return False
        masks[number] = 0
        for byte in range(nbytes):
            masks[number] |= nb.int32(known[offset + byte] != 0) << byte
        return True
    sources = _ints(h, COPIED, 4 * where)
    if what != watch.STORE or sources[0] < 0:
        return False
    for byte in range(nbytes):
        source = sources[byte // size]
        known[offset + byte] = masks[source // 4] >> (source % 4 * size + byte % size) & 1
    return True


@compiled
def _pending(h: Any, s: Sight, thread: int) -> Any:
    """A thread's copies: see ``watch.PENDING``."""
    return _longs(h, PENDING, (s.slot * h[WARPS] * 32 + thread - s.block) * watch.PENDING)


@compiled
def _finish(h: Any, c: Any, s: Sight, thread: int, before: int) -> None:
    """The thread's copies of the groups before one are there: written now."""
    pending, known = _pending(h, s, thread), _bytes(h[KNOWN] + s.slot * c[C_SHARED_BYTES])
    cells, kept = _ints(h, CELLS, s.slot * h[CELLS_PER_SLOT] * watch.CELL), 0
    for n in range(pending[1]):
        copy, to = 2 + 4 * n, 2 + 4 * kept
        if pending[copy + 2] >= before:
            for field in range(4):
                pending[to + field] = pending[copy + field]
            kept += 1
            continue
        for offset in range(pending[copy], pending[copy] + pending[copy + 1]):
            known[offset] = 1
            at = (offset >> h[SHARED_SHIFT]) * watch.CELL
            if cells[at + THREAD] == thread:
                _note(h, s, cells, at, WRITER, thread, pending[copy + 3])
    pending[1] = kept


@compiled
def _pend(h: Any, c: Any, s: Sight, thread: int, offset: int, nbytes: int, where: int) -> None:
    """A copy begins. Of very many, those before count as there."""
    pending = _pending(h, s, thread)
    if pending[1] == watch.MAX_PENDING:
        _finish(h, c, s, thread, pending[0] + 1)
    copy = 2 + 4 * pending[1]
    pending[copy], pending[copy + 1] = offset, nbytes
    pending[copy + 2], pending[copy + 3] = pending[0], where
    pending[1] += 1


@compiled
def _unfinished(
    h: Any, slot: int, known: Any, offset: int, nbytes: int, thread: int, where: int, size: int
) -> None:
    """Report an access to what a copy may still be writing."""
    cells = _ints(h, CELLS, slot * h[CELLS_PER_SLOT] * watch.CELL)
    for at in range(offset, offset + nbytes, size):
        if known[at] == 2:
            cell = (at >> h[SHARED_SHIFT]) * watch.CELL
            _report(h, K_COPY, where, cells[cell + WHERE], at, thread, cells[cell + THREAD], 0, 0,
                    size, SHARED)  # fmt: skip


@inlined
def _lane(
    h: Any, c: Any, s: Sight, thread: int, memory: int, base: int, address: int, values: int,
    where: int, size: int, count: int, space: int, what: int, releases: bool,
) -> None:  # fmt: skip
    """One lane's access, inside its memory. Stores are done here already, so that the next lane
    sees them."""
    nbytes = size * count
    offset = address - base
    if space == SHARED:
        known = _bytes(h[KNOWN] + s.slot * c[C_SHARED_BYTES])
    elif space == LOCAL:
        place = s.slot * h[WARPS] * 32 + thread - s.block
        known = _bytes(h[LOCAL_KNOWN] + place * h[LOCAL_BYTES])
        if _copied(h, known, place, offset, nbytes, size, where, what):
            return
    else:
        known = _bytes(h[GLOBAL_KNOWN])
    if what in (watch.LOAD, watch.STRONG_LOAD, watch.ATOMIC):
        # Copies of structs read the holes between their members, in parts of words too.
        units = 1 if space == LOCAL and size < 4 else count
        unit = nbytes if units == 1 else size
        for e in range(units):
            at = offset + e * unit
            if _uninitialised(known, at, unit, space == LOCAL):
                gone = 0
                if space == SHARED:
                    alive = _longs(c, C_SLOTS, s.slot * c[C_SLOT_STRIDE] // 8)[S_ALIVE]
                    gone = h[THREADS] - alive
                _report(h, K_INIT, where, NOBODY, base + at, thread, NOBODY, gone, 0, size, space)
    if space == SHARED and h[PENDING]:
        _unfinished(h, s.slot, known, offset, nbytes, thread, where, size)
    if what not in (watch.LOAD, watch.STRONG_LOAD):
        for byte in range(nbytes):
            known[offset + byte] = 2 if what == watch.COPY else 1
    if space == LOCAL:
        return
    if what == watch.COPY:
        _pend(h, c, s, thread, offset, nbytes, where)
    if what >= watch.STRONG_LOAD:
        place = address if space == GLOBAL else LOCKS_OF_SHARED + s.slot * (1 << 20) + address
        reads = what == watch.STRONG_LOAD
        until = h[TIME] if releases else _longs(h, FENCES)[thread - h[FIRST]]
        _remember(h, RINGS, watch.RING, thread, place, s.epoch, reads, until)
        _remember(h, BLOCK_RINGS, watch.BLOCK_RING, thread, place, s.epoch, reads, until)
    for e in range(count):
        _element(h, s, thread, memory + offset + e * size, offset + e * size, address + e * size,
                 values + 32 * e * size, where, size, space, what)  # fmt: skip


@inlined
def _element(
    h: Any, s: Sight, thread: int, memory: int, offset: int, address: int, value: int, where: int,
    size: int, space: int, what: int,
) -> None:  # fmt: skip
    """One element of a lane's access, cell by cell; ``memory`` and ``value`` are where it is and
    what a store gives it."""
    shift = h[SHARED_SHIFT] if space == SHARED else h[GLOBAL_SHIFT]
    cells = _ints(h, CELLS if space == SHARED else GLOBAL_CELLS)
    start = s.slot * h[CELLS_PER_SLOT] * watch.CELL if space == SHARED else 0
    strong, reads = what >= watch.STRONG_LOAD, what in (watch.LOAD, watch.STRONG_LOAD)
    stores = what in (watch.STORE, watch.COPY, watch.STRONG_STORE)
    old = new = nb.int64(0)
    if not reads:
        old = _number(memory, size)
        new = _number(value, size) if stores else old
    for part in range(size >> shift):
        cell = start + ((offset >> shift) + part) * watch.CELL
        if reads:
            _read(h, s, cells, cell, thread, where, strong, space, address, memory, size)
            continue
        bits = 8 << shift
        same = stores and not (old ^ new) >> bits * part & (1 << bits) - 1
        _written(h, s, cells, cell, thread, where, strong, same, space, address, old, new, size)
        if stores:
            h[CHANGES] += not same
        else:
            there = nb.int32(old & 0x7FFFFFFF)
            h[CHANGES] += cells[cell + FOUND_THERE] != there
            cells[cell + FOUND_THERE] = there
    for byte in range(size if stores else 0):
        _bytes(memory)[byte] = new >> 8 * byte


@compiled
def _join(clocks: Any, lanes: int) -> None:
    """These lanes now know what each of them knew."""
    for of in range(32):
        latest = 0
        for lane in range(32):
            if lanes >> lane & 1:
                latest = max(latest, clocks[lane * 32 + of])
        for lane in range(32):
            if lanes >> lane & 1:
                clocks[lane * 32 + of] = latest
    for lane in range(32):
        if lanes >> lane & 1:
            clocks[33 * lane] += 1


_long: Any = types.CPointer(types.int64)
_i64, _u32 = types.int64, types.uint32


def entry(*types_: Any) -> Callable[[Callable[..., Any]], Any]:
    """A function that generated code calls; the first type is that of the result."""
    made: Callable[[Callable[..., Any]], Any] = nb.cfunc(types_[0](*types_[1:]), cache=True)
    return made


def _entries(stamp: int) -> tuple[Any, Any]:
    """The functions that generated code calls. ``stamp`` enters the key of numba's cache, which
    notices changes of this file alone."""

    @entry(_u32, _long, _long, _long, _i64, _i64, _long, _u32, _i64, _i64, _i64, _i64, _i64)
    def access(
        state: Any, context: Any, warp: Any, memory: Any, values: Any, addresses_p: Any, some: Any,
        where: Any, size: Any, count: Any, space: Any, what: Any,
    ) -> Any:  # fmt: skip
        if not stamp:
            return 0
        h, c, w = carray(state, HEADER), carray(context, 64), carray(warp, 16)
        lanes, s = nb.int64(some), _sight(h, c, w)
        h[TIME] += 1
        h[POLLS] += what % watch.RELEASES >= watch.STRONG_LOAD
        addresses = carray(addresses_p, 32)
        first = s.block + 32 * s.warp
        base = GLOBAL_BASE if space == GLOBAL else 0
        extent = _longs(h, EXTENTS, 2 * where)
        good = 0
        for lane in range(32):
            if not lanes >> lane & 1:
                continue
            address, thread = addresses[lane], first + lane
            nbytes = size * count
            inside = _in_bounds(h, c, space, address, nbytes)
            if inside and space != GLOBAL and not extent[0] <= address <= extent[1] - nbytes:
                _report(h, K_BOUNDS, where, NOBODY, address, thread, NOBODY, 0, 0, nbytes, space)
            if not inside:
                _report(h, K_BOUNDS, where, NOBODY, address, thread, NOBODY, 0, 0, nbytes, space)
            elif address & (nbytes - 1):
                _report(h, K_ALIGN, where, NOBODY, address, thread, NOBODY, 0, 0, nbytes, space)
            else:
                good |= 1 << lane
                _lane(h, c, s, thread, memory, base, address, values + lane * size, where, size,
                      count, space, what % watch.RELEASES, what >= watch.RELEASES)  # fmt: skip
        return good

    @entry(types.void, _long, _long, _long, _u32, _i64, _i64, _i64)
    def barrier(
        state: Any, context: Any, warp_p: Any, some: Any, number: Any, where: Any, how: Any
    ) -> None:
        if not stamp:
            return
        h, c, w = carray(state, HEADER), carray(context, 64), carray(warp_p, 16)
        s, lanes = _sight(h, c, w), nb.int64(some)
        slot, warp, warps = s.slot, s.warp, h[WARPS]
        if how >= watch.FENCE:
            h[TIME] += 1
            for lane in range(32):
                thread = s.block + 32 * warp + lane
                if lanes >> lane & 1 and how == watch.FENCE:
                    _longs(h, FENCES)[thread - h[FIRST]] = h[TIME]
                elif lanes >> lane & 1 and how == watch.COMMIT:
                    _pending(h, s, thread)[0] += 1
                elif lanes >> lane & 1:
                    _finish(h, c, s, thread, _pending(h, s, thread)[0] - number)
            return
        if how >= watch.MEET:
            matrix = 2 * (slot * warps + warp)
            if how == watch.MEET:
                _join(_ints(h, LANES, matrix * 1024), lanes)
            _join(_ints(h, LANES, (matrix + 1) * 1024), lanes)
            return
        epochs = _ints(h, EPOCHS, (slot * warps + warp) * warps)
        joins = _ints(h, JOINS, (slot * BARRIERS + number) * warps)
        meeting = _longs(h, MEETINGS, 2 * (slot * BARRIERS + number))
        if how == watch.ARRIVE:
            if where >= 0:
                first = 0
                while not lanes >> first & 1:
                    first += 1
                thread = s.block + 32 * warp + first
                if not meeting[0]:
                    meeting[0], meeting[1] = where + 1, thread
                elif meeting[0] != where + 1:
                    _report(h, K_BARRIER, where, meeting[0] - 1, 0, thread, meeting[1], 0, 0, 1, 0)
            for other in range(warps):
                joins[other] = max(joins[other], epochs[other])
        else:
            for other in range(warps):
                epochs[other] = max(joins[other], epochs[other])
            epochs[warp] += 1
            h[CHANGES] += 1
            meeting[0] = 0

    return access, barrier


SOURCES: Final = "".join(map(inspect.getsource, (watch, layout)))
"""Everything that other files define."""
access, barrier = _entries(1 + zlib.crc32(SOURCES.encode()))
"""``access``: an access by ``lanes``; gives those of them that are inside memory and aligned.
``barrier``: ``how`` is what happens at barrier ``number``, one of ``codegen.watch``'s five;
``where`` the instruction at which all threads of the block must meet, or -1."""
