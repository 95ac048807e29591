"""Instructions whose last bits a GPU does not promise (``.approx``, ``div.full``).

Here they give the float nearest to the true value, computed in doubles by operations that IEEE 754
fixes, so that every machine simulates the same. A GPU may differ in the last bits: PTX allows an
error of 1 to 2 units in the last place.
"""

from __future__ import annotations

import math
from typing import Final

from nqbench.devices.sim.codegen.rounding import DOUBLE, FLOAT, finished, flushed, real
from nqbench.devices.sim.codegen.types import Handler, as_bits, as_float, kinds
from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.ptx import Instruction
from nqbench.devices.sim.values import V64, Value, const, vector

MODIFIERS: Final = ("approx", "full", "ftz")
EXPONENT_BIAS: Final = 1023
MANTISSA_BITS: Final = 52
LARGEST_POWER: Final = 300.0
"""Beyond it 2**x is infinite or zero as a float."""
EXPONENTIAL_TERMS: Final = 14
"""Of the Taylor series of 2**x for x within 1/2: the first one left out is below 1e-17."""
LOGARITHM_TERMS: Final = 12
"""Of the series of atanh(s) for s below 0.172: the first one left out is below 1e-18."""
UPPER_HALF: Final = ~0xFFFFFFFF


def _doubles(k: KernelWriter, i: Instruction) -> list[Value]:
    (kind,) = kinds(k, i, MODIFIERS, allow="f")
    values = [as_float(k, k.read(operand, kind.bits, kind.name)) for operand in i.operands[1:]]
    if "ftz" in i.modifiers:
        values = [flushed(k, value) for value in values]
    return [k.f.cast("fpext", value, DOUBLE) for value in values]


def _write(k: KernelWriter, i: Instruction, value: Value) -> None:
    if i.modifiers[-1] == "f32":
        value = finished(k, i, k.f.cast("fptrunc", value, FLOAT))
    else:
        # Of a double only the upper half is approximated; the lower one is zero.
        value = as_float(k, k.f.and_(as_bits(k, value), const(V64, UPPER_HALF)))
    k.write(i.operands[0], as_bits(k, value))


def reciprocal(k: KernelWriter, i: Instruction) -> None:
    (a,) = _doubles(k, i)
    _write(k, i, k.f.op("fdiv", real(k, 1.0, DOUBLE), a))


def reciprocal_root(k: KernelWriter, i: Instruction) -> None:
    (a,) = _doubles(k, i)
    _write(k, i, k.f.op("fdiv", real(k, 1.0, DOUBLE), k.f.intrinsic("sqrt", a)))


def root(k: KernelWriter, i: Instruction) -> None:
    (a,) = _doubles(k, i)
    _write(k, i, k.f.intrinsic("sqrt", a))


def quotient(k: KernelWriter, i: Instruction) -> None:
    a, b = _doubles(k, i)
    _write(k, i, k.f.op("fdiv", a, b))


def power_of_two(k: KernelWriter, i: Instruction) -> None:
    """``ex2``: the whole part goes into the exponent, the rest through a series."""
    f = k.f
    (x,) = _doubles(k, i)
    limit = real(k, LARGEST_POWER, DOUBLE)
    inside = f.intrinsic("minimumnum", x, limit)  # NaN becomes the limit, too
    inside = f.intrinsic("maximumnum", inside, real(k, -LARGEST_POWER, DOUBLE))
    whole = f.intrinsic("rint", inside)
    rest = f.op("fsub", inside, whole)
    series = real(k, 0.0, DOUBLE)
    for n in reversed(range(EXPONENTIAL_TERMS)):
        term = math.log(2) ** n / math.factorial(n)
        series = f.op("fadd", f.op("fmul", series, rest), real(k, term, DOUBLE))
    exponent = f.add(f.cast("fptosi", whole, V64), const(V64, EXPONENT_BIAS))
    scale = as_float(k, f.op("shl", exponent, const(V64, MANTISSA_BITS)))
    _write(k, i, _but_nan(k, x, f.op("fmul", series, scale)))


def logarithm(k: KernelWriter, i: Instruction) -> None:
    """``lg2``: exponent + log2 of a mantissa within a factor sqrt(2) of 1."""
    f = k.f
    (x,) = _doubles(k, i)
    bits = as_bits(k, x)
    one = const(V64, EXPONENT_BIAS << MANTISSA_BITS)
    mantissa = f.or_(f.and_(bits, const(V64, (1 << MANTISSA_BITS) - 1)), one)
    exponent = f.sub(f.op("lshr", bits, const(V64, MANTISSA_BITS)), const(V64, EXPONENT_BIAS))
    m = as_float(k, mantissa)
    high = _test(k, "ogt", m, real(k, math.sqrt(2), DOUBLE))
    m = f.select(high, f.op("fmul", m, real(k, 0.5, DOUBLE)), m)
    exponent = f.add(exponent, f.resize(high, 64))
    one_real = real(k, 1.0, DOUBLE)
    s = f.op("fdiv", f.op("fsub", m, one_real), f.op("fadd", m, one_real))
    square = f.op("fmul", s, s)
    series = real(k, 0.0, DOUBLE)
    for n in reversed(range(LOGARITHM_TERMS)):
        term = 2 / math.log(2) / (2 * n + 1)
        series = f.op("fadd", f.op("fmul", series, square), real(k, term, DOUBLE))
    result = f.op("fadd", f.cast("sitofp", exponent, DOUBLE), f.op("fmul", series, s))
    zero, infinite = real(k, 0.0, DOUBLE), real(k, math.inf, DOUBLE)
    result = f.select(_test(k, "oeq", x, infinite), infinite, result)
    result = f.select(_test(k, "oeq", x, zero), real(k, -math.inf, DOUBLE), result)
    result = f.select(_test(k, "olt", x, zero), real(k, math.nan, DOUBLE), result)
    _write(k, i, _but_nan(k, x, result))


def _test(k: KernelWriter, how: str, a: Value, b: Value) -> Value:
    return k.f.emit(vector("i1"), f"fcmp {how} {a}, {b.text}")


def _but_nan(k: KernelWriter, x: Value, result: Value) -> Value:
    return k.f.select(_test(k, "uno", x, x), x, result)


APPROXIMATIONS: dict[str, Handler] = {
    "rcp": reciprocal, "rsqrt": reciprocal_root, "sqrt": root, "div": quotient,
    "ex2": power_of_two, "lg2": logarithm,
}  # fmt: skip
