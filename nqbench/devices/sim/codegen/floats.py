"""Floating point: operations whose result IEEE 754 fixes; what a GPU approximates is refused."""

from __future__ import annotations

from nqbench.devices.sim.codegen.types import Handler, as_bits, as_float, kinds
from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.ptx import Instruction, float_bits
from nqbench.devices.sim.values import Value, const, like

FLOAT_TYPES = ("f32", "f64")


def is_float(i: Instruction) -> bool:
    """Whether the instruction works on floats."""
    return bool(i.modifiers) and i.modifiers[-1] in FLOAT_TYPES


def _read(k: KernelWriter, i: Instruction) -> list[Value]:
    (kind,) = kinds(k, i, ("rn",), allow="f")
    return [as_float(k, k.read(operand, kind.bits, kind.name)) for operand in i.operands[1:]]


def _write(k: KernelWriter, i: Instruction, value: Value) -> None:
    k.write(i.operands[0], as_bits(k, value))


def binary(k: KernelWriter, i: Instruction) -> None:
    if i.opcode == "div" and "rn" not in i.modifiers:
        raise k.unsupported(i, "only round-to-nearest division is exact")
    a, b = _read(k, i)
    _write(k, i, k.f.op("f" + i.opcode, a, b))


def fused(k: KernelWriter, i: Instruction) -> None:
    a, b, c = _read(k, i)
    _write(k, i, k.f.intrinsic("fma", a, b, c))


def unary(k: KernelWriter, i: Instruction) -> None:
    f = k.f
    if i.opcode in ("sqrt", "rcp") and "rn" not in i.modifiers:
        raise k.unsupported(i, "only the round-to-nearest form is exact")
    (a,) = _read(k, i)
    if i.opcode == "neg":
        result = f.emit(a.type, f"fneg {a}")
    elif i.opcode == "abs":
        result = f.intrinsic("fabs", a)
    elif i.opcode == "sqrt":
        result = f.intrinsic("sqrt", a)
    else:
        bits = 32 if "float" in a.type else 64
        one = as_float(k, const(like(a.type, f"i{bits}"), float_bits(1.0, bits)))
        result = f.op("fdiv", one, a)
    _write(k, i, result)


def extreme(k: KernelWriter, i: Instruction) -> None:
    """A number wins over NaN, and -0 counts as less than +0."""
    a, b = _read(k, i)
    _write(k, i, k.f.intrinsic(f"{i.opcode}imumnum", a, b))


def copysign(k: KernelWriter, i: Instruction) -> None:
    """The first operand gives the sign, the second the value."""
    a, b = _read(k, i)
    _write(k, i, k.f.intrinsic("copysign", b, a))


FLOATS: dict[str, Handler] = {
    "add": binary, "sub": binary, "mul": binary, "div": binary, "fma": fused, "mad": fused,
    "neg": unary, "abs": unary, "sqrt": unary, "rcp": unary, "min": extreme, "max": extreme,
    "copysign": copysign,
}  # fmt: skip
