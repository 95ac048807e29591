"""Fork/join: the tree of tasks, the deques, and the stealing."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from nqbench.workloads.fitness.boards import conflicts, random_board
from nqbench.workloads.fitness.cpu.evaluators import fork_join_counted, leaf_level


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("threshold", [1, 2, 4, 7, 10])
def test_any_number_of_workers_finds_the_same(workers: int, threshold: int) -> None:
    for n in (5, 64, 777):
        board = random_board(n, seed=workers)
        assert fork_join_counted(board, threshold, workers).conflicts == conflicts(board)


@pytest.mark.parametrize(("n", "threshold"), [(1, 1), (8, 1), (9, 2), (1000, 4), (1001, 10)])
def test_leaves_are_as_many_as_halving_makes(n: int, threshold: int) -> None:
    def leaves(size_from: int, size_to: int) -> int:
        """Recursion as the paper has it, on the ranges themselves."""
        if size_to - size_from <= threshold:
            return 1
        middle = (size_from + size_to) // 2
        return leaves(size_from, middle) + leaves(middle, size_to)

    ran = sum(fork_join_counted(np.arange(n, dtype=np.int32), threshold, 2).leaves)
    # Ranges are cut at n p / 2**l, which may shift a cut by one queen: some ranges of a level that
    # has both threshold and threshold + 1 queens are cut elsewhere, none is larger.
    assert -(-n // threshold) <= ran <= 2 ** leaf_level(n, threshold)
    if n & (n - 1) == 0:
        assert ran == leaves(0, n)


@pytest.mark.parametrize(("n", "threshold", "level"), [(1, 1, 0), (2, 1, 1), (9, 2, 3), (8, 2, 2)])
def test_levels(n: int, threshold: int, level: int) -> None:
    assert leaf_level(n, threshold) == level


def test_one_worker_steals_nothing_and_several_do() -> None:
    board = random_board(20_000, 1)
    assert fork_join_counted(board, 4, 1).steals == (0,)
    assert any(sum(fork_join_counted(board, 4, 4).steals) > 0 for _ in range(5))


def test_threads_end_with_the_call() -> None:
    before = threading.active_count()
    fork_join_counted(random_board(500, 1), 2, 6)
    assert threading.active_count() == before


def test_many_short_calls_lose_no_task() -> None:
    """Races of owner and thieves over the last task of a deque, 300 times, with leaves of 1."""
    board = random_board(40, 3)
    want = conflicts(board)
    for _ in range(300):
        joined = fork_join_counted(board, 1, 3)
        assert joined.conflicts == want
        assert sum(joined.leaves) == 40


def test_a_deque_gives_its_owner_the_youngest_and_thieves_the_oldest() -> None:
    from nqbench.workloads.fitness.cpu.stealing import CAPACITY, LINE, pop, push, steal

    ends, deques = np.zeros(2 * 2 * LINE, np.int64), np.zeros(2 * CAPACITY, np.int64)
    for task in (11, 12, 13):
        push(ends, deques, 1, task)
    assert steal(ends, deques, 0) == 0  # another worker's is empty
    assert (pop(ends, deques, 1), steal(ends, deques, 1)) == (13, 11)
    assert (pop(ends, deques, 1), pop(ends, deques, 1), steal(ends, deques, 1)) == (12, 0, 0)
    for task in range(1, 5 * CAPACITY):  # round and round the buffer
        push(ends, deques, 1, task)
        assert steal(ends, deques, 1) == task
