"""Asynchronous copies from global to shared memory, and the barriers that wait for them.

A copy is done at once; in the checked mode the watcher knows until when it may not be there.
"""

from __future__ import annotations

from nqbench.simulator.codegen import reach, watch
from nqbench.simulator.codegen.memory import address_of, fetch, fetched, stored
from nqbench.simulator.codegen.reach import Places, SpaceAccess, check_written, mark_written
from nqbench.simulator.codegen.writer import Handler, KernelWriter, kinds
from nqbench.simulator.ir import I32, I64, V32, V64, Function, Value, const
from nqbench.simulator.layout import CACHE_LINE, SHARED_WINDOW
from nqbench.simulator.ptx import FAMILIES, Immediate, Instruction, Operand


def copy(k: KernelWriter, i: Instruction) -> None:
    """``cp.async``: from global to shared memory, at once; what waits for it has nothing to do.
    Bytes beyond the optional number of bytes to read become zero."""
    if i.modifiers[:2] == ("async", "mbarrier"):
        watch.at_barrier(k, k.lanes, -1, watch.WAIT)
        if "noinc" in i.modifiers:
            _arrive(k, i, i.operands[0], const(V32, 1))
        return
    if i.modifiers[0] != "async":
        raise k.unsupported(i)
    if "bulk" in i.modifiers:
        _bulk_copy(k, i)
        return
    if "commit_group" in i.modifiers:
        watch.at_barrier(k, k.lanes, 0, watch.COMMIT)
        return
    if "wait_group" in i.modifiers or "wait_all" in i.modifiers:
        left = i.operands[0] if i.operands else Immediate(-1)
        watch.at_barrier(k, k.lanes, left.value if isinstance(left, Immediate) else 0, watch.WAIT)
        return
    f, size = k.f, i.operands[2]
    if not isinstance(size, Immediate):
        raise k.unsupported(i)
    count = size.value // 4
    given = k.read(i.operands[3], 32) if len(i.operands) > 3 else const(V32, size.value)
    reads = f.and_(k.active, f.nonzero(given))
    source = SpaceAccess(i, "global", address_of(k, i.operands[1]), 32, count)
    slots = [f.zeroed(V32) for _ in range(count)]
    site = k.site(i, "global")
    with f.when(f.nonzero(f.as_bits(reads))), k.only(reads), watch.watched(k, source, watch.LOAD):
        k.count(site, k.lanes)
        found = reach.global_(k, source, site)
        for e, slot in enumerate(slots):
            some = f.compare("ult", const(V32, 4 * e), given)
            f.store(f.select(some, fetch(k, found, e), const(V32, 0)), slot, CACHE_LINE)
    place = k.site(i, "shared")
    k.count(place, k.lanes)
    target = SpaceAccess(i, "shared", address_of(k, i.operands[0]), 32, count)
    values = [f.load(V32, slot, CACHE_LINE) for slot in slots]
    with watch.watched(k, target, watch.COPY, values):
        stored(k, target, reach.shared(k, target, place), values)


BULK = {"async", "bulk", "global", "mbarrier::complete_tx::bytes"}


def _bulk_copy(k: KernelWriter, i: Instruction) -> None:
    """``cp.async.bulk`` from global to shared memory: each lane copies its own bytes, 16 at a time,
    and its barrier counts them."""
    where = set(i.modifiers) - BULK
    if where not in ({"shared::cluster"}, {"shared::cta"}) or len(i.operands) != 4:
        raise k.unsupported(i)
    f = k.f
    size = k.read(i.operands[2], 32)
    target, source = (f.resize(address_of(k, operand), 64) for operand in i.operands[:2])
    most = f.reduce("umax", f.select(k.active, size, const(V32, 0)))
    there, here = k.site(i, "global"), k.site(i, "shared")
    with f.counted(f.resize(f.op("lshr", most, const(I32, 4)), 64)) as chunk:
        done = f.splat(f.op("shl", chunk, const(I64, 4)))
        moves = f.and_(k.active, f.compare("ult", f.resize(done, 32), size))
        with k.only(moves):
            k.count(there, k.lanes)
            reads = SpaceAccess(i, "global", f.add(source, done), 32, 4)
            watch.tell(k, reads, watch.LOAD)
            found = reach.global_(k, reads, there)
            values = [fetch(k, found, e) for e in range(4)]
            k.count(here, k.lanes)
            writes = SpaceAccess(i, "shared", f.add(target, done), 32, 4)
            watch.tell(k, writes, watch.STORE, values)
            stored(k, writes, reach.shared(k, writes, here), values)
    _arrive(k, i, i.operands[3], const(V32, 0), f.sub(const(V32, 0), size))


PENDING, COUNT, PHASE, BYTES = 0, 16, 32, 40
"""Bits of an ``mbarrier`` object from which on its parts lie; PTX leaves them to the machine."""


def phase_barrier(k: KernelWriter, i: Instruction) -> None:
    """``mbarrier``: threads arrive and are counted, and bytes that copies bring; a phase ends when
    as many threads have as were set, and all expected bytes are there."""
    f, what = k.f, i.modifiers[0]
    kinds(k, i, FAMILIES["mbarrier"], allow="b")
    if what == "inval":
        return
    if what == "init":
        count = f.resize(k.read(i.operands[1], 32), 64)
        both = f.or_(f.op("shl", count, const(V64, PENDING)), f.op("shl", count, const(V64, COUNT)))
        stored(k, *_object(k, i, i.operands[0], watch.EXCHANGE), [both])
    elif what == "expect_tx":
        _arrive(k, i, i.operands[0], const(V32, 0), k.read(i.operands[1], 32))
    elif what in ("arrive", "arrive_drop"):
        number = k.read(i.operands[2], 32) if len(i.operands) > 2 else const(V32, 1)
        count = const(V32, 1) if "expect_tx" in i.modifiers else number
        nbytes = number if "expect_tx" in i.modifiers else const(V32, 0)
        before = _arrive(k, i, i.operands[1], count, nbytes)
        k.write(i.operands[0], before)
    elif what in ("test_wait", "try_wait"):
        (now,) = fetched(k, *_object(k, i, i.operands[1], watch.STRONG_LOAD))
        if "parity" in i.modifiers:
            waited = f.resize(k.read(i.operands[2], 32), 64)
        else:
            waited = f.op("lshr", k.read(i.operands[2], 64), const(V64, PHASE))
        now, one = f.op("lshr", now, const(V64, PHASE)), const(V64, 1)
        k.write(i.operands[0], f.compare("ne", f.and_(now, one), f.and_(waited, one)))
    else:
        raise k.unsupported(i)


def _object(
    k: KernelWriter, i: Instruction, operand: Operand, what: int
) -> tuple[SpaceAccess, Places]:
    site = k.site(i, "shared")
    k.count(site, k.lanes)
    address = address_of(k, operand)
    if not {"shared", "shared::cta", "shared::cluster"} & set(i.modifiers):
        address = k.f.sub(address, const(V64, SHARED_WINDOW))
    access = SpaceAccess(i, "shared", address, 64, 1)
    watch.tell(k, access, what)
    return access, reach.shared(k, access, site)


def _arrive(
    k: KernelWriter, i: Instruction, operand: Operand, count: Value, nbytes: Value | None = None
) -> Value:
    """Lanes arrive one after the other, and expect bytes (or bring them, if negative); gives what
    each found."""
    f = k.f
    access, found = _object(k, i, operand, watch.ATOMIC)
    check_written(k, access, found, [fetch(k, found, 0)])
    mark_written(k, access, found, k.lanes)
    (pointers,) = found.pieces[0]
    result, expected = f.zeroed(V64), nbytes or const(V32, 0)
    with f.each_of(k.lanes, pointers, count, expected) as (lane, pointer, *both):
        old = f.load(I64, pointer)
        came, more = (f.resize(number, 64) for number in both)
        new = f.add(f.sub(old, came), f.op("shl", more, const(I64, BYTES)))
        if "arrive_drop" in i.modifiers:
            new = f.sub(new, f.op("shl", came, const(I64, COUNT)))
        f.store(_after_arrival(f, new), pointer)
        f.store(old, f.offset(result, lane, I64))
    return f.load(V64, result, CACHE_LINE)


def _after_arrival(f: Function, state: Value) -> Value:
    """The object as it is, or at the start of its next phase."""
    left = f.and_(state, const(I64, 0xFFFF))
    missing = f.op("lshr", state, const(I64, BYTES))
    both = f.op("lshr", state, const(I64, COUNT))
    count = f.and_(both, const(I64, 0xFFFF))
    phase = f.and_(f.add(f.op("lshr", state, const(I64, PHASE)), const(I64, 1)), const(I64, 0xFF))
    fresh = f.or_(count, f.op("shl", count, const(I64, COUNT)))
    fresh = f.or_(fresh, f.op("shl", phase, const(I64, PHASE)))
    return f.select(f.nonzero(f.or_(left, missing)), state, fresh)


COPIES: dict[str, Handler] = {"cp": copy, "mbarrier": phase_barrier}
