"""Memory rules: how many passes and sectors a warp's access takes, as generated code.

``sectors`` are the rules of compute capability 7.x and later, from the CUDA C++ Programming Guide
("Shared Memory") and the profiler's definition of requests and sectors. An older generation is
another class with the same three methods, chosen by ``Model.memory["rules"]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from nqbench.devices.sim.ir import (
    I32,
    LANES,
    V16,
    V32,
    V64,
    Function,
    Module,
    Value,
    const,
    lanes_of,
    vector,
)
from nqbench.errors import DeviceError

SECTOR_BITS: Final = 5
MAX_SHARED_BYTES: Final = 4 * ((1 << 16) - 64)
"""Word numbers of shared memory are compared as 16 bits, some of which mark inactive lanes."""

SECTORS_PER_SLOT: Final = 4
"""Sectors that one issue slot moves: a 128-byte line, the unit of the L1's tag stage."""


class MemoryRules(Protocol):
    """Emits the code that counts one access; ``lanes`` (i32) is the mask of who takes part."""

    def define(self, module: Module) -> None:
        """Write the functions that the other methods call into the kernels' common module."""

    def shared_passes(
        self, f: Function, words: list[Value], lanes: Value, broadcast: bool
    ) -> Value:
        """Passes through the banks (i32). ``words[j]`` holds the index of each lane's j-th 4-byte
        word; ``broadcast`` is whether lanes that want the same word share a pass."""

    def sectors(self, f: Function, sectors: Value, lanes: Value) -> Value:
        """How many different sectors the lanes' indices (<32 x i32>) name (i32)."""


class SectorRules:
    """32 banks of 4 bytes; lanes that read the same word share a pass; 64-bit accesses go by half
    warps and 128-bit accesses by quarter warps; 32-byte sectors off the chip."""

    def define(self, module: Module) -> None:
        for write in (_conflicts, _crowding, _sectors, _spread):
            write(module)

    def shared_passes(
        self, f: Function, words: list[Value], lanes: Value, broadcast: bool
    ) -> Value:
        parts = len(words)
        if parts == 1:
            return self._passes(f, words[0], lanes, broadcast)
        share = LANES // parts
        total = const(I32, 0)
        for part in range(parts):
            # The lanes of this half or quarter warp, once per word: always 32 places.
            places = list(range(part * share, (part + 1) * share))
            picked = [f.shuffle(w, w, places) for w in words]
            bits = f.resize(f.op("lshr", lanes, const(I32, part * share)), share)
            mask_bits = f.resize(bits, 32)
            while len(picked) > 1:
                width = int(picked[0].type[1:].split()[0])
                mask_bits = f.or_(mask_bits, f.op("shl", mask_bits, const(I32, width)))
                picked = [
                    f.shuffle(a, b, list(range(2 * width)))
                    for a, b in zip(picked[::2], picked[1::2], strict=True)
                ]
            total = f.add(total, self._passes(f, picked[0], mask_bits, broadcast))
        return total

    def _passes(self, f: Function, words: Value, lanes: Value, broadcast: bool) -> Value:
        """One pass if every lane has a bank of its own; otherwise ask the helper."""
        one = const(V32, 1)
        banks = f.op("shl", one, f.and_(words, const(V32, 31)))
        used = f.reduce("or", f.select(f.as_lanes(lanes), banks, const(V32, 0)))
        count = f.popcount(lanes)
        result = f.slot(I32)
        f.store(f.select(f.nonzero(lanes), const(I32, 1), const(I32, 0)), result, 4)
        with f.when(f.compare("ne", f.popcount(used), count)):
            helper = "sim_conflicts" if broadcast else "sim_crowding"
            f.store(f.call(I32, helper, words, lanes), result, 4)
        return f.load(I32, result, 4)

    def sectors(self, f: Function, sectors: Value, lanes: Value) -> Value:
        return f.call(I32, "sim_sectors", sectors, lanes)


def _first_of_kind(f: Function, values: Value, active: Value) -> Value:
    """Mask of lanes whose value no earlier active lane has. Inactive lanes must hold values that
    no active lane has."""
    repeated = const(vector("i1"), 0)
    for distance in range(1, LANES):
        # Lanes before `distance` have no partner; they are compared with a value nobody has.
        nobody = const(values.type, -1)
        places = [LANES if i < distance else i - distance for i in range(LANES)]
        earlier = f.shuffle(values, nobody, places)
        repeated = f.or_(repeated, f.compare("eq", values, earlier))
    return f.and_(active, f.not_(repeated))


def _conflicts(module: Module) -> None:
    """Passes of an access where some bank is wanted twice: for each bank the number of different
    words, and of these the greatest."""
    f = Function("sim_conflicts", I32, [(V32, "words"), (I32, "lanes")], module, "noinline")
    words, lanes = f.parameters
    active = f.as_lanes(lanes)
    unique = lanes_of(V16, [-2 - lane for lane in range(LANES)])
    short = f.select(active, f.resize(words, 16), unique)
    first = _first_of_kind(f, short, active)
    f.ret(f.call(I32, "sim_crowding", words, f.as_bits(first)))


def _crowding(module: Module) -> None:
    """The greatest number of lanes that want the same bank.

    Bit-sliced counters, one per bank and all in parallel: lane i starts as a 32-bit word with its
    bank's bit set; halves of the warp are added like numbers whose digits are whole words."""
    f = Function("sim_crowding", I32, [(V32, "words"), (I32, "lanes")], module, "noinline")
    words, lanes = f.parameters
    bank = f.op("shl", const(V32, 1), f.and_(words, const(V32, 31)))
    digits = [f.select(f.as_lanes(lanes), bank, const(V32, 0))]
    width = LANES
    while width > 1:
        width //= 2
        low = [f.shuffle(d, d, list(range(width))) for d in digits]
        high = [f.shuffle(d, d, list(range(width, 2 * width))) for d in digits]
        carry: Value | None = None
        digits = []
        for a, b in zip(low, high, strict=True):
            both = f.xor(a, b)
            if carry is None:
                digits.append(both)
                carry = f.and_(a, b)
            else:
                digits.append(f.xor(both, carry))
                carry = f.or_(f.and_(a, b), f.and_(carry, both))
        assert carry is not None
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


def _sectors(module: Module) -> None:
    """Number of different sectors: within a window of 64 a bit set is enough."""
    f = Function("sim_sectors", I32, [(V32, "sectors"), (I32, "lanes")], module, "noinline")
    sectors, lanes = f.parameters
    with f.when(f.compare("eq", lanes, const(I32, 0)), likely=False):
        f.ret(const(I32, 0))
        f.label(f.fresh("dead"))
    active = f.as_lanes(lanes)
    low = f.reduce("umin", f.select(active, sectors, const(V32, -1)))
    distance = f.select(active, f.sub(sectors, f.splat(low)), const(V32, 0))
    near = f.compare("ult", f.reduce("umax", distance), const(I32, 64))
    with f.when(near, likely=True):
        bits = f.op("shl", const(V64, 1), f.resize(distance, 64))
        used = f.reduce("or", f.select(active, bits, const(V64, 0)))
        f.ret(f.resize(f.popcount(used), 32))
        f.label(f.fresh("dead"))
    f.ret(f.call(I32, "sim_spread", sectors, lanes))


def _spread(module: Module) -> None:
    """Number of different values among the active lanes, by comparing all pairs."""
    f = Function("sim_spread", I32, [(V32, "values"), (I32, "lanes")], module, "noinline")
    values, lanes = f.parameters
    active = f.as_lanes(lanes)
    unique = lanes_of(V32, [-2 - lane for lane in range(LANES)])
    f.ret(f.popcount(f.as_bits(_first_of_kind(f, f.select(active, values, unique), active))))


_RULES: Final[dict[str, type[SectorRules]]] = {"sectors": SectorRules}


def memory_rules(memory: Mapping[str, int | str]) -> MemoryRules:
    """The rules that a model's ``memory`` section asks for. Raises ``DeviceError``."""
    name = str(memory["rules"])
    if name not in _RULES:
        raise DeviceError(f"memory rules {name!r} are not known; known: {', '.join(_RULES)}")
    sizes = (memory["shared_banks"], memory["bank_bytes"], memory["sector_bytes"])
    if sizes != (LANES, 4, 1 << SECTOR_BITS):
        raise DeviceError(
            "memory rules 'sectors' need 32 banks of 4 bytes and 32-byte sectors; the model has"
            f" {sizes[0]} banks of {sizes[1]} bytes and {sizes[2]}-byte sectors"
        )
    return _RULES[name]()


__all__ = ["SECTORS_PER_SLOT", "SECTOR_BITS", "MemoryRules", "SectorRules", "memory_rules"]
