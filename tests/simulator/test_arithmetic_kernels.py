"""Kernels as people write them, on floats, wide integers and vectors, against numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.simulator.harness import Arrays, cuda, outputs

Array = NDArray[Any]
DRAW = np.random.default_rng(7)


def ran(entry: str, arrays: Arrays, *, grid: int = 1) -> dict[str, Array]:
    return outputs(cuda("math.cu", entry, arrays, grid=grid))


def close(got: Array, want: Array, ulps: float) -> bool:
    return bool((np.abs(got - want) <= ulps * np.spacing(np.abs(want))).all())


def test_distances_of_a_tour() -> None:
    n = 75
    x, y = (DRAW.uniform(0, 1000, n).astype(np.float32) for _ in range(2))
    tour = DRAW.permutation(n).astype(np.int32)
    given: Arrays = {"x": x, "y": y, "tour": tour}
    got = ran("distances", {**given, "out": np.zeros(n, np.float32), "n": np.int32(n)}, grid=3)[
        "out"
    ]
    there = np.roll(tour, -1)
    dx, dy = (v[tour].astype(np.float64) - v[there] for v in (x, y))
    assert close(got, np.hypot(dx, dy).astype(np.float32), 2)


def test_functions() -> None:
    n = 32
    x = np.concatenate([[0.5, 1.5, 2.5, 3.499999], DRAW.uniform(0.01, 40, n - 4)])
    x = x.astype(np.float32)
    empty: Arrays = {"out": np.zeros(5 * n, np.float32), "out_d": np.zeros(3 * n)}
    found = ran("functions", {"x": x, **empty, "n": np.int32(n)})
    exp_, log_, rounds, extremes, root = found["out"].reshape(5, n)
    wide = x.astype(np.float64)
    # CUDA C++ Programming Guide, "Mathematical Functions": at most 2 ulp and 1 ulp.
    assert close(exp_, np.exp(-wide).astype(np.float32), 2)
    assert close(log_, np.log(wide).astype(np.float32), 1)
    away = np.floor(wide + 0.5)
    assert (rounds == away + np.floor(wide) - np.floor(wide) + np.rint(wide)).all()
    assert (extremes == np.fmin(x, np.float32(2)) + np.fmax(x, np.float32(3)) + x).all()
    assert close(root, (1 / np.sqrt(wide)).astype(np.float32), 2)
    exp_d, log_d, sums = found["out_d"].reshape(3, n)
    assert close(exp_d, np.exp(-wide), 1)
    assert close(log_d, np.log(wide), 1)
    assert (sums == np.sqrt(wide) / 3 + (wide * 2 + 0.125)).all()


def test_atomics_on_every_type() -> None:
    x = DRAW.integers(-900, 900, 96).astype(np.int32)
    start = np.array([0, 2**31 - 1, -(2**31)], np.int32)
    wide = np.array([0, 2**63, 2**63], np.uint64)  # the last one is the least signed number
    sums: Arrays = {"f": np.zeros(1, np.float32), "d": np.zeros(1)}
    found = ran("atomics", {"x": x, "whole": start, "wide": wide, **sums}, grid=3)
    assert found["whole"].tolist() == [x.sum(), x.min(), x.max()]
    square, first, most = found["wide"].tolist()
    assert square == int((x.astype(np.int64) ** 2).sum())
    assert first == (int(x.min() + 1000) << 32) + int(x.argmin())
    assert most == int(x.max()) % 2**64
    assert (found["f"][0], found["d"][0]) == (48.0, 24.0)


def test_lanes_together() -> None:
    x = DRAW.integers(-1000, 1000, 32).astype(np.int32)
    empty: dict[str, Array] = {"out": np.zeros(32, np.int32), "wide": np.zeros(32, np.int64)}
    found = ran("warps", {"x": x, **empty, "f": np.zeros(32, np.float32)})
    assert found["wide"][0] == int(x.sum()) * 1000003
    assert (found["f"] == x.min() * np.float32(0.5)).all()
    assert (found["out"] == x.sum() + x.min() + (x & 1).sum() + x[3]).all()


def test_vectors_of_two_and_four() -> None:
    x = DRAW.integers(-99, 99, (32, 4)).astype(np.int32)
    y = DRAW.uniform(1, 2, (32, 4)).astype(np.float32)
    empty: dict[str, Array] = {"out": np.zeros(64, np.int32), "out_d": np.zeros(64)}
    found = ran("vectors", {"x": x.ravel(), "y": y.ravel(), **empty})
    sums = np.stack([x[:, 0] + x[:, 1], x[:, 2] - x[:, 3]], 1)
    assert (found["out"].reshape(32, 2) == sums).all()
    exact = y.astype(np.float64)
    parts = np.stack([exact[:, 0] * exact[:, 1], exact[:, 2] / exact[:, 3]], 1)
    assert (found["out_d"].reshape(32, 2) == parts).all()


def test_64_bit_integers() -> None:
    n = 32
    x = DRAW.integers(-(2**62), 2**62, n)
    found = ran("wide", {"x": x, "out": np.zeros(6 * n, np.int64), "n": np.int32(n)})
    quotient, rest, high, bits, floors, rows = found["out"].reshape(6, n).tolist()
    for i, number in enumerate(x.tolist()):
        sign = -1 if number < 0 else 1
        assert quotient[i] == sign * (abs(number) // 7)
        assert rest[i] == sign * (abs(number) % 13)
        assert high[i] == number * number >> 64
        pattern = number % 2**64
        assert bits[i] == pattern.bit_count() + 64 - pattern.bit_length()
        assert floors[i] == math.floor((float(number) + 0.5) / 3.0)
        k = pattern >> 24
        assert rows[i] == int((math.sqrt(8.0 * k + 1.0) - 1.0) / 2.0)
