"""What the checked mode does at each access and barrier: compiled by numba, called by the kernel.

A *cell* stands for a word of memory (a byte, where the kernel accesses parts of words). It holds
the last writer, two readers, and the last thread that updated it atomically: thread, what its
clocks said, instruction, time. ``ordering.py`` says which accesses are ordered. An asynchronous
copy is a write that goes on until its thread has waited for it.

Importing this module imports numba (half a second).
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from typing import Any, Final

from nqbench.simulator import layout
from nqbench.simulator import ordering as o
from nqbench.simulator.codegen import watch
from nqbench.simulator.layout import BARRIERS, GLOBAL_BASE, PAGE_BITS, BlockSlot, Context

SAME: Final = 4 * watch.ROLE  # several lanes of the writer's warp wrote the same value
FOUND_THERE: Final = SAME + 1
LOCKS_OF_SHARED: Final = 1 << 50
C_PAGES, C_LOW, C_HIGH = int(Context.PAGES), int(Context.PAGE_LOW), int(Context.PAGE_HIGH)
S_ALIVE: Final = int(BlockSlot.ALIVE)
FOUND_END, HEADER = int(watch.Found.END), int(watch.Field.END)
(K_BOUNDS, K_ALIGN, K_INIT, K_WW, K_RAW, K_WAR, K_LOST, K_BARRIER, K_COPY) = (
    o.constant(1 + number) for number, _ in enumerate(watch.KINDS)
)


@o.compiled
def _report(
    h: Any, kind: int, where: int, address: int, thread: int, size: int, space: int,
    other_where: int = o.NOBODY, other: int = o.NOBODY, old: int = o.ZERO, new: int = o.ZERO,
) -> None:  # fmt: skip
    rows = o.longs(h, o.FOUND)
    count = h[o.FOUND_COUNT]
    for row in range(count):
        at = row * FOUND_END
        if rows[at] == kind and rows[at + 1] == where and rows[at + 2] == other_where:
            rows[at + 3] += 1
            rows[at + 10] |= space & watch.FAR
            return
    if count == watch.MAX_FOUND:
        return
    h[o.FOUND_COUNT] = count + 1
    at = count * FOUND_END
    rows[at], rows[at + 1], rows[at + 2], rows[at + 3] = kind, where, other_where, 1
    first = h[o.FIRST]
    rows[at + 4], rows[at + 5] = address, thread - first
    rows[at + 6] = other - first if other != o.NOBODY else o.NOBODY
    rows[at + 7], rows[at + 8], rows[at + 9], rows[at + 10] = old, new, size, space


@o.inlined
def _number(address: int, size: int) -> Any:
    """The number at an address, of at most 8 bytes."""
    if size == 4:
        return o.nb.int64(o.carray(o.pointer(address), 1, o.nb.uint32)[0])
    value = o.nb.int64(0)
    for byte in range(min(size, 8)):
        value |= o.nb.int64(o.octets(address)[byte]) << (8 * byte)
    return value


@o.compiled
def _race(
    h: Any, s: o.Sight, cells: Any, at: int, kind: int, thread: int, where: int, space: int,
    address: int, old: int, new: int, size: int, needs: int,
) -> None:  # fmt: skip
    other_where, other = o.nb.int64(cells[at + o.WHERE]), o.nb.int64(cells[at + o.THREAD])
    middle = o.block_of(h, other)
    if o.passed_on(h, s, cells, at, thread, needs):
        return
    if needs == o.BOTH and o.handed(h, s, cells, at, thread, o.BEFORE):
        space += watch.UNSEEN
    elif needs == o.BOTH and o.passed_on(h, s, cells, at, thread, o.BEFORE):
        middle = h[o.MIDDLE]
        space += watch.UNSEEN
    elif o.handed(h, s, cells, at, thread, o.NONE):
        space += watch.UNFENCED
    if not middle == o.block_of(h, other) == o.block_of(h, thread):
        space += watch.FAR
    _report(h, kind, where, address, thread, size, space, other_where, other, old, new)


@o.inlined
def _read(
    h: Any, s: o.Sight, cells: Any, cell: int, thread: int, where: int, what: int, space: int,
    address: int, memory: int, size: int,
) -> None:  # fmt: skip
    """A read races with an earlier write. Atomics race with plain accesses; with one another only
    where the thread relies on what it saw of a third."""
    retried, strong = what == watch.RETRIED_LOAD, what != watch.LOAD
    needs = o.BEFORE if retried else o.BOTH
    for role in (o.WRITER, o.UPDATER):
        at, warp = cell + role, (thread - h[o.FIRST]) >> 5
        both_atomic = retried and role == o.UPDATER
        if both_atomic or o.ordered(h, s, cells, cell, role, thread, space, needs):
            continue
        if strong and role == o.UPDATER and not o.handed(h, s, cells, at, thread, o.AWAITED):
            continue
        if role == o.WRITER and cells[cell + SAME] and (cells[at] - h[o.FIRST]) >> 5 == warp:
            continue
        number = _number(memory, size)
        _race(h, s, cells, at, K_RAW, thread, where, space, address, o.ZERO, number, size, needs)
    role = o.OTHER_READER
    if o.ordered(h, s, cells, cell, o.READER, thread, space, o.BEFORE):
        role = o.READER
    o.note(h, s, cells, cell, role, thread, where)
    cells[cell + role + o.STRONG] = strong


@o.inlined
def _written(
    h: Any, s: o.Sight, cells: Any, cell: int, thread: int, where: int, strong: bool, silent: bool,
    space: int, address: int, old: int, new: int, size: int,
) -> None:  # fmt: skip
    """A write races with earlier writes (of another value), atomics and reads.
    ``silent``: memory holds this value already."""
    unordered = not o.ordered(h, s, cells, cell, o.WRITER, thread, space, o.BEFORE)
    kind = K_LOST if space == o.GLOBAL else K_WW
    for role in (o.WRITER, o.UPDATER, o.READER, o.OTHER_READER):
        at = cell + role
        reads = role != o.WRITER and role != o.UPDATER
        if silent or (strong and (role == o.UPDATER or (reads and cells[at + o.STRONG]))):
            continue
        if unordered if role == o.WRITER else not o.ordered(
            h, s, cells, cell, role, thread, space, o.BEFORE
        ):  # fmt: skip
            _race(h, s, cells, at, K_WAR if reads else kind, thread, where, space, address, old,
                  new, size, o.BEFORE)  # fmt: skip
    if strong:
        o.note(h, s, cells, cell, o.UPDATER, thread, where)
        return
    if silent and unordered:
        if (cells[cell + o.THREAD] - h[o.FIRST]) >> 5 == (thread - h[o.FIRST]) >> 5:
            cells[cell + SAME] = 1
        return
    o.note(h, s, cells, cell, o.WRITER, thread, where)
    cells[cell + SAME] = 0


@o.inlined
def _in_bounds(h: Any, c: Any, space: int, address: int, nbytes: int) -> Any:
    if space != o.GLOBAL:
        end = c[o.C_SHARED_BYTES] if space == o.SHARED else h[o.LOCAL_BYTES]
        return 0 <= address <= end - nbytes
    inside = address - GLOBAL_BASE
    page = inside >> PAGE_BITS
    if page < 0 or page >= c[C_PAGES]:
        return False
    return o.longs(c, C_LOW, page)[0] <= inside <= o.longs(c, C_HIGH, page)[0] - nbytes


@o.inlined
def _uninitialised(known: Any, at: int, size: int, lenient: bool) -> bool:
    """Whether bytes of an element were never written; lenient: all of them, because the copy of a
    struct reads the holes between its members."""
    missing = 0
    for byte in range(size):
        missing += known[at + byte] == 0
    return missing == size if lenient else missing > 0


@o.compiled
def _copied(
    h: Any, known: Any, place: int, offset: int, nbytes: int, size: int, where: int, what: int
) -> bool:
    """Whether this is part of a copy within local memory: what is read may be unwritten there, and
    so is then what is stored."""
    masks = o.ints(h, o.COPY_KNOWN, place * h[o.COPIES])
    if what == watch.LOAD:
        number = o.ints(h, o.COPY)[where]
        if number < 0:
            return False
        masks[number] = 0
        for byte in range(nbytes):
            masks[number] |= o.nb.int32(known[offset + byte] != 0) << byte
        return True
    sources = o.ints(h, o.COPIED, 4 * where)
    if what != watch.STORE or sources[0] < 0:
        return False
    for byte in range(nbytes):
        source = sources[byte // size]
        known[offset + byte] = masks[source // 4] >> (source % 4 * size + byte % size) & 1
    return True


@o.compiled
def _pending(h: Any, s: o.Sight, thread: int) -> Any:
    """A thread's copies: see ``watch.PENDING``."""
    return o.longs(h, o.PENDING, (s.slot * h[o.WARPS] * 32 + thread - s.block) * watch.PENDING)


@o.compiled
def _finish(h: Any, c: Any, s: o.Sight, thread: int, before: int) -> None:
    """The thread's copies of the groups before one are there: written now."""
    pending, known = _pending(h, s, thread), o.octets(h[o.KNOWN] + s.slot * c[o.C_SHARED_BYTES])
    cells, kept = o.ints(h, o.CELLS, s.slot * h[o.CELLS_PER_SLOT] * watch.CELL), 0
    for n in range(pending[1]):
        copy, to = 2 + 4 * n, 2 + 4 * kept
        if pending[copy + 2] >= before:
            pending[to : to + 4] = pending[copy : copy + 4]
            kept += 1
            continue
        for offset in range(pending[copy], pending[copy] + pending[copy + 1]):
            known[offset] = 1
            at = (offset >> h[o.SHARED_SHIFT]) * watch.CELL
            if cells[at + o.THREAD] == thread:
                o.note(h, s, cells, at, o.WRITER, thread, pending[copy + 3])
    pending[1] = kept


@o.compiled
def _pend(h: Any, c: Any, s: o.Sight, thread: int, offset: int, nbytes: int, where: int) -> None:
    """A copy begins. Of very many, those before count as there."""
    pending = _pending(h, s, thread)
    if pending[1] == watch.MAX_PENDING:
        _finish(h, c, s, thread, pending[0] + 1)
    copy = 2 + 4 * pending[1]
    pending[copy], pending[copy + 1] = offset, nbytes
    pending[copy + 2], pending[copy + 3] = pending[0], where
    pending[1] += 1


@o.compiled
def _unfinished(
    h: Any, slot: int, known: Any, offset: int, nbytes: int, thread: int, where: int, size: int
) -> None:
    """Report an access to what a copy may still be writing."""
    cells = o.ints(h, o.CELLS, slot * h[o.CELLS_PER_SLOT] * watch.CELL)
    for at in range(offset, offset + nbytes, size):
        if known[at] == 2:
            cell = (at >> h[o.SHARED_SHIFT]) * watch.CELL
            other_where = o.nb.int64(cells[cell + o.WHERE])
            other = o.nb.int64(cells[cell + o.THREAD])
            _report(h, K_COPY, where, at, thread, size, o.SHARED, other_where, other)


@o.inlined
def _lane(
    h: Any, c: Any, s: o.Sight, thread: int, memory: int, base: int, address: int, values: int,
    where: int, size: int, count: int, space: int, what: int, how: int,
) -> None:  # fmt: skip
    """One lane's access, inside its memory. Stores are done here already, so that the next lane
    sees them."""
    nbytes = size * count
    offset = address - base
    reads = watch.LOAD <= what <= watch.STRONG_LOAD
    if space == o.SHARED:
        known = o.octets(h[o.KNOWN] + s.slot * c[o.C_SHARED_BYTES])
    elif space == o.LOCAL:
        place = s.slot * h[o.WARPS] * 32 + thread - s.block
        known = o.octets(h[o.LOCAL_KNOWN] + place * h[o.LOCAL_BYTES])
        if _copied(h, known, place, offset, nbytes, size, where, what):
            return
    else:
        known = o.octets(h[o.GLOBAL_KNOWN])
    if reads or what == watch.ATOMIC:
        # Copies of structs read the holes between their members, in parts of words too.
        units = 1 if space == o.LOCAL and size < 4 else count
        unit = nbytes if units == 1 else size
        for e in range(units):
            at = offset + e * unit
            if _uninitialised(known, at, unit, space == o.LOCAL):
                gone = o.longs(h, o.MEETINGS, 3 * s.slot * BARRIERS)[2] * (space == o.SHARED)
                _report(h, K_INIT, where, base + at, thread, size, space, old=gone)
    if space == o.SHARED and h[o.PENDING]:
        _unfinished(h, s.slot, known, offset, nbytes, thread, where, size)
    if not reads:
        for byte in range(nbytes):
            known[offset + byte] = 2 if what == watch.COPY else 1
    if space == o.LOCAL:
        return
    if what == watch.COPY:
        _pend(h, c, s, thread, offset, nbytes, where)
    if what >= watch.RETRIED_LOAD:
        place = address if space == o.GLOBAL else LOCKS_OF_SHARED + s.slot * (1 << 20) + address
        o.remember(h, thread, place, s.epoch, reads, how)
    for e in range(count):
        _element(h, s, thread, memory + offset + e * size, offset + e * size, address + e * size,
                 values + 32 * e * size, where, size, space, what)  # fmt: skip


@o.inlined
def _element(
    h: Any, s: o.Sight, thread: int, memory: int, offset: int, address: int, value: int, where: int,
    size: int, space: int, what: int,
) -> None:  # fmt: skip
    """One element of a lane's access, cell by cell; ``memory`` and ``value`` are where it is and
    what a store gives it."""
    shift = h[o.SHARED_SHIFT] if space == o.SHARED else h[o.GLOBAL_SHIFT]
    cells = o.ints(h, o.CELLS if space == o.SHARED else o.GLOBAL_CELLS)
    start = s.slot * h[o.CELLS_PER_SLOT] * watch.CELL if space == o.SHARED else 0
    strong, reads = what >= watch.RETRIED_LOAD, watch.LOAD <= what <= watch.STRONG_LOAD
    stores = what in (watch.STORE, watch.COPY, watch.STRONG_STORE)
    old = new = o.nb.int64(0)
    if not reads:
        old = _number(memory, size)
        new = _number(value, size) if stores else old
    for part in range(size >> shift):
        cell = start + ((offset >> shift) + part) * watch.CELL
        if reads:
            _read(h, s, cells, cell, thread, where, what, space, address, memory, size)
            continue
        bits = 8 << shift
        same = stores and not (old ^ new) >> bits * part & (1 << bits) - 1
        _written(h, s, cells, cell, thread, where, strong, same, space, address, old, new, size)
        if stores:
            h[o.CHANGES] += not same
        else:
            there = o.nb.int32(old & 0x7FFFFFFF)
            h[o.CHANGES] += cells[cell + FOUND_THERE] != there
            cells[cell + FOUND_THERE] = there
    for byte in range(size if stores else 0):
        o.octets(memory)[byte] = new >> 8 * byte


_long: Any = o.types.CPointer(o.types.int64)
_i64, _u32 = o.types.int64, o.types.uint32


def entry(*types_: Any) -> Callable[[Callable[..., Any]], Any]:
    """A function that generated code calls; the first type is that of the result."""
    made: Callable[[Callable[..., Any]], Any] = o.nb.cfunc(types_[0](*types_[1:]), cache=True)
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
        h, c, w = o.carray(state, HEADER), o.carray(context, 64), o.carray(warp, 16)
        lanes, s = o.nb.int64(some), o.sight(h, c, w)
        h[o.TIME] += 1
        h[o.POLLS] += what % watch.RELEASES >= watch.RETRIED_LOAD
        addresses = o.carray(addresses_p, 32)
        first = s.block + 32 * s.warp
        base = GLOBAL_BASE if space == o.GLOBAL else 0
        extent = o.longs(h, o.EXTENTS, 2 * where)
        good = 0
        for lane in range(32):
            if not lanes >> lane & 1:
                continue
            address, thread = addresses[lane], first + lane
            nbytes = size * count
            inside = _in_bounds(h, c, space, address, nbytes)
            if not inside or (space != o.GLOBAL and not extent[0] <= address <= extent[1] - nbytes):
                _report(h, K_BOUNDS, where, address, thread, nbytes, space)
            if inside and address & (nbytes - 1):
                _report(h, K_ALIGN, where, address, thread, nbytes, space)
            elif inside:
                good |= 1 << lane
                _lane(h, c, s, thread, memory, base, address, values + lane * size, where, size,
                      count, space, what % watch.RELEASES, what // watch.RELEASES)  # fmt: skip
        return good

    @entry(o.types.void, _long, _long, _long, _u32, _i64, _i64, _i64)
    def barrier(
        state: Any, context: Any, warp_p: Any, some: Any, number: Any, where: Any, how: Any
    ) -> None:
        if not stamp:
            return
        h, c, w = o.carray(state, HEADER), o.carray(context, 64), o.carray(warp_p, 16)
        s, lanes = o.sight(h, c, w), o.nb.int64(some)
        slot, warp, warps = s.slot, s.warp, h[o.WARPS]
        if how >= watch.FENCE:
            h[o.TIME] += 1
            for lane in range(32):
                thread = s.block + 32 * warp + lane
                if lanes >> lane & 1 and how == watch.FENCE:
                    o.fences(h, thread)[number:2] = h[o.TIME]
                elif lanes >> lane & 1 and how == watch.COMMIT:
                    _pending(h, s, thread)[0] += 1
                elif lanes >> lane & 1:
                    _finish(h, c, s, thread, _pending(h, s, thread)[0] - number)
            return
        if how >= watch.MEET:
            matrix = 2 * (slot * warps + warp)
            if how == watch.MEET:
                o.join(o.ints(h, o.LANES, matrix * 1024), lanes)
            o.join(o.ints(h, o.LANES, (matrix + 1) * 1024), lanes)
            return
        epochs = o.ints(h, o.EPOCHS, (slot * warps + warp) * warps)
        joins = o.ints(h, o.JOINS, (slot * BARRIERS + number) * warps)
        meeting = o.longs(h, o.MEETINGS, 3 * (slot * BARRIERS + number))
        if how != watch.RESUME:
            if where >= 0:
                first = 0
                while not lanes >> first & 1:
                    first += 1
                thread = s.block + 32 * warp + first
                if not meeting[0]:
                    meeting[0], meeting[1] = where + 1, thread
                elif meeting[0] != where + 1:
                    at, whom = meeting[0] - 1, meeting[1]
                    _report(h, K_BARRIER, where, o.ZERO, thread, o.ONE, o.ZERO, at, whom)
            for other in range(warps):
                joins[other] = max(joins[other], epochs[other])
        else:
            for other in range(warps):
                epochs[other] = max(joins[other], epochs[other])
            h[o.CHANGES] += 1
            alive = o.longs(c, o.C_SLOTS, slot * c[o.C_SLOT_STRIDE] // 8)[S_ALIVE]
            meeting[0], meeting[2] = 0, h[o.THREADS] - alive
        if how != watch.ARRIVE:
            epochs[warp] += 1

    return access, barrier


SOURCES: Final = "".join(map(inspect.getsource, (watch, layout, o)))
"""Everything that other files define."""
access, barrier = _entries(1 + zlib.crc32(SOURCES.encode()))
"""``access``: an access by ``lanes``; gives those of them that are inside memory and aligned.
``barrier``: ``how`` is what happens at barrier ``number``, one of ``codegen.watch``'s;
``where`` the instruction at which all threads of the block must meet, or -1."""
