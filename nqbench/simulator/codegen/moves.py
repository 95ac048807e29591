"""Moves, conversions, selections and comparisons."""

from __future__ import annotations

from nqbench.simulator.codegen.floats import (
    DIRECTED,
    DOUBLE,
    finished,
    flushed,
    real,
    stepped,
    stepped_from,
)
from nqbench.simulator.codegen.writer import Handler, KernelWriter, PtxType, kinds
from nqbench.simulator.ir import Value, const, like, vector
from nqbench.simulator.layout import LOCAL_WINDOW, SHARED_WINDOW
from nqbench.simulator.ptx import Instruction, Vector, both

ROUNDINGS = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
INTEGER_TESTS = {
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    "lo": "lt", "ls": "le", "hi": "gt", "hs": "ge",
}  # fmt: skip
FLOAT_TESTS = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq",
    "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
    "num": "ord", "nan": "uno",
}  # fmt: skip
COMBINATIONS = ("and", "or", "xor")


def move(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i, allow="usbfp")
    target, source = i.operands
    if isinstance(target, Vector):
        value, part = k.read(source, kind.bits), kind.bits // len(target.items)
        for place, item in enumerate(target.items):
            shifted = k.f.op("lshr", value, const(value.type, place * part))
            k.write(item, k.f.resize(shifted, part))
    elif isinstance(source, Vector):
        part, result = kind.bits // len(source.items), const(vector(f"i{kind.bits}"), 0)
        for place, item in enumerate(source.items):
            wide = k.f.resize(k.read(item, part), kind.bits)
            result = k.f.or_(result, k.f.op("shl", wide, const(wide.type, place * part)))
        k.write(target, result)
    elif kind.bits == 1:
        k.write(target, k.predicate(source))
    else:
        k.write(target, k.read(source, kind.bits, kind.name))


def convert(k: KernelWriter, i: Instruction) -> None:
    f = k.f
    to, source = kinds(k, i, (*ROUNDINGS, "rn", *DIRECTED, "ftz", "sat"), allow="usbf")
    if "sat" in i.modifiers and to.float and not source.float:
        raise k.unsupported(i, "saturation of an integer made a float")
    value = k.read(i.operands[1], source.bits, source.name)
    if "ftz" in i.modifiers and source.float:
        value = f.as_number(flushed(k, f.as_float(value)))
    rounding = next((ROUNDINGS[m] for m in i.modifiers if m in ROUNDINGS), "")
    if not to.float and not source.float:
        value = _clamped(k, value, to, source) if "sat" in i.modifiers else value
        value = f.resize(value, to.bits, source.signed)
    elif to.float and not source.float:
        value = _made_float(k, i, value, to, source)
    elif to.float:
        number = f.as_float(value)
        if rounding:
            number = f.intrinsic(rounding, number)
        if to.bits != source.bits:
            how = "fpext" if to.bits > source.bits else "fptrunc"
            exact, number = number, f.cast(how, number, _float_type(value, to))
            if towards := directed(i):
                bits = f.as_number(number)
                wide = f.cast("fpext", number, DOUBLE)
                number = f.as_float(stepped_from(k, bits, wide, exact, towards))
        value = f.as_number(finished(k, i, number))
    else:
        if not rounding:
            raise k.unsupported(i, "no rounding")
        value = to_integer(k, f.intrinsic(rounding, f.as_float(value)), to)
    k.write(i.operands[0], value, to.signed)


def directed(i: Instruction) -> str:
    """The direction in which a conversion rounds; empty for the nearest."""
    return next((m for m in i.modifiers if m in DIRECTED), "")


def _made_float(
    k: KernelWriter, i: Instruction, value: Value, to: PtxType, source: PtxType
) -> Value:
    """The bits of the float of a whole number."""
    f, sign = k.f, "s" if source.signed else "u"
    near = f.cast(f"{sign}itofp", value, _float_type(value, to))
    bits, towards = f.as_number(near), directed(i)
    if not towards:
        return bits
    if source.bits <= 32:
        exact = f.cast(f"{sign}itofp", value, DOUBLE)
        return stepped_from(k, bits, f.cast("fpext", near, DOUBLE), exact, towards)
    back = to_integer(k, near, source)
    beyond_all = f.fcompare("oge", near, real(k, 2.0 ** (source.bits - source.signed), near.type))
    above = f.or_(f.compare(f"{sign}gt", back, value), beyond_all)
    return stepped(k, bits, (above, f.compare(f"{sign}lt", back, value)), towards)


def _clamped(k: KernelWriter, value: Value, to: PtxType, source: PtxType) -> Value:
    """The nearest integer that the other type has, with the bits of its own."""
    low = -(1 << (to.bits - 1)) if to.signed else 0
    high = (1 << (to.bits - to.signed)) - 1
    sign = "s" if source.signed else "u"
    if low > -(1 << (source.bits - 1)) and source.signed:
        value = k.f.intrinsic("smax", value, const(value.type, low))
    if high < (1 << (source.bits - source.signed)) - 1:
        value = k.f.intrinsic(f"{sign}min", value, const(value.type, high))
    return value


def _float_type(value: Value, kind: PtxType) -> str:
    return like(value.type, "float" if kind.bits == 32 else "double")


def to_integer(k: KernelWriter, number: Value, to: PtxType) -> Value:
    """A whole float as an integer. Out of range gives the nearest one. NaN gives 0, or the highest
    bit alone where either type has 64 bits (PTX ISA, cvt)."""
    type_ = like(number.type, f"i{to.bits}")
    short = "f32" if "float" in number.type else "f64"
    name = f"llvm.fpto{'s' if to.signed else 'u'}i.sat.v32i{to.bits}.v32{short}"
    result = k.f.call(type_, name, number)
    if short == "f32" and to.bits < 64:
        return result
    no_number = k.f.fcompare("uno", number, number)
    return k.f.select(no_number, const(type_, 1 << (to.bits - 1)), result)


def to_generic(k: KernelWriter, i: Instruction) -> None:
    """``cvta``: between a space's own addresses and generic ones. (Parameters whose address is
    taken have a copy in global memory.)"""
    (kind,) = kinds(k, i, ("to", "global", "shared", "local", "const", "param"))
    space = next(m for m in i.modifiers if m != "to")
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0)
    if window and kind.bits != 64:
        raise k.unsupported(i)
    value = k.read(i.operands[1], kind.bits)
    how = "sub" if "to" in i.modifiers else "add"
    k.write(i.operands[0], k.f.op(how, value, const(value.type, window)))


def select(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i, allow="usbf")
    a, b = (k.read(operand, kind.bits, kind.name) for operand in i.operands[1:3])
    k.write(i.operands[0], k.f.select(k.predicate(i.operands[3]), a, b))


def compare(k: KernelWriter, i: Instruction) -> None:
    """``setp``, also with two results and combined with a third predicate."""
    known = (*INTEGER_TESTS, *FLOAT_TESTS, *COMBINATIONS, "ftz")
    (kind,) = kinds(k, i, known, allow="usbf")
    result = _tested(k, i, kind)
    first, second = both(i.operands[0])
    opposite = k.f.not_(result)
    if i.modifiers[1] in COMBINATIONS:
        extra = k.predicate(i.operands[3])
        result = k.f.op(i.modifiers[1], result, extra)
        opposite = k.f.op(i.modifiers[1], opposite, extra)
    k.write(first, result)
    if second is not None:
        k.write(second, opposite)


def _tested(k: KernelWriter, i: Instruction, kind: PtxType) -> Value:
    test = i.modifiers[0]
    a, b = (k.read(operand, kind.bits, kind.name) for operand in i.operands[1:3])
    if kind.float:
        x, y = k.f.as_float(a), k.f.as_float(b)
        if "ftz" in i.modifiers:
            x, y = flushed(k, x), flushed(k, y)
        return k.f.fcompare(FLOAT_TESTS[test], x, y)
    if test not in INTEGER_TESTS:
        raise k.unsupported(i)
    name = INTEGER_TESTS[test]
    if name not in ("eq", "ne"):
        unsigned = test in ("lo", "ls", "hi", "hs") or not kind.signed
        name = ("u" if unsigned else "s") + name
    return k.f.compare(name, a, b)


MOVES: dict[str, Handler] = {
    "mov": move, "cvt": convert, "cvta": to_generic, "selp": select, "setp": compare,
}  # fmt: skip
