"""From addresses to places: bounds, alignment and counting of one warp-wide access.

Every access is checked in every lane. A rotation by the access's size turns both tests into one
comparison: an address that is not aligned gets its low bits moved to the top and so is too large.
"""

from __future__ import annotations

from dataclasses import dataclass

from nqbench.devices.sim.codegen.writer import KernelWriter, Site
from nqbench.devices.sim.faults import Fault
from nqbench.devices.sim.ir import Function
from nqbench.devices.sim.layout import GLOBAL_BASE, PAGE_BITS, Context, Warp
from nqbench.devices.sim.ptx import Instruction
from nqbench.devices.sim.rules import SECTOR_BITS, SECTORS_PER_SLOT
from nqbench.devices.sim.values import I8, I32, I64, LANES, V32, V64, Value, const, lanes_of

WORD = 4


@dataclass(frozen=True, slots=True)
class Span:
    """What each lane accesses: ``count`` elements of ``bits``, side by side."""

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
    ``words``   shared memory only: index of the first 4-byte word (<32 x i32>)
    ``offset``  shared memory only: byte offset (<32 x i32>)
    """

    pieces: list[list[Value]]
    bits: int
    words: Value | None = None
    offset: Value | None = None


def _rotated(f: Function, value: Value, log: int) -> Value:
    return f.intrinsic("fshr", value, value, const(value.type, log)) if log else value


def _short(k: KernelWriter, i: Instruction, address: Value) -> Value:
    """A 64-bit address inside shared or local memory as 32 bits; fails if it does not fit."""
    if address.type == V32:
        return address
    high = k.f.nonzero(k.f.op("lshr", address, const(V64, 32)))
    k.fault_if(Fault.OUT_OF_BOUNDS, k.f.as_bits(k.f.and_(high, k.active)), i, address)
    return k.f.resize(address, 32)


def _wide(k: KernelWriter, offset: Value) -> Value:
    return k.f.resize(offset, 64)


def shared(
    k: KernelWriter, i: Instruction, address: Value, span: Span, site: Site, broadcast: bool = True
) -> Places:
    """Shared memory: check, count the passes through the banks, find the places."""
    f = k.f
    offset = _short(k, i, address)
    index = _rotated(f, offset, span.log)
    size = f.resize(k.number(Context.SHARED_BYTES), 32)
    limit = f.splat(f.op("lshr", size, const(I32, span.log)))
    bad = f.and_(k.active, f.compare("uge", index, limit))
    with f.when(f.nonzero(f.as_bits(bad)), likely=False):
        k.fault_if(Fault.OUT_OF_BOUNDS, f.as_bits(bad), i, _wide(k, offset))
    if span.nbytes >= WORD:
        per = span.nbytes // WORD
        first = f.op("mul", index, const(V32, per)) if per > 1 else index
        words = [f.add(first, const(V32, j)) if j else first for j in range(per)]
    else:
        words = [f.op("lshr", offset, const(V32, 2))]
    passes = k.rules.shared_passes(f, words, k.lanes, broadcast)
    k.tally(site, "passes", passes)
    base = k.pointer(Warp.SHARED)
    start = f.op("mul", index, const(V32, span.count)) if span.count > 1 else index
    pieces = [
        [f.offset(base, f.add(start, const(V32, e)) if e else start, f"i{span.bits}")]
        for e in range(span.count)
    ]
    return Places(pieces, span.bits, words[0], offset)


def local(k: KernelWriter, i: Instruction, address: Value, span: Span, site: Site) -> Places:
    """Local memory: word w of lane l lies at word 32 w + l of the warp's local memory."""
    f = k.f
    offset = _short(k, i, address)
    index = _rotated(f, offset, span.log)
    limit = const(V32, k.layout.local_bytes >> span.log)
    bad = f.and_(k.active, f.compare("uge", index, limit))
    k.fault_if(Fault.OUT_OF_BOUNDS, f.as_bits(bad), i, _wide(k, offset))
    base = f.offset(k.warp, k.layout.local)
    lane = lanes_of(V32, list(range(LANES)))
    group = lanes_of(V32, [lane >> 3 for lane in range(LANES)])
    sector_total = const(I32, 0)
    slots = const(I32, 0)
    if span.nbytes < WORD:
        rows = [f.op("lshr", offset, const(V32, 2))]
    else:
        per = span.nbytes // WORD
        first = f.op("mul", index, const(V32, per)) if per > 1 else index
        rows = [f.add(first, const(V32, j)) if j else first for j in range(per)]
    places = []
    for row in rows:
        sectors = f.add(f.op("shl", row, const(V32, 2)), group)
        found = k.rules.sectors(f, sectors, k.lanes)
        sector_total = f.add(sector_total, found)
        slots = f.add(slots, _slots(f, found))
        places.append(f.add(f.op("shl", row, const(V32, 5)), lane))
    _tally_sectors(k, site, sector_total, slots)
    if span.nbytes < WORD:
        within = f.and_(offset, const(V32, 3))
        byte = f.add(f.op("shl", places[0], const(V32, 2)), within)
        return Places([[f.offset(base, byte, I8)]], span.bits)
    pointers = [f.offset(base, place, I32) for place in places]
    per_element = max(span.bits // 32, 1)
    pieces = [pointers[e * per_element : (e + 1) * per_element] for e in range(span.count)]
    return Places(pieces, 32)


def global_(
    k: KernelWriter, i: Instruction, address: Value, span: Span, site: Site | None
) -> Places:
    """Global memory (and constants, which are not counted). ``k.lanes`` must not be empty.

    All lanes are checked against the buffer of the first; only if some are outside it, each is
    checked against its own."""
    f = k.f
    address = f.resize(address, 64)
    base = const(I64, GLOBAL_BASE)
    first = f.sub(f.extract(address, f.lowest(k.lanes)), base)
    page = f.op("lshr", first, const(I64, PAGE_BITS))
    known = f.compare("ult", page, k.number(Context.PAGES))
    page = f.select(known, page, const(I64, 0))
    low = f.load(I64, f.offset(k.pointer(Context.PAGE_LOW), page, I64), 8)
    high = f.load(I64, f.offset(k.pointer(Context.PAGE_HIGH), page, I64), 8)
    inside = f.sub(address, const(V64, GLOBAL_BASE))
    index = _rotated(f, f.sub(inside, f.splat(low)), span.log)
    limit = f.op("lshr", f.sub(high, low), const(I64, span.log))
    bad = f.as_bits(f.and_(k.active, f.compare("uge", index, f.splat(limit))))
    with f.when(f.nonzero(bad), likely=False):
        size = const(I64, span.nbytes)
        worse = f.call(I32, "sim_outside", k.context, address, bad, size)
        k.fault_if(Fault.OUT_OF_BOUNDS, worse, i, address)
    if site is not None:
        sectors = f.resize(f.op("lshr", inside, const(V64, SECTOR_BITS)), 32)
        found = k.rules.sectors(f, sectors, k.lanes)
        _tally_sectors(k, site, found, _slots(f, found))
    memory = k.pointer(Context.GLOBAL)
    start = f.offset(memory, inside)
    step = span.bits // 8
    pieces = [
        [f.offset(memory, f.add(inside, const(V64, e * step))) if e else start]
        for e in range(span.count)
    ]
    return Places(pieces, span.bits)


def _slots(f: Function, sectors: Value) -> Value:
    """Issue slots that so many sectors take."""
    spare = const(I32, SECTORS_PER_SLOT - 1)
    return f.op("udiv", f.add(sectors, spare), const(I32, SECTORS_PER_SLOT))


def _tally_sectors(k: KernelWriter, site: Site, sectors: Value, slots: Value) -> None:
    k.tally(site, "sectors", sectors)
    k.tally(site, "passes", slots)
