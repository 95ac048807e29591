"""Calls that the compiler does not inline, and CUDA's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nqbench.errors import KernelFault
from tests.simulator.harness import cuda, device, outputs

LANES = range(32)
FIBONACCI = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def reversed_(given: list[int], n: int) -> int:
    own = [x + n for x in reversed(given)]
    return own[0] * 1000 + own[3] if n == 0 else reversed_(own, n - 1) + own[n & 3]


def turn(n: int, first: int) -> int:
    """Both functions call the one for the oddness of their own number."""
    if n < 1:
        return 7 if first else 100
    return turn(n - 1, n & 1) * 2 if first else turn(n - 1, n & 1) + 1


RIGHT: dict[str, Callable[[int], float]] = {
    "structs": lambda i: 6 * i + 2,
    "pointers": lambda i: (2 * i if i % 2 else i + 1) + 7,
    "some_lanes": lambda i: i + 1 if i % 3 == 1 else 0,
    "narrows": lambda i: (8 * i + 128) % 256 - 129,
    "numbers": lambda i: FIBONACCI[i % 12],
    "parity": lambda i: (i % 9 % 2 == 0) + 2 * (i % 2),
    "arrays": lambda i: reversed_([1, 2, 3, i], i % 5),
    "taking_turns": lambda i: turn(i % 8, i & 1),
    "warp_size": lambda _: 32,
}


@pytest.mark.parametrize("entry", RIGHT)
def test_calls_give_what_inlined_code_would(entry: str) -> None:
    kind = np.float32 if entry == "structs" else np.int32
    plan = cuda("calls.cu", entry, {"out": np.zeros(32, kind)})
    with device().prepare(plan) as prepared:
        counters = [prepared.launch().counters for _ in range(2)]
        assert prepared.fetch()["out"].tolist() == [RIGHT[entry](i) for i in LANES]
    assert counters[0] == counters[1]


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
    "endless": (0, r"recursion deeper than 16384 bytes of stack; .* \(calls\.cu:\d+\)"),
    "bad_pointer": (64, r"call of an address that is no function's \(0x40\); .*lane 0; "),
    "asserts": (LANES, r"assertion failed: out\[threadIdx\.x\] < 20; .*lane 20; .*calls\.cu:\d+"),
}


@pytest.mark.parametrize("entry", FAULTS)
def test_a_call_that_goes_wrong_names_its_place(entry: str) -> None:
    values, words = FAULTS[entry]
    out = np.zeros(32, np.int32) + np.array(values, np.int32)
    plan = cuda("calls.cu", entry, {"out": out})
    with device().prepare(plan) as prepared, pytest.raises(KernelFault, match=words):
        prepared.launch()


def test_a_refused_call_names_the_function_and_the_line() -> None:
    plan = cuda("calls.cu", "mallocs", {"out": np.zeros(32, np.int32)})
    with pytest.raises(
        KernelFault, match=r"a call of malloc, .* at PTX line \d+ \(calls\.cu:\d+\)"
    ):
        device().prepare(plan)
