"""Floats of 16 bits against numpy's, and against rounding by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulator.harness import Arrays, computed, cuda, outputs

Array = NDArray[Any]
ALL = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def bf16(x: Array) -> Array:
    """The bits of the nearest bfloat16, ties to even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def one(text: str, out: str, *columns: Array) -> Array:
    (found,) = computed([text], out, *columns)
    return np.asarray(found)


def same(got: Array, want: Array) -> None:
    """Equal bits, or NaN both."""
    nan = np.isnan(want.astype(np.float32)) if want.dtype == np.float16 else np.zeros(1, bool)
    assert np.array_equal(np.isnan(got.view(want.dtype).astype(np.float32)), nan) or not nan.any()
    assert (nan | (got.view(np.uint16) == want.view(np.uint16))).all()


def test_every_half_is_the_float_that_numpy_has() -> None:
    got = one("cvt.f32.f16 %d, %a;", "float32", ALL, ALL, ALL)
    assert np.array_equal(got, ALL.view(np.float16).astype(np.float32), equal_nan=True)
    back = one("cvt.rn.f16.f32 %d, %a;", "uint16", got, ALL, ALL)
    number = ~np.isnan(got)
    assert np.array_equal(back[number], ALL[number])
    assert (back[~number] == 0x7FFF).all()
    wide = one("cvt.f32.bf16 %d, %a;", "float32", ALL, ALL, ALL)
    assert np.array_equal(wide, from_bf16(ALL), equal_nan=True)


def floats(count: int = 1 << 13) -> Array:
    """Of all magnitudes, with ties of both formats."""
    draw = np.random.default_rng(11)
    x = draw.normal(size=count) * 10.0 ** draw.integers(-9, 6, count)
    halves = ALL.view(np.float16)
    ties = halves[np.abs(halves) < 60000][::31]
    x[: len(ties)] = ties.astype(np.float64) + np.spacing(ties).astype(np.float64) / 2
    x[-8:] = [0.0, -0.0, 65504, 65519.99, 65520, -1e9, np.inf, -np.inf]
    return x


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_conversion_rounds_once(dtype: str) -> None:
    x = floats().astype(dtype)
    short = dtype.replace("loat", "")
    same(one(f"cvt.rn.f16.{short} %d, %a;", "uint16", x, x, x), x.astype(np.float16))
    if dtype == "float32":
        assert np.array_equal(one("cvt.rn.bf16.f32 %d, %a;", "uint16", x, x, x), bf16(x))


OPERATIONS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "add.rn": lambda a, b, c: a + b,
    "sub": lambda a, b, c: a - b,
    "mul": lambda a, b, c: a * b,
    "fma.rn": lambda a, b, c: a * b + c,
    "min": lambda a, b, c: np.fmin(a, b),
    "max": lambda a, b, c: np.fmax(a, b),
    "neg": lambda a, b, c: -a,
    "abs": lambda a, b, c: np.abs(a),
}


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_arithmetic_rounds_once(operation: str, kind: str) -> None:
    draw = np.random.default_rng(7)
    a, b, c = (draw.normal(size=2048) * 2.0 ** draw.integers(-8, 8, 2048) for _ in range(3))
    store = (lambda x: x.astype(np.float16).view(np.uint16)) if kind == "f16" else bf16
    fetch = (lambda x: x.view(np.float16)) if kind == "f16" else from_bf16
    words = [store(x) for x in (a, b, c)]
    exact = OPERATIONS[operation](*(fetch(w).astype(np.float64) for w in words))
    operands = {"fma.rn": "%a, %b, %c", "neg": "%a", "abs": "%a"}.get(operation, "%a, %b")
    got = one(f"{operation}.{kind} %d, {operands};", "uint16", *words)
    assert np.array_equal(got, store(exact))
    pairs = [w.view(np.uint32) for w in words]
    both = one(f"{operation}.{kind}x2 %d, {operands};", "uint32", *pairs)
    assert np.array_equal(both.view(np.uint16), got)


def test_comparisons() -> None:
    draw = np.random.default_rng(3)
    a, b = (draw.choice(ALL, 1024) for _ in range(2))
    x, y = a.view(np.float16), b.view(np.float16)
    for name, truth in (
        ("lt", x < y),
        ("geu", ~(x < y)),
        ("eq", x == y),
        ("num", ~np.isnan(x) & ~np.isnan(y)),
    ):
        text = f"setp.{name}.f16 %p1, %a, %b; selp.u16 %d, 1, 0, %p1;"
        with np.errstate(invalid="ignore"):
            finite = np.isfinite(x) & np.isfinite(y)
        assert np.array_equal(one(text, "uint16", a, b, a)[finite], truth[finite])
    ones = one("set.le.f16.f16 %d, %a, %b;", "uint16", a, b, a)
    assert np.array_equal(ones.view(np.float16), (x <= y).astype(np.float16))


@pytest.mark.parametrize("how", ["and", "or", "xor"])
def test_two_predicates_are_combined_each(how: str) -> None:
    draw = np.random.default_rng(4)
    a, b, c = (draw.integers(0, 0x7C00, 256).astype(np.uint16) for _ in range(3))
    a[::3] = b[::3]
    join, odd, equal = getattr(np, f"bitwise_{how}"), c % 2 == 1, a == b
    head = "and.b16 %rs30, %c, 1; setp.ne.u16 %p5, %rs30, 0; "
    for kind, (name, truth) in product(("f16", "bf16"), (("%p1", equal), ("%p2", ~equal))):
        text = f"{head}setp.eq.{how}.{kind} %p1|%p2, %a, %b, %p5; selp.u16 %d, 1, 0, {name};"
        assert np.array_equal(one(text, "uint16", a, b, c), join(truth, odd))


@pytest.mark.parametrize("towards", ["rz", "rm", "rp"])
def test_conversions_to_halves_in_a_direction(towards: str) -> None:
    draw = np.random.default_rng(5)
    numbers = (draw.standard_normal(512) * 10.0 ** draw.integers(-9, 4, 512)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        halves = ALL.view(np.float16).astype(np.float64), from_bf16(ALL).astype(np.float64)
    for kind, values in zip(("f16", "bf16"), halves, strict=True):
        there = np.sort(values[np.isfinite(values)])
        low = there[np.searchsorted(there, numbers, "right") - 1]
        high = there[np.searchsorted(there, numbers, "left")]
        want = {"rm": low, "rp": high, "rz": np.where(numbers < 0, high, low)}[towards]
        got = one(f"cvt.{towards}.{kind}.f32 %d, %a;", "uint16", numbers)
        given = got.view(np.float16) if kind == "f16" else from_bf16(got)
        assert np.array_equal(given.astype(np.float64), want)


def eights(kind: str) -> Array:
    """The numbers of all patterns of 8 bits (OCP, 8-bit floating point, section 5)."""
    fraction, bias = {"e4m3": (3, 7), "e5m2": (2, 15)}[kind]
    found = []
    for byte in range(256):
        size, part = (byte & 0x7F) >> fraction, byte & ((1 << fraction) - 1)
        value = (part + (size > 0) * (1 << fraction)) * 2.0 ** (max(size, 1) - bias - fraction)
        if kind == "e5m2" and size == 31:
            value = np.nan if part else np.inf
        elif kind == "e4m3" and byte & 0x7F == 0x7F:
            value = np.nan
        found.append(-value if byte & 0x80 else value)
    return np.array(found)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_floats_of_8_bits(kind: str) -> None:
    values, bytes_ = eights(kind), np.arange(256, dtype=np.uint16)
    pairs = (bytes_ | bytes_[::-1] << 8).astype(np.uint16)
    got = one(f"cvt.rn.f16x2.{kind}x2 %d, %a;", "uint32", pairs).view(np.float16).reshape(-1, 2)
    np.testing.assert_array_equal(got, np.stack([values, values[::-1]], 1).astype(np.float16))
    draw = np.random.default_rng(6)
    x = (draw.standard_normal(768) * 10.0 ** draw.integers(-6, 7, 768)).astype(np.float32)
    middles = (values[1:100] + values[:99]) / 2  # ties
    x[:99], x[99:102] = middles, (np.inf, -np.inf, np.nan)
    finite = np.flatnonzero(np.isfinite(values) & (bytes_ < 128))
    distance = np.abs(
        values[finite] - np.minimum(np.abs(np.nan_to_num(x)), 1e6)[:, None].astype(float)
    )
    # Of two that are as near, the even one; beyond the largest number that.
    nearest = finite[np.lexsort((np.broadcast_to(finite & 1, distance.shape), distance))[:, 0]]
    want = np.where(np.isnan(x), 0x7F, nearest | (np.signbit(x) * 0x80)).astype(np.uint16)
    text = f"cvt.rn.satfinite.{kind}x2.f32 %d, %a, %b;"
    got = one(text, "uint16", x, x[::-1].copy())
    assert np.array_equal(got, want << 8 | want[::-1])


def test_the_headers_of_halves_work() -> None:
    a = np.linspace(-3, 3, 32).astype(np.float16)
    pairs = np.stack([a, a[::-1]], 1).reshape(-1).copy()
    total = np.zeros(2, np.float16)
    arrays: Arrays = {"a": a, "pairs": pairs, "total": total, "out": np.zeros(32, np.float32)}
    got = outputs(cuda("halves.cu", "halves", arrays))
    square = (a * a).astype(np.float16)
    np.testing.assert_allclose(got["out"], np.exp(square.astype(np.float64)), rtol=2e-3)
    first, second = pairs[::2].astype(np.float64), pairs[1::2].astype(np.float64)
    fused = np.stack([first * first + first, second * second + second], 1).reshape(-1)
    assert np.array_equal(got["pairs"], fused.astype(np.float16))
    running = np.zeros(2, np.float16)
    for lane in range(32):
        running = (running + got["pairs"][2 * lane : 2 * lane + 2]).astype(np.float16)
    assert np.array_equal(got["total"], running)
