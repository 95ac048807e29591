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

from nqbench.simulator.codegen.formats import (
    DIRECTED,
    DOUBLE,
    FLOAT,
    FLOATING,
    HALVES,
    bits_of,
    directed,
    ieee,
    real,
    reals,
    to_odd,
)
from nqbench.simulator.codegen.writer import Handler, KernelWriter
from nqbench.simulator.ir import V64, Value, const
from nqbench.simulator.ptx import Instruction

MODIFIERS: Final = frozenset(
    {"rn", *DIRECTED, "ftz", "sat", "relu", "NaN", "noftz", "approx", "full"}
)
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


def _row(compute: Callable[..., Value]) -> Handler:
    """An instruction of which ``compute(k, i, *operands)`` gives the result, for each part."""

    def handle(k: KernelWriter, i: Instruction) -> None:
        kind = i.modifiers[-1]
        if strange := {*i.modifiers[:-1]} - MODIFIERS:
            raise k.unsupported(i, f"modifier .{min(strange)}")
        columns = (reals(k, i, operand, kind) for operand in i.operands[1:])
        values = [compute(k, i, *part) for part in zip(*columns, strict=True)]
        k.write(i.operands[0], bits_of(k, i, values, kind))

    return handle


def _approximate(compute: Callable[..., Value]) -> Handler:
    """An instruction of which ``compute(k, *doubles)`` gives the result in doubles."""

    def approximated(k: KernelWriter, i: Instruction, *given: Value) -> Value:
        value = compute(k, *(k.f.cast("fpext", one, DOUBLE) for one in given))
        if i.modifiers[-1] != "f64":
            return k.f.cast("fptrunc", value, FLOAT)
        if "ftz" in i.modifiers:
            # Of such a double only the upper half is approximated; the lower one is zero.
            value = k.f.as_float(k.f.and_(k.f.as_number(value), const(V64, ~0xFFFFFFFF)))
        return value

    return _row(approximated)


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


def _exact(how: str) -> Handler:
    """What IEEE 754 fixes, rounded as the instruction says."""
    return _row(lambda k, i, *given: ieee(k, how, directed(i), given[0].type, *given))


def _fused(k: KernelWriter, i: Instruction, *given: Value) -> Value:
    if i.modifiers[-1] not in HALVES:
        return ieee(k, "fma", directed(i), given[0].type, *given)
    a, b, c = (k.f.cast("fpext", value, DOUBLE) for value in given)
    return to_odd(k, k.f.op("fadd", k.f.op("fmul", a, b), c))


def _extreme(k: KernelWriter, i: Instruction, a: Value, b: Value) -> Value:
    """A number wins over NaN, unless ``.NaN`` says otherwise, and -0 counts as less than +0."""
    return k.f.intrinsic(f"{i.opcode}imum{'' if 'NaN' in i.modifiers else 'num'}", a, b)


FLOATS: dict[str, Handler] = {
    **{op: _exact(f"f{op}") for op in ("add", "sub", "mul", "div")},
    "sqrt": _exact("sqrt"),
    "rcp": _row(lambda k, i, a: ieee(k, "fdiv", directed(i), a.type, real(k, 1.0, a.type), a)),
    **dict.fromkeys(("fma", "mad"), _row(_fused)),
    **dict.fromkeys(("min", "max"), _row(_extreme)),
    "copysign": _row(lambda k, _, sign, size: k.f.intrinsic("copysign", size, sign)),
    "neg": _row(lambda k, _, a: k.f.emit(a.type, f"fneg {a}")),
    "abs": _row(lambda k, _, a: k.f.intrinsic("fabs", a)),
}


def handler(i: Instruction) -> Handler | None:
    """What translates an instruction on floats; ``None`` if it is none or has no such meaning."""
    if not i.modifiers or i.modifiers[-1] not in FLOATING:
        return None
    approximate = {"approx", "full"} & set(i.modifiers)
    return (APPROXIMATIONS if approximate else FLOATS).get(i.opcode)
