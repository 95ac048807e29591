"""Floating point: operations whose result IEEE 754 fixes."""

from __future__ import annotations

from nqbench.devices.sim.codegen.approximations import APPROXIMATIONS
from nqbench.devices.sim.codegen.rounding import (
    MODIFIERS,
    directed,
    direction,
    finished,
    flushed,
)
from nqbench.devices.sim.codegen.types import Handler, as_bits, as_float, kinds
from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.ptx import Instruction, float_bits
from nqbench.devices.sim.values import Value, const, like

FLOAT_TYPES = ("f32", "f64")


def _read(k: KernelWriter, i: Instruction) -> list[Value]:
    (kind,) = kinds(k, i, MODIFIERS, allow="f")
    values = [as_float(k, k.read(operand, kind.bits, kind.name)) for operand in i.operands[1:]]
    return [flushed(k, value) for value in values] if "ftz" in i.modifiers else values


def _write(k: KernelWriter, i: Instruction, value: Value) -> None:
    k.write(i.operands[0], as_bits(k, finished(k, i, value)))


def _directed(k: KernelWriter, i: Instruction, operands: list[Value]) -> Value | None:
    """The result where a direction of rounding is asked for; ``None`` if it is the nearest."""
    towards = direction(i)
    if not towards:
        return None
    if i.modifiers[-1] != "f32" or i.opcode not in ("add", "sub", "mul", "fma"):
        raise k.unsupported(i, "only 32-bit sums and products are rounded in a direction")
    return directed(k, i.opcode, operands, towards)


def binary(k: KernelWriter, i: Instruction) -> None:
    a, b = _read(k, i)
    _write(k, i, _directed(k, i, [a, b]) or k.f.op("f" + i.opcode, a, b))


def fused(k: KernelWriter, i: Instruction) -> None:
    a, b, c = _read(k, i)
    _write(k, i, _directed(k, i, [a, b, c]) or k.f.intrinsic("fma", a, b, c))


def unary(k: KernelWriter, i: Instruction) -> None:
    f = k.f
    (a,) = _read(k, i)
    if direction(i):
        raise k.unsupported(i, "only the round-to-nearest form is exact")
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


def handler(i: Instruction) -> Handler | None:
    """What translates an instruction on floats; ``None`` if it is none or has no such meaning."""
    if not i.modifiers or i.modifiers[-1] not in FLOAT_TYPES:
        return None
    approximate = {"approx", "full"} & set(i.modifiers)
    return (APPROXIMATIONS if approximate else FLOATS).get(i.opcode)


FLOATS: dict[str, Handler] = {
    "add": binary, "sub": binary, "mul": binary, "div": binary, "fma": fused, "mad": fused,
    "neg": unary, "abs": unary, "sqrt": unary, "rcp": unary, "min": extreme, "max": extreme,
    "copysign": copysign,
}  # fmt: skip
