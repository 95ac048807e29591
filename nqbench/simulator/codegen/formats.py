"""Floats of 8 to 64 bits: what their bits stand for, and how a number is rounded to them.

Floats of 16 and 8 bits are computed as those of 32 and rounded once more. For sums, differences and
products that gives the same as rounding once (24 bits are at least twice 11 and 2 more); what is
exact in a double goes through a float rounded to odd. Every step is of integers or fixed by
IEEE 754, so every machine simulates the same.
"""

from __future__ import annotations

from typing import Final

from nqbench.simulator.codegen.writer import KernelWriter
from nqbench.simulator.ir import I32, V16, V32, V64, Function, Value, const, overload, vector
from nqbench.simulator.ptx import Instruction, Operand, float_bits

FLOAT, DOUBLE = vector("float"), vector("double")
HALVES: Final = ("f16", "bf16", "f16x2", "bf16x2")
EIGHTS: Final = {"e4m3x2": (3, 7, 0x7E), "e5m2x2": (2, 15, 0x7B)}
"""Pairs of floats of 8 bits: bits of the fraction, bias, the largest number."""
FLOATING: Final = frozenset({"f32", "f64", *HALVES, *EIGHTS})
DIRECTED: Final = {"rz": 0, "rp": 2, "rm": 3}
"""Towards zero, up, down: their numbers in LLVM."""
NEAREST: Final = 1
MIN_NORMAL_BITS: Final = 0x00800000
MAGNITUDE: Final = 0x7FFFFFFF
SIGN: Final = 0x80000000


def real(k: KernelWriter, number: float, type_: str) -> Value:
    """A constant of a float type."""
    bits = 32 if type_ == FLOAT else 64
    return k.f.as_float(const(V32 if bits == 32 else V64, float_bits(number, bits)))


def reals(k: KernelWriter, i: Instruction, operand: Operand, kind: str) -> list[Value]:
    """The one or two floats of an operand, lowest first, of 32 or 64 bits; without subnormals of
    32 bits if the instruction says so."""
    f = k.f
    if kind in ("f32", "f64"):
        values = [f.as_float(k.read(operand, int(kind[1:]), kind))]
    elif kind in EIGHTS:
        word = f.resize(k.read(operand, 16), 32)
        parts = [f.and_(word, const(V32, 0xFF)), f.op("lshr", word, const(V32, 8))]
        values = [_of_eight(f, part, kind) for part in parts]
    else:
        values = [widened(f, half, kind) for half in halves(k, operand, kind)]
    return [flushed(k, value) for value in values] if "ftz" in i.modifiers else values


def bits_of(
    k: KernelWriter, i: Instruction, values: list[Value], kind: str, towards: str = ""
) -> Value:
    """The inverse: floats of 32 or 64 bits saturated and flushed as the instruction says, rounded
    to the nearest of a kind or in a direction, as bits."""
    f, values = k.f, [_limited(k, i, value) for value in values]
    if kind in ("f32", "f64"):
        (value,), type_ = values, FLOAT if kind == "f32" else DOUBLE
        if value.type != type_:
            how = "fptrunc" if kind == "f32" else "fpext"
            value = ieee(k, how, towards if kind == "f32" else "", type_, value)
        return f.as_number(flushed(k, value) if "ftz" in i.modifiers else value)
    if kind in EIGHTS:
        low, high = (_to_eight(f, value, kind) for value in values)
        return f.resize(f.or_(low, f.op("shl", high, const(V32, 8))), 16)
    return joined(k, [_half(k, value, kind, towards) for value in values])


def flushed(k: KernelWriter, value: Value) -> Value:
    """Zero of the same sign in place of a subnormal (32-bit only)."""
    if value.type != FLOAT:
        return value
    f = k.f
    bits = k.f.as_number(value)
    small = f.compare("ult", f.and_(bits, const(V32, MAGNITUDE)), const(V32, MIN_NORMAL_BITS))
    return k.f.as_float(f.select(small, f.and_(bits, const(V32, SIGN)), bits))


def _limited(k: KernelWriter, i: Instruction, value: Value) -> Value:
    """``.sat``: between 0 and 1, NaN becomes 0. ``.relu``: at least 0, NaN stays."""
    f, zero = k.f, real(k, 0.0, value.type)
    if "sat" in i.modifiers:
        low = f.intrinsic("maximumnum", value, zero)
        value = f.intrinsic("minimumnum", low, real(k, 1.0, value.type))
    if "relu" in i.modifiers:
        nan = f.fcompare("uno", value, value)
        value = f.select(nan, value, f.intrinsic("maximumnum", value, zero))
    return value


def ieee(k: KernelWriter, how: str, towards: str, type_: str, *values: Value) -> Value:
    """What IEEE 754 fixes (LLVM's ``fadd``, ``fma``, ``fptrunc``, ...), rounded to the nearest, or
    in a direction by a function that changes the CPU's own rounding for the time."""
    f = k.f
    if not towards and how in ("fma", "sqrt"):
        return f.intrinsic(how, *values)
    if not towards:
        return f.op(how, *values) if len(values) == 2 else f.cast(how, values[0], type_)
    types = ".".join(dict.fromkeys(overload(one) for one in (type_, values[0].type)))
    name = f"sim_{how}_{towards}_{types}"
    if name not in f.module.functions:
        parameters = ", ".join(f"{value.type} x{n}" for n, value in enumerate(values))
        g = Function(f.module, f"{type_} {name}({parameters}) noinline nounwind strictfp")
        g.call("void", "llvm.set.rounding", const(I32, DIRECTED[towards]))
        rules = [Value("metadata", f'!"{rule}"') for rule in ("round.dynamic", "fpexcept.strict")]
        full = f"llvm.experimental.constrained.{how}.{types}"
        result = g.call(type_, full, *g.parameters, *rules)
        g.call("void", "llvm.set.rounding", const(I32, NEAREST))
        g.ret(result)
    return f.call(type_, name, *values)


def directed(i: Instruction) -> str:
    """The direction in which an instruction rounds; empty for the nearest."""
    return next((m for m in i.modifiers if m in DIRECTED), "")


def widened(f: Function, half: Value, kind: str) -> Value:
    """The float that 16 bits stand for; also of a single lane."""
    wide = f.resize(half, 32)
    if kind.startswith("bf16"):
        return f.as_float(f.op("shl", wide, const(wide.type, 16)))
    small = f.op("shl", f.and_(wide, const(wide.type, 0x7FFF)), const(wide.type, 13))
    scale = f.as_float(const(wide.type, 0x77800000))  # 2**112
    bits = f.as_number(f.op("fmul", f.as_float(small), scale))
    special = f.compare("uge", small, const(wide.type, 0x7C00 << 13))
    bits = f.select(special, f.or_(bits, const(wide.type, 0x7F800000)), bits)
    sign = f.op("shl", f.and_(wide, const(wide.type, 0x8000)), const(wide.type, 16))
    return f.as_float(f.or_(bits, sign))


def narrowed(f: Function, value: Value, kind: str) -> Value:
    """The 16 bits nearest to a float, ties to even, NaN always 7FFF; also of a single lane."""
    bits = f.as_number(value)
    type_ = bits.type
    size = f.and_(bits, const(type_, MAGNITUDE))
    sign = f.and_(f.op("lshr", bits, const(type_, 16)), const(type_, 0x8000))
    nan = f.compare("ugt", size, const(type_, 0x7F800000))
    if kind.startswith("bf16"):
        odd = f.and_(f.op("lshr", size, const(type_, 16)), const(type_, 1))
        result = f.op("lshr", f.add(f.add(size, const(type_, 0x7FFF)), odd), const(type_, 16))
    else:
        result = _fewer_bits(f, size, 10, 15)
        large = f.compare("uge", size, const(type_, 0x477FF000))
        result = f.select(large, const(type_, 0x7C00), result)
    result = f.select(nan, const(type_, 0x7FFF), f.or_(result, sign))
    return f.resize(result, 16)


def _fewer_bits(f: Function, size: Value, fraction: int, bias: int) -> Value:
    """The bits of a float's size with a fraction and an exponent of fewer bits, ties to even."""
    type_, gone = size.type, 23 - fraction
    odd = f.and_(f.op("lshr", size, const(type_, gone)), const(type_, 1))
    shift = (1 << (gone - 1)) - 1 - (127 - bias << 23)
    normal = f.op("lshr", f.add(f.add(size, const(type_, shift)), odd), const(type_, gone))
    last = const(type_, 151 - bias - fraction << 23)  # adding it rounds at the last bit
    tiny = f.sub(f.as_number(f.op("fadd", f.as_float(size), f.as_float(last))), last)
    small = f.compare("ult", size, const(type_, 128 - bias << 23))
    return f.select(small, tiny, normal)


def _to_eight(f: Function, value: Value, kind: str) -> Value:
    """The 8 bits nearest to a float, at most the largest number (<32 x i32>)."""
    fraction, bias, most = EIGHTS[kind]
    bits = f.as_number(value)
    size = f.and_(bits, const(V32, MAGNITUDE))
    infinite = f.compare("uge", size, const(V32, 0x7F800000))
    found = f.intrinsic("umin", _fewer_bits(f, size, fraction, bias), const(V32, most))
    found = f.select(infinite, const(V32, most), found)
    found = f.select(f.compare("ugt", size, const(V32, 0x7F800000)), const(V32, 0x7F), found)
    sign = f.and_(f.op("lshr", bits, const(V32, 24)), const(V32, 0x80))
    return f.or_(found, f.select(f.fcompare("uno", value, value), const(V32, 0), sign))


def _of_eight(f: Function, byte: Value, kind: str) -> Value:
    """The float that 8 bits (in a <32 x i32>) stand for."""
    if kind == "e5m2x2":
        return widened(f, f.resize(f.op("shl", byte, const(V32, 8)), 16), "f16")
    size, sign = f.and_(byte, const(V32, 0x7F)), f.and_(byte, const(V32, 0x80))
    half = f.or_(f.op("shl", size, const(V32, 7)), f.op("shl", sign, const(V32, 8)))
    scale = f.as_float(const(V32, 135 << 23))  # 2**8: the bias has 8 less
    number = f.op("fmul", widened(f, f.resize(half, 16), "f16"), scale)
    no_number = f.as_float(const(V32, MAGNITUDE))
    return f.select(f.compare("eq", size, const(V32, 0x7F)), no_number, number)


def to_odd(k: KernelWriter, value: Value) -> Value:
    """A double as a float rounded to odd, which rounds to the 16 bits that one rounding gives."""
    f = k.f
    near = f.cast("fptrunc", value, FLOAT)
    back = f.cast("fpext", near, DOUBLE)
    size, back_size = f.intrinsic("fabs", value), f.intrinsic("fabs", back)
    bits = f.as_number(near)
    above = f.fcompare("ogt", back_size, size)
    inexact = f.fcompare("one", back, value)
    down = f.select(above, f.sub(bits, const(V32, 1)), bits)
    return f.as_float(f.select(inexact, f.or_(down, const(V32, 1)), bits))


def _half(k: KernelWriter, value: Value, kind: str, towards: str) -> Value:
    """A float or double as 16 bits: the nearest, or one step away from it in a direction, where
    that lies on the wrong side."""
    f, one = k.f, const(V16, 1)
    near = narrowed(f, value if value.type == FLOAT else to_odd(k, value), kind)
    if not towards:
        return near
    wide, exact = f.cast("fpext", widened(f, near, kind), DOUBLE), f.cast("fpext", value, DOUBLE)
    above, below = f.fcompare("ogt", wide, exact), f.fcompare("olt", wide, exact)
    negative = f.compare("slt", near, const(V16, 0))
    smaller, larger = f.sub(near, one), f.add(near, one)  # in magnitude
    if towards == "rz":
        return f.select(f.select(negative, below, above), smaller, near)
    if towards == "rm":
        return f.select(above, f.select(negative, larger, smaller), near)
    return f.select(below, f.select(negative, smaller, larger), near)


def halves(k: KernelWriter, operand: Operand, kind: str) -> list[Value]:
    """The one or two <32 x i16> of an operand, lowest first."""
    if not kind.endswith("x2"):
        return [k.read(operand, 16)]
    word = k.read(operand, 32)
    high = k.f.op("lshr", word, const(V32, 16))
    return [k.f.resize(word, 16), k.f.resize(high, 16)]


def joined(k: KernelWriter, parts: list[Value]) -> Value:
    """The inverse of :func:`halves`."""
    if len(parts) == 1:
        return parts[0]
    low, high = (k.f.resize(part, 32) for part in parts)
    return k.f.or_(low, k.f.op("shl", high, const(V32, 16)))


def sum_of(f: Function, old: Value, new: Value, kind: str) -> Value:
    """What an atomic addition of one lane leaves in memory."""
    if not kind.endswith("x2"):
        both = [widened(f, value, kind) for value in (old, new)]
        return narrowed(f, f.op("fadd", *both), kind)
    result = const("i32", 0)
    for shift in (0, 16):
        a, b = (f.resize(f.op("lshr", v, const("i32", shift)), 16) for v in (old, new))
        part = f.resize(sum_of(f, a, b, kind.removesuffix("x2")), 32)
        result = f.or_(result, f.op("shl", part, const("i32", shift)))
    return result
