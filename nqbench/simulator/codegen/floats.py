"""Floating point: what the modifiers do to a value, operations whose result IEEE 754 fixes, and
those whose last bits a GPU does not promise (``.approx``, ``div.full``).

The latter give the float nearest to the true value, computed in doubles by operations that IEEE 754
fixes, so that every machine simulates the same. A GPU may differ in the last bits: PTX allows an
error of 1 to 2 units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from nqbench.simulator.codegen.writer import Handler, KernelWriter, kinds
from nqbench.simulator.ir import V32, V64, Value, const, vector
from nqbench.simulator.ptx import Instruction, Operand, float_bits

DIRECTED: Final = ("rz", "rm", "rp")
"""Towards zero, down, up."""
MODIFIERS: Final = ("rn", *DIRECTED, "ftz", "sat")
MIN_NORMAL_BITS: Final = 0x00800000
MAGNITUDE: Final = 0x7FFFFFFF
SIGN: Final = 0x80000000
FLOAT, DOUBLE = vector("float"), vector("double")


def real(k: KernelWriter, number: float, type_: str) -> Value:
    """A constant of a float type."""
    bits = 32 if type_ == FLOAT else 64
    return k.f.as_float(const(V32 if bits == 32 else V64, float_bits(number, bits)))


def flushed(k: KernelWriter, value: Value) -> Value:
    """Zero of the same sign in place of a subnormal (32-bit only)."""
    if value.type != FLOAT:
        return value
    f = k.f
    bits = k.f.as_number(value)
    small = f.compare("ult", f.and_(bits, const(V32, MAGNITUDE)), const(V32, MIN_NORMAL_BITS))
    return k.f.as_float(f.select(small, f.and_(bits, const(V32, SIGN)), bits))


def saturated(k: KernelWriter, value: Value) -> Value:
    """Between 0 and 1; NaN becomes 0."""
    low = k.f.intrinsic("maximumnum", value, real(k, 0.0, value.type))
    return k.f.intrinsic("minimumnum", low, real(k, 1.0, value.type))


def finished(k: KernelWriter, i: Instruction, value: Value) -> Value:
    """A result as the modifiers ``.sat`` and ``.ftz`` leave it."""
    if "sat" in i.modifiers:
        value = saturated(k, value)
    return flushed(k, value) if "ftz" in i.modifiers else value


def directed(k: KernelWriter, how: str, operands: list[Value], towards: str) -> Value:
    """``add``, ``sub``, ``mul`` or ``fma`` of floats, rounded in a direction.

    In doubles the product of two floats is exact, and a sum comes with the exact rest that its
    rounding left. So the nearest float is known to be above, below or equal to the true value, and
    at most one step away from the float that is asked for.
    """
    f = k.f
    a, b, *rest = (f.cast("fpext", operand, DOUBLE) for operand in operands)
    if how == "sub":
        b = f.emit(DOUBLE, f"fneg {b}")
    left = real(k, 0.0, DOUBLE)
    if how in ("add", "sub"):
        near, left = _sum(k, a, b)
        terms = (a, b)
    else:
        near = f.op("fmul", a, b)
        terms = (near, near)
        if rest:
            terms = (near, rest[0])
            near, left = _sum(k, *terms)
    result = f.cast("fptrunc", near, FLOAT)
    wide = f.cast("fpext", result, DOUBLE)
    bits = stepped(k, k.f.as_number(result), _beyond(k, wide, near, left), towards)
    if towards == "rm" and (rest or how != "mul"):
        bits = _minus_zero(k, terms, near, bits)
    return k.f.as_float(bits)


def _sum(k: KernelWriter, a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum and what the rounding left out (Knuth's two-sum)."""
    f = k.f
    near = f.op("fadd", a, b)
    of_b = f.op("fsub", near, a)
    of_a = f.op("fsub", near, of_b)
    return near, f.op("fadd", f.op("fsub", a, of_a), f.op("fsub", b, of_b))


def stepped_from(k: KernelWriter, bits: Value, wide: Value, exact: Value, how: str) -> Value:
    """The bits of a float that is nearest to a double, rounded in a direction instead; ``wide`` is
    the float as a double."""
    beyond = k.f.fcompare("ogt", wide, exact), k.f.fcompare("olt", wide, exact)
    return stepped(k, bits, beyond, how)


def _beyond(k: KernelWriter, wide: Value, near: Value, left: Value) -> tuple[Value, Value]:
    """Whether the nearest float is above, and whether it is below, the true value."""
    f, zero = k.f, real(k, 0.0, DOUBLE)
    same = f.fcompare("oeq", wide, near)
    above = f.or_(f.fcompare("ogt", wide, near), f.and_(same, f.fcompare("olt", left, zero)))
    below = f.or_(f.fcompare("olt", wide, near), f.and_(same, f.fcompare("ogt", left, zero)))
    return above, below


def stepped(k: KernelWriter, bits: Value, beyond: tuple[Value, Value], towards: str) -> Value:
    """One float further in the direction, where the nearest one lies on the wrong side."""
    f, one = k.f, const(bits.type, 1)
    above, below = beyond
    negative = f.compare("slt", bits, const(bits.type, 0))
    smaller, larger = f.sub(bits, one), f.add(bits, one)  # in magnitude
    if towards == "rz":
        wrong = f.select(negative, below, above)
        return f.select(wrong, smaller, bits)
    if towards == "rm":
        return f.select(above, f.select(negative, larger, smaller), bits)
    return f.select(below, f.select(negative, smaller, larger), bits)


def _minus_zero(k: KernelWriter, terms: tuple[Value, Value], near: Value, bits: Value) -> Value:
    """Rounding down, a sum of zero is -0 unless both terms are +0 (IEEE 754, 6.3)."""
    f = k.f
    zero = f.fcompare("oeq", near, real(k, 0.0, DOUBLE))
    some_bit = f.nonzero(f.or_(*(k.f.as_number(term) for term in terms)))
    return f.select(f.and_(zero, some_bit), f.or_(bits, const(V32, SIGN)), bits)


APPROXIMATE_MODIFIERS: Final = ("approx", "full", "ftz")
EXPONENT_BIAS: Final = 1023
MANTISSA_BITS: Final = 52
LARGEST_POWER: Final = 300.0
"""Beyond it 2**x is infinite or zero as a float."""
EXPONENTIAL_TERMS: Final = 14
"""Of the Taylor series of 2**x for x within 1/2: the first one left out is below 1e-17."""
LOGARITHM_TERMS: Final = 12
"""Of the series of atanh(s) for s below 0.172: the first one left out is below 1e-18."""
CIRCULAR_TERMS: Final = 9
"""Of the series of sine and cosine within an eighth of a turn: the next one is below 1e-17."""
QUARTER_TURN: Final = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""pi/2 in three parts, the first two of 33 bits: their products with small integers are exact."""
TANH_TERMS: Final = (1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925)
TANH_SMALL: Final = 0.0625
"""Below it, the first term of the series left out is below 1e-15 of the result."""
UPPER_HALF: Final = ~0xFFFFFFFF


def power_of_two_of(k: KernelWriter, x: Value) -> Value:
    """2**x of doubles (NaN gives anything): the whole part goes into the exponent, the rest through
    a series."""
    f = k.f
    limit = real(k, LARGEST_POWER, DOUBLE)
    inside = f.intrinsic("minimumnum", x, limit)  # NaN becomes the limit, too
    inside = f.intrinsic("maximumnum", inside, real(k, -LARGEST_POWER, DOUBLE))
    whole = f.intrinsic("rint", inside)
    rest = f.op("fsub", inside, whole)
    terms = [math.log(2) ** n / math.factorial(n) for n in range(EXPONENTIAL_TERMS)]
    series = _series(k, rest, terms)
    exponent = f.add(f.cast("fptosi", whole, V64), const(V64, EXPONENT_BIAS))
    scale = k.f.as_float(f.op("shl", exponent, const(V64, MANTISSA_BITS)))
    return f.op("fmul", series, scale)


def _series(k: KernelWriter, x: Value, terms: list[float]) -> Value:
    """The sum of ``terms[n] * x**n``."""
    total = real(k, 0.0, DOUBLE)
    for term in reversed(terms):
        total = k.f.op("fadd", k.f.op("fmul", total, x), real(k, term, DOUBLE))
    return total


def _circular(k: KernelWriter, x: Value, quarter: int) -> Value:
    """The sine, a ``quarter`` turn ahead (1) the cosine: reduced to an eighth of a turn, then a
    series."""
    f = k.f
    quarters = f.intrinsic("rint", f.op("fmul", x, real(k, 2 / math.pi, DOUBLE)))
    rest = x
    for part in QUARTER_TURN:
        minus = f.emit(DOUBLE, f"fneg {quarters}")
        rest = f.intrinsic("fma", minus, real(k, part, DOUBLE), rest)
    square = f.op("fmul", rest, rest)
    sign = [(-1) ** n for n in range(CIRCULAR_TERMS)]
    sines = [s / math.factorial(2 * n + 1) for n, s in enumerate(sign)]
    cosines = [s / math.factorial(2 * n) for n, s in enumerate(sign)]
    sine = f.op("fmul", rest, _series(k, square, sines))
    cosine = _series(k, square, cosines)
    turn = f.call(V64, "llvm.fptosi.sat.v32i64.v32f64", quarters)
    if quarter:
        turn = f.add(turn, const(V64, quarter))
    result = f.select(f.nonzero(f.and_(turn, const(V64, 1))), cosine, sine)
    opposite = f.nonzero(f.and_(turn, const(V64, 2)))
    return f.select(opposite, f.emit(DOUBLE, f"fneg {result}"), result)


def tanh_of(k: KernelWriter, x: Value) -> Value:
    """``tanh`` of doubles: by exponentials, near zero by its series."""
    f = k.f
    one = real(k, 1.0, DOUBLE)
    power = power_of_two_of(k, f.op("fmul", x, real(k, 2 / math.log(2), DOUBLE)))
    far = f.op("fsub", one, f.op("fdiv", real(k, 2.0, DOUBLE), f.op("fadd", power, one)))
    near = f.op("fmul", x, _series(k, f.op("fmul", x, x), list(TANH_TERMS)))
    small = f.fcompare("olt", f.intrinsic("fabs", x), real(k, TANH_SMALL, DOUBLE))
    return _but_nan(k, x, f.select(small, near, far))


def read_float(k: KernelWriter, operand: Operand, bits: int) -> Value:
    """An operand as a float of 32 or 64 bits."""
    return k.f.as_float(k.read(operand, bits, f"f{bits}"))


def _logarithm(k: KernelWriter, x: Value) -> Value:
    """log2: exponent + that of a mantissa within a factor sqrt(2) of 1."""
    f = k.f
    bits = k.f.as_number(x)
    one = const(V64, EXPONENT_BIAS << MANTISSA_BITS)
    mantissa = f.or_(f.and_(bits, const(V64, (1 << MANTISSA_BITS) - 1)), one)
    exponent = f.sub(f.op("lshr", bits, const(V64, MANTISSA_BITS)), const(V64, EXPONENT_BIAS))
    m = k.f.as_float(mantissa)
    high = f.fcompare("ogt", m, real(k, math.sqrt(2), DOUBLE))
    m = f.select(high, f.op("fmul", m, real(k, 0.5, DOUBLE)), m)
    exponent = f.add(exponent, f.resize(high, 64))
    one_real = real(k, 1.0, DOUBLE)
    s = f.op("fdiv", f.op("fsub", m, one_real), f.op("fadd", m, one_real))
    square = f.op("fmul", s, s)
    series = _series(k, square, [2 / math.log(2) / (2 * n + 1) for n in range(LOGARITHM_TERMS)])
    result = f.op("fadd", f.cast("sitofp", exponent, DOUBLE), f.op("fmul", series, s))
    zero, infinite = real(k, 0.0, DOUBLE), real(k, math.inf, DOUBLE)
    result = f.select(f.fcompare("oeq", x, infinite), infinite, result)
    result = f.select(f.fcompare("oeq", x, zero), real(k, -math.inf, DOUBLE), result)
    result = f.select(f.fcompare("olt", x, zero), real(k, math.nan, DOUBLE), result)
    return _but_nan(k, x, result)


def _but_nan(k: KernelWriter, x: Value, result: Value) -> Value:
    return k.f.select(k.f.fcompare("uno", x, x), x, result)


def _approximate(compute: Callable[..., Value]) -> Handler:
    """An instruction of which ``compute(k, *doubles)`` gives the result in doubles."""

    def handle(k: KernelWriter, i: Instruction) -> None:
        given = [k.f.cast("fpext", v, DOUBLE) for v in _read(k, i, APPROXIMATE_MODIFIERS)]
        value = compute(k, *given)
        if i.modifiers[-1] == "f32":
            value = finished(k, i, k.f.cast("fptrunc", value, FLOAT))
        elif "ftz" in i.modifiers:
            # Of such a double only the upper half is approximated; the lower one is zero.
            value = k.f.as_float(k.f.and_(k.f.as_number(value), const(V64, UPPER_HALF)))
        k.write(i.operands[0], k.f.as_number(value))

    return handle


APPROXIMATIONS: dict[str, Handler] = {
    "rcp": _approximate(lambda k, a: k.f.op("fdiv", real(k, 1.0, DOUBLE), a)),
    "rsqrt": _approximate(
        lambda k, a: k.f.op("fdiv", real(k, 1.0, DOUBLE), k.f.intrinsic("sqrt", a))
    ),
    "sqrt": _approximate(lambda k, a: k.f.intrinsic("sqrt", a)),
    "div": _approximate(lambda k, a, b: k.f.op("fdiv", a, b)),
    "ex2": _approximate(lambda k, x: _but_nan(k, x, power_of_two_of(k, x))),
    "lg2": _approximate(_logarithm),
    "sin": _approximate(lambda k, x: _circular(k, x, 0)),
    "cos": _approximate(lambda k, x: _circular(k, x, 1)),
    "tanh": _approximate(tanh_of),
}


def _read(k: KernelWriter, i: Instruction, modifiers: tuple[str, ...] = MODIFIERS) -> list[Value]:
    (kind,) = kinds(k, i, modifiers, allow="f")
    values = [k.f.as_float(k.read(o, kind.bits, kind.name)) for o in i.operands[1:]]
    return [flushed(k, value) for value in values] if "ftz" in i.modifiers else values


def _exact(compute: Callable[..., Value]) -> Handler:
    """An instruction of which ``compute(k, opcode, *operands)`` gives the nearest result. Sums and
    products of 32 bits are rounded in any direction."""

    def handle(k: KernelWriter, i: Instruction) -> None:
        operands = _read(k, i)
        towards = next((m for m in i.modifiers if m in DIRECTED), "")
        if not towards:
            value = compute(k, i.opcode, *operands)
        elif i.modifiers[-1] == "f32" and i.opcode in ("add", "sub", "mul", "fma"):
            value = directed(k, i.opcode, operands, towards)
        else:
            raise k.unsupported(i, "only 32-bit sums and products are rounded in a direction")
        k.write(i.operands[0], k.f.as_number(finished(k, i, value)))

    return handle


# Of min and max, a number wins over NaN, and -0 counts as less than +0. Of copysign, the first
# operand gives the sign, the second the value.
FLOATS: dict[str, Handler] = {
    **dict.fromkeys(("add", "sub", "mul", "div"), _exact(lambda k, op, *ab: k.f.op(f"f{op}", *ab))),
    **dict.fromkeys(("fma", "mad"), _exact(lambda k, _, *abc: k.f.intrinsic("fma", *abc))),
    **dict.fromkeys(("min", "max"), _exact(lambda k, op, *ab: k.f.intrinsic(f"{op}imumnum", *ab))),
    "copysign": _exact(lambda k, _, a, b: k.f.intrinsic("copysign", b, a)),
    "neg": _exact(lambda k, _, a: k.f.emit(a.type, f"fneg {a}")),
    "abs": _exact(lambda k, _, a: k.f.intrinsic("fabs", a)),
    "sqrt": _exact(lambda k, _, a: k.f.intrinsic("sqrt", a)),
    "rcp": _exact(lambda k, _, a: k.f.op("fdiv", real(k, 1.0, a.type), a)),
}


def handler(i: Instruction) -> Handler | None:
    """What translates an instruction on floats; ``None`` if it is none or has no such meaning."""
    if not i.modifiers or i.modifiers[-1] not in ("f32", "f64"):
        return None
    approximate = {"approx", "full"} & set(i.modifiers)
    return (APPROXIMATIONS if approximate else FLOATS).get(i.opcode)
