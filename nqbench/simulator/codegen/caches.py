"""The L1 and L2 caches as generated code: which sectors of an access hit, what goes to the memory.

A cache is an array of sets, a set a record of three vectors with one element per way: the line's
number (0: empty), when it was last used, and its bits: one for each of its four sectors that is
there, and one for each that is newer than the level below. The way least recently used goes first.
docs/simulator.md says what is modelled and what is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from nqbench.simulator import ir
from nqbench.simulator.ir import I32, I64, V32, V64, Fields, Function, Module, Value, const
from nqbench.simulator.layout import Context, Warp
from nqbench.simulator.rules import LINE_BITS, AccessKind, SectorRules, each_group

L1_WAYS: Final = 4
L2_WAYS: Final = 16
HASH: Final = -1640531535
"""Spreads lines over the sets of an L1 of compute capability 7.0 and later, wherever they are: its
associativity is not known, and rows a power of two apart do not throw each other out (matmul with
4 x 4 results a thread reads 256 of them on an H200). It is 2^32 over the golden ratio."""
CONTENDED: Final = 1 << 20
"""Words of global memory whose atomics are counted apart: those 4 MiB apart share a count."""
PIECE_BITS: Final = 9
"""Of neighbouring bytes to which L2 adds whole numbers one after another (2^24 additions to 256
words take 4.3 ms, to two 7.1; NVIDIA H200, 2026-11-23)."""
LOCAL_LINES: Final = 1 << 28
"""Numbers of the lines of local memory start here."""

SECTORS: Final = 4
ALL: Final = (1 << SECTORS) - 1
WARPS: Final = 64
"""Of a multiprocessor: a power of two."""
TURNS: Final = 1 << 31 - 2 * SECTORS
"""Numbers of turns, ``WARPS`` in each round, that the bits of a line have room for."""


CacheCount = IntEnum(
    "CacheCount", "L1_HITS L1_MISSES L2_HITS L2_MISSES READ WRITTEN CLOCK DEPTH END", start=0
)
"""What the caches count, in sectors of 32 bytes (64-bit each). ``DEPTH`` is how far the request
under way has to go: 0 as far as L1, 1 to L2, 2 to the memory."""

Asks = IntEnum("Asks", "READ WRITE BOTH", start=0)
"""What a level asks of the one below."""


def set_bytes(ways: int) -> int:
    """Bytes of one set."""
    return 12 * ways


def define_caches(module: Module, rules: SectorRules) -> None:
    """``sim_cached(context, warp, lines, bits, lanes, way)``: an access by ``lanes`` to a line each
    (<32 x i32>) and in it to the sector whose bit is set in ``bits`` (<32 x i32>)."""
    _level_2(module)
    _level_1(module, rules)
    parameters = f"ptr context, ptr warp, {V32} lines, {V32} bits, i32 lanes, i32 way"
    f = Function(module, f"void sim_cached({parameters}) noinline nounwind")
    context, warp, lines, bits, lanes, way = f.parameters
    fields = Fields(f, context)
    number = f.and_(Fields(f, warp).get(Warp.NUMBER), const(I64, WARPS - 1))
    round_ = f.op("mul", fields.get(Context.ROUND), const(I64, WARPS))
    turn = f.resize(f.add(round_, number), 32)
    size = fields.get(Context.L1_BYTES)
    cache = f.element(fields.get(Context.L1), size, Fields(f, warp).get(Warp.SMID))
    with each_group(f, lines, lanes) as (line, members):
        used = f.reduce("or", f.select(f.as_lanes(members), bits, const(V32, 0)))
        f.call("void", "sim_l1", context, cache, line, used, way, turn)
    f.ret()


@contextmanager
def depth_counted(f: Function, context: Value, counters: Value) -> Iterator[None]:
    """Count at ``counters`` (``from_l2``, ``from_memory``) how far what is done here has to go."""
    counts = Fields(f, f.pointer(Fields(f, context).get(Context.CACHE_COUNTS)))
    counts.set(CacheCount.DEPTH, 0)
    yield
    for level in (1, 2):
        deep = f.compare("uge", counts.get(CacheCount.DEPTH), const(I64, level))
        f.bump(f.offset(counters, 8 * (level - 1)), f.resize(deep, 64))


def local_access(
    f: Function, context: Value, warp: Value, row: Value, rows: int, lanes: Value, way: AccessKind
) -> None:
    """An access to a row of words of the warp's local memory, of which it has ``rows``."""
    number = f.resize(Fields(f, warp).get(Warp.NUMBER), 32)
    first = f.add(f.op("mul", number, const(I32, rows)), const(I32, LOCAL_LINES))
    lines = f.add(row, f.splat(first))
    bits = ir.lanes_of(V32, [1 << (lane >> 3) for lane in range(ir.LANES)])
    f.call("void", "sim_cached", context, warp, lines, bits, lanes, const(I32, way))


def global_access(
    f: Function, context: Value, warp: Value, offsets: Value, lanes: Value, way: Value
) -> None:
    """An access at byte offsets (<32 x i64>) into global memory, the first page of which is empty:
    no line has the number 0."""
    sector = f.resize(f.op("lshr", offsets, const(offsets.type, LINE_BITS - 2)), 32)
    lines = f.op("lshr", sector, const(V32, 2))
    bits = f.op("shl", const(V32, 1), f.and_(sector, const(V32, SECTORS - 1)))
    f.call("void", "sim_cached", context, warp, lines, bits, lanes, f.resize(way, 32))


def define_contended(module: Module) -> None:
    """``sim_contended(context, offsets, lanes, whole)``: an atomic at byte offsets (<32 x i64>) in
    global memory. Counts how often each word is taken; ``whole`` numbers (i32) behind them, by the
    piece of memory, where lanes that all take the same one do it together, as the assembler lets
    them."""
    parameters = f"ptr context, {V64} offsets, i32 lanes, i32 whole"
    f = Function(module, f"void sim_contended({parameters}) noinline nounwind")
    context, offsets, lanes, whole = f.parameters
    counts = f.pointer(Fields(f, context).get(Context.CONTENDED))
    first = f.extract(offsets, f.lowest(lanes))
    others = f.and_(lanes, f.as_bits(f.compare("ne", offsets, f.splat(first))))
    whole = f.nonzero(whole)
    together = f.and_(whole, f.compare("eq", others, const(I32, 0)))
    alone = f.and_(lanes, f.sub(const(I32, 0), lanes))
    shift = f.select(whole, const(I64, PIECE_BITS), const(I64, 2))
    start = f.offset(counts, f.select(whole, const(I64, CONTENDED), const(I64, 0)), I64)
    with f.each_lane(f.select(together, alone, lanes)) as lane:
        place = f.op("lshr", f.extract(offsets, lane), shift)
        f.bump(f.offset(start, f.and_(place, const(I64, CONTENDED - 1)), I64), const(I64, 1))
    f.ret()


class _Level:
    """Finds a line in a cache of ``ways``."""

    def __init__(self, f: Function, context: Value, ways: int, hashed: bool = False) -> None:
        self.f, self.hashed = f, hashed
        self.ways = ways
        self.counts = Fields(f, f.pointer(Fields(f, context).get(Context.CACHE_COUNTS)))

    def find(self, cache: Value, nbytes: Value, line: Value) -> tuple[Value, Value]:
        """The place of the line, or of the one that has to go for it, and whether it is there."""
        f, type_ = self.f, ir.vector(I32, self.ways)
        sets = f.resize(f.op("udiv", nbytes, const(I64, set_bytes(self.ways))), 32)
        mixed = f.op("lshr", f.op("mul", line, const(I32, HASH)), const(I32, 16))
        number = f.resize(f.op("urem", mixed if self.hashed else line, sets), 64)
        at = f.offset(cache, f.op("mul", number, const(I64, set_bytes(self.ways))))
        same = f.compare("eq", f.load(type_, at, 4), f.splat(line, self.ways))
        hits = f.cast("bitcast", same, f"i{self.ways}")
        there = f.nonzero(hits)
        stamps = f.load(type_, f.offset(at, 4 * self.ways), 4)
        oldest = f.splat(f.reduce("umin", stamps), self.ways)
        olds = f.cast("bitcast", f.compare("eq", stamps, oldest), f"i{self.ways}")
        way = f.resize(f.lowest(f.resize(f.select(there, hits, olds), 32)), 64)
        return f.offset(at, way, I32), there

    def touch(self, place: Value) -> None:
        """Make the line at a place the one used last."""
        f = self.f
        now = f.add(self.counts.get(CacheCount.CLOCK), const(I64, 1))
        self.counts.set(CacheCount.CLOCK, now)
        f.store(f.resize(now, 32), f.offset(place, 4 * self.ways), 4)

    def bits(self, place: Value) -> Value:
        """Where the bits of the line at a place are."""
        return self.f.offset(place, 8 * self.ways)

    def deepen(self, depth: Value) -> None:
        """The request has to go as far as ``depth`` (i32)."""
        known = self.counts.get(CacheCount.DEPTH)
        self.counts.set(CacheCount.DEPTH, self.f.intrinsic("umax", known, self.f.resize(depth, 64)))

    def count(self, field: CacheCount, sectors: Value) -> None:
        """Add the number of set bits."""
        self.f.bump(self.counts.place(field), self.f.popcount(sectors))


def _level_2(module: Module) -> None:
    """``sim_l2``: reads and writes of sectors of a line; without an L2 they go to the memory."""
    parameters = "ptr context, i32 line, i32 sectors, i32 asks"
    f = Function(module, f"void sim_l2({parameters}) noinline nounwind")
    context, line, sectors, asks = f.parameters
    level = _Level(f, context, L2_WAYS)
    fields = Fields(f, context)
    size = fields.get(Context.L2_BYTES)
    reads, writes = (f.compare("ne", asks, const(I32, other)) for other in (Asks.WRITE, Asks.READ))
    none = const(I32, 0)
    with f.when(f.compare("eq", size, const(I64, 0))):
        level.count(CacheCount.READ, f.select(reads, sectors, none))
        level.count(CacheCount.WRITTEN, f.select(writes, sectors, none))
        level.deepen(f.select(reads, const(I32, 2), none))
        f.leave()
    place, there = level.find(f.pointer(fields.get(Context.L2)), size, line)
    level.touch(place)
    bits_at = level.bits(place)
    with f.when(f.not_(there)):
        level.count(CacheCount.WRITTEN, f.op("lshr", f.load(I32, bits_at, 4), const(I32, SECTORS)))
        f.store(line, place, 4)
        f.store(none, bits_at, 4)
    bits = f.load(I32, bits_at, 4)
    missing = f.and_(sectors, f.not_(bits))
    level.count(CacheCount.L2_HITS, f.and_(sectors, bits))
    level.count(CacheCount.L2_MISSES, missing)
    level.count(CacheCount.READ, f.select(reads, missing, none))
    far = f.select(f.nonzero(missing), const(I32, 2), const(I32, 1))
    level.deepen(f.select(reads, far, none))
    newer = f.select(writes, f.op("shl", sectors, const(I32, SECTORS)), none)
    f.store(f.or_(f.or_(bits, sectors), newer), bits_at, 4)
    f.ret()


def _level_1(module: Module, rules: SectorRules) -> None:
    """``sim_l1``: an access to sectors of a line by way of a multiprocessor's own cache."""
    parameters = "ptr context, ptr cache, i32 line, i32 sectors, i32 way, i32 turn"
    f = Function(module, f"void sim_l1({parameters}) noinline nounwind")
    context, cache, line, sectors, way, turn = f.parameters
    level = _Level(f, context, L1_WAYS, hashed=not rules.fills_lines)
    size, none = Fields(f, context).get(Context.L1_BYTES), const(I32, 0)
    is_ = {w: f.compare("eq", way, const(I32, w)) for w in AccessKind}
    local = f.or_(is_[AccessKind.LOCAL_LOAD], is_[AccessKind.LOCAL_STORE])
    held = f.or_(local, is_[AccessKind.LOAD]) if rules.l1_holds_global else local
    plain = f.or_(is_[AccessKind.STORE], is_[AccessKind.LOCAL_STORE])
    asks = f.select(plain, const(I32, Asks.WRITE), const(I32, Asks.READ))
    asks = f.select(is_[AccessKind.ATOMIC], const(I32, Asks.BOTH), asks)
    with f.when(f.compare("eq", size, const(I64, 0))):
        f.call("void", "sim_l2", context, line, sectors, asks)
        f.leave()
    place, there = level.find(cache, size, line)
    bits_at = level.bits(place)
    with f.when(f.not_(held)):
        if rules.l1_holds_global:
            # Where lines are filled whole, the line goes (write-evict); elsewhere a store also
            # changes the line that is there.
            stays = const(ir.I1, 0) if rules.fills_lines else is_[AccessKind.STORE]
            with f.when(f.and_(there, f.not_(stays))):
                for part in (place, level.bits(place), f.offset(place, 4 * level.ways)):
                    f.store(none, part, 4)
        f.call("void", "sim_l2", context, line, sectors, asks)
        f.leave()
    level.touch(place)
    with f.when(f.not_(there)):
        old = f.and_(f.op("lshr", f.load(I32, bits_at, 4), const(I32, SECTORS)), const(I32, ALL))
        with f.when(f.nonzero(old)):
            f.call("void", "sim_l2", context, f.load(I32, place, 4), old, const(I32, Asks.WRITE))
        f.store(line, place, 4)
        f.store(const(I32, 0), bits_at, 4)
    bits = f.load(I32, bits_at, 4)
    missing = f.and_(sectors, f.not_(bits))
    level.count(CacheCount.L1_HITS, f.and_(sectors, bits))
    level.count(CacheCount.L1_MISSES, missing)
    # A line that another warp asked for in this round is still on its way.
    filled = f.op("lshr", bits, const(I32, 2 * SECTORS))
    apart = f.op("xor", f.op("lshr", filled, const(I32, 1)), f.and_(turn, const(I32, TURNS - 1)))
    near = f.op("sub", apart, const(I32, 1))  # another warp: neither 0 nor another round
    late = f.compare("ult", near, const(I32, WARPS - 1))
    waits = f.add(f.and_(filled, const(I32, 1)), const(I32, 1))
    level.deepen(f.select(late, waits, none))
    newer = f.op("shl", sectors, const(I32, SECTORS)) if rules.writes_back else none
    with f.when(is_[AccessKind.LOCAL_STORE]):
        f.store(f.or_(f.or_(bits, sectors), newer), bits_at, 4)
        if not rules.writes_back:
            f.call("void", "sim_l2", context, line, sectors, const(I32, Asks.WRITE))
        f.leave()
    with f.when(f.nonzero(missing)):
        wanted = f.and_(const(I32, ALL), f.not_(bits)) if rules.fills_lines else missing
        f.call("void", "sim_l2", context, line, wanted, const(I32, Asks.READ))
        far = f.resize(f.compare("eq", level.counts.get(CacheCount.DEPTH), const(I64, 2)), 32)
        filled = f.or_(f.op("shl", turn, const(I32, 1)), far)
        there_now = f.and_(f.or_(bits, wanted), const(I32, (1 << 2 * SECTORS) - 1))
        f.store(f.or_(there_now, f.op("shl", filled, const(I32, 2 * SECTORS))), bits_at, 4)
    f.ret()
