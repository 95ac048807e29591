"""Kernels as people write them, each with a known result: floats, wide integers, vectors, calls,
instructions of recent architectures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nqbench.errors import KernelFault
from nqbench.plan import KernelPlan
from nqbench.simulator.tally import Tally
from tests.simulator.harness import Arrays, accesses, cuda, device, outputs

Array = NDArray[Any]
LANES = np.arange(32)
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


WORDS, OTHERS = (DRAW.integers(-(2**31), 2**31, 32).astype(np.int32) for _ in range(2))
LONGS = DRAW.integers(0, 2**64, 32, dtype=np.uint64)
ZEROS = np.zeros(32, np.int32)


def copied() -> Array:
    """Of odd quarters the last 8 bytes are zeros."""
    words = np.where((LANES // 4 % 2 == 1) & (LANES % 4 >= 2), 0, 10 + LANES)
    found: Array = (10 + LANES)[::-1] + 100 * words
    return found


def dots() -> Array:
    a, b = WORDS.view(np.int8).reshape(32, 4), OTHERS.view(np.int8).reshape(32, 4)
    signed = (a.astype(np.int64) * b).sum(1) + 5
    unsigned = (a.view(np.uint8).astype(np.int64) * b.view(np.uint8)).sum(1) + 7
    halves = WORDS.view(np.int16).reshape(32, 2).astype(np.int64)
    mixed = (halves * b[:, 2:]).sum(1) + 1
    found: Array = (signed + 3 * unsigned + mixed).astype(np.int32)
    return found


def wide_sums() -> Array:
    found = []
    for i in range(32):
        total = int(LONGS[i]) + int(LONGS[31 - i])
        low = int(LONGS[i]) & 0xFFFFFFFF
        borrow = 0xFFFFFFFF if low < 5 else 0
        word = (
            (total & (2**64 - 1)) ^ (total >> 64 << 8) ^ (borrow << 32) ^ ((low - 5) & 0xFFFFFFFF)
        )
        found.append(word)
    return np.array(found, np.uint64)


def quotients() -> Array:
    words = [int(word) for word in LONGS]
    pairs = [divmod(words[i] << 64 | words[31 - i], words[i ^ 1] >> i) for i in range(32)]
    return np.array([(whole % 2**64) ^ rest for whole, rest in pairs], np.uint64)


NUMBERS = np.linspace(-500, 500, 32).astype(np.int32)
RIGHT: dict[str, Callable[[int], float]] = {
    "structs": lambda i: 6 * i + 2,
    "pointers": lambda i: (2 * i if i % 2 else i + 1) + 7,
    "some_lanes": lambda i: i + 1 if i % 3 == 1 else 0,
    "narrows": lambda i: (8 * i + 128) % 256 - 129,
    "warp_size": lambda _: 32,
}


CASES: dict[str, tuple[Arrays, int, Callable[[], Array]]] = {
    "copies": ({"in": (10 + LANES).astype(np.int32), "out": ZEROS}, 32, copied),
    "phases": ({"out": np.zeros(96, np.int32)}, 96, lambda: np.full(96, 4560 + 96 * 4560)),
    "bulk": (
        {"in": np.arange(288, dtype=np.int32), "out": np.zeros(288, np.int32)}, 96,
        lambda: np.arange(288).reshape(3, 96)[:, ::-1].reshape(-1),
    ),
    "elected": (
        {"out": ZEROS}, 32, lambda: np.where(LANES < 12, 0, 120) + np.isin(LANES, (0, 12)),
    ),
    "parts": ({"out": ZEROS}, 64, lambda: (LANES**2)[::-1]),
    "dots": ({"a": WORDS, "b": OTHERS, "out": ZEROS}, 32, dots),
    "short_swaps": (
        {"out": np.arange(16, dtype=np.uint16)}, 32, lambda: 1000 + 2 * np.arange(16),
    ),
    "vectors": ({"out": np.zeros(32, np.float32)}, 32, lambda: 4.0 * (1 + LANES % 4)),
    "clamps": (
        {"in": NUMBERS, "out": ZEROS}, 32,
        lambda: np.clip(NUMBERS, -128, 127) * 1000 + np.clip(NUMBERS, 0, 255),
    ),
    "wide_sums": ({"a": LONGS, "out": np.zeros(32, np.uint64)}, 32, wide_sums),
    "quotients": ({"a": LONGS, "out": np.zeros(32, np.uint64)}, 32, quotients),
}  # fmt: skip


def known(entry: str) -> tuple[KernelPlan, list[float]]:
    """A kernel of these tables as a plan, and what it leaves in ``out``."""
    if entry in CASES:
        arrays, block, expected = CASES[entry]
        return cuda("modern.cu", entry, arrays, block=block), expected().tolist()
    out = np.zeros(32, np.float32 if entry == "structs" else np.int32)
    return cuda("calls.cu", entry, {"out": out}), [RIGHT[entry](i) for i in range(32)]


@pytest.mark.usefixtures("accesses")
@pytest.mark.parametrize("entry", [*CASES, *RIGHT])
def test_results(entry: str) -> None:
    """Also of functions that the compiler does not inline, like those of inlined code."""
    plan, want = known(entry)
    with device().prepare(plan) as prepared:
        counters = [prepared.launch().counters for _ in range(2)]
        assert prepared.fetch()["out"].tolist() == want
    assert counters[0] == counters[1]


def test_an_asynchronous_copy_is_counted_in_both_spaces() -> None:
    arrays, block, _ = CASES["copies"]
    with device().prepare(cuda("modern.cu", "copies", arrays, block=block)) as prepared:
        prepared.launch()
        (kernel,) = prepared.kernels.values()
    assert kernel.run is not None
    lines = accesses(Tally(kernel.run))
    found = {(x["space"], x["lanes"]) for x in lines if x["opcode"].startswith("cp.async")}
    assert found == {("global", 32), ("shared", 32), ("global", 4), ("shared", 4)}


def test_parameters_may_be_indexed() -> None:
    values = DRAW.integers(0, 1000, 40).astype(np.int32)
    many = np.void(values.tobytes())
    plan = cuda("modern.cu", "parameters", {"many": many, "out": ZEROS})
    assert outputs(plan)["out"].tolist() == values[LANES * 7 % 40].tolist()


def test_double_precision_functions_are_right_to_the_last_bits() -> None:
    x = np.concatenate([np.linspace(-30, 30, 16), 10.0 ** np.arange(-8, 8)])
    found = outputs(cuda("calls.cu", "doubles", {"out": x}))["out"]
    size = np.abs(x)
    expected = (
        np.sin(x) + np.cos(x) * size**1.7 + np.exp(-size) + np.log(size) + np.tan(x)
        + np.arctan2(x, 3.0)
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_what_lanes_print_is_kept() -> None:
    plan = cuda("calls.cu", "prints", {"out": np.zeros(32, np.int32)})
    with device().prepare(plan) as prepared:
        for _ in range(2):
            printed = prepared.launch().detail["printed"]
    assert printed == [
        *(f"{i} {i / 2:5.2f}|text|x%{-1 << 40} 000000ff\n" for i in (5, 21)),
        "plain\n",
    ]


FAULTS: dict[str, tuple[Any, str]] = {
    "taking_turns": (0, r"call of an address that is no function's, or of a caller \(0x\w+\)"),
    "bad_pointer": (64, r"no function's, or of a caller \(0x40\); .*lane 0; "),
    "asserts": (LANES, r"assertion failed: out\[threadIdx\.x\] < 20; .*lane 20; .*calls\.cu:\d+"),
}


@pytest.mark.parametrize("entry", FAULTS)
def test_a_call_that_goes_wrong_names_its_place(entry: str) -> None:
    values, words = FAULTS[entry]
    out = np.zeros(32, np.int32) + np.array(values, np.int32)
    plan = cuda("calls.cu", entry, {"out": out})
    with device().prepare(plan) as prepared, pytest.raises(KernelFault, match=words):
        prepared.launch()
