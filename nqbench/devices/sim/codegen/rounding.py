"""What the modifiers of a float instruction do to its value: rounding, ``.sat``, ``.ftz``."""

from __future__ import annotations

from typing import Final

from nqbench.devices.sim.codegen.types import as_bits, as_float
from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.ptx import Instruction, float_bits
from nqbench.devices.sim.values import V32, V64, Value, const, vector

DIRECTED: Final = ("rz", "rm", "rp")
"""Towards zero, down, up."""
MODIFIERS: Final = ("rn", *DIRECTED, "ftz", "sat")
LEAST_NORMAL_BITS: Final = 0x00800000
MAGNITUDE: Final = 0x7FFFFFFF
SIGN: Final = 0x80000000
FLOAT, DOUBLE = vector("float"), vector("double")


def real(k: KernelWriter, number: float, type_: str) -> Value:
    """A constant of a float type."""
    bits = 32 if type_ == FLOAT else 64
    return as_float(k, const(V32 if bits == 32 else V64, float_bits(number, bits)))


def flushed(k: KernelWriter, value: Value) -> Value:
    """Zero of the same sign in place of a subnormal (32-bit only)."""
    if value.type != FLOAT:
        return value
    f = k.f
    bits = as_bits(k, value)
    small = f.compare("ult", f.and_(bits, const(V32, MAGNITUDE)), const(V32, LEAST_NORMAL_BITS))
    return as_float(k, f.select(small, f.and_(bits, const(V32, SIGN)), bits))


def saturated(k: KernelWriter, value: Value) -> Value:
    """Between 0 and 1; NaN becomes 0."""
    low = k.f.intrinsic("maximumnum", value, real(k, 0.0, value.type))
    return k.f.intrinsic("minimumnum", low, real(k, 1.0, value.type))


def finished(k: KernelWriter, i: Instruction, value: Value) -> Value:
    """A result as the modifiers ``.sat`` and ``.ftz`` leave it."""
    if "sat" in i.modifiers:
        value = saturated(k, value)
    return flushed(k, value) if "ftz" in i.modifiers else value


def direction(i: Instruction) -> str:
    """The directed rounding that an instruction asks for, or nothing."""
    return next((m for m in i.modifiers if m in DIRECTED), "")


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
    stepped = _stepped(k, as_bits(k, result), _beyond(k, wide, near, left), towards)
    if towards == "rm" and (rest or how != "mul"):
        stepped = _minus_zero(k, terms, near, stepped)
    return as_float(k, stepped)


def _sum(k: KernelWriter, a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum and what the rounding left out (Knuth's two-sum)."""
    f = k.f
    near = f.op("fadd", a, b)
    of_b = f.op("fsub", near, a)
    of_a = f.op("fsub", near, of_b)
    return near, f.op("fadd", f.op("fsub", a, of_a), f.op("fsub", b, of_b))


def _test(k: KernelWriter, how: str, a: Value, b: Value) -> Value:
    return k.f.emit(vector("i1"), f"fcmp {how} {a}, {b.text}")


def _beyond(k: KernelWriter, wide: Value, near: Value, left: Value) -> tuple[Value, Value]:
    """Whether the nearest float is above, and whether it is below, the true value."""
    f, zero = k.f, real(k, 0.0, DOUBLE)
    same = _test(k, "oeq", wide, near)
    above = f.or_(_test(k, "ogt", wide, near), f.and_(same, _test(k, "olt", left, zero)))
    below = f.or_(_test(k, "olt", wide, near), f.and_(same, _test(k, "ogt", left, zero)))
    return above, below


def _stepped(k: KernelWriter, bits: Value, beyond: tuple[Value, Value], towards: str) -> Value:
    """One float further in the direction, where the nearest one lies on the wrong side."""
    f, one = k.f, const(V32, 1)
    above, below = beyond
    negative = f.compare("slt", bits, const(V32, 0))
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
    zero = _test(k, "oeq", near, real(k, 0.0, DOUBLE))
    some_bit = f.nonzero(f.or_(*(as_bits(k, term) for term in terms)))
    return f.select(f.and_(zero, some_bit), f.or_(bits, const(V32, SIGN)), bits)
