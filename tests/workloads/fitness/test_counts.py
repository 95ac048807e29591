"""Counts of the fitness workload, with its bytes and operations, against enumeration."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from nqbench.errors import StudyError
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.counts import count, diagonals, pairs, sub_kernels, sub_threads
from tests.workloads.fitness import brute_force
from tests.workloads.fitness.running import OWN, PAPER
from tests.workloads.running import GPU


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_the_mean_over_all_boards(n: int) -> None:
    boards = [np.array(p, np.int32) for p in permutations(range(n))]
    mean = sum(brute_force(board) for board in boards) / len(boards)
    assert count("expected_conflicts_random", N=n) == pytest.approx(mean)


@pytest.mark.parametrize("n", [50, 1000])
def test_boards_drawn_at_random_come_out_at_it(n: int) -> None:
    mean = count("mean_conflicts_random", N=n)
    assert mean == pytest.approx(count("expected_conflicts_random", N=n), rel=0.02)
    assert mean == count("mean_conflicts_random", N=n)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("pears", {"N": 8}, "did you mean 'pairs'"),
        ("pairs", {}, "needs a board size"),
        ("pairs", {"N": 0}, "needs a board size"),
        ("pairs", {"N": 8, "depth": 2}, "no parameter 'depth'"),
    ],
)
def test_mistakes(name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        count(name, **given)


def derived(system: str, **given: Level) -> dict[str, int | float | str]:
    return dict(WORKLOAD.resolve(given, system, GPU).derived)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 33])
@pytest.mark.parametrize("threshold", [1, 2, 3, 8, 40])
def test_sub_threads_and_sub_kernels(n: int, threshold: int) -> None:
    split = [-(-work // threshold) for work in range(n) if work > threshold]
    assert sub_threads(n, threshold) == sum(split)
    for nesting in (1, 2, 3, 7):
        launched = 0
        for left in split:  # as the kernels share a row's sub-threads among their levels
            levels = nesting
            while left > 0:
                launched += 1
                left -= -(-left // levels)
                levels -= 1
        assert sub_kernels(n, threshold, nesting) == launched


def test_sizes() -> None:
    for n in (1, 2, 5, 20):
        rounds = sum(x + 1 for x in range(n) for _ in range(x + 1, n))  # that derive a pair
        assert derived(f"{PAPER}.gpu_fine2", n=n)["operations"] == 4 * pairs(n) + 3 * rounds
    assert pairs(50_000) == 1_249_975_000
    assert diagonals(6) == len({c + r for c in range(6) for r in range(6)}) * 2
    fine1 = derived(f"{PAPER}.gpu_fine1", n=1000)
    assert fine1["transfer_bytes"] == 8 * 499_500 + 4 * 1000 + 8
    assert fine1["bytes_moved"] == 16 * 499_500


def test_a_batch_is_so_many_boards() -> None:
    one = derived(f"{OWN}.histogram", n=500, counters="global")
    many = derived(f"{OWN}.batched", n=500, counters="global", batch=7)
    for name in ("bytes_moved", "operations", "transfer_bytes", "device_bytes"):
        assert many[name] == 7 * int(one[name]), name


def test_predictions_grow_as_the_schemes_do() -> None:
    def growth(system: str) -> float:
        small, large = ({"scheme": system, "n": n, "board": "random"} for n in (1000, 2000))
        return WORKLOAD.work(large) / WORKLOAD.work(small)

    assert growth("histogram") == pytest.approx(2, rel=0.01)
    assert growth("gpu_coarse") == pytest.approx(4, rel=0.01)
    assert growth("gpu_fine2") == pytest.approx(8, rel=0.02)
