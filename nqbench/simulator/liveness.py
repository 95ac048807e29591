"""Where values come from and go to: which registers live across blocks, and where their warp-wide
copies are kept; which buffer or variable an access reaches, as far as the code itself tells."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nqbench.compiler.compiled import demangled
from nqbench.simulator import ptx
from nqbench.simulator.cfg import BasicBlock

NO_RESULT = frozenset(ptx.FAMILIES["no_result"])
"""Opcodes whose first operand is not a destination."""
RETURNING_NOTHING = ("init", "inval", "expect_tx")  # of ``mbarrier``

CHANGING_SPECIALS = ("%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo")

CARRY = ptx.Register("%cc", 1)
"""The carry bit, which ``.cc`` writes and ``addc``, ``subc`` and ``madc`` read."""
CARRYING = ("addc", "subc", "madc")

SLOT_ALIGN = 64
"""Bytes; a 512-bit vector register, so that register-file accesses never split a cache line."""


def results(instruction: ptx.Instruction) -> list[ptx.Register]:
    """Registers that the instruction writes."""
    if instruction.opcode in NO_RESULT or not instruction.operands:
        return []
    if instruction.opcode in ("bar", "barrier") and "red" not in instruction.modifiers:
        return []
    if instruction.opcode == "mbarrier" and instruction.modifiers[0] in RETURNING_NOTHING:
        return []
    return ptx.registers(instruction.operands[0]) + [CARRY] * ("cc" in instruction.modifiers)


def sources(instruction: ptx.Instruction) -> list[ptx.Register]:
    """Registers that the instruction reads; a predicated write reads the value it may keep."""
    written = results(instruction)
    first = 1 if written and instruction.opcode not in NO_RESULT else 0
    read = [r for operand in instruction.operands[first:] for r in ptx.registers(operand)]
    if instruction.guard is not None:
        read += [instruction.guard, *written]
    if instruction.opcode in CARRYING:
        read.append(CARRY)
    return read


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """Where registers live.

    ``slots``    byte offset, within the warp's register file, of every register that lives across
                 blocks: 32 lanes x width, or a 32-bit mask for a predicate
    ``live_out`` per block index: registers whose value a later block may read
    ``remade``   registers that are cheaper to compute again than to keep (constants, parameters,
                 thread indices), with the instruction that does it
    """

    slots: dict[ptx.Register, int]
    nbytes: int
    live_out: list[set[ptx.Register]]
    remade: dict[ptx.Register, ptx.Instruction]


def analyse(blocks: list[BasicBlock]) -> RegisterFile:
    """Liveness of every register over the blocks, and places for those that cross between them."""
    remade = {
        register: found[0]
        for register, found in by_register(blocks)[0].items()
        if len(found) == 1 and found[0].guard is None and _constant(found[0], register)
    }
    live_in, live_out = live(blocks, remade)
    slots: dict[ptx.Register, int] = {}
    offset = 0
    crossing = set().union(*live_out, *live_in)
    for register in sorted(crossing, key=lambda r: (r.width == 1, r.name)):
        slots[register] = offset
        offset += SLOT_ALIGN if register.width == 1 else 32 * register.width // 8
    return RegisterFile(slots, offset, live_out, remade)


def _used(
    block: BasicBlock, without: Collection[ptx.Register]
) -> tuple[set[ptx.Register], set[ptx.Register]]:
    """The registers that a block reads before it writes them, and those that it writes."""
    read: set[ptx.Register] = set()
    written: set[ptx.Register] = set()
    for instruction in block.code:
        read |= {r for r in sources(instruction) if r not in written and r not in without}
        written |= {r for r in results(instruction) if r not in without}
    return read, written


def live(
    blocks: list[BasicBlock], without: Collection[ptx.Register] = ()
) -> tuple[list[set[ptx.Register]], list[set[ptx.Register]]]:
    """The registers that live at the start and at the end of each block."""
    used = [_used(block, without) for block in blocks]
    live_in = [set(read) for read, _ in used]
    live_out: list[set[ptx.Register]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            i = block.index
            out: set[ptx.Register] = set().union(*(live_in[t.index] for t in block.targets))
            if block.ending == "barrier" and block.closing is not None:
                # A reducing barrier's result is written when the warp resumes.
                out |= set(results(block.closing))
            read, written = used[i]
            into = read | (out - written)
            if out != live_out[i] or into != live_in[i]:
                live_out[i], live_in[i] = out, into
                changed = True
    return live_in, live_out


def mentions(blocks: list[BasicBlock], *names: str) -> bool:
    """Whether a function, a variable or a special register occurs in the code."""
    operands = (o for block in blocks for i in block.instructions for o in i.operands)
    return any(isinstance(o, ptx.Name) and o.name in names for o in operands)


def smallest_access(blocks: list[BasicBlock], space: str) -> int:
    """Bytes of the smallest element that is accessed in a memory space; at most those of a word."""
    bits = [
        ptx.WIDTHS[m]
        for i in (i for block in blocks for i in block.instructions)
        if i.opcode in ("ld", "st", "atom", "red") and (not i.spaces or space in i.spaces)
        for m in i.modifiers
        if m in ptx.WIDTHS
    ]
    return min([32, *bits]) // 8


def by_register(
    blocks: list[BasicBlock],
) -> tuple[dict[ptx.Register, list[ptx.Instruction]], dict[ptx.Register, list[ptx.Instruction]]]:
    """The instructions that write each register, and those that read it."""
    written: dict[ptx.Register, list[ptx.Instruction]] = {}
    read: dict[ptx.Register, list[ptx.Instruction]] = {}
    for instruction in (i for block in blocks for i in block.code):
        for register in results(instruction):
            written.setdefault(register, []).append(instruction)
        for register in sources(instruction):
            read.setdefault(register, []).append(instruction)
    return written, read


def _constant(instruction: ptx.Instruction, register: ptx.Register) -> bool:
    if len(instruction.operands) != 2 or instruction.operands[0] is not register:
        return False
    source = instruction.operands[1]
    if instruction.opcode == "mov":
        return isinstance(source, ptx.Immediate) or (
            isinstance(source, ptx.Name) and source.name not in CHANGING_SPECIALS
        )
    return (
        instruction.opcode == "ld"
        and instruction.modifiers[:1] == ("param",)
        and isinstance(source, ptx.Memory)
        and isinstance(source.base, ptx.Name)
    )


ADDRESS_OPCODES = frozenset(ptx.FAMILIES["address"])
"""Opcodes through which an address is followed to where it came from; a loaded value is not."""


def targets(
    blocks: list[BasicBlock],
    names: Collection[str],
    starts: Mapping[int, str] = MappingProxyType({}),
) -> dict[ptx.Instruction, str]:
    """The name behind every memory access whose address comes from exactly one base.

    ``names``   PTX names of variables and of pointer parameters
    ``starts``  name by the identity of an instruction that gives the address of a part
    """
    definitions, _ = by_register(blocks)
    found = {}
    for instruction in (i for block in blocks for i in block.instructions):
        if (
            instruction.opcode not in ("ld", "ldu", "st", "atom", "red")
            or "param" in instruction.modifiers
        ):
            continue
        place = next((o for o in instruction.operands if isinstance(o, ptx.Memory)), None)
        bases = _bases(place, definitions, names, starts) if place else set()
        if len(bases) == 1:
            found[instruction] = bases.pop()
    return found


def _bases(
    place: ptx.Memory,
    definitions: Mapping[ptx.Register, list[ptx.Instruction]],
    names: Collection[str],
    starts: Mapping[int, str],
) -> set[str]:
    pending, seen = ptx.registers(place), set[ptx.Register]()
    read: list[object] = [place.base]
    parts = set[str]()
    while pending:
        register = pending.pop()
        for i in () if register in seen else definitions.get(register, ()):
            if id(i) in starts:
                parts.add(starts[id(i)])
            elif i.opcode in ADDRESS_OPCODES:
                pending += sources(i)
                read += i.operands[1:]
            elif i.opcode == "ld" and i.modifiers[0] == "param":
                read.append(getattr(i.operands[1], "base", None))
        seen.add(register)
    return parts | {o.name for o in read if isinstance(o, ptx.Name) and o.name in names}


def readable(symbol: str) -> str:
    """A variable's own name out of a mangled one."""
    return demangled(symbol).rpartition("::")[2] or symbol
