"""What NVIDIA's assembler makes of the PTX, as far as counters show it: adjacent accesses to shared
memory become one wide access, short branches become predicated instructions, and divisions and
roots become sequences (``expansions.toml``, by ``benchmarks/expansions.py``).

The rules were read off the SASS that CUDA 13.5's compiler makes of small kernels for compute
capability 9.0; ``tests/simulator/test_ptxas.py`` compares them with it. Only what is counted
changes: the code itself runs as the PTX says.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nqbench.simulator import ptx
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.layout import Symbols
from nqbench.simulator.liveness import results

WIDEST: Final = 16
"""Bytes of the widest access."""

BODY: Final = 8
"""Instructions of the longest branch that is predicated; of one with an ``else`` each side one
less."""


@dataclass(frozen=True, slots=True)
class Merged:
    """An access that stands for several: ``nbytes`` wide, ``shift`` bytes from its own address."""

    nbytes: int
    shift: int


@dataclass(slots=True)
class Assembled:
    """What changes of a kernel.

    ``wide``        the access that is counted for each merged group
    ``dropped``     the others of these groups
    ``predicated``  by the block of a predicated branch its head, which ends with the branch
    ``expanded``    machine instructions of those that are several
    """

    wide: dict[ptx.Instruction, Merged] = field(default_factory=dict)
    dropped: set[ptx.Instruction] = field(default_factory=set)
    predicated: dict[int, int] = field(default_factory=dict)
    expanded: dict[ptx.Instruction, int] = field(default_factory=dict)

    def closing(self, block: BasicBlock) -> list[ptx.Instruction]:
        """The instruction that ends a block, unless it is a branch that is predicated away."""
        gone = block.index in self.predicated or block.index in self.predicated.values()
        return [] if gone or block.closing is None else [block.closing]

    def left(self, block: BasicBlock) -> list[ptx.Instruction]:
        """The instructions of a block without those that are merged into others."""
        return [i for i in block.instructions if i not in self.dropped] + self.closing(block)

    def length(self, i: ptx.Instruction) -> int:
        """Machine instructions of an instruction."""
        return self.expanded.get(i, 1)


def expand(found: Assembled, blocks: list[BasicBlock], arch: str) -> None:
    """Find the instructions that an architecture does not have."""
    lengths = _expansions(arch)
    every = (i for block in blocks for i in block.instructions)
    found.expanded = {i: lengths[i.full_opcode] for i in every if i.full_opcode in lengths}


def assemble(found: Assembled, blocks: list[BasicBlock], symbols: Symbols) -> None:
    """Find the accesses that are merged and the branches that are predicated."""
    alignment = _Alignment(blocks, symbols)
    for block in blocks:
        _Merging(found, alignment).run(block.instructions)
    _predicate(found, blocks, symbols)


@functools.cache
def _expansions(arch: str) -> dict[str, int]:
    tables = tomllib.loads(Path(__file__).with_name("expansions.toml").read_text(encoding="utf-8"))
    return {**tables["usual"], **tables.get(arch, {})}


# Merging.

_Key = ptx.Register | str
_KINDS: Final = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_ORDERED: Final = frozenset({"membar", "fence", "bar", "barrier", "call", "cp", "atom", "red"})


@dataclass(frozen=True, slots=True)
class _Access:
    instruction: ptx.Instruction
    base: _Key
    offset: int
    nbytes: int

    def overlaps(self, other: _Access) -> bool:
        return (
            self.offset < other.offset + other.nbytes and other.offset < self.offset + self.nbytes
        )


class _Merging:
    """Collects the accesses of a basic block by base, as long as they may change places: loads are
    moved up to the first of a group, stores down to the last."""

    def __init__(self, found: Assembled, alignment: _Alignment) -> None:
        self.found = found
        self.alignment = alignment
        self.loads: dict[_Key, list[_Access]] = {}
        self.stores: dict[_Key, list[_Access]] = {}
        self.stored: list[_Access] = []  # since the oldest load that is held

    def run(self, instructions: Iterable[ptx.Instruction]) -> None:
        for instruction in instructions:
            access = _plain_access(instruction, self.alignment.symbols)
            if access is not None:
                for base, held in list(self.stores.items()):
                    if base != access.base or any(map(access.overlaps, held)):
                        self._settle(self.stores.pop(base))
                (self._load if instruction.opcode == "ld" else self._store)(access)
            elif instruction.opcode in _ORDERED or (
                instruction.opcode in ("ld", "ldu", "st") and instruction.spaces <= {"shared"}
            ):
                self._close()
            for register in results(instruction):
                for groups in (self.loads, self.stores):
                    self._settle(groups.pop(register, []))
        self._close()

    def _load(self, access: _Access) -> None:
        held = self.loads.get(access.base, [])
        # A store since the group's first load may have changed what this one reads.
        stored = any(s.base != access.base or s.overlaps(access) for s in self.stored)
        if stored or any(map(access.overlaps, held)):
            self._settle(self.loads.pop(access.base, []))
        self.loads.setdefault(access.base, []).append(access)

    def _store(self, access: _Access) -> None:
        for base in [base for base in self.loads if base != access.base]:
            self._settle(self.loads.pop(base))
        self.stores.setdefault(access.base, []).append(access)
        self.stored = [*self.stored, access] if self.loads else []

    def _close(self) -> None:
        for held in (self.loads, self.stores):
            for group in held.values():
                self._settle(group)
            held.clear()
        self.stored = []

    def _settle(self, group: list[_Access]) -> None:
        """Merge what of a group lies side by side in an aligned piece of 16 or 8 bytes."""
        if len(group) < 2:
            return
        aligned = self.alignment.of_base(group[0].base)
        left = group
        for nbytes in (WIDEST, WIDEST // 2):
            if aligned % nbytes == 0:
                places: dict[int, list[_Access]] = {}
                for access in left:
                    places.setdefault(access.offset // nbytes, []).append(access)
                left = [a for piece in places.values() for a in self._merge(piece, nbytes)]

    def _merge(self, piece: list[_Access], nbytes: int) -> list[_Access]:
        """Make one access of a piece if it is full; a load may have one word of four too many."""
        covered = sum(access.nbytes for access in piece)
        loads = piece[0].instruction.opcode == "ld"
        enough = 12 if loads and nbytes == WIDEST else nbytes
        if len(piece) < 2 or covered < enough or len({a.nbytes for a in piece}) > 1:
            return piece
        leader = piece[0] if loads else piece[-1]
        start = leader.offset // nbytes * nbytes
        self.found.wide[leader.instruction] = Merged(nbytes, start - leader.offset)
        self.found.dropped |= {a.instruction for a in piece if a is not leader}
        return []


def _plain_access(i: ptx.Instruction, symbols: Symbols) -> _Access | None:
    """A load or store of one 32- or 64-bit value that may be merged. Variables have one base."""
    if i.opcode not in ("ld", "st") or i.modifiers[:1] != ("shared",) or i.guard is not None:
        return None
    if len(i.modifiers) != 2 or i.modifiers[1] not in _KINDS:
        return None
    place = i.operands[i.opcode == "ld"]
    if not isinstance(place, ptx.Memory):
        return None
    nbytes = ptx.WIDTHS[i.modifiers[1]] // 8
    if isinstance(place.base, ptx.Register):
        return _Access(i, place.base, place.offset, nbytes)
    address = symbols.address(place.base) if isinstance(place.base, ptx.Name) else None
    return None if address is None else _Access(i, "variables", address + place.offset, nbytes)


class _Alignment:
    """Of which power of two a register is known to be a multiple, whatever path was taken."""

    MOST: Final = 10
    """Bits looked at; also the alignment of the block's shared memory."""

    def __init__(self, blocks: list[BasicBlock], symbols: Symbols) -> None:
        self.symbols = symbols
        definitions = [(r, i) for b in blocks for i in b.instructions for r in results(i)]
        self.bits: dict[ptx.Register, int] = {register: self.MOST for register, _ in definitions}
        changed = True
        while changed:
            changed = False
            for register, instruction in definitions:
                bits = min(self._result(instruction), self.bits[register])
                changed = changed or bits < self.bits[register]
                self.bits[register] = bits

    def of_base(self, base: _Key) -> int:
        """The power of two in bytes."""
        return 1 << (self.bits.get(base, 0) if isinstance(base, ptx.Register) else self.MOST)

    def _of(self, operand: ptx.Operand) -> int:
        if isinstance(operand, ptx.Register):
            return self.bits.get(operand, 0)
        value = operand.value if isinstance(operand, ptx.Immediate) else None
        if isinstance(operand, ptx.Name):
            value = self.symbols.address(operand)
        if value is None:
            return 0
        return min((value & -value).bit_length() - 1, self.MOST) if value else self.MOST

    def _result(self, i: ptx.Instruction) -> int:
        given = i.operands[1:]
        rule = _RULES.get(i.opcode)
        if rule is None or not given or any(isinstance(o, ptx.Vector) for o in i.operands):
            return 0
        if i.opcode in ("shl", "shr"):
            by = given[1].value if isinstance(given[1], ptx.Immediate) else 0
            return max(min(self._of(given[0]) + (by if i.opcode == "shl" else -by), self.MOST), 0)
        if "hi" in i.modifiers or not {"f32", "f64", "f16"}.isdisjoint(i.modifiers):
            return 0
        return min(rule([self._of(operand) for operand in given]), self.MOST)


_RULES: Final[dict[str, Callable[[list[int]], int]]] = {
    **dict.fromkeys(("mov", "cvta", "cvt", "neg", "shl", "shr", "abs"), lambda of: of[0]),
    **dict.fromkeys(("add", "sub", "or", "xor", "min", "max"), min),
    "and": max,
    "selp": lambda of: min(of[:2]),
    "mul": sum,
    "mad": lambda of: min(of[0] + of[1], of[2]),
}


# Predication.

_LOGIC: Final = frozenset({"and", "or", "xor", "not"})
_WIDE: Final = frozenset({"b64", "u64", "s64"})


def _predicate(found: Assembled, blocks: list[BasicBlock], symbols: Symbols) -> None:
    shared = {name for name, _, _ in symbols.shared}
    entries = Counter(t.index for block in blocks for t in dict.fromkeys(block.targets))
    for head in blocks:
        if head.ending != "branch" or head.targets[0] is head.targets[1]:
            continue
        sides = [
            t for t in head.targets if entries[t.index] == 1 and _is_short(found, t, BODY, shared)
        ]
        yes, no = head.targets
        if len(sides) == 2 and yes.targets == no.targets:
            if all(_is_short(found, side, BODY - 1, shared) for side in sides):
                found.predicated |= {side.index: head.index for side in sides}
            continue
        for side in sides:
            other = no if side is yes else yes
            if side.targets == [other]:
                found.predicated[side.index] = head.index


def _is_short(found: Assembled, block: BasicBlock, most: int, shared: set[str]) -> bool:
    """Whether a block is straight code of at most so many machine instructions, all of which can be
    predicated: no loads from global memory, atomics, collectives or calls."""
    if block.ending != "jump" or block.latch or block.gathers or not block.instructions:
        return False
    if any(i.guard is not None or not _predicable(i, shared) for i in block.instructions):
        return False
    kept = [i for i in block.instructions if i not in found.dropped]
    logic = [i for i in kept if i.opcode in _LOGIC and "pred" not in i.modifiers]
    others = [i for i in kept if i not in logic and i.opcode not in ("cvta", "cvt")]
    wide = [
        i for i in others
        if i.opcode in ("add", "sub", "shl", "shr") and not _WIDE.isdisjoint(i.modifiers)
    ]  # fmt: skip
    # Wide ones are two machine instructions each; two of logic are one LOP3.
    return sum(map(found.length, others)) + len(wide) + math.ceil(len(logic) / 2) <= most


def _predicable(i: ptx.Instruction, shared: set[str]) -> bool:
    if i.opcode == "mov" and any(isinstance(o, ptx.Name) and o.name in shared for o in i.operands):
        return False  # the block's window of shared memory comes from a special register
    if i.opcode == "ld":
        return not {"shared", "local", "param", "const"}.isdisjoint(i.modifiers)
    return i.opcode not in {*_ORDERED, "ldu", "brx", "shfl", "vote", "match", "redux", "elect"}
