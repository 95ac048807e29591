"""Counts of the fitness workload against enumeration and closed forms."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from nqbench.errors import StudyError
from nqbench.workloads.fitness.boards import brute_force
from nqbench.workloads.fitness.counts import count


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


def test_pairs() -> None:
    assert count("pairs", N=50_000) == 1_249_975_000
    assert count("pairs", N=1) == 0


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
