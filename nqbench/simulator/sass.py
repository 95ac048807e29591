"""The machine code (SASS) of a kernel, as far as its time depends on it: in which order the
assembler leaves the instructions, what it made several or none of, and what each waits for.

NVIDIA documents neither the code nor the table of its lines. From compute capability 7.5 on an
instruction has 16 bytes: 9 bits of opcode, a guard, and, from bit 105 on, the clocks until the next
one may issue, and which of six barriers it sets when its result is there, sets when its operands
are read, and waits for (Jia and others, arXiv:1804.06826, section 2.1). The table
``.nv_debug_line_sass`` is one of DWARF 2 that names lines of the PTX.
``tests/simulator/test_sass.py`` compares both with nvdisasm.
"""

from __future__ import annotations

import statistics
import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.compiler.compiled import Compiled, section_at
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.ptx import Instruction

BYTES: Final = 16
NAMES: Final = {
    **{0x147: "BRA", 0x149: "BRX", 0x14D: "EXIT", 0x144: "CALL", 0x150: "RET"},
    **{0x141: "BSYNC", 0x142: "BREAK", 0x145: "BSSY", 0x146: "YIELD", 0x148: "WARPSYNC"},
    **{0x180: "LD", 0x181: "LDG", 0x183: "LDL", 0x184: "LDS", 0x18A: "ATOM", 0x1A8: "ATOMG"},
    **{0x118: "NOP", 0x18C: "ATOMS", 0x18D: "ATOMS"},
}
"""The opcodes that matter here."""
ENDINGS: Final = ("BRA", "BRX", "EXIT", "RET")
CONTROL: Final = ("BSYNC", "BREAK", "BSSY", "YIELD", "WARPSYNC", "NOP")
"""Instructions that are of no line of the PTX: the table gives them that of the one before."""
NONE: Final = 7  # no barrier, and the guard that is always true


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """``name`` is empty unless it matters; ``target`` is the place in the list that a branch goes
    to. ``stall`` are clocks; ``fills``, ``frees`` and ``waits`` say which barriers it sets with its
    result, sets when its operands are read, and waits for."""

    line: int
    name: str
    guarded: bool
    target: int
    stall: int
    fills: int
    frees: int
    waits: tuple[int, ...]


def machine_code(compiled: Compiled, arch: str) -> list[MachineInstruction]:
    """The instructions of a cubin's kernel up to where it ends; what stands behind are rare ways.
    Empty where the cubin has no table of lines."""
    image = compiled.image
    try:
        start, length = section_at(image, f".text.{compiled.symbol}")
        rows = dict(_rows(image, compiled.symbol))
    except LookupError:
        return []
    code, line, end = list[MachineInstruction](), 0, 0
    for at in range(0, length, BYTES):
        low, high = struct.unpack_from("<QQ", image, start + at)
        line, name, control = rows.get(at, line), NAMES.get(low & 0x1FF, ""), high >> 41
        by = (low >> 34 | (high & 0x3FFFF) << 30) - (1 << 48) * (high >> 17 & 1)
        if int(arch[3:]) >= 90:  # its lowest byte stands apart
            by = by << 8 | low >> 16 & 0xFF
        waits = tuple(barrier for barrier in range(6) if control >> 11 + barrier & 1)
        guarded, target = (low >> 12 & 0xF) != NONE, at // BYTES + 1 + by // 4
        fields = (control & 0xF, control >> 5 & 7, control >> 8 & 7, waits)
        code.append(MachineInstruction(line, name, guarded, target, *fields))
        end = len(code) if name == "EXIT" and not guarded else end
    return code[:end]


def _rows(image: bytes, symbol: str) -> Iterator[tuple[int, int]]:
    """Offsets in a kernel, and the line of the PTX from there on (DWARF 2, section 6.2)."""
    start, length = section_at(image, ".nv_debug_line_sass")
    (header,) = struct.unpack_from("<I", image, start + 6)
    step, _, base, span, opcodes = struct.unpack_from("<BBbBB", image, start + 10)
    operands = image[start + 15 : start + 14 + opcodes]
    at, functions = start + 10 + header, dict(_functions(image, start))
    address, line, inside = 0, 1, False

    def number(signed: bool = False) -> int:
        nonlocal at
        value, bits, byte = 0, 0, 0x80
        while byte & 0x80:
            byte, at = image[at], at + 1
            value, bits = value | (byte & 0x7F) << bits, bits + 7
        return value - (1 << bits) * (signed and byte >> 6 & 1)

    while at < start + length:
        code, at = image[at], at + 1
        if code >= opcodes:
            address += (code - opcodes) // span * step
            line += base + (code - opcodes) % span
        elif code == 0:
            size = number()
            if image[at] == 2:  # an address: the start of a function
                address, inside = 0, functions.get(at + 1) == symbol
            elif image[at] == 1:
                line = 1
            at += size
        elif code == 3:
            line += number(signed=True)
        elif code == 8:
            address += (255 - opcodes) // span * step
        elif code == 9:
            address, at = address + struct.unpack_from("<H", image, at)[0], at + 2
        else:
            numbers = [number() for _ in range(operands[code - 1])]
            address += numbers[0] * step if code == 2 else 0
        if inside and (code == 1 or code >= opcodes):
            yield address, line


def _functions(image: bytes, start: int) -> Iterator[tuple[int, str]]:
    """Where the table of lines names the start of a function, and which."""
    form, before = ("<QQq", ".rela") if b".rela.nv_debug" in image else ("<QQ", ".rel")
    at, length = section_at(image, f"{before}.nv_debug_line_sass")
    symbols, names = (section_at(image, name)[0] for name in (".symtab", ".strtab"))
    for place, about, *_ in struct.iter_unpack(form, image[at : at + length]):
        name = names + struct.unpack_from("<I", image, symbols + 24 * (about >> 32))[0]
        yield start + place, image[name : image.index(b"\0", name)].decode()


class MachineBlocks:
    """Machine instructions and clocks of one execution of each basic block of the PTX."""

    def __init__(
        self,
        code: Sequence[MachineInstruction],
        blocks: Sequence[BasicBlock],
        several: Collection[Instruction],
    ) -> None:
        """``several``: instructions that the assembler makes several of anyway."""
        self.code, self.count = code, len(blocks)
        self.of_line = {i.where.line: b.index for b in blocks for i in b.code}
        self.owners = self._owners()
        issued = np.bincount(self.owners, minlength=self.count).astype(float)
        times = Counter(i.line for i in code)
        self.copies = np.ones(self.count)
        for block in blocks:
            # Of a loop that the assembler unrolled there are several: each round runs one of them.
            found = [times[i.where.line] for i in block.instructions if i not in several]
            if found := [number for number in found if number]:
                self.copies[block.index] = statistics.median_high(found)
        self.issued: NDArray[np.float64] = issued / self.copies

    def _owners(self) -> list[int]:
        """The block of each instruction: that of its line; of one without a line that of most
        around it, or of those that it leads to."""
        code = self.code
        starts = {0, *(i.target for i in code if i.name == "BRA")}
        starts |= {at + 1 for at, i in enumerate(code) if i.name in ENDINGS}
        firsts = sorted(at for at in starts if 0 <= at < len(code))
        pieces = list(zip(firsts, [*firsts[1:], len(code)], strict=True))
        owner = dict[int, int]()  # by the first place of a piece
        for first, end in pieces:
            lines = [i.line for i in code[first:end] if i.name not in (*CONTROL, "BRA")]
            if known := [self.of_line[line] for line in lines if line in self.of_line]:
                owner[first] = Counter(known).most_common(1)[0][0]
        alone = {first for first in firsts if first not in owner}
        for first, end in reversed(pieces):
            last = code[end - 1]
            following = last.target if last.name == "BRA" and not last.guarded else end
            owner.setdefault(first, owner.get(following, 0))
        return [
            owner[first]
            if i.name in CONTROL or first in alone or i.line not in self.of_line
            else self.of_line[i.line]
            for first, end in pieces
            for i in code[first:end]
        ]  # fmt: skip

    def clocks(
        self,
        latency: Callable[[MachineInstruction], NDArray[np.float64] | float],
        read: float,
        more: Mapping[str, float],
    ) -> NDArray[np.float64]:
        """Clocks that a lone warp takes, by block: each instruction issues when the barriers that
        it waits for are set, and the next one after its stall. What is under way at a branch is
        waited for. ``latency`` is that of a result, an array of cases whose mean counts, ``read``
        that of the operands; ``more``: clocks that an instruction takes beyond its stall, by
        name."""
        zero: NDArray[np.float64] = np.zeros(1)
        taken, now, ready = np.zeros(self.count), zero, [zero] * (NONE + 1)
        for i, owner in zip(self.code, self.owners, strict=True):
            start = reduce(np.maximum, (ready[barrier] for barrier in i.waits), now)
            ready[i.fills] = np.maximum(ready[i.fills], start + latency(i))
            ready[i.frees] = np.maximum(ready[i.frees], start + read)
            ready[NONE] = zero
            end = start + (max(i.stall, 1) + more.get(i.name, 0.0))
            end = reduce(np.maximum, ready, end) if i.name in (*ENDINGS, "BSYNC") else end
            taken[owner] += np.mean(end - now)
            now = end
        return taken / self.copies
