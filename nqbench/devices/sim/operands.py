"""The operands of PTX instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register; ``width`` in bits, 1 for a predicate."""

    name: str
    width: int


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant: an integer, or the bits of a float (``kind`` ``f32`` or ``f64``)."""

    value: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Name:
    """A label, variable, parameter or special register, with a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """``[base+offset]``."""

    base: Operand
    offset: int


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b, ...}``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """``a|b``: a result and a predicate, or two predicates."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """``!p``."""

    register: Register


Operand: TypeAlias = Register | Immediate | Name | Memory | Vector | Pair | Negated


def registers(operand: Operand) -> list[Register]:
    """Every register that the operand mentions."""
    if isinstance(operand, Register):
        return [operand]
    if isinstance(operand, Memory):
        return registers(operand.base)
    if isinstance(operand, Vector):
        return [r for item in operand.items for r in registers(item)]
    if isinstance(operand, Pair):
        return registers(operand.first) + registers(operand.second)
    if isinstance(operand, Negated):
        return [operand.register]
    return []
