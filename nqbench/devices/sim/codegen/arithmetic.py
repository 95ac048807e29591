"""Integer arithmetic: add to rem."""

from __future__ import annotations

from nqbench.devices.sim.codegen.types import Handler, Kind, kinds
from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.faults import Fault
from nqbench.devices.sim.ptx import Instruction
from nqbench.devices.sim.values import I32, V32, Value, const, like


def _operands(k: KernelWriter, i: Instruction, kind: Kind) -> list[Value]:
    return [k.read(operand, kind.bits, kind.name) for operand in i.operands[1:]]


def add_sub(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i)
    a, b = _operands(k, i, kind)
    k.write(i.operands[0], k.f.op(i.opcode, a, b), kind.signed)


def _product(k: KernelWriter, a: Value, b: Value, kind: Kind, part: str) -> Value:
    """``lo``: the low half; ``hi``: the high half; ``wide``: all bits."""
    if part == "lo":
        return k.f.op("mul", a, b)
    double = 2 * kind.bits
    whole = k.f.op("mul", k.f.resize(a, double, kind.signed), k.f.resize(b, double, kind.signed))
    if part == "wide":
        return whole
    return k.f.resize(k.f.op("lshr", whole, const(whole.type, kind.bits)), kind.bits)


def mul_mad(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i, ("lo", "hi", "wide"))
    part = i.modifiers[0]
    if part == "wide" and kind.bits == 64:
        raise k.unsupported(i)
    a, b = (k.read(operand, kind.bits) for operand in i.operands[1:3])
    result = _product(k, a, b, kind, part)
    if i.opcode == "mad":
        bits = kind.bits * (2 if part == "wide" else 1)
        result = k.f.add(result, k.read(i.operands[3], bits))
    k.write(i.operands[0], result, kind.signed)


def mul24(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i, ("lo",))
    if i.modifiers[0] != "lo":
        raise k.unsupported(i)
    shift = "ashr" if kind.signed else "lshr"
    eight = const(V32, 8)
    a, b = (
        k.f.op(shift, k.f.op("shl", value, eight), eight)
        for value in (k.read(operand, 32) for operand in i.operands[1:3])
    )
    result = k.f.op("mul", a, b)
    if i.opcode == "mad24":
        result = k.f.add(result, k.read(i.operands[3], 32))
    k.write(i.operands[0], result, kind.signed)


def div_rem(k: KernelWriter, i: Instruction) -> None:
    """Division by zero is a fault: PTX leaves its result to the machine. Lanes that do not take
    part divide by 1. The smallest number by -1 gives itself, remainder 0."""
    f = k.f
    (kind,) = kinds(k, i)
    a, b = _operands(k, i, kind)
    one = const(b.type, 1)
    zero = f.and_(k.active, f.compare("eq", b, const(b.type, 0)))
    k.fault_if(Fault.DIVISION, f.as_bits(zero), i)
    b = f.select(k.active, b, one)
    minus: Value | None = None
    if kind.signed:
        minus = f.compare("eq", b, const(b.type, -1))
        b = f.select(minus, one, b)
    if kind.bits <= 32:
        quotient = _short_quotient(k, a, b, kind)
    else:
        quotient = f.op("sdiv" if kind.signed else "udiv", a, b)
    if i.opcode == "rem":
        result = f.sub(a, f.op("mul", quotient, b))
    elif minus is not None:
        result = f.select(minus, f.sub(const(a.type, 0), quotient), quotient)
    else:
        result = quotient
    k.write(i.operands[0], result, kind.signed)


def _short_quotient(k: KernelWriter, a: Value, b: Value, kind: Kind) -> Value:
    """Through doubles, which is exact up to 32 bits: a quotient that is not whole lies at least
    1/b below the next whole number, far more than the rounding of a 53-bit division."""
    double = like(a.type, "double")
    sign = "s" if kind.signed else "u"
    x, y = (k.f.cast(f"{sign}itofp", value, double) for value in (a, b))
    wide = k.f.cast("fptosi", k.f.op("fdiv", x, y), like(a.type, "i64"))
    return k.f.resize(wide, kind.bits)


def negate(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i)
    (a,) = _operands(k, i, kind)
    k.write(i.operands[0], k.f.sub(const(a.type, 0), a), kind.signed)


def absolute(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i)
    (a,) = _operands(k, i, kind)
    k.write(i.operands[0], k.f.intrinsic("abs", a, const("i1", 0)), kind.signed)


def extreme(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i)
    a, b = _operands(k, i, kind)
    name = ("s" if kind.signed else "u") + i.opcode
    k.write(i.operands[0], k.f.intrinsic(name, a, b), kind.signed)


def sad(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i)
    a, b, c = _operands(k, i, kind)
    sign = "s" if kind.signed else "u"
    apart = k.f.sub(k.f.intrinsic(f"{sign}max", a, b), k.f.intrinsic(f"{sign}min", a, b))
    k.write(i.operands[0], k.f.add(apart, c), kind.signed)


def trap(k: KernelWriter, i: Instruction) -> None:
    kinds(k, i)
    k.fault_if(Fault.TRAP, k.f.or_(k.lanes, const(I32, 0)), i)


INTEGER: dict[str, Handler] = {
    "add": add_sub, "sub": add_sub, "mul": mul_mad, "mad": mul_mad, "mul24": mul24,
    "mad24": mul24, "div": div_rem, "rem": div_rem, "neg": negate, "abs": absolute,
    "min": extreme, "max": extreme, "sad": sad, "trap": trap,
}  # fmt: skip
