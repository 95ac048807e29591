"""Floats of 16 bits, ``f16`` and ``bf16``, alone or two in a word.

They are computed as 32-bit floats and rounded once more. For sums, differences and products that
gives the same as rounding once (24 bits are at least twice 11 and 2 more); a fused product goes
through a double and a float rounded to odd. Every step is of integers or fixed by IEEE 754, so
every machine simulates the same.
"""

from __future__ import annotations

from typing import Final

from nqbench.simulator.codegen import floats
from nqbench.simulator.codegen.floats import DOUBLE, FLOAT, real
from nqbench.simulator.codegen.moves import FLOAT_TESTS, ROUNDINGS, to_integer
from nqbench.simulator.codegen.writer import Handler, KernelWriter, PtxType
from nqbench.simulator.ir import V16, V32, V64, Function, Value, const
from nqbench.simulator.ptx import WIDTHS, Instruction, Operand, both

HALVES: Final = ("f16", "bf16", "f16x2", "bf16x2")
KNOWN: Final = frozenset(
    {"rn", "rz", "ftz", "sat", "relu", "approx", "NaN", "noftz", "rni", "rzi", "rmi", "rpi"}
)
SIGN, MAGNITUDE, CANONICAL_NAN = 0x8000, 0x7FFF, 0x7FFF


def widened(f: Function, half: Value, kind: str) -> Value:
    """The float that 16 bits stand for; also of a single lane."""
    wide = f.resize(half, 32)
    if kind.startswith("bf16"):
        return f.as_float(f.op("shl", wide, const(wide.type, 16)))
    small = f.op("shl", f.and_(wide, const(wide.type, MAGNITUDE)), const(wide.type, 13))
    scale = f.as_float(const(wide.type, 0x77800000))  # 2**112
    bits = f.as_number(f.op("fmul", f.as_float(small), scale))
    special = f.compare("uge", small, const(wide.type, 0x7C00 << 13))
    bits = f.select(special, f.or_(bits, const(wide.type, 0x7F800000)), bits)
    sign = f.op("shl", f.and_(wide, const(wide.type, SIGN)), const(wide.type, 16))
    return f.as_float(f.or_(bits, sign))


def narrowed(f: Function, value: Value, kind: str) -> Value:
    """The 16 bits nearest to a float, ties to even; also of a single lane."""
    bits = f.as_number(value)
    type_ = bits.type
    size = f.and_(bits, const(type_, 0x7FFFFFFF))
    sign = f.and_(f.op("lshr", bits, const(type_, 16)), const(type_, SIGN))
    nan = f.compare("ugt", size, const(type_, 0x7F800000))
    one = const(type_, 1)
    if kind.startswith("bf16"):
        odd = f.and_(f.op("lshr", size, const(type_, 16)), one)
        result = f.op("lshr", f.add(f.add(size, const(type_, 0x7FFF)), odd), const(type_, 16))
    else:
        odd = f.and_(f.op("lshr", size, const(type_, 13)), one)
        moved = f.add(f.add(size, const(type_, 0xFFF - (112 << 23))), odd)
        normal = f.op("lshr", moved, const(type_, 13))
        half = f.as_float(const(type_, 126 << 23))  # adding 0.5 rounds at the last subnormal bit
        tiny = f.sub(f.as_number(f.op("fadd", f.as_float(size), half)), const(type_, 126 << 23))
        small = f.compare("ult", size, const(type_, 113 << 23))
        result = f.select(small, tiny, normal)
        large = f.compare("uge", size, const(type_, 0x477FF000))
        result = f.select(large, const(type_, 0x7C00), result)
    result = f.select(nan, const(type_, CANONICAL_NAN), f.or_(result, sign))
    return f.resize(result, 16)


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


def _kind(k: KernelWriter, i: Instruction) -> str:
    for modifier in i.modifiers[:-1]:
        if modifier not in KNOWN:
            raise k.unsupported(i, f"modifier .{modifier}")
    return i.modifiers[-1]


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


def _finished(k: KernelWriter, i: Instruction, value: Value) -> Value:
    if "sat" in i.modifiers:
        value = floats.saturated(k, value)
    if "relu" in i.modifiers:
        nothing = real(k, 0.0, FLOAT)
        nan = k.f.fcompare("uno", value, value)
        value = k.f.select(nan, value, k.f.intrinsic("maximumnum", value, nothing))
    return value


def _computed(k: KernelWriter, i: Instruction, values: list[Value]) -> Value:
    f = k.f
    a = values[0]
    if i.opcode in ("add", "sub", "mul"):
        return f.op("f" + i.opcode, a, values[1])
    if i.opcode == "fma":
        x, y, z = (f.cast("fpext", value, DOUBLE) for value in values)
        return to_odd(k, f.op("fadd", f.op("fmul", x, y), z))
    if i.opcode in ("min", "max"):
        name = "imum" if "NaN" in i.modifiers else "imumnum"
        return f.intrinsic(i.opcode + name, a, values[1])
    wide = f.cast("fpext", a, DOUBLE)
    exact = floats.power_of_two_of(k, wide) if i.opcode == "ex2" else floats.tanh_of(k, wide)
    return f.cast("fptrunc", exact, FLOAT)


def arithmetic(k: KernelWriter, i: Instruction) -> None:
    kind = _kind(k, i)
    operands = [halves(k, operand, kind) for operand in i.operands[1:]]
    parts = []
    for part in zip(*operands, strict=True):
        values = [widened(k.f, value, kind) for value in part]
        parts.append(narrowed(k.f, _finished(k, i, _computed(k, i, values)), kind))
    k.write(i.operands[0], joined(k, parts))


def sign(k: KernelWriter, i: Instruction) -> None:
    """``neg`` and ``abs`` change one bit."""
    kind = _kind(k, i)
    how, mask = (k.f.xor, SIGN) if i.opcode == "neg" else (k.f.and_, MAGNITUDE)
    parts = [how(part, const(V16, mask)) for part in halves(k, i.operands[1], kind)]
    k.write(i.operands[0], joined(k, parts))


def _tests(k: KernelWriter, i: Instruction, kind: str) -> list[Value]:
    a, b = (halves(k, operand, kind) for operand in i.operands[1:3])
    test = FLOAT_TESTS[i.modifiers[0]]
    return [
        k.f.fcompare(test, widened(k.f, x, kind), widened(k.f, y, kind))
        for x, y in zip(a, b, strict=True)
    ]


def compare(k: KernelWriter, i: Instruction) -> None:
    """``setp``: two words give two predicates."""
    found = _tests(k, i, i.modifiers[-1])
    if i.modifiers[1] in ("and", "or", "xor"):
        extra = k.predicate(i.operands[3])
        found = [k.f.op(i.modifiers[1], one, extra) for one in found]
    first, second = both(i.operands[0])
    k.write(first, found[0])
    if second is not None:
        k.write(second, found[1] if len(found) > 1 else k.f.not_(found[0]))


def set_(k: KernelWriter, i: Instruction) -> None:
    """``set``: 1.0 (or all bits, for integers) where the test holds, else 0."""
    to, kind = i.modifiers[-2:]
    ones = {"f16": 0x3C00, "f16x2": 0x3C00, "bf16": 0x3F80, "bf16x2": 0x3F80}.get(to, 0xFFFF)
    parts = [k.f.select(t, const(V16, ones), const(V16, 0)) for t in _tests(k, i, kind)]
    if to in ("u32", "s32") and len(parts) == 1:
        parts *= 2
    k.write(i.operands[0], joined(k, parts))


def convert(k: KernelWriter, i: Instruction) -> None:
    """``cvt`` from and to other types; ``f16x2`` and ``bf16x2`` take two floats, high first."""
    f = k.f
    kinds = [m for m in i.modifiers if m in WIDTHS]
    if len(kinds) != 2 or {*i.modifiers} - {*kinds} - KNOWN or "rz" in i.modifiers:
        raise k.unsupported(i)
    to, source = kinds
    if to.endswith("x2"):
        values = [floats.read_float(k, operand, 32) for operand in reversed(i.operands[1:3])]
        parts = [narrowed(f, _finished(k, i, value), to) for value in values]
        k.write(i.operands[0], joined(k, parts))
        return
    value = i.operands[1]
    if source in HALVES:
        number = widened(f, k.read(value, 16), source)
        if how := next((ROUNDINGS[m] for m in i.modifiers if m in ROUNDINGS), ""):
            number = f.intrinsic(how, number)
    elif source == "f32":
        number = floats.read_float(k, value, 32)
    elif source == "f64":
        number = to_odd(k, floats.read_float(k, value, 64))
    else:
        how = "sitofp" if source[0] == "s" else "uitofp"
        number = to_odd(k, f.cast(how, k.read(value, WIDTHS[source]), DOUBLE))
    number = _finished(k, i, number)
    if to in HALVES:
        k.write(i.operands[0], narrowed(f, number, to))
    elif to == "f32":
        k.write(i.operands[0], f.as_number(number))
    elif to == "f64":
        k.write(i.operands[0], f.cast("bitcast", f.cast("fpext", number, DOUBLE), V64))
    else:
        kind = PtxType(to)
        k.write(i.operands[0], to_integer(k, number, kind), kind.signed)


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


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "min", "max", "ex2", "tanh"), arithmetic),
    "neg": sign, "abs": sign, "setp": compare, "set": set_, "cvt": convert,
}  # fmt: skip


def handler(i: Instruction) -> Handler | None:
    """What translates an instruction on floats of 16 bits; ``None`` if it is none."""
    return None if set(HALVES).isdisjoint(i.modifiers) else HANDLERS.get(i.opcode)
