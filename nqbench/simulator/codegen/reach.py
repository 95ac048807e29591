"""From addresses to places: bounds, alignment and counting of one warp-wide access.

Every access is checked in every lane. A rotation by the access's size turns both tests into one
comparison: an address that is not aligned gets its low bits moved to the top and so is too large.
"""

from __future__ import annotations

from dataclasses import dataclass

from nqbench.simulator import ir, layout
from nqbench.simulator.codegen import caches
from nqbench.simulator.codegen.writer import LEAST, AccessSite, KernelWriter
from nqbench.simulator.ir import I32, I64, V32, V64, Fields, Function, Module, Value, const
from nqbench.simulator.ptx import ATOMICS, Instruction
from nqbench.simulator.rules import AccessKind, SectorRules

WORD = 4


@dataclass(frozen=True, slots=True)
class SpaceAccess:
    """What an instruction accesses in one memory space: ``count`` elements of ``bits`` for each
    lane, side by side from its ``address`` there (<32 x i32> or <32 x i64>)."""

    i: Instruction
    space: str
    address: Value
    bits: int
    count: int

    @property
    def nbytes(self) -> int:
        return self.bits // 8 * self.count

    @property
    def log(self) -> int:
        return self.nbytes.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Places:
    """Where an access goes.

    ``pieces``  per element, the pointers (<32 x ptr>) of its parts, lowest first
    ``bits``    size of a part
    ``offset``  shared memory only: byte offset (<32 x i32>)
    """

    pieces: list[list[Value]]
    bits: int
    offset: Value | None = None


def _rotated(f: Function, value: Value, log: int) -> Value:
    return f.intrinsic("fshr", value, value, const(value.type, log)) if log else value


def _short(k: KernelWriter, a: SpaceAccess) -> Value:
    """A 64-bit address inside shared or local memory as 32 bits; fails if it does not fit."""
    if a.address.type == V32:
        return a.address
    high = k.f.nonzero(k.f.op("lshr", a.address, const(V64, 32)))
    bad = k.f.as_bits(k.f.and_(high, k.active))
    k.fault_if(layout.Fault.OUT_OF_BOUNDS, bad, a.i, a.address)
    return k.f.resize(a.address, 32)


def shared(
    k: KernelWriter, a: SpaceAccess, site: AccessSite | None, broadcast: bool = True
) -> Places:
    """Shared memory: check, count the passes through the banks (unless the access is merged into
    another), find the places."""
    f = k.f
    offset = _short(k, a)
    index = _rotated(f, offset, a.log)
    size = f.resize(k.number(layout.Context.SHARED_BYTES), 32)
    limit = f.splat(f.op("lshr", size, const(I32, a.log)))
    bad = f.and_(k.active, f.compare("uge", index, limit))
    k.fault_if(layout.Fault.OUT_OF_BOUNDS, f.as_bits(bad), a.i, offset)
    words = _words(f, offset, index, a)
    if site is not None:
        counted = words
        if wide := k.assembled.wide.get(a.i):  # the words of all that are merged into it
            first = f.add(words[0], const(V32, wide.shift // WORD))
            counted = [f.add(first, const(V32, j)) for j in range(wide.nbytes // WORD)]
        passes = k.rules.shared(f, counted, k.lanes, broadcast)
        k.tally(site, "passes", passes.taken)
        if passes.least is not None:
            k.tally(site, LEAST, passes.least)
    base = k.pointer(layout.Warp.SHARED)
    start = f.op("mul", index, const(V32, a.count)) if a.count > 1 else index
    pieces = [
        [f.offset(base, f.add(start, const(V32, e)) if e else start, f"i{a.bits}")]
        for e in range(a.count)
    ]
    return Places(pieces, a.bits, offset)


def _words(f: Function, offset: Value, index: Value, a: SpaceAccess) -> list[Value]:
    """The 4-byte words of every lane's access, at byte ``offset`` and the ``index``-th of its size:
    one, or as many as the access is wide."""
    if a.nbytes < WORD:
        return [f.op("lshr", offset, const(V32, 2))]
    per = a.nbytes // WORD
    first = f.op("mul", index, const(V32, per)) if per > 1 else index
    return [f.add(first, const(V32, j)) if j else first for j in range(per)]


def local(k: KernelWriter, a: SpaceAccess, site: AccessSite) -> Places:
    """Local memory: word w of lane l lies at word 32 w + l of the warp's local memory."""
    f = k.f
    offset = _short(k, a)
    index = _rotated(f, offset, a.log)
    limit = const(V32, k.layout.local_bytes >> a.log)
    bad = f.and_(k.active, f.compare("uge", index, limit))
    k.fault_if(layout.Fault.OUT_OF_BOUNDS, f.as_bits(bad), a.i, offset)
    base = f.offset(k.warp, k.layout.local)
    lane = ir.lanes_of(V32, list(range(ir.LANES)))
    slots = sectors = lines = const(I32, 0)
    places = []
    rows = list(_words(f, offset, index, a))
    for row in rows:
        found = k.rules.local(f, row, k.lanes)
        sectors, slots = f.add(sectors, found.sectors), f.add(slots, found.passes)
        lines = lines if found.lines is None else f.add(lines, found.lines)
        places.append(f.add(f.op("shl", row, const(V32, 5)), lane))
    if k.rules.caches:
        way = AccessKind.LOCAL_STORE if a.i.opcode == "st" else AccessKind.LOCAL_LOAD
        words = k.layout.local_bytes // WORD
        with caches.depth_counted(f, k.context, k.counter(site, "from_l2")):
            for row in rows:
                caches.local_access(f, k.context, k.warp, row, words, k.lanes, way)
    k.tally(site, "sectors", sectors)
    k.tally(site, "passes", slots)
    if k.rules.timed:
        k.tally(site, "lines", lines)
    if a.bits < 32:
        within = f.and_(offset, const(V32, WORD - 1))
        pieces = []
        for e in range(a.count):
            word, byte = divmod(e * a.bits // 8, WORD)
            at = f.add(f.op("shl", places[word], const(V32, 2)), within)
            pieces.append([f.offset(base, f.add(at, const(V32, byte)), ir.I8)])
        return Places(pieces, a.bits)
    pointers = [f.offset(base, place, I32) for place in places]
    per_element = max(a.bits // 32, 1)
    pieces = [pointers[e * per_element : (e + 1) * per_element] for e in range(a.count)]
    return Places(pieces, 32)


def global_(k: KernelWriter, a: SpaceAccess, site: AccessSite | None) -> Places:
    """Global memory (and constants, which are not counted). ``k.lanes`` must not be empty.

    All lanes are checked against the buffer of the first; only if some are outside it, each is
    checked against its own."""
    f = k.f
    address = f.resize(a.address, 64)
    counters = ir.NULL if site is None else k.counter(site, "passes")
    how = AccessKind.LOAD if {"cg", "cv"}.isdisjoint(a.i.modifiers) else AccessKind.UNCACHED_LOAD
    if a.i.opcode in ATOMICS:
        how = AccessKind.ATOMIC
    elif a.i.opcode == "st":
        how = AccessKind.STORE
    log, way = const(I64, a.log), const(I64, how)
    bad = f.call(I32, "sim_global", k.context, k.warp, address, k.lanes, log, way, counters)
    k.fault_if(layout.Fault.OUT_OF_BOUNDS, bad, a.i, address)
    memory = k.pointer(layout.Context.GLOBAL)
    pieces = [
        [f.offset(f.offset(memory, e * a.bits // 8 - layout.GLOBAL_BASE), address)]
        for e in range(a.count)
    ]
    return Places(pieces, a.bits)


def define_global(module: Module, rules: SectorRules) -> None:
    """``sim_global``: check and count an access to global memory by ``lanes`` (not empty).

    Returns the lanes that are outside every buffer or misaligned. All lanes are checked against
    the buffer of the first; only if some are outside it, each is checked against its own.
    ``counters`` is the place of the site's ``passes`` and ``sectors``, or null."""
    parameters = (
        f"ptr context, ptr warp, {V64} addresses, i32 lanes, i64 log, i64 way, ptr counters"
    )
    f = Function(module, f"i32 sim_global({parameters}) noinline nounwind")
    context, warp, addresses, lanes, log, way, counters = f.parameters
    fields = Fields(f, context)
    inside = f.sub(addresses, const(V64, layout.GLOBAL_BASE))
    with f.when(f.compare("ne", counters, ir.NULL), likely=True):
        found = rules.traffic(f, inside, lanes, log, way)
        f.bump(counters, found.passes)
        f.bump(f.offset(counters, 8), found.sectors)
        if found.lines is not None:
            f.bump(f.offset(counters, 16), found.lines)
        if rules.caches:
            with caches.depth_counted(f, context, f.offset(counters, 24)):
                caches.global_access(f, context, warp, inside, lanes, way)
    low, high = _bounds(f, fields, f.extract(inside, f.lowest(lanes)))
    offset = f.sub(inside, f.splat(low))
    index = f.intrinsic("fshr", offset, offset, f.splat(log))
    limit = f.op("lshr", f.sub(high, low), log)
    outside = f.compare("uge", index, f.splat(limit))
    bad = f.as_bits(f.and_(f.as_lanes(lanes), outside))
    with f.when(f.nonzero(bad), likely=False):
        size = f.op("shl", const(I64, 1), log)
        f.leave(f.call(I32, "sim_outside", context, addresses, bad, size))
    f.ret(const(I32, 0))


def _bounds(f: Function, fields: Fields, inside: Value) -> tuple[Value, Value]:
    """Where the buffer of an offset into global memory begins and ends; of none both are 0."""
    page = f.op("lshr", inside, const(I64, layout.PAGE_BITS))
    page = f.select(f.compare("ult", page, fields.get(layout.Context.PAGES)), page, const(I64, 0))
    low, high = (
        f.load(I64, f.offset(f.pointer(fields.get(table)), page, I64), 8)
        for table in (layout.Context.PAGE_LOW, layout.Context.PAGE_HIGH)
    )
    return low, high


def define_outside(module: Module) -> None:
    """``sim_outside``: which of the lanes are not inside a buffer or not aligned, one by one."""
    parameters = f"ptr context, {V64} addresses, i32 lanes, i64 size"
    f = Function(module, f"i32 sim_outside({parameters}) noinline nounwind")
    context, addresses, lanes, size = f.parameters
    result = f.zeroed(I32)
    with f.each_of(lanes, addresses) as (lane, address):
        inside = f.sub(address, const(I64, layout.GLOBAL_BASE))
        low, high = _bounds(f, Fields(f, context), inside)
        at = f.sub(inside, low)
        length = f.sub(high, low)
        short = f.or_(f.compare("ult", length, size), f.compare("ugt", at, f.sub(length, size)))
        askew = f.nonzero(f.and_(at, f.sub(size, const(I64, 1))))
        _set_if(f, result, lane, f.or_(short, askew))
    f.ret(f.load(I32, result, 4))


UNWRITTEN_WORD = int.from_bytes(bytes([layout.UNWRITTEN_BYTE] * WORD), "little")


def _suspicious(k: KernelWriter, values: list[Value]) -> Value:
    """Lanes (<32 x i1>) where a word has the pattern of unwritten memory."""
    found = const(ir.MASK, 0)
    for value in values:
        words = [value]
        if value.type == V64:
            words = [k.f.resize(value, 32), k.f.resize(k.f.op("lshr", value, const(V64, 32)), 32)]
        for word in words:
            found = k.f.or_(found, k.f.compare("eq", word, const(V32, UNWRITTEN_WORD)))
    return k.f.and_(found, k.active)


def check_written(k: KernelWriter, a: SpaceAccess, found: Places, values: list[Value]) -> None:
    """Stop if a lane read shared memory that nothing was ever stored to."""
    if k.watched:
        return  # the watcher has seen the access already
    f, exact = k.f, k.exact_shadow
    suspects = k.lanes if exact else f.as_bits(_suspicious(k, values))
    assert found.offset is not None
    with f.when(f.nonzero(suspects), likely=None if exact else False):
        shadow = k.pointer(layout.Warp.SHADOW)
        name = _unwritten(f.module, a, exact)
        bad = f.call(I32, name, shadow, found.offset, suspects, *(() if exact else values))
        k.fault_if(layout.Fault.UNWRITTEN, bad, a.i, found.offset)


SHADOW_PARAMETERS = f"ptr shadow, {V32} where, i32 lanes"


def _unwritten(module: Module, a: SpaceAccess, exact: bool) -> str:
    """A function that gives the lanes with a byte that was never written; unless ``exact``, given
    the values, those with a word that looks so."""
    name = f"sim_unwritten_{a.count}x{a.bits}"
    if name in module.functions:
        return name
    elements = [] if exact else [f"{ir.vector(f'i{a.bits}')} value{e}" for e in range(a.count)]
    parameters = ", ".join([SHADOW_PARAMETERS, *elements])
    f = Function(module, f"i32 {name}({parameters}) {'' if exact else 'cold '}noinline nounwind")
    shadow, _, _, *values = f.parameters
    copies = [f.spilled(value) for value in values]
    bad, size = f.zeroed(I32), a.bits // 8
    with f.each_of(*f.parameters[2:0:-1]) as (lane, where):
        start, missing = f.resize(where, 64), const("i1", 0)
        for byte in range(0, a.nbytes, 1 if exact else WORD):
            mark = f.load(ir.I8, f.offset(shadow, f.add(start, const(I64, byte))))
            none = f.compare("eq", mark, const(ir.I8, 0))
            if copies:
                place = f.op("mul", lane, const(I32, size // WORD))
                place = f.add(place, const(I32, byte % size // WORD))
                word = f.load(I32, f.offset(copies[byte // size], place, I32), 4)
                none = f.and_(none, f.compare("eq", word, const(I32, UNWRITTEN_WORD)))
            missing = f.or_(missing, none)
        _set_if(f, bad, lane, missing)
    f.ret(f.load(I32, bad, 4))
    return name


def _set_if(f: Function, bits: Value, lane: Value, condition: Value) -> None:
    bit = f.op("shl", f.cast("zext", condition, I32), lane)
    f.store(f.or_(f.load(I32, bits, 4), bit), bits, 4)


def note_written(k: KernelWriter, a: SpaceAccess, found: Places, values: list[Value]) -> None:
    """Tell the shadow about a store to shared memory (only of the pattern, unless exact)."""
    if k.watched:
        return
    lanes = k.lanes if k.exact_shadow else k.f.as_bits(_suspicious(k, values))
    with k.f.when(k.f.nonzero(lanes), likely=False if not k.exact_shadow else None):
        mark_written(k, a, found, lanes)


def mark_written(k: KernelWriter, a: SpaceAccess, found: Places, lanes: Value) -> None:
    """Set the shadow of what these lanes access."""
    assert found.offset is not None
    name = f"sim_mark_{a.nbytes}"
    if name not in k.f.module.functions:
        f = Function(k.f.module, f"void {name}({SHADOW_PARAMETERS}) noinline nounwind")
        with f.each_of(*f.parameters[2:0:-1]) as (_, start):
            ones = const(f"i{8 * a.nbytes}", int.from_bytes(b"\1" * a.nbytes, "little"))
            f.store(ones, f.offset(f.parameters[0], f.resize(start, 64)))
        f.ret()
    k.f.call("void", name, k.pointer(layout.Warp.SHADOW), found.offset, lanes)
