"""Integer arithmetic, comparisons, logic and bit fields."""

from __future__ import annotations

from collections.abc import Callable

from nqbench.simulator import ir
from nqbench.simulator.codegen.formats import halves, joined
from nqbench.simulator.codegen.writer import Handler, KernelWriter, PtxType, kinds
from nqbench.simulator.ir import I32, MASK, V16, V32, V64, Function, Value, const, element, like
from nqbench.simulator.layout import Fault
from nqbench.simulator.liveness import CARRY, CARRYING
from nqbench.simulator.ptx import WIDTHS, Immediate, Instruction, both


def _operands(k: KernelWriter, i: Instruction, kind: PtxType) -> list[Value]:
    return [k.read(operand, kind.bits, kind.name) for operand in i.operands[1:]]


def add_sub(k: KernelWriter, i: Instruction) -> None:
    """Also with the carry bit: ``.cc`` leaves it, ``addc`` and ``subc`` add it."""
    (kind,) = kinds(k, i, ("cc", "sat"))
    a, b = _operands(k, i, kind)
    if "sat" in i.modifiers:
        k.write(i.operands[0], k.f.intrinsic(f"s{i.opcode}.sat", a, b), kind.signed)
    elif i.opcode[-1] == "c" or "cc" in i.modifiers:
        k.write(i.operands[0], _carried(k, i, a, b))
    else:
        k.write(i.operands[0], k.f.op(i.opcode, a, b), kind.signed)


def _carried(k: KernelWriter, i: Instruction, a: Value, b: Value) -> Value:
    """A sum or difference with the carry going in and out. A difference is a sum with the
    complement, so its carry says that nothing was borrowed: what CUDA's own 128-bit division reads
    with ``addc``. (The PTX manual calls it a borrow, which pairs of ``sub`` and ``subc`` cannot
    tell.)"""
    f, subtracts = k.f, i.opcode.startswith("sub")
    b = f.not_(b) if subtracts else b
    result = f.add(a, b)
    out = f.compare("ult", result, a)
    if subtracts or i.opcode in CARRYING:
        more = k.register(CARRY) if i.opcode in CARRYING else const(MASK, 1)
        before, result = result, f.add(result, f.resize(more, int(element(a.type)[1:])))
        out = f.or_(out, f.compare("ult", result, before))
    if "cc" in i.modifiers:
        k.write(CARRY, out)
    return result


def _product(k: KernelWriter, a: Value, b: Value, kind: PtxType, part: str) -> Value:
    """``lo``: the low half; ``hi``: the high half; ``wide``: all bits."""
    if part == "lo":
        return k.f.op("mul", a, b)
    double = 2 * kind.bits
    whole = k.f.op("mul", k.f.resize(a, double, kind.signed), k.f.resize(b, double, kind.signed))
    if part == "wide":
        return whole
    return k.f.resize(k.f.op("lshr", whole, const(whole.type, kind.bits)), kind.bits)


def mul_mad(k: KernelWriter, i: Instruction) -> None:
    (kind,) = kinds(k, i, ("lo", "hi", "wide", "cc"))
    part = i.modifiers[0]
    if part == "wide" and kind.bits == 64:
        raise k.unsupported(i)
    a, b = (k.read(operand, kind.bits) for operand in i.operands[1:3])
    result = _product(k, a, b, kind, part)
    if i.opcode == "madc" or "cc" in i.modifiers:
        result = _carried(k, i, k.read(i.operands[3], kind.bits), result)
    elif i.opcode == "mad":
        bits = kind.bits * (2 if part == "wide" else 1)
        result = k.f.add(result, k.read(i.operands[3], bits))
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


def _short_quotient(k: KernelWriter, a: Value, b: Value, kind: PtxType) -> Value:
    """Through doubles, which is exact up to 32 bits: a quotient that is not whole lies at least
    1/b below the next whole number, far more than the rounding of a 53-bit division."""
    double = like(a.type, "double")
    sign = "s" if kind.signed else "u"
    x, y = (k.f.cast(f"{sign}itofp", value, double) for value in (a, b))
    wide = k.f.cast("fptosi", k.f.op("fdiv", x, y), like(a.type, "i64"))
    return k.f.resize(wide, kind.bits)


def _row(compute: Callable[..., Value], *known: str, allow: str = "usb", words: int = 0) -> Handler:
    """An instruction of which ``compute(f, i, *operands)`` gives the result. ``known`` are its
    modifiers besides the types; the last ``words`` operands have 32 bits whatever the type."""

    def handle(k: KernelWriter, i: Instruction) -> None:
        types = kinds(k, i, known, allow)
        bits = types[0].bits
        widths = [*[bits] * (len(i.operands) - 1 - words), *[32] * words]
        operands = [
            k.predicate(operand) if width == 1 else k.read(operand, width, types[0].name)
            for operand, width in zip(i.operands[1:], widths, strict=True)
        ]
        k.write(i.operands[0], compute(k.f, i, *operands), types[0].signed)

    return handle


def _short_product(f: Function, i: Instruction, a: Value, b: Value, *more: Value) -> Value:
    x, y = (_field(f, value, 0, 24, i.modifiers[-1] == "s32") for value in (a, b))
    return f.add(f.op("mul", x, y), *more) if more else f.op("mul", x, y)


def _sign(i: Instruction) -> str:
    return "s" if i.modifiers[-1][0] == "s" else "u"


def _distance(f: Function, i: Instruction, a: Value, b: Value, c: Value) -> Value:
    sign = _sign(i)
    return f.add(f.sub(f.intrinsic(f"{sign}max", a, b), f.intrinsic(f"{sign}min", a, b)), c)


def _dot(f: Function, i: Instruction, a: Value, b: Value, total: Value) -> Value:
    """``dp4a`` and ``dp2a``: products of four bytes, or of two halves with two bytes, and a sum."""
    first, second = map(PtxType, i.modifiers[-2:])
    parts, bits = (4, 8) if i.opcode == "dp4a" else (2, 16)
    start = 16 if "hi" in i.modifiers else 0
    for n in range(parts):
        x = _field(f, a, n * bits, bits, first.signed)
        y = _field(f, b, start + n * 8, 8, second.signed)
        total = f.add(total, f.op("mul", x, y))
    return total


PACKED: dict[str, Callable[[Function, Value, Value], Value]] = {
    "vadd": lambda f, x, y: f.add(x, y),
    "vsub": lambda f, x, y: f.sub(x, y),
    "vabsdiff": lambda f, x, y: f.intrinsic("abs", f.sub(x, y), const("i1", 0)),
    "vmin": lambda f, x, y: f.intrinsic("smin", x, y),
    "vmax": lambda f, x, y: f.intrinsic("smax", x, y),
    "vavrg": lambda f, x, y: _average(f, f.add(x, y)),
}
"""Video instructions on two or four parts of a word; the parts are words with their signs."""

TESTS = ("eq", "ne", "lt", "le", "gt", "ge")


def _average(f: Function, total: Value) -> Value:
    """Half of it, rounded away from zero at a half (PTX ISA, vavrg)."""
    positive = f.compare("sge", total, const(V32, 0))
    total = f.add(total, f.cast("zext", positive, V32))
    return f.op("ashr", total, const(V32, 1))


def _packed(f: Function, i: Instruction, a: Value, b: Value, c: Value) -> Value:
    name, parts = i.opcode[:-1], int(i.opcode[-1])
    *to, first, second = (PtxType(m) for m in i.modifiers if m in WIDTHS)
    signed, bits = any(t.signed for t in to), 32 // parts
    result = c if "add" in i.modifiers else const(V32, 0)
    for start in range(0, 32, bits):
        x = _field(f, a, start, bits, first.signed)
        y = _field(f, b, start, bits, second.signed)
        if name == "vset":
            test = next(m for m in i.modifiers if m in TESTS)
            test = test if test in TESTS[:2] else f"s{test}"  # the parts are words with their signs
            part = f.cast("zext", f.compare(test, x, y), V32)
        else:
            part = PACKED[name](f, x, y)
        if "sat" in i.modifiers:
            part = f.intrinsic("smin", part, const(V32, (1 << (bits - signed)) - 1))
            part = f.intrinsic("smax", part, const(V32, -(1 << (bits - 1)) if signed else 0))
        if "add" in i.modifiers:
            result = f.add(result, part)
        else:
            part = f.and_(part, const(V32, (1 << bits) - 1))
            result = f.or_(result, f.op("shl", part, const(V32, start)))
    return result


def pairs(k: KernelWriter, i: Instruction) -> None:
    """``add``, ``min`` and ``max`` of two whole numbers of 16 bits in a word."""
    a, b = (halves(k, operand, "x2") for operand in i.operands[1:3])
    name = "" if i.opcode == "add" else i.modifiers[-1][0] + i.opcode
    parts = [
        k.f.intrinsic(name, x, y) if name else k.f.add(x, y) for x, y in zip(a, b, strict=True)
    ]
    if "relu" in i.modifiers:
        parts = [k.f.intrinsic("smax", part, const(V16, 0)) for part in parts]
    k.write(i.operands[0], joined(k, parts))


def _field(f: Function, word: Value, start: int, bits: int, signed: bool) -> Value:
    up = f.op("shl", word, const(V32, 32 - bits - start))
    return f.op("ashr" if signed else "lshr", up, const(V32, 32 - bits))


def trap(k: KernelWriter, i: Instruction) -> None:
    kinds(k, i)
    k.fault_if(Fault.TRAP, k.f.or_(k.lanes, const(I32, 0)), i)


INTEGER: dict[str, Handler] = {
    "add": add_sub, "sub": add_sub, "mul": mul_mad, "mad": mul_mad, "addc": add_sub,
    "subc": add_sub, "madc": mul_mad, "div": div_rem, "rem": div_rem, "trap": trap,
    **dict.fromkeys(("mul24", "mad24"), _row(_short_product, "lo")),
    **dict.fromkeys(("dp4a", "dp2a"), _row(_dot, "lo", "hi")),
    "neg": _row(lambda f, _, a: f.sub(const(a.type, 0), a)),
    "abs": _row(lambda f, _, a: f.intrinsic("abs", a, const("i1", 0))),
    **dict.fromkeys(("min", "max"), _row(lambda f, i, *ab: f.intrinsic(_sign(i) + i.opcode, *ab))),
    "sad": _row(_distance),
    **{f"{op}.{kind}16x2": pairs for op in ("add", "min", "max") for kind in "us"},
    **{
        f"{name}{parts}": _row(_packed, "sat", "add", *TESTS, words=1)
        for name in (*PACKED, "vset") for parts in (2, 4)
    },
}  # fmt: skip


def _shifted(f: Function, how: str, a: Value, amount: Value) -> Value:
    """Shift every lane of ``a`` by its own 32-bit amount; beyond the width everything goes out."""
    bits = int(a.type[1:-1].split(" x i")[1])
    limit = const(V32, bits - 1)
    if (number := ir.number_of(amount)) is not None and 0 <= number < bits:
        return f.op(how, a, const(a.type, number))
    inside = f.compare("ule", amount, limit)
    if how == "ashr":
        least = f.select(inside, amount, limit)
        return f.op("ashr", a, f.resize(least, bits))
    by = f.resize(f.and_(amount, limit), bits)
    return f.select(inside, f.op(how, a, by), const(a.type, 0))


def _funnel(f: Function, i: Instruction, low: Value, high: Value, amount: Value) -> Value:
    """``shf``: the upper (left) or lower (right) word of a shifted pair."""
    left = "l" in i.modifiers
    result = f.intrinsic("fshl" if left else "fshr", high, low, amount)
    if "clamp" in i.modifiers:
        beyond = f.compare("uge", amount, const(V32, 32))
        result = f.select(beyond, low if left else high, result)
    return result


def lop3(k: KernelWriter, i: Instruction) -> None:
    """Any function of three bits, given by its truth table; also with a predicate, whether it
    has a bit, combined with another one."""
    f = k.f
    kinds(k, i, ("and", "or"))
    table = i.operands[4]
    if not isinstance(table, Immediate):
        raise k.unsupported(i, "table is not a constant")
    values = [k.read(operand, 32) for operand in i.operands[1:4]]
    result = const(V32, 0)
    for row in range(8):
        if table.value >> row & 1:
            term = const(V32, -1)
            for place, value in zip((4, 2, 1), values, strict=True):
                term = f.and_(term, value if row & place else f.not_(value))
            result = f.or_(result, term)
    target, test = both(i.operands[0])
    k.write(target, result)
    if test is None:
        return
    combined = k.predicate(i.operands[5])
    how = f.and_ if "and" in i.modifiers else f.or_
    k.write(test, how(f.compare("ne", result, const(V32, 0)), combined))


def _extracted(f: Function, i: Instruction, a: Value, position: Value, length: Value) -> Value:
    """``bfe``: bits beyond the top are the sign (signed) or zero."""
    how, byte = SHIFTS[_sign(i)], const(V32, 0xFF)
    field = _shifted(f, how, a, f.and_(position, byte))
    bits = const(V32, int(element(a.type)[1:]))
    spare = f.intrinsic("usub.sat", bits, f.and_(length, byte))
    # An empty field is zero: shifting out everything leaves nothing to move back.
    return _shifted(f, how, _shifted(f, "shl", field, spare), spare)


def _inserted(f: Function, _: Instruction, a: Value, b: Value, *place: Value) -> Value:
    """``bfi``: replace ``length`` bits of b at ``position`` by the low bits of a."""
    position, length = (f.and_(value, const(V32, 0xFF)) for value in place)
    ones = f.not_(_shifted(f, "shl", const(a.type, -1), length))
    mask = _shifted(f, "shl", ones, position)
    moved = _shifted(f, "shl", a, position)
    return f.or_(f.and_(moved, mask), f.and_(b, f.not_(mask)))


def _permute(f: Function, _: Instruction, a: Value, b: Value, by: Value) -> Value:
    """``prmt``: pick four of the eight bytes of b:a; bit 3 of a selector copies the byte's sign."""
    pair = f.or_(f.resize(a, 64), f.op("shl", f.resize(b, 64), const(V64, 32)))
    result = const(V32, 0)
    for place in range(4):
        nibble = f.op("lshr", by, const(V32, 4 * place))
        which = f.op("shl", f.and_(nibble, const(V32, 7)), const(V32, 3))
        byte = f.resize(f.resize(f.op("lshr", pair, f.resize(which, 64)), 32), 8)
        sign = f.op("ashr", byte, const(byte.type, 7))
        wants_sign = f.nonzero(f.and_(nibble, const(V32, 8)))
        picked = f.resize(f.select(wants_sign, sign, byte), 32)
        result = f.or_(result, f.op("shl", picked, const(V32, 8 * place)))
    return result


def _top(f: Function, i: Instruction, a: Value) -> Value:
    """``bfind``: place of the highest bit (signed: that differs from the sign), -1 if none;
    ``shiftamt``: how far to shift it to the top instead."""
    kind = PtxType(i.modifiers[-1])
    if kind.signed:
        a = f.xor(a, f.op("ashr", a, const(a.type, kind.bits - 1)))
    zeros = f.resize(f.intrinsic("ctlz", a, const("i1", 0)), 32)
    place = zeros if "shiftamt" in i.modifiers else f.sub(const(V32, kind.bits - 1), zeros)
    return f.select(f.nonzero(a), place, const(V32, -1))


SHIFTS = {"s": "ashr", "u": "lshr"}
BITS: dict[str, Handler] = {
    **dict.fromkeys(
        ("and", "or", "xor"), _row(lambda f, i, a, b: f.op(i.opcode, a, b), allow="bp")
    ),
    "not": _row(lambda f, _, a: f.not_(a), allow="bp"),
    "cnot": _row(
        lambda f, _, a: f.cast("zext", f.compare("eq", a, const(a.type, 0)), a.type), allow="b"
    ),
    "shl": _row(lambda f, _, a, by: _shifted(f, "shl", a, by), words=1),
    "shr": _row(lambda f, i, a, by: _shifted(f, SHIFTS[_sign(i)], a, by), words=1),
    "shf": _row(_funnel, "l", "r", "wrap", "clamp"),
    "lop3": lop3, "bfe": _row(_extracted, words=2), "bfi": _row(_inserted, words=2),
    "prmt": _row(_permute), "bfind": _row(_top, "shiftamt"),
    "popc": _row(lambda f, _, a: f.intrinsic("ctpop", a)),
    "clz": _row(lambda f, _, a: f.intrinsic("ctlz", a, const("i1", 0))),
    "brev": _row(lambda f, _, a: f.intrinsic("bitreverse", a)),
}  # fmt: skip
