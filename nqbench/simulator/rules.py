"""Memory rules: how many passes and transactions a warp's access takes, as generated code.

One class per generation, chosen by ``Model.memory["rules"]``. What they state is the CUDA C
Programming Guide's: version 4.2, appendix F.3 (compute capability 1.x), F.4 (2.x) and F.5 (3.0);
for 7.x and later the current guide ("Shared Memory") and the profiler's definition of requests and
sectors. docs/simulator.md has them in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from nqbench.errors import DeviceError
from nqbench.simulator import ir
from nqbench.simulator.ir import I32, I64, LANES, V32, V64, Function, Value, const, lanes_of

SECTOR_BITS: Final = 5
LINE_BITS: Final = 7
MAX_SHARED_BYTES: Final = 4 * ((1 << 16) - 64)
"""Word numbers of shared memory are compared as 16 bits, some of which mark inactive lanes."""

SECTORS_PER_SLOT: Final = 4
"""Sectors that one issue slot moves: a 128-byte line, the unit of the L1's tag stage."""


AccessKind = IntEnum(
    "AccessKind", "LOAD LOCAL_LOAD LOCAL_STORE UNCACHED_LOAD STORE ATOMIC", start=0
)
"""How an access goes off the chip. The first three may be served by an L1 cache."""


@dataclass(frozen=True, slots=True)
class Passes:
    """What an access to shared memory takes: passes through the banks (i32), and the fewest that
    any access of its width by these lanes takes (i32; ``None`` for one, the usual case)."""

    taken: Value
    least: Value | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """What an access to global or local memory takes: issue slots, the 32-byte sectors that its
    transactions move, and the lines of 128 bytes that these lie in, where L1 takes an access line
    by line (all i32)."""

    passes: Value
    sectors: Value
    lines: Value | None = None


class SectorRules:
    """32 banks of 4 bytes; lanes that read the same word share a pass; 64-bit accesses go by half
    warps and 128-bit accesses by quarter warps, unless they merge (``_wide``); 32-byte sectors off
    the chip.

    Methods emit the code that counts one access; ``lanes`` (i32) is the mask of who takes part.
    """

    transactions: ClassVar = "sectors"
    """Which count of a site is its transactions off the chip."""

    merges: ClassVar = True
    """Whether parts of a warp may share the passes of wide accesses."""

    fills_lines: ClassVar = False
    """Whether a miss in L1 fetches the whole line of 128 bytes, not only the sectors asked for."""

    writes_back: ClassVar = False
    """Whether L1 keeps what is stored to local memory until the line has to go."""

    banks: ClassVar = LANES
    """Of shared memory; their words have 4 bytes."""

    def __init__(self, *, caches: bool, l1_holds_global: bool, timed: bool) -> None:
        self.caches, self.timed = caches, timed
        self.l1_holds_global = l1_holds_global

    def define(self, module: ir.Module) -> None:
        """Write the functions that the other methods call into the kernels' common module."""
        for write in (_conflicts, _crowding, _sectors, _spread):
            write(module)
        for parts in (2, 4) if self.merges else ():
            self._wide(module, parts)

    def shared(self, f: Function, words: list[Value], lanes: Value, broadcast: bool) -> Passes:
        """Passes through the banks. ``words[j]`` holds the index of each lane's j-th 4-byte word;
        ``broadcast`` is whether lanes that want the same word share a pass."""
        parts = len(words)
        if parts == 1:
            return Passes(self._passes(f, words[0], lanes, broadcast))
        if broadcast and self.merges:
            both = f.call(I64, f"sim_wide_{parts}", words[0], lanes)
            return Passes(f.resize(f.op("lshr", both, const(I64, 32)), 32), f.resize(both, 32))
        total = least = const(I32, 0)
        for part in range(parts):
            taken, one = self._part(f, words, lanes, part, broadcast)
            total, least = f.add(total, taken), f.add(least, one)
        return Passes(total, least)

    def _part(
        self, f: Function, words: list[Value], lanes: Value, part: int, broadcast: bool
    ) -> tuple[Value, Value]:
        """Passes of a half or quarter warp, and whether it has lanes (both i32)."""
        share = LANES // len(words)
        places = list(range(part * share, (part + 1) * share))
        bits = f.resize(f.op("lshr", lanes, const(I32, part * share)), share)
        picked = [f.shuffle(w, w, places) for w in words]
        return self._side_by_side(f, picked, bits, broadcast), _some(f, bits)

    def _side_by_side(self, f: Function, words: list[Value], bits: Value, broadcast: bool) -> Value:
        """Passes of some lanes with several words each: 32 places in all. ``bits`` has one bit for
        each of the lanes."""
        lanes = f.resize(bits, 32)
        while len(words) > 1:
            width = int(words[0].type[1:].split()[0])
            lanes = f.or_(lanes, f.op("shl", lanes, const(I32, width)))
            words = [
                f.shuffle(a, b, list(range(2 * width)))
                for a, b in zip(words[::2], words[1::2], strict=True)
            ]
        return self._passes(f, words[0], lanes, broadcast)

    def _wide(self, module: ir.Module, parts: int) -> None:
        """``sim_wide_2``, ``sim_wide_4``: passes << 32 | least of reads or writes of 8 or 16 bytes.

        Two half warps (of 8 bytes) or the two quarters of a half warp (of 16) go together if lanes
        i and i ^ 1 always have one address, or lanes i and i ^ 2. No document states this; passes
        recorded on an H200 do (docs/simulator.md)."""
        f = Function(module, f"i64 sim_wide_{parts}({V32} first, i32 lanes) noinline nounwind")
        first, lanes = f.parameters
        active = f.as_lanes(lanes)
        words = [f.add(first, const(V32, j)) for j in range(parts)]
        passes, least = f.zeroed(), f.zeroed()
        alone = []  # active lanes without such a partner
        for distance in (1, 2):
            partner = [lane ^ distance for lane in range(LANES)]
            here = f.compare("eq", first, f.shuffle(first, first, partner))
            paired = f.and_(here, f.shuffle(active, active, partner))
            alone.append(f.as_bits(f.and_(active, f.not_(paired))))
        size = 2 * LANES // parts
        for start in range(0, LANES, size):
            here = const(I32, ((1 << size) - 1) << start)
            near, far = (f.compare("eq", f.and_(bits, here), const(I32, 0)) for bits in alone)
            merged = f.or_(near, far)
            with f.when(merged):
                taken, one = self._merged(f, words, lanes, near, range(start, start + size))
                f.bump(passes, taken)
                f.bump(least, one)
            with f.when(f.not_(merged)):
                for part in (start * parts // LANES, start * parts // LANES + 1):
                    taken, one = self._part(f, words, lanes, part, True)
                    f.bump(passes, taken)
                    f.bump(least, one)
        f.ret(_packed(f, f.load(I64, passes, 8), f.load(I64, least, 8)))

    def _merged(
        self, f: Function, words: list[Value], lanes: Value, near: Value, of: range
    ) -> tuple[Value, Value]:
        """Passes of two parts at once, by one lane of each pair 1 apart (if ``near``) or 2 apart,
        and whether there are lanes."""
        active = f.as_lanes(lanes)
        bits, picked = [], []
        for distance in (1, 2):
            places = [lane for lane in of if not lane & distance]
            bits.append(f.cast("bitcast", f.shuffle(active, active, places), f"i{len(places)}"))
            picked.append([f.shuffle(word, word, places) for word in words])
        chosen = [f.select(near, a, b) for a, b in zip(*picked, strict=True)]
        which = f.select(near, *bits)
        return self._side_by_side(f, chosen, which, True), _some(f, which)

    def _passes(self, f: Function, words: Value, lanes: Value, broadcast: bool) -> Value:
        """One pass if every lane has a bank of its own; otherwise ask the helper."""
        one = const(V32, 1)
        banks = f.op("shl", one, f.and_(words, const(V32, 31)))
        used = f.reduce("or", f.select(f.as_lanes(lanes), banks, const(V32, 0)))
        count = f.popcount(lanes)
        result = f.slot(I32)
        f.store(_some(f, lanes), result, 4)
        with f.when(f.compare("ne", f.popcount(used), count)):
            helper = "sim_conflicts" if broadcast else "sim_crowding"
            f.store(f.call(I32, helper, words, lanes), result, 4)
        return f.load(I32, result, 4)

    def traffic(self, f: Function, offsets: Value, lanes: Value, log: Value, way: Value) -> Traffic:  # noqa: ARG002
        """Of an access to global memory: ``offsets`` (<32 x i64>) are the lanes' addresses less a
        multiple of every segment, ``1 << log`` (i64) the bytes that each accesses, ``way`` (i64) is
        a ``AccessKind``."""
        sectors = f.resize(f.op("lshr", offsets, const(V64, SECTOR_BITS)), 32)
        return self._of_sectors(f, sectors, lanes)

    def local(self, f: Function, row: Value, lanes: Value) -> Traffic:
        """Of an access to one 4-byte word of local memory per lane; ``row`` (<32 x i32>) is which
        word. Word w of lane l lies at byte 128 w + 4 l."""
        group = lanes_of(V32, [lane >> 3 for lane in range(LANES)])
        return self._of_sectors(f, f.add(f.op("shl", row, const(V32, 2)), group), lanes)

    def _of_sectors(self, f: Function, numbers: Value, lanes: Value) -> Traffic:
        """Of the sector that each lane touches."""
        sectors = f.call(I32, "sim_sectors", numbers, lanes)
        spare = const(I32, SECTORS_PER_SLOT - 1)
        slots = f.op("udiv", f.add(sectors, spare), const(I32, SECTORS_PER_SLOT))
        if not self.timed:
            return Traffic(slots, sectors)
        lines = f.op("lshr", numbers, const(V32, LINE_BITS - SECTOR_BITS))
        return Traffic(slots, sectors, f.call(I32, "sim_sectors", lines, lanes))


class SegmentRules(SectorRules):
    """Rules by which the lanes of a part of the warp share the transactions of segments. A
    transaction takes an issue slot, and moves the segment or as much as is used of it."""

    transactions: ClassVar = "passes"
    merges: ClassVar = False

    def define(self, module: ir.Module) -> None:
        super().define(module)
        parameters = f"{V64} offsets, i32 lanes, i64 log, i64 way"
        f = Function(module, f"i64 sim_traffic({parameters}) noinline nounwind")
        self.count(f, *f.parameters)

    def count(self, f: Function, offsets: Value, lanes: Value, log: Value, way: Value) -> None:
        """The body of ``sim_traffic``: returns passes << 32 | sectors."""
        raise NotImplementedError

    def traffic(self, f: Function, offsets: Value, lanes: Value, log: Value, way: Value) -> Traffic:
        both = f.call(I64, "sim_traffic", offsets, lanes, log, way)
        return Traffic(f.resize(f.op("lshr", both, const(I64, 32)), 32), f.resize(both, 32))

    def local(self, f: Function, row: Value, lanes: Value) -> Traffic:
        place = lanes_of(V32, [4 * lane for lane in range(LANES)])
        offsets = f.resize(f.add(f.op("shl", row, const(V32, LINE_BITS)), place), 64)
        return SegmentRules.traffic(
            self, f, offsets, lanes, const(I64, 2), const(I64, AccessKind.LOCAL_LOAD)
        )


class HalfWarpStrict(SegmentRules):
    """Compute capability 1.0 and 1.1: a half-warp's access is coalesced only if thread k accesses
    word k of an aligned segment; else every lane has a 32-byte transaction of its own."""

    banks: ClassVar = 16

    def define(self, module: ir.Module) -> None:
        _half_warp(module)
        super().define(module)

    def shared(self, f: Function, words: list[Value], lanes: Value, broadcast: bool) -> Passes:
        """A half-warp at a time, and wider accesses a word at a time (F.3.3)."""
        total = least = const(I32, 0)
        helper = "sim_half_warp" if broadcast else "sim_crowding"
        for half in (0xFFFF, 0xFFFF0000):
            bits = f.and_(lanes, const(I32, half))
            for word in words:
                banks = word if broadcast else f.and_(word, const(V32, 15))
                total = f.add(total, f.call(I32, helper, banks, bits))
                least = f.add(least, _some(f, bits))
        return Passes(total, least)

    def count(self, f: Function, offsets: Value, lanes: Value, log: Value, way: Value) -> None:  # noqa: ARG002
        place = lanes_of(V64, [lane & 15 for lane in range(LANES)])
        bases = f.sub(offsets, f.op("shl", place, f.splat(log)))
        wide = f.compare("uge", log, const(I64, 2))
        # 4-byte words must lie in one 64-byte segment, 8- and 16-byte words in 128-byte segments.
        narrow = f.compare("eq", log, const(I64, 2))
        segment = f.select(narrow, const(I64, 63), const(I64, 127))
        passes = sectors = const(I32, 0)
        for half in (0xFFFF, 0xFFFF0000):
            bits = f.and_(lanes, const(I32, half))
            lowest = f.and_(f.intrinsic("cttz", bits, const("i1", 0)), const(I32, LANES - 1))
            base = f.extract(bases, lowest)
            same = f.as_bits(f.compare("eq", bases, f.splat(base)))
            strangers = f.and_(bits, f.not_(same))
            aligned = f.compare("eq", f.and_(base, segment), const(I64, 0))
            good = f.and_(f.and_(wide, aligned), f.compare("eq", strangers, const(I32, 0)))
            some, count = _some(f, bits), f.popcount(bits)
            short = f.resize(log, 32)
            whole = f.op("lshr", f.op("shl", some, short), const(I32, 1))  # 2, 4, 8 sectors:
            two = f.select(f.compare("eq", log, const(I64, 4)), const(I32, 2), const(I32, 1))
            passes = f.add(passes, f.select(good, f.op("mul", some, two), count))
            sectors = f.add(sectors, f.select(good, whole, count))
        f.ret(_packed(f, passes, sectors))


class HalfWarpSegments(HalfWarpStrict):
    """Compute capability 1.2 and 1.3: one transaction for each segment that a half-warp touches;
    it shrinks from 128 to 64 and 32 bytes where only a half is used (F.3.2.2)."""

    def count(self, f: Function, offsets: Value, lanes: Value, log: Value, way: Value) -> None:  # noqa: ARG002
        # Segments of 32 bytes for 1-byte words, of 64 for 2-byte words, of 128 for wider ones.
        size = f.intrinsic("umin", f.add(log, const(I64, 5)), const(I64, LINE_BITS))
        within = f.splat(
            f.sub(f.op("shl", const(I64, 1), f.sub(size, const(I64, 5))), const(I64, 1))
        )
        sector = f.and_(f.op("lshr", offsets, const(V64, SECTOR_BITS)), within)
        bits = f.op("shl", const(V32, 1), f.resize(sector, 32))
        segments = f.op("lshr", offsets, f.splat(size))
        passes, sectors = f.zeroed(), f.zeroed()
        with each_group(f, _by_part(f, segments, const(I64, 4)), lanes) as (_, members):
            used = f.reduce("or", f.select(f.as_lanes(members), bits, const(V32, 0)))
            places = f.op("shl", f.resize(used, 64), const(I64, 2))
            moved = f.op("lshr", const(I64, _SHRUNK), places)
            f.bump(passes, const(I64, 1))
            f.bump(sectors, f.and_(moved, const(I64, 7)))
        f.ret(_packed(f, f.load(I64, passes, 8), f.load(I64, sectors, 8)))


_SHRUNK: Final = sum(
    (1 if used.bit_count() == 1 else 2 if used in (0b0011, 0b1100) else 4) << 4 * used
    for used in range(1, 16)
)
"""Sectors moved of a 128-byte segment, four bits for each set of sectors that is used."""


class LineRules(SegmentRules):
    """Compute capability 2.x: 128-byte lines through L1, 32-byte segments past it (stores, atomics,
    ``.cg``); local memory is cached. Wide words go by half and quarter warps (F.4.2)."""

    fills_lines: ClassVar = True
    writes_back: ClassVar = True

    def shared(self, f: Function, words: list[Value], lanes: Value, broadcast: bool) -> Passes:
        """As later, but a 128-bit access takes one pass more per quarter warp (F.4.3.2)."""
        found = super().shared(f, words, lanes, broadcast)
        if len(words) < 4 or found.least is None:
            return found
        return Passes(f.add(found.taken, found.least), found.least)

    def count(self, f: Function, offsets: Value, lanes: Value, log: Value, way: Value) -> None:
        cached = f.compare("ult", way, const(I64, AccessKind.UNCACHED_LOAD))
        line, sector = const(I64, LINE_BITS), const(I64, SECTOR_BITS)
        segments = f.op("lshr", offsets, f.splat(f.select(cached, line, sector)))
        wider = f.intrinsic("umax", log, const(I64, 2))
        groups = _by_part(f, segments, f.sub(const(I64, 7), wider))
        passes = f.zeroed()
        with each_group(f, groups, lanes):
            f.bump(passes, const(I64, 1))
        count = f.load(I64, passes, 8)
        shift = f.select(cached, const(I64, LINE_BITS - SECTOR_BITS), const(I64, 0))
        f.ret(_packed(f, count, f.op("shl", count, shift)))


class KeplerRules(LineRules):
    """Compute capability 3.x: as 2.x, but only local memory is cached in L1. Shared memory has
    banks of 8 bytes, with 4-byte words (F.5.3)."""

    def traffic(self, f: Function, offsets: Value, lanes: Value, log: Value, way: Value) -> Traffic:  # noqa: ARG002
        return super().traffic(f, offsets, lanes, log, const(I64, AccessKind.UNCACHED_LOAD))

    def shared(self, f: Function, words: list[Value], lanes: Value, broadcast: bool) -> Passes:
        """What a bank gives in one pass, words i and i + 32 of 64 aligned ones, is numbered as a
        word with that bank's low bits. A wide access fills several banks alike, so that its first
        word tells its passes."""
        row = f.and_(f.op("lshr", words[0], const(V32, 1)), const(V32, -LANES))
        at = f.or_(row, f.and_(words[0], const(V32, LANES - 1)))
        if len(words) < 4:
            return Passes(self._passes(f, at, lanes, broadcast))
        total = least = const(I32, 0)
        for half in (0xFFFF, 0xFFFF0000):
            bits = f.and_(lanes, const(I32, half))
            total = f.add(total, self._passes(f, at, bits, broadcast))
            least = f.add(least, _some(f, bits))
        return Passes(total, least)


def _some(f: Function, bits: Value) -> Value:
    """1 (i32) if any bit is set, else 0."""
    return f.cast("zext", f.nonzero(bits), I32)


def _packed(f: Function, passes: Value, sectors: Value) -> Value:
    return f.or_(f.op("shl", f.resize(passes, 64), const(I64, 32)), f.resize(sectors, 64))


def _by_part(f: Function, segments: Value, shift: Value) -> Value:
    """Segments that are different for lanes whose numbers differ above the low ``shift`` bits."""
    lane = lanes_of(V64, list(range(LANES)))
    part = f.op("lshr", lane, f.splat(shift))
    return f.add(segments, f.op("shl", part, const(V64, 48)))


@contextmanager
def each_group(f: Function, ids: Value, lanes: Value) -> Iterator[tuple[Value, Value]]:
    """Code that runs once for each different id among the lanes, by the lowest lane that has it:
    gives the id and the lanes that share it."""
    with f.while_any(lanes) as (now, left):
        which = f.extract(ids, f.lowest(now))
        members = f.and_(now, f.as_bits(f.compare("eq", ids, f.splat(which))))
        f.store(f.xor(now, members), left, 4)
        yield which, members


def _half_warp(module: ir.Module) -> None:
    """Passes of a half-warp through 16 banks (F.3.3.2). Each serves one word for all lanes that
    want it, and one lane of every other bank. The guide leaves open which word and which lanes:
    here the word of the lowest lane that is left, and the lowest lane of each bank."""
    f = Function(module, f"i32 sim_half_warp({V32} words, i32 lanes) noinline")
    words, lanes = f.parameters
    bank = f.and_(words, const(V32, 15))
    before = const(V32, 0)  # the lower lanes with the same bank
    for lane in range(LANES):
        higher = lanes_of(ir.MASK, [int(other > lane) for other in range(LANES)])
        same = f.compare("eq", bank, f.splat(f.extract(bank, const(I32, lane))))
        hit = f.and_(same, higher)
        before = f.or_(before, f.select(hit, const(V32, 1 << lane), const(V32, 0)))
    passes = f.zeroed()
    with f.while_any(lanes) as (now, left):
        first = f.lowest(now)
        word, of_word = f.extract(words, first), f.extract(bank, first)
        alone = f.compare("eq", f.and_(before, f.splat(now)), const(V32, 0))
        others = f.and_(alone, f.compare("ne", bank, f.splat(of_word)))
        served = f.as_bits(f.or_(others, f.compare("eq", words, f.splat(word))))
        f.store(f.and_(now, f.not_(served)), left, 4)
        f.bump(passes, const(I64, 1))
    f.ret(f.resize(f.load(I64, passes, 8), 32))


def _first_of_kind(f: Function, values: Value, active: Value) -> Value:
    """Mask of lanes whose value no earlier active lane has. Inactive lanes must hold values that
    no active lane has."""
    repeated = const(ir.vector("i1"), 0)
    for distance in range(1, LANES):
        # Lanes before `distance` have no partner; they are compared with a value nobody has.
        nobody = const(values.type, -1)
        places = [LANES if i < distance else i - distance for i in range(LANES)]
        earlier = f.shuffle(values, nobody, places)
        repeated = f.or_(repeated, f.compare("eq", values, earlier))
    return f.and_(active, f.not_(repeated))


def _conflicts(module: ir.Module) -> None:
    """Passes of an access where some bank is wanted twice: for each bank the number of different
    words, and of these the greatest."""
    f = Function(module, f"i32 sim_conflicts({V32} words, i32 lanes) noinline")
    words, lanes = f.parameters
    active = f.as_lanes(lanes)
    unique = lanes_of(ir.V16, [-2 - lane for lane in range(LANES)])
    short = f.select(active, f.resize(words, 16), unique)
    first = _first_of_kind(f, short, active)
    f.ret(f.call(I32, "sim_crowding", words, f.as_bits(first)))


def _crowding(module: ir.Module) -> None:
    """The greatest number of lanes that want the same bank.

    Bit-sliced counters, one per bank and all in parallel: lane i starts as a 32-bit word with its
    bank's bit set; halves of the warp are added like numbers whose digits are whole words."""
    f = Function(module, f"i32 sim_crowding({V32} words, i32 lanes) noinline")
    words, lanes = f.parameters
    bank = f.op("shl", const(V32, 1), f.and_(words, const(V32, 31)))
    digits = [f.select(f.as_lanes(lanes), bank, const(V32, 0))]
    width = LANES
    while width > 1:
        width //= 2
        low = [f.shuffle(d, d, list(range(width))) for d in digits]
        high = [f.shuffle(d, d, list(range(width, 2 * width))) for d in digits]
        carry = const(low[0].type, 0)
        digits = []
        for a, b in zip(low, high, strict=True):
            both = f.xor(a, b)
            digits.append(f.xor(both, carry))
            carry = f.or_(f.and_(a, b), f.and_(carry, both))
        digits.append(carry)
    candidates = const(I32, -1)
    most = const(I32, 0)
    for place in reversed(range(len(digits))):
        planes = f.extract(digits[place], const(I32, 0))
        hit = f.and_(candidates, planes)
        some = f.nonzero(hit)
        candidates = f.select(some, hit, candidates)
        most = f.select(some, f.or_(most, const(I32, 1 << place)), most)
    f.ret(most)


def _sectors(module: ir.Module) -> None:
    """Number of different sectors: within a window of 64 a bit set is enough."""
    f = Function(module, f"i32 sim_sectors({V32} sectors, i32 lanes) noinline")
    sectors, lanes = f.parameters
    active = f.as_lanes(lanes)
    low = f.reduce("umin", f.select(active, sectors, const(V32, -1)))
    distance = f.select(active, f.sub(sectors, f.splat(low)), const(V32, 0))
    near = f.compare("ult", f.reduce("umax", distance), const(I32, 64))
    with f.when(near, likely=True):
        bits = f.op("shl", const(V64, 1), f.resize(distance, 64))
        used = f.reduce("or", f.select(active, bits, const(V64, 0)))
        f.leave(f.resize(f.popcount(used), 32))
    f.ret(f.call(I32, "sim_spread", sectors, lanes))


def _spread(module: ir.Module) -> None:
    """Number of different values among the active lanes, by comparing all pairs."""
    f = Function(module, f"i32 sim_spread({V32} values, i32 lanes) noinline")
    values, lanes = f.parameters
    active = f.as_lanes(lanes)
    unique = lanes_of(V32, [-2 - lane for lane in range(LANES)])
    f.ret(f.popcount(f.as_bits(_first_of_kind(f, f.select(active, values, unique), active))))


RULES: Final[dict[str, type[SectorRules]]] = {
    "half_warp_strict": HalfWarpStrict,
    "half_warp_segments": HalfWarpSegments,
    "lines": LineRules,
    "kepler": KeplerRules,
    "sectors": SectorRules,
}


def memory_rules(memory: Mapping[str, int | str]) -> SectorRules:
    """The rules that a model's ``memory`` section asks for. Raises ``DeviceError``."""
    name = str(memory["rules"])
    rules = RULES[name]
    banks, nbytes, sector = (memory[k] for k in ("shared_banks", "bank_bytes", "sector_bytes"))
    if (banks, nbytes, sector) != (rules.banks, 4, 1 << SECTOR_BITS):
        raise DeviceError(
            f"memory rules {name!r} need {rules.banks} banks of 4 bytes and 32-byte sectors; the"
            f" model has {banks} banks of {nbytes} bytes and {sector}-byte sectors"
        )
    holds = "global" in str(memory.get("l1_holds", "local, global"))
    return rules(caches="cache" in memory, l1_holds_global=holds, timed="time" in memory)
