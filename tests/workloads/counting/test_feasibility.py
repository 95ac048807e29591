"""Limits: each refusal names the value, the limit and what to try."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nqbench.errors import InfeasibleError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.workloads.counting import Counting
from tests.workloads.running import GPU

COUNTING = Counting()
OLD = replace(GPU, name="old GPU", max_threads_per_block=512, shared_per_block=16_384)


def refused(
    system: str | None, given: dict[str, Level], device: DeviceFacts = GPU
) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        COUNTING.resolve(given, system, device)
    return caught.value


@pytest.mark.parametrize(
    ("system", "given", "device", "sentence", "factor"),
    [
        (None, {"n": 4}, GPU, "n: 4 is outside what the kernels take, 5 to 27", "n"),
        ("cpu.somers", {"n": 28}, GPU, "n: 28 is outside what the CPU programs take, 1 to", "n"),
        (None, {"n": 8, "depth": 6}, GPU, "depth: 6 is outside 2 to N-3 = 5 at n: 8", "depth"),
        (
            None,
            {"n": 12, "block_size": 600},
            OLD,
            "block_size: 600 is over the 512 threads per block of old GPU",
            "block_size",
        ),
        (
            "feinbube2010.opt2_shared_all",
            {"n": 12, "block_size": 128},
            GPU,
            "66560 bytes of static shared memory per block (130 words for each of 128 threads) are"
            " over the limit of 49152 on test GPU; try a block_size of at most 94",
            "block_size",
        ),
        (
            "feinbube2010.opt3_shared_extern",
            {"n": 12, "block_size": 512},
            GPU,
            "262144 bytes of shared memory per block",
            "block_size",
        ),
        (
            None,
            {"n": 20, "encoding": "base_n", "depth": 8},
            GPU,
            "20^8 = 25600000000, over the 31 bits",
            "depth",
        ),
        ("zhang2011.low_divergence", {"n": 22}, GPU, "gives more than 357913941 jobs", "depth"),
        (
            "zhang2011.naive_l1_16k",
            {"n": 19},
            GPU,
            "over the 4294967296 bytes of test GPU; use a smaller depth or memory: shared",
            "depth",
        ),
        (
            "feinbube2010.base",
            {"n": 20, "max_board": 16},
            GPU,
            "max_board: 16 is less than n: 20",
            "max_board",
        ),
        (
            None,
            {"n": 12, "assignment": "strided", "blocks": 2**31 - 1},
            GPU,
            "2147483647 blocks of 128 threads are over the limit of 8388608",
            "blocks",
        ),
        (None, {"n": 12, "block_size": 1025}, GPU, "block_size: 1025 is outside", "block_size"),
    ],
)
def test_limits(
    system: str | None, given: dict[str, Level], device: DeviceFacts, sentence: str, factor: str
) -> None:
    error = refused(system, given, device)
    assert re.search(re.escape(sentence), str(error)), str(error)
    assert "\n" not in str(error)
    assert error.factor == factor


def test_the_advised_block_size_fits() -> None:
    error = refused("feinbube2010.opt2_shared_all", {"n": 12, "block_size": 128})
    advised = int(re.findall(r"at most (\d+)", str(error))[0])
    resolved = COUNTING.resolve(
        {"n": 12, "block_size": advised}, "feinbube2010.opt2_shared_all", GPU
    )
    assert resolved.derived["shared_bytes"] == 130 * 4 * advised
    refused("feinbube2010.opt2_shared_all", {"n": 12, "block_size": advised + 1})


def test_a_point_needs_n() -> None:
    with pytest.raises(StudyError, match="needs a number n"):
        COUNTING.resolve({}, None, GPU)


def test_the_largest_boards_are_accepted() -> None:
    for system in COUNTING.systems:
        given: dict[str, Level] = {"n": 27}
        if not system.startswith("cpu"):
            given["depth"] = 4
        assert COUNTING.resolve(given, system, GPU).factors["n"] == 27
