"""Which buffer or variable an access reaches, as far as the code itself tells."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.liveness import by_register
from nqbench.simulator.ptx import Instruction, Memory, Name, Operand, Register

ADDRESS_OPCODES = frozenset(
    {"mov", "add", "sub", "mad", "cvta", "cvt", "selp", "shl", "mul", "and", "or", "lop3", "bfi"}
)
"""Opcodes through which an address is followed to where it came from; a loaded value is not."""

ACCESSES = ("ld", "ldu", "st", "atom", "red")


def targets(
    blocks: list[BasicBlock], variables: Mapping[str, str], parameters: Mapping[str, str]
) -> dict[Instruction, str]:
    """The name behind every memory access whose address comes from exactly one base.

    ``variables``  readable name by PTX name of each shared, local or module variable
    ``parameters`` buffer by PTX name of each pointer parameter
    """
    definitions, _ = by_register(blocks)
    found = {}
    for instruction in (i for block in blocks for i in block.instructions):
        if instruction.opcode not in ACCESSES or "param" in instruction.modifiers:
            continue
        place = next((o for o in instruction.operands if isinstance(o, Memory)), None)
        names = _bases(place, definitions, variables, parameters) if place else set()
        if len(names) == 1:
            found[instruction] = names.pop()
    return found


def _bases(
    start: Operand,
    definitions: Mapping[Register, list[Instruction]],
    variables: Mapping[str, str],
    parameters: Mapping[str, str],
) -> set[str]:
    names: set[str] = set()
    seen: set[Register] = set()
    pending: list[Operand] = [start]
    while pending:
        operand = pending.pop()
        if isinstance(operand, Memory):
            pending.append(operand.base)
        elif isinstance(operand, Name):
            if operand.name in variables:
                names.add(variables[operand.name])
        elif isinstance(operand, Register) and operand not in seen:
            seen.add(operand)
            for instruction in definitions.get(operand, ()):
                if instruction.opcode in ADDRESS_OPCODES:
                    pending.extend(instruction.operands[1:])
                elif instruction.opcode == "ld" and instruction.modifiers[0] == "param":
                    source = instruction.operands[1]
                    if isinstance(source, Memory) and isinstance(source.base, Name):
                        names |= {parameters.get(source.base.name, "")} - {""}
    return names


def readable(symbol: str) -> str:
    """A variable's own name out of a mangled one, which ends with it and its length."""
    for match in re.finditer(r"\d+", symbol):
        for start in range(match.start(), match.end()):
            name = symbol[match.end() :]
            if int(symbol[start : match.end()]) == len(name):
                return name
    return symbol
