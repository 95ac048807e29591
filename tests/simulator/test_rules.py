"""The memory rules of each generation against counts made by hand from the CUDA C Programming
Guide (4.2, appendix F). Its figure F-1 has the first three patterns of ``GLOBAL``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nqbench.errors import DeviceError
from nqbench.simulator.rules import memory_rules
from tests.simulator.harness import PLACE, Rules, ptx, run
from tests.simulator.test_memory import global_load, load_line, shared_load


def model(rules: str, banks: int = 32, nbytes: int = 4) -> Rules:
    """The ``memory`` section of a model."""
    return (("bank_bytes", nbytes), ("rules", rules), ("sector_bytes", 32), ("shared_banks", banks))


STRICT, SEGMENTS = model("half_warp_strict", 16), model("half_warp_segments", 16)
LINES, KEPLER, SECTORS = model("lines"), model("kepler"), model("sectors")

Pattern = Callable[[int], int]
Counts = tuple[int, int]
GLOBAL: list[tuple[str, Pattern, int, list[Counts]]] = [
    # pattern, byte offset by lane, bytes of a word; transactions and bytes under each of
    # half_warp_strict, half_warp_segments, lines, kepler, sectors
    ("in sequence", lambda t: 4 * t, 4, [(2, 128), (2, 128), (1, 128), (4, 128), (4, 128)]),
    ("pairs swapped", lambda t: 4 * (t ^ 1), 4,
     [(32, 1024), (2, 128), (1, 128), (4, 128), (4, 128)]),
    # 1.2: 128 bytes, then 64, then 32 of the next segment.
    ("one word on", lambda t: 4 * t + 4, 4, [(32, 1024), (3, 224), (2, 256), (5, 160), (5, 160)]),
    ("half a line on", lambda t: 4 * t + 64, 4, [(2, 128), (2, 128), (2, 256), (4, 128), (4, 128)]),
    ("every other", lambda t: 8 * t, 4, [(32, 1024), (2, 256), (2, 256), (8, 256), (8, 256)]),
    ("one word", lambda t: 0, 4, [(32, 1024), (2, 64), (1, 128), (1, 32), (1, 32)]),
    ("a line each", lambda t: 128 * t, 4,
     [(32, 1024), (32, 1024), (32, 4096), (32, 1024), (32, 1024)]),
    ("two lanes", lambda t: 4 * t if t in (0, 5) else -1, 4,
     [(1, 64), (1, 32), (1, 128), (1, 32), (1, 32)]),
    ("64 bits", lambda t: 8 * t, 8, [(2, 256), (2, 256), (2, 256), (8, 256), (8, 256)]),
    # 2.x and 3.x ask once for each half-warp.
    ("64 bits, one", lambda t: 0, 8, [(32, 1024), (2, 64), (2, 256), (2, 64), (1, 32)]),
    ("128 bits", lambda t: 16 * t, 16, [(4, 512), (4, 512), (4, 512), (16, 512), (16, 512)]),
    ("16 bits", lambda t: 2 * t, 2, [(32, 1024), (2, 64), (1, 128), (2, 64), (2, 64)]),
    ("bytes", lambda t: t, 1, [(32, 1024), (2, 64), (1, 128), (1, 32), (1, 32)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("of", "nbytes", "expected"), [case[1:] for case in GLOBAL], ids=[case[0] for case in GLOBAL]
)
def test_transactions(of: Pattern, nbytes: int, expected: list[Counts]) -> None:
    offsets = [of(lane) for lane in range(32)]
    found = []
    for rules in (STRICT, SEGMENTS, LINES, KEPLER, SECTORS):
        counters = global_load(offsets, nbytes, rules).counters
        indices = global_load([-1] * 32, nbytes, rules).counters  # the load of the offsets alone
        found.append(
            tuple(int(counters[f"global_{name}"] - indices[f"global_{name}"])
                  for name in ("transactions", "bytes"))
        )  # fmt: skip
    assert found == expected


@pytest.mark.parametrize("access", ["ld.global.cg", "st.global", "red.global.add"])
def test_past_the_l1_cache_go_segments(access: str) -> None:
    """2.x: what L1 does not cache moves 32 bytes at a time (F.4.2)."""
    for of, sectors in ((4, 4), (128, 32)):
        result = global_load([of * lane for lane in range(32)], 4, LINES, access)
        line = [entry for entry in result.lines if entry["space"] == "global"][-1]
        assert (line["passes"], line["sectors"]) == (sectors, sectors)


LOCAL: list[tuple[str, Pattern, list[Counts]]] = [
    # which word each lane loads; transactions and bytes in the order of GLOBAL. Word w of lane l
    # lies at byte 128 w + 4 l.
    ("the same word", lambda t: 5, [(2, 128), (2, 128), (1, 128), (1, 128), (4, 128)]),
    ("a word each", lambda t: t, [(32, 1024), (32, 1024), (32, 4096), (32, 4096), (32, 1024)]),
    # 1.2: of each line a half-warp wants every second word of 64 bytes.
    ("two words", lambda t: t % 2, [(32, 1024), (4, 256), (2, 256), (2, 256), (8, 256)]),
    # The half-warps want lines of their own: sequences for 1.0, half lines for 1.2.
    ("a word per half", lambda t: t // 16, [(2, 128), (2, 128), (2, 256), (2, 256), (4, 128)]),
]


@pytest.mark.parametrize(
    ("of", "expected"), [case[1:] for case in LOCAL], ids=[case[0] for case in LOCAL]
)
def test_local_memory(of: Pattern, expected: list[Counts]) -> None:
    body = f"""{PLACE} ld.global.u32 %r2, [%rd1]; mul.wide.u32 %rd3, %r2, 4;
    mov.u64 %rd4, own; add.s64 %rd4, %rd4, %rd3; ld.local.u32 %r3, [%rd4];"""
    text = ptx(body, 1, variables=".local .align 4 .b8 own[128];")
    words = np.array([of(lane) for lane in range(32)], np.uint32)
    found = []
    for rules in (STRICT, SEGMENTS, LINES, KEPLER, SECTORS):
        counters = run(text, [words], rules=rules).counters
        found.append((counters["local_transactions"], counters["local_bytes"]))
    assert found == expected


SHARED: list[tuple[str, Pattern, int, list[Counts]]] = [
    # pattern, byte offset by lane, bytes; passes and bank conflicts under 1.x, 2.x, 3.x and 7.x
    ("stride 1", lambda t: 4 * t, 4, [(2, 0), (1, 0), (1, 0), (1, 0)]),
    # Words i and i + 32 of 64 come from a bank at once on 3.x.
    ("stride 2", lambda t: 8 * t, 4, [(4, 2), (2, 1), (1, 0), (2, 1)]),
    ("stride 3", lambda t: 12 * t, 4, [(2, 0), (1, 0), (1, 0), (1, 0)]),
    ("stride 32", lambda t: 128 * t, 4, [(32, 30), (32, 31), (16, 15), (32, 31)]),
    ("one word", lambda t: 8, 4, [(2, 0), (1, 0), (1, 0), (1, 0)]),
    # 1.x broadcasts one word at a time.
    ("two words, one bank", lambda t: 128 * (t % 2), 4, [(4, 2), (2, 1), (1, 0), (2, 1)]),
    ("two words, two banks", lambda t: 4 * (t % 2), 4, [(4, 2), (1, 0), (1, 0), (1, 0)]),
    ("four words", lambda t: 4 * (t % 4), 4, [(8, 6), (1, 0), (1, 0), (1, 0)]),
    ("chars", lambda t: t, 1, [(8, 6), (1, 0), (1, 0), (1, 0)]),
    # 1.x: two requests of stride 2 for each half-warp.
    ("64 bits", lambda t: 8 * t, 8, [(8, 4), (2, 0), (1, 0), (2, 0)]),
    # 7.x: halves go together where neighbours, or lanes 2 apart, want the same.
    ("64 bits, one", lambda t: 0, 8, [(4, 0), (2, 0), (1, 0), (1, 0)]),
    ("64 bits, pairs", lambda t: 8 * (t // 2), 8, [(8, 4), (2, 0), (1, 0), (1, 0)]),
    ("every second", lambda t: 8 * (t & ~2), 8, [(16, 12), (2, 0), (1, 0), (2, 1)]),
    ("128 bits, one", lambda t: 0, 16, [(8, 0), (8, 4), (2, 0), (2, 0)]),
    ("64 bits, stride 2", lambda t: 16 * t, 8, [(16, 12), (4, 2), (2, 1), (4, 2)]),
    # 2.x: one pass more for each quarter warp (F.4.3.2).
    ("128 bits", lambda t: 16 * t, 16, [(32, 24), (8, 4), (2, 0), (4, 0)]),
]


@pytest.mark.parametrize(
    ("of", "nbytes", "expected"), [case[1:] for case in SHARED], ids=[case[0] for case in SHARED]
)
def test_passes(of: Pattern, nbytes: int, expected: list[Counts]) -> None:
    offsets = [of(lane) for lane in range(32)]
    found = []
    for rules in (STRICT, LINES, KEPLER, SECTORS):
        result = shared_load(offsets, nbytes, rules)
        found.append((load_line(result)["passes"], result.counters["bank_conflicts"]))
    assert found == expected


def test_rules_that_do_not_fit_the_banks() -> None:
    for memory, banks in ((model("half_warp_strict"), 16), (model("kepler", nbytes=8), 32)):
        with pytest.raises(DeviceError, match=f"need {banks} banks of 4 bytes"):
            memory_rules(dict(memory))
