"""Floats of 16 bits against numpy's, and against rounding by hand."""

from __future__ import annotations

from collections.abc import Callable
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
