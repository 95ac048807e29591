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
from nqbench.simulator.codegen.moves import FLOAT_TESTS, ROUNDINGS, directed, to_integer
from nqbench.simulator.codegen.writer import Handler, KernelWriter, PtxType
from nqbench.simulator.ir import V16, V32, V64, Function, Value, const
from nqbench.simulator.ptx import WIDTHS, Instruction, Operand, both

HALVES: Final = ("f16", "bf16", "f16x2", "bf16x2")
EIGHTS: Final = {"e4m3x2": (3, 7, 0x7E), "e5m2x2": (2, 15, 0x7B)}
"""Pairs of floats of 8 bits: bits of the fraction, bias, the largest number."""
KNOWN: Final = frozenset(
    {
        "rn",
        "rz",
        "rm",
        "rp",
        "satfinite",
        "ftz",
        "sat",
        "relu",
        "approx",
        "NaN",
        "noftz",
        "rni",
        "rzi",
        "rmi",
        "rpi",
    }
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
        result = _fewer_bits(f, size, 10, 15)
        large = f.compare("uge", size, const(type_, 0x477FF000))
        result = f.select(large, const(type_, 0x7C00), result)
    result = f.select(nan, const(type_, CANONICAL_NAN), f.or_(result, sign))
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
    size = f.and_(bits, const(V32, 0x7FFFFFFF))
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
    no_number = f.as_float(const(V32, 0x7FFFFFFF))
    return f.select(f.compare("eq", size, const(V32, 0x7F)), no_number, number)


def _rounded(k: KernelWriter, i: Instruction, number: Value, exact: Value, to: str) -> Value:
    """A float as 16 bits: the nearest, or rounded in a direction from the double ``exact``."""
    near = narrowed(k.f, number, to)
    if not (towards := directed(i)):
        return near
    wide = k.f.cast("fpext", widened(k.f, near, to), DOUBLE)
    return floats.stepped_from(k, near, wide, exact, towards)


def convert_eights(k: KernelWriter, i: Instruction) -> None:
    """``cvt`` from and to pairs of 8 bits."""
    f, (to, source) = k.f, [m for m in i.modifiers if m in WIDTHS or m in EIGHTS]
    _kind(k, i)
    if to in EIGHTS:
        if source == "f32":
            values = [floats.read_float(k, operand, 32) for operand in reversed(i.operands[1:3])]
        else:
            values = [widened(f, half, source) for half in halves(k, i.operands[1], source)]
        low, high = (_to_eight(f, _finished(k, i, value), to) for value in values)
        k.write(i.operands[0], f.resize(f.or_(low, f.op("shl", high, const(V32, 8))), 16))
        return
    word = f.resize(k.read(i.operands[1], 16), 32)
    parts = [f.and_(word, const(V32, 0xFF)), f.op("lshr", word, const(V32, 8))]
    numbers = [_finished(k, i, _of_eight(f, part, source)) for part in parts]
    k.write(i.operands[0], joined(k, [narrowed(f, number, to) for number in numbers]))


def pairs(k: KernelWriter, i: Instruction) -> None:
    """``add``, ``min`` and ``max`` of two whole numbers of 16 bits in a word."""
    a, b = (halves(k, operand, "x2") for operand in i.operands[1:3])
    parts = []
    for x, y in zip(a, b, strict=True):
        if i.opcode == "add":
            part = k.f.add(x, y)
        else:
            part = k.f.intrinsic(i.modifiers[-1][0] + i.opcode, x, y)
        if "relu" in i.modifiers:
            part = k.f.intrinsic("smax", part, const(V16, 0))
        parts.append(part)
    k.write(i.operands[0], joined(k, parts))


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
        if modifier not in KNOWN and modifier not in (*HALVES, *EIGHTS):
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
    found = found if len(found) > 1 else [*found, k.f.not_(found[0])]
    if i.modifiers[1] in ("and", "or", "xor"):
        extra = k.predicate(i.operands[3])
        found = [k.f.op(i.modifiers[1], one, extra) for one in found]
    for target, value in zip(both(i.operands[0]), found, strict=True):
        if target is not None:
            k.write(target, value)


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
    if len(kinds) != 2 or {*i.modifiers} - {*kinds} - KNOWN:
        raise k.unsupported(i)
    to, source = kinds
    if to.endswith("x2"):
        values = [floats.read_float(k, operand, 32) for operand in reversed(i.operands[1:3])]
        values = [_finished(k, i, value) for value in values]
        parts = [_rounded(k, i, v, f.cast("fpext", v, DOUBLE), to) for v in values]
        k.write(i.operands[0], joined(k, parts))
        return
    exact: Value | None = None
    value = i.operands[1]
    if source in HALVES:
        number = widened(f, k.read(value, 16), source)
        if how := next((ROUNDINGS[m] for m in i.modifiers if m in ROUNDINGS), ""):
            number = f.intrinsic(how, number)
    elif source == "f32":
        number = floats.read_float(k, value, 32)
    elif source == "f64":
        exact = floats.read_float(k, value, 64)
        number = to_odd(k, exact)
    else:
        how = "sitofp" if source[0] == "s" else "uitofp"
        if directed(i) and WIDTHS[source] > 32:
            raise k.unsupported(i)
        exact = f.cast(how, k.read(value, WIDTHS[source]), DOUBLE)
        number = to_odd(k, exact)
    number = _finished(k, i, number)
    if to in HALVES:
        exact = exact or f.cast("fpext", number, DOUBLE)
        k.write(i.operands[0], _rounded(k, i, number, exact, to))
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
    """What translates an instruction on floats of 16 or 8 bits; ``None`` if it is none."""
    if i.opcode in ("add", "min", "max") and i.modifiers[-1] in ("u16x2", "s16x2"):
        return pairs
    if not EIGHTS.keys().isdisjoint(i.modifiers):
        return convert_eights if i.opcode == "cvt" else None
    return None if set(HALVES).isdisjoint(i.modifiers) else HANDLERS.get(i.opcode)
