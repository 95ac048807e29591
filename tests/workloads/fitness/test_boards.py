"""Boards: made and judged; brute force over all pairs is the truth."""

from __future__ import annotations

import numpy as np
import pytest

from nqbench.errors import InfeasibleError
from nqbench.workloads.fitness import boards
from tests.workloads.fitness import brute_force


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 17, 60, 301, 2000])
def test_conflicts_are_pairs_on_a_diagonal(n: int) -> None:
    for seed in range(3):
        board = boards.random_board(n, seed)
        assert np.array_equal(np.sort(board), np.arange(n))
        assert boards.conflicts(board) == brute_force(board)
        if n < 100:
            rows = board.tolist()
            pairs = ((i, j) for i in range(n) for j in range(i + 1, n))
            assert boards.conflicts(board) == sum(abs(rows[i] - rows[j]) == j - i for i, j in pairs)
    for size in (n, 100_000):  # over 32 bits
        assert boards.conflicts(np.arange(size, dtype=np.int32)) == size * (size - 1) // 2


def test_valid_boards_of_all_sizes() -> None:
    for n in (1, *range(4, 700), 1000, 1001, 2000, 99_998, 100_000):  # all residues modulo 12
        board = boards.valid_board(n)
        assert board.dtype == np.int32
        assert np.array_equal(np.sort(board), np.arange(n)), n
        assert boards.conflicts(board) == 0, n
    assert brute_force(boards.valid_board(200)) == 0
    for n in (2, 3):
        with pytest.raises(InfeasibleError, match=f"valid does not exist at n: {n}"):
            boards.valid_board(n)


def test_random_boards_have_the_expected_conflicts() -> None:
    n, count = 300, 400
    mean = np.mean([boards.conflicts(boards.random_board(n, seed)) for seed in range(count)])
    assert mean == pytest.approx((2 * n - 1) / 3, rel=0.02)  # 1.4% is 4 standard errors


def test_boards_are_reproducible() -> None:
    assert np.array_equal(boards.random_board(50, 3), boards.random_board(50, 3))
    assert not np.array_equal(boards.random_board(50, 3), boards.random_board(50, 4))
    batch = boards.boards_of({"board": "random", "n": 50, "seed": 3, "batch": 4})
    assert np.array_equal(batch[2], boards.random_board(50, 5))


def test_answers_of_a_batch() -> None:
    each = [brute_force(boards.random_board(30, seed)) for seed in (7, 8, 9)]
    assert (
        boards.expected({"board": "random", "n": 30, "seed": 7, "batch": 3})
        == each[0] + 2 * each[1] + 3 * each[2]
    )
    assert boards.combined([5]) == 5
    assert boards.combined([1, 2]) != boards.combined([2, 1])
    assert boards.expected({"board": "valid", "n": 30, "seed": "-", "batch": 3}) == 0
