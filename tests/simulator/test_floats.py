"""Floating point: opcodes against numpy, directions of rounding, approximations."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulator.harness import computed

Array = NDArray[Any]
EDGES = [0.0, -0.0, 1.0, -1.5, 3.25e30, -7e-30, np.inf, -np.inf, np.nan, 2.0**31, -(2.0**31), 0.5]


def clamped(x: Array, low: int, high: int) -> list[int]:
    """Nearest integer in range; NaN is 0."""
    return [0 if np.isnan(v) else int(min(max(v, low), high)) for v in x.astype(np.float64)]


Case = tuple[str, Callable[[Array, Array, Array], Array]]
CASES: list[Case] = [
    ("add.{t} {d}, {a}, {b}", lambda a, b, c: a + b),
    ("sub.rn.{t} {d}, {a}, {b}", lambda a, b, c: a - b),
    ("mul.{t} {d}, {a}, {b}", lambda a, b, c: a * b),
    ("div.rn.{t} {d}, {a}, {b}", lambda a, b, c: a / b),
    ("sqrt.rn.{t} {d}, {a}", lambda a, b, c: np.sqrt(a)),
    ("rcp.rn.{t} {d}, {a}", lambda a, b, c: a.dtype.type(1) / a),
    ("neg.{t} {d}, {a}", lambda a, b, c: -a),
    ("abs.{t} {d}, {a}", lambda a, b, c: np.abs(a)),
    ("min.{t} {d}, {a}, {b}", lambda a, b, c: np.fmin(a, b)),
    ("max.{t} {d}, {a}, {b}", lambda a, b, c: np.fmax(a, b)),
    ("copysign.{t} {d}, {a}, {b}", lambda a, b, c: np.copysign(b, a)),
    ("cvt.rni.{t}.{t} {d}, {a}", lambda a, b, c: np.rint(a)),
    ("cvt.rmi.{t}.{t} {d}, {a}", lambda a, b, c: np.floor(a)),
]


def values(dtype: str) -> list[Array]:
    draw = np.random.default_rng(3)
    columns = []
    for step in (1, 12, 5):
        edge = [EDGES[i // step % 12] for i in range(160)]
        columns.append(np.array([*edge, *(draw.normal(size=96) * 1000)], dtype))
    return columns


@pytest.mark.parametrize("bits", [32, 64])
def test_arithmetic(bits: int) -> None:
    columns = values(f"float{bits}")
    texts = [text.format(t=f"f{bits}", a="%a", b="%b", d="%d") for text, _ in CASES]
    results = computed(texts, f"float{bits}", *columns)
    with np.errstate(all="ignore"):
        for got, (text, reference) in zip(results, CASES, strict=True):
            want = reference(*columns)
            same = (got.view(f"u{bits // 8}") == want.view(f"u{bits // 8}")) | (
                np.isnan(got) & np.isnan(want)
            )
            # min and max of zeros with different signs: numpy may give either.
            same |= (got == 0) & (want == 0) if text.startswith("m") else False
            assert same.all(), (text, [c[~same][:3] for c in columns], got[~same][:3])


def test_fma_rounds_once() -> None:
    draw = np.random.default_rng(5)
    a, b = (draw.normal(size=256).astype(np.float32) for _ in range(2))
    c = -(a * b)  # leaves exactly the rounding error of the product, which fits
    (result,) = computed(["fma.rn.f32 %d, %a, %b, %c"], "float32", a, b, c)
    exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    assert np.count_nonzero(exact) > 200
    assert (result == exact.astype(np.float32)).all()


def test_conversions() -> None:
    a = values("float32")[0]
    texts = ["cvt.rzi.s32.f32 %d, %a", "cvt.rni.s32.f32 %d, %a", "cvt.rzi.u32.f32 %d, %a"]
    cut, near, natural = computed(texts, "int32", a)
    whole = clamped(np.trunc(a), -(2**31), 2**31 - 1)
    assert cut.tolist() == whole
    assert near.tolist() == clamped(np.rint(a), -(2**31), 2**31 - 1)
    assert natural.view(np.uint32).tolist() == clamped(np.trunc(a), 0, 2**32 - 1)
    texts = [
        "cvt.rzi.s32.f32 %r6, %a; cvt.rn.f32.s32 %d, %r6",
        "cvt.f64.f32 %fd1, %a; add.f64 %fd2, %fd1, 0d3FE0000000000000; cvt.rn.f32.f64 %d, %fd2",
    ]
    back, half = computed(texts, "float32", a)
    assert back.tolist() == np.array(whole, np.float32).tolist()
    assert np.array_equal(half, (a.astype(np.float64) + 0.5).astype(np.float32), equal_nan=True)


def test_comparisons_with_nan() -> None:
    tests: dict[str, Callable[[Array, Array], Array]] = {
        "lt": lambda a, b: a < b,
        "ne": lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b),
        "neu": lambda a, b: a != b,
        "geu": lambda a, b: ~(a < b),
        "num": lambda a, b: ~np.isnan(a) & ~np.isnan(b),
        "nan": lambda a, b: np.isnan(a) | np.isnan(b),
    }
    a, b, _ = values("float32")
    texts = [f"setp.{name}.f32 %p1, %a, %b; selp.u32 %d, 1, 0, %p1" for name in tests]
    for got, (name, reference) in zip(computed(texts, "int32", a, b), tests.items(), strict=True):
        assert got.tolist() == reference(a, b).astype(int).tolist(), name


SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan]


def operands() -> list[Array]:
    """Three columns of 256: all pairs of special values, then numbers of any size."""
    draw = np.random.default_rng(11)
    size = 256 - 144
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL], np.float32)
    columns = [
        np.ldexp(draw.uniform(-1, 1, size), draw.integers(-spread, spread, size))
        for spread in (20, 30, 12)
    ]
    firsts = [pairs[:, 0], pairs[:, 1], np.roll(pairs[:, 1], 5)]
    return [
        np.concatenate([first, column]).astype(np.float32)
        for first, column in zip(firsts, columns, strict=True)
    ]


def rounded(exact: Fraction, towards: str) -> float:
    """The float that a direction asks for, found by walking from a near one."""
    with np.errstate(over="ignore"):
        near = np.float32(min(max(float(exact), -1e39), 1e39))
        while float(near) > exact:
            near = np.nextafter(near, np.float32(-np.inf))
        while float(above := np.nextafter(near, np.float32(np.inf))) <= exact:
            near = above
    up = exact < 0 if towards == "rz" else towards == "rp"
    return float(above if up and float(near) != exact else near)


EXACT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, c: a + b,
    "sub": lambda a, b, c: a - b,
    "mul": lambda a, b, c: a * b,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("towards", ["rz", "rm", "rp"])
def test_directed_rounding(towards: str) -> None:
    columns = operands()
    texts = [f"{name}.{towards}.f32 %d, %a, %b{', %c' if name == 'fma' else ''};" for name in EXACT]
    results = computed(texts, "float32", *columns)
    finite = np.isfinite(columns[0]) & np.isfinite(columns[1]) & np.isfinite(columns[2])
    for row, (name, exact) in zip(results, EXACT.items(), strict=True):
        for got, *values in zip(row[finite], *(c[finite] for c in columns), strict=True):
            true = exact(*(Fraction(float(v)) for v in values))
            if true:
                assert got == rounded(true, towards), (name, values, got)
            else:
                assert got == 0
        with np.errstate(all="ignore"):
            want = exact(*(c[~finite].astype(np.float64) for c in columns))
        special = ~np.isfinite(want)  # infinities and NaN are not rounded
        assert np.array_equal(row[~finite][special], want[special], equal_nan=True)


@pytest.mark.parametrize("towards", ["rz", "rm", "rp"])
def test_conversions_in_a_direction(towards: str) -> None:
    draw = np.random.default_rng(8)
    double = draw.standard_normal(256) * 10.0 ** draw.integers(-44, 37, 256)
    columns = {
        "s32": draw.integers(-(2**31), 2**31, 256).astype(np.int32),
        "u32": draw.integers(0, 2**32, 256).astype(np.uint32),
        "s64": draw.integers(-(2**63), 2**63 - 1, 256),
        "u64": np.r_[draw.integers(0, 2**64 - 1, 255, np.uint64), np.uint64(2**64 - 1)],
        "f64": double,
    }
    for kind, numbers in columns.items():
        (got,) = computed([f"cvt.{towards}.f32.{kind} %d, %a;"], "float32", numbers)
        for value, found in zip(numbers.tolist(), got, strict=True):
            assert found == rounded(Fraction(value), towards), (kind, value)


def test_a_sum_of_zero_has_the_sign_that_ieee_754_says() -> None:
    one, zero = np.ones(256, np.float32), np.zeros(256, np.float32)
    texts = ["add.rm.f32 %d, %a, %b;", "add.rz.f32 %d, %a, %b;", "add.rm.f32 %d, %c, %c;"]
    down, cut, plus = computed(texts, "float32", one, -one, zero)
    assert (down == 0).all()
    assert np.signbit(down).all()
    assert not np.signbit(cut).any()
    assert not np.signbit(plus).any()


def test_saturation_and_flushing() -> None:
    a, b, c = operands()
    texts = [
        "add.sat.f32 %d, %a, %b;",
        "cvt.sat.f32.f32 %d, %a;",
        "mul.ftz.f32 %d, %a, %b;",
        "cvt.ftz.f64.f32 %fd1, %a; cvt.rn.f32.f64 %d, %fd1;",
        "setp.gt.ftz.f32 %p1, %a, 0f00000000; selp.f32 %d, 0f3F800000, 0f00000000, %p1;",
    ]
    sums, clamped, products, kept, tests = computed(texts, "float32", a, b, c)

    def flush(x: Array) -> Array:
        small = np.abs(x) < np.finfo(np.float32).tiny
        return np.where(small, np.copysign(np.float32(0), x), x)

    with np.errstate(all="ignore"):
        assert np.array_equal(sums, np.nan_to_num(np.clip(a + b, 0, 1)))
        assert np.array_equal(clamped, np.nan_to_num(np.clip(a, 0, 1)))
        assert np.array_equal(products, flush(flush(a) * flush(b)), equal_nan=True)
    assert np.array_equal(kept, flush(a), equal_nan=True)
    assert np.array_equal(tests, (flush(a) > 0).astype(np.float32))
    assert (tests != (a > 0)).any()  # some value is only positive until it is flushed


APPROXIMATE: dict[str, Callable[[Array, Array], Array]] = {
    "ex2.approx.f32 %d, %a;": lambda a, b: np.exp2(a),
    "lg2.approx.f32 %d, %a;": lambda a, b: np.log2(a),
    "rcp.approx.f32 %d, %a;": lambda a, b: 1 / a,
    "rsqrt.approx.f32 %d, %a;": lambda a, b: 1 / np.sqrt(a),
    "sqrt.approx.f32 %d, %a;": lambda a, b: np.sqrt(a),
    "div.approx.f32 %d, %a, %b;": lambda a, b: a / b,
    "div.full.f32 %d, %a, %b;": lambda a, b: a / b,
    "sin.approx.f32 %d, %a;": lambda a, b: np.sin(np.where(np.abs(a) < 1e6, a, np.nan)),
    "cos.approx.f32 %d, %a;": lambda a, b: np.cos(np.where(np.abs(a) < 1e6, a, np.nan)),
    "tanh.approx.f32 %d, %a;": lambda a, b: np.tanh(a),
}


def test_approximations_give_the_nearest_float() -> None:
    a, b, c = operands()
    a[144:200] = np.linspace(-140, 140, 56)
    results = computed(list(APPROXIMATE), "float32", a, b, c)
    with np.errstate(all="ignore"):
        for got, (text, truth) in zip(results, APPROXIMATE.items(), strict=True):
            exact = truth(a.astype(np.float64), b.astype(np.float64))
            want = exact.astype(np.float32)
            if text.startswith(("sin", "cos")):  # far from zero the GPU gives anything
                got = np.where(np.isnan(want), np.nan, got)
            if text.startswith(("rcp", "rsqrt", "div", "sqrt")):
                assert np.array_equal(got, want, equal_nan=True), text
            else:  # numpy's own double may lie on the other side of a tie, hardly ever
                same = (got == want) | (np.isnan(got) & np.isnan(want))
                assert same.mean() > 0.98, text
                assert np.allclose(got, want, rtol=1.2e-7, atol=1e-45, equal_nan=True), text


def test_only_the_coarse_functions_of_a_double_are_coarse() -> None:
    x = np.linspace(0.1, 99, 256)
    coarse, root = computed(["rcp.approx.ftz.f64 %d, %a", "rsqrt.approx.f64 %d, %a"], "float64", x)
    np.testing.assert_allclose(coarse, 1 / x, rtol=1e-6)
    assert (coarse.view(np.uint64) & 0xFFFFFFFF == 0).all()
    np.testing.assert_allclose(root, 1 / np.sqrt(x), rtol=2.3e-16)


NAN = {"s32.f32": 0, "u32.f32": 0, "s64.f32": 1 << 63, "u64.f32": 1 << 63, "s32.f64": 1 << 31}
NAN |= {"u32.f64": 1 << 31, "s64.f64": 1 << 63}


@pytest.mark.parametrize("kinds", NAN)
def test_nan_as_an_integer(kinds: str) -> None:
    given = np.full(1, np.nan, "float32" if kinds.endswith("f32") else "float64")
    found = computed([f"cvt.rzi.{kinds} %d, %a"], f"uint{kinds[1:3]}", given)
    assert found.tolist() == [[NAN[kinds]]]
