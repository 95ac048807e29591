"""Instructions of recent architectures, each in a kernel with a known result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulator.harness import Arrays, cuda, device, outputs

Array = NDArray[Any]
LANES = np.arange(32)
draw = np.random.default_rng(5)
WORDS, OTHERS = (draw.integers(-(2**31), 2**31, 32).astype(np.int32) for _ in range(2))
LONGS = draw.integers(0, 2**64, 32, dtype=np.uint64)
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


@pytest.mark.usefixtures("accesses")
@pytest.mark.parametrize("entry", CASES)
def test_results(entry: str) -> None:
    arrays, block, expected = CASES[entry]
    with device().prepare(cuda("modern.cu", entry, arrays, block=block)) as prepared:
        counters = [prepared.launch().counters for _ in range(2)]
        got = prepared.fetch()["out"]
    assert got.tolist() == expected().tolist()
    assert counters[0] == counters[1]


def test_an_asynchronous_copy_is_counted_in_both_spaces() -> None:
    arrays, block, _ = CASES["copies"]
    with device().prepare(cuda("modern.cu", "copies", arrays, block=block)) as prepared:
        lines = prepared.launch().detail["lines"]
    found = {(x["space"], x["lanes"]) for x in lines if x["opcode"].startswith("cp.async")}
    assert found == {("global", 32), ("shared", 32), ("global", 4), ("shared", 4)}


def test_parameters_may_be_indexed() -> None:
    values = draw.integers(0, 1000, 40).astype(np.int32)
    many = np.void(values.tobytes())
    plan = cuda("modern.cu", "parameters", {"many": many, "out": ZEROS})
    assert outputs(plan)["out"].tolist() == values[LANES * 7 % 40].tolist()
