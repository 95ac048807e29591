"""Moves, conversions, selections and comparisons."""

from __future__ import annotations

from nqbench.simulator.codegen import formats
from nqbench.simulator.codegen.formats import EIGHTS, FLOATING, bits_of, reals
from nqbench.simulator.codegen.writer import Handler, KernelWriter, PtxType, kinds
from nqbench.simulator.ir import V16, Value, const, like, vector
from nqbench.simulator.layout import LOCAL_WINDOW, SHARED_WINDOW
from nqbench.simulator.ptx import FAMILIES, WIDTHS, Instruction, Vector, both

ROUNDINGS = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
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


CONVERSIONS = frozenset(
    {*ROUNDINGS, "rn", *formats.DIRECTED, "ftz", "sat", "satfinite", "relu", "noftz"}
)


def convert(k: KernelWriter, i: Instruction) -> None:
    """``cvt``. A pair of floats is made of two operands, the first of which is the upper one."""
    f = k.f
    if "tf32" in i.modifiers:
        raise k.unsupported(i, "tensor cores, which alone take such numbers, are not simulated")
    types = [m for m in i.modifiers if m in WIDTHS or m in EIGHTS]
    if len(types) != 2 or not {*i.modifiers} <= {*types} | CONVERSIONS:
        raise k.unsupported(i)
    (to, source), towards = types, formats.directed(i)
    rounding = next((ROUNDINGS[m] for m in i.modifiers if m in ROUNDINGS), "")
    if source not in FLOATING:
        given = PtxType(source)
        value = k.read(i.operands[1], given.bits, source)
        if to not in FLOATING:
            kind = PtxType(to)
            value = _clamped(k, value, kind, given) if "sat" in i.modifiers else value
            k.write(i.operands[0], f.resize(value, kind.bits, given.signed), kind.signed)
            return
        if to in formats.HALVES and towards and given.bits > 32:
            raise k.unsupported(i)  # not exact in a double
        how = f"{'s' if given.signed else 'u'}itofp"
        type_ = formats.FLOAT if to == "f32" else formats.DOUBLE
        numbers = [formats.ieee(k, how, "" if to in formats.HALVES else towards, type_, value)]
    else:
        numbers = [x for o in i.operands[:0:-1] for x in reals(k, i, o, source)]
        numbers = [f.intrinsic(rounding, x) for x in numbers] if rounding else numbers
    if to in FLOATING:
        k.write(i.operands[0], bits_of(k, i, numbers, to, towards))
    elif rounding:
        (number,), kind = numbers, PtxType(to)
        k.write(i.operands[0], to_integer(k, number, kind), kind.signed)
    else:
        raise k.unsupported(i, "no rounding")


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
    """``setp``: one test gives a predicate and its opposite, two halves of a word one each; these
    may be combined with another predicate."""
    found = _tests(k, i)
    found = found if len(found) > 1 else [*found, k.f.not_(found[0])]
    if i.modifiers[1] in COMBINATIONS:
        extra = k.predicate(i.operands[3])
        found = [k.f.op(i.modifiers[1], one, extra) for one in found]
    for target, value in zip(both(i.operands[0]), found, strict=True):
        if target is not None:
            k.write(target, value)


def set_(k: KernelWriter, i: Instruction) -> None:
    """``set``: 1.0 (or all bits, for integers) where the test holds, else 0."""
    f, to, tests = k.f, i.modifiers[-2], _tests(k, i)
    if to in FLOATING:
        ones, none = formats.real(k, 1.0, formats.FLOAT), formats.real(k, 0.0, formats.FLOAT)
        numbers = [f.select(test, ones, none) for test in tests]
        k.write(i.operands[0], bits_of(k, i, numbers, to))
        return
    parts = [f.cast("sext", test, V16) for test in tests]
    k.write(
        i.operands[0], formats.joined(k, parts * 2 if len(parts) == 1 and to[1:] == "32" else parts)
    )


def _tests(k: KernelWriter, i: Instruction) -> list[Value]:
    """The test on the operands, or on both halves of them."""
    test, *modifiers, kind = i.modifiers
    a, b = i.operands[1:3]
    if strange := {*modifiers} - {*COMBINATIONS, "ftz", *WIDTHS}:
        raise k.unsupported(i, f"modifier .{min(strange)}")
    if kind in FLOATING:
        pairs = zip(reals(k, i, a, kind), reals(k, i, b, kind), strict=True)
        return [k.f.fcompare(FAMILIES["float_tests"][test], x, y) for x, y in pairs]
    name = FAMILIES["integer_tests"][test]
    if name not in ("eq", "ne"):
        unsigned = test in ("lo", "ls", "hi", "hs") or kind[0] != "s"
        name = ("u" if unsigned else "s") + name
    bits = WIDTHS[kind]
    return [k.f.compare(name, k.read(a, bits, kind), k.read(b, bits, kind))]


MOVES: dict[str, Handler] = {
    "mov": move, "cvt": convert, "cvta": to_generic, "selp": select, "setp": compare, "set": set_,
}  # fmt: skip
