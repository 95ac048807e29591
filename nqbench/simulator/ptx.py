"""A PTX kernel as plain data: operands, instructions, labels, variables, parameters."""

from __future__ import annotations

import copyreg
import struct
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

FAMILIES: Final[Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("instructions.toml").read_text(encoding="utf-8")
)
"""Families of opcodes and modifiers."""


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
    """``{a, b, ...}``, or ``a|b``: a result and a predicate, or two predicates."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """``!p``."""

    register: Register


Operand: TypeAlias = Register | Immediate | Name | Memory | Vector | Negated


def both(operand: Operand) -> tuple[Operand, Operand | None]:
    """Both operands of a pair; any other one alone."""
    return (operand.items[0], operand.items[1]) if isinstance(operand, Vector) else (operand, None)


def registers(operand: Operand) -> list[Register]:
    """Every register that the operand mentions."""
    if isinstance(operand, Register):
        return [operand]
    if isinstance(operand, Memory):
        return registers(operand.base)
    if isinstance(operand, Vector):
        return [r for item in operand.items for r in registers(item)]
    return [operand.register] if isinstance(operand, Negated) else []


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the PTX text and in the source it was made from; lines count from 1.

    ``file`` is the source file's name without its folder, empty if the PTX does not tell."""

    line: int
    file: str = ""
    source_line: int = 0

    def __str__(self) -> str:
        source = f" ({self.file}:{self.source_line})" if self.file else ""
        return f"PTX line {self.line}{source}"


class UnsupportedPtx(Exception):
    """PTX that the simulator does not know."""

    def __init__(self, message: str, where: Where) -> None:
        super().__init__(f"{message} at {where}")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One PTX instruction; ``opcode`` is the first word (``ld``), ``modifiers`` the rest."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    guard_negated: bool
    where: Where

    @property
    def full_opcode(self) -> str:
        """As written, e.g. ``ld.shared.u32``."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def spaces(self) -> frozenset[str]:
        """The memory spaces that it names: ``shared`` of ``ld.shared::cta.u32``."""
        return SPACES.intersection(m.partition("::")[0] for m in self.modifiers)

    @property
    def elements(self) -> int:
        """How many values of an access lie side by side."""
        return 4 if "v4" in self.modifiers else 2 if "v2" in self.modifiers else 1


@dataclass(frozen=True, slots=True)
class Label:
    """A jump target."""

    name: str


@dataclass(frozen=True, slots=True)
class PtxVariable:
    """A named piece of memory; ``nbytes`` is 0 for dynamic shared memory (``extern``).

    ``references`` are the names (of variables and functions) whose addresses its initial value
    holds, with their places."""

    name: str
    space: str
    align: int
    nbytes: int
    initial: bytes = b""
    references: tuple[tuple[int, Name], ...] = ()


@dataclass(slots=True)
class PtxKernel:
    """One entry function, or one that a kernel calls. ``targets`` are the jump tables of
    ``brx.idx``, ``returns`` the names of a function's results, ``functions`` the addresses of those
    functions whose addresses are used, ``most_threads`` a block's under ``__launch_bounds__`` (0:
    any number)."""

    name: str
    parameters: dict[str, tuple[int, int]]
    parameter_bytes: int
    body: list[Instruction | Label] = field(default_factory=list)
    variables: dict[str, PtxVariable] = field(default_factory=dict)
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    returns: tuple[str, ...] = ()
    functions: dict[str, int] = field(default_factory=dict)
    most_threads: int = 0


ATOMICS = ("atom", "red")
RESERVED: Final = "%reserved_smem_offset_1"
"""Shared memory in which warps of cooperative groups' tiles meet, whatever is in it at first."""
SPACES = frozenset({"shared", "local", "global", "const", "param"})
WIDTHS = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64,
    "bf16": 16, "f16x2": 32, "bf16x2": 32,
}  # fmt: skip


def float_bits(value: float, width: int) -> int:
    """The bit pattern of a Python float at 32 or 64 bits."""
    if width == 32:
        return int.from_bytes(struct.pack("<f", value), "little")
    return int.from_bytes(struct.pack("<d", value), "little")


def _parts(one: Any) -> tuple[Any, ...]:
    return type(one), tuple(getattr(one, name) for name in one.__slots__)


for _kind in (Register, Immediate, Name, Memory, Vector, Negated, Where, Instruction):
    copyreg.pickle(_kind, _parts)  # read from the cache in a fifth of a dataclass's own time
