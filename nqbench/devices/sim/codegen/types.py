"""Reading the modifiers of an opcode: types, and everything else that must be known."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.ptx import WIDTHS, Instruction
from nqbench.devices.sim.values import Value, like

Handler = Callable[[KernelWriter, Instruction], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A PTX type such as ``s32``."""

    name: str

    @property
    def bits(self) -> int:
        return WIDTHS[self.name]

    @property
    def signed(self) -> bool:
        return self.name[0] == "s"

    @property
    def float(self) -> bool:
        return self.name[0] == "f"


def kinds(
    k: KernelWriter, i: Instruction, known: Collection[str] = (), allow: str = "usb"
) -> tuple[Kind, ...]:
    """The types among the modifiers. Any other modifier must be in ``known``, and every type must
    begin with a letter of ``allow``; otherwise the instruction is refused."""
    found = []
    for modifier in i.modifiers:
        if modifier in WIDTHS:
            if modifier[0] not in allow or modifier == "f16":
                raise k.unsupported(i, f"type .{modifier}")
            found.append(Kind(modifier))
        elif modifier not in known:
            raise k.unsupported(i, f"modifier .{modifier}")
    return tuple(found)


def as_float(k: KernelWriter, value: Value) -> Value:
    """The bits of <32 x i32> or <32 x i64> seen as floats."""
    name = "float" if value.type.endswith("i32>") else "double"
    return k.f.cast("bitcast", value, like(value.type, name))


def as_bits(k: KernelWriter, value: Value) -> Value:
    """The inverse of :func:`as_float`."""
    name = "i32" if value.type.endswith("float>") else "i64"
    return k.f.cast("bitcast", value, like(value.type, name))
