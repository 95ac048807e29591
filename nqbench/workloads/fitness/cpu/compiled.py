"""Evaluations on the CPU, compiled by numba.

*Pairs*: the paper's algorithms, which compare every pair of queens.

*Histogram*: O(n) instead of O(n^2). A queen conflicts with every earlier one on its two diagonals,
so one pass over the board suffices: add the counter of each diagonal to the sum, then raise
it. Counters are 4-byte, the sum is 64-bit.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled


@compiled
def row_conflicts(board: NDArray[Any], queen: np.uint32, n: np.uint32) -> np.int64:
    """Conflicts of one queen with all those right of it: the inner loop of every pair scheme.

    Unsigned indices, since signed ones would be tested for wrapping around; ``n`` as an argument,
    since with ``board.shape`` instead the loop takes 1.5 times as long.
    """
    row = board[queen]
    count = np.uint32(0)
    for other in range(queen + np.uint32(1), n):
        apart = np.int32(abs(np.int32(row - board[other])))
        if apart == np.int32(other - queen):
            count = np.uint32(count + np.uint32(1))
    return np.int64(count)


@compiled
def serial_conflicts(board: NDArray[Any]) -> np.int64:
    """Algorithm 1 of the fitness paper: all pairs i < j, on one thread."""
    count = np.int64(0)
    for queen in range(board.shape[0]):
        count += row_conflicts(board, np.uint32(queen), np.uint32(board.shape[0]))
    return count


@compiled
def cyclic_conflicts(board: NDArray[Any], counters: NDArray[Any], thread: int) -> None:
    """Algorithm 2: the rows ``thread``, ``thread`` + T, ... for T = ``len(counters)``.

    The sum goes to ``counters[thread]``. Each row adds to it in memory, as the paper's threads do,
    so that neighbouring counters share a cache line (false sharing) as theirs did.
    """
    threads = counters.shape[0]
    counters[thread] = 0
    for queen in range(thread, board.shape[0], threads):
        counters[thread] += row_conflicts(board, np.uint32(queen), np.uint32(board.shape[0]))


def _reduced(board: NDArray[Any]) -> np.int64:
    count = np.int64(0)
    for queen in numba.prange(board.shape[0]):
        count += row_conflicts(board, np.uint32(queen), np.uint32(board.shape[0]))
    return count


parallel_conflicts = numba.njit(parallel=True, nogil=True, cache=True)(_reduced)
"""Sum over all rows by numba's threading layer; shape and type as ``serial_conflicts``."""


@compiled
def histogram_conflicts(board: NDArray[Any]) -> np.int64:
    """Conflicts of one board, shape ``(n,)``; its counters are allocated and cleared here."""
    n = board.shape[0]
    rising = np.zeros(2 * n, np.int32)
    falling = np.zeros(2 * n, np.int32)
    return _count(board, rising, falling)


@compiled
def _count(board: NDArray[Any], rising: NDArray[Any], falling: NDArray[Any]) -> np.int64:
    n = board.shape[0]
    total = np.int64(0)
    for column in range(n):
        up = np.uint64(column + board[column])
        down = np.uint64(column - board[column] + n)
        total += rising[up] + falling[down]
        rising[up] += 1
        falling[down] += 1
    return total


def _each_of(boards: NDArray[Any], groups: int) -> NDArray[np.int64]:
    count, n = boards.shape
    result = np.empty(count, np.int64)
    for group in numba.prange(groups):
        rising = np.zeros(2 * n, np.int32)
        falling = np.zeros(2 * n, np.int32)
        for index in range(group, count, groups):
            board = boards[index]
            result[index] = _count(board, rising, falling)
            for column in range(n):  # clearing what was touched is cheaper than 4n counters
                rising[np.uint64(column + board[column])] = 0
                falling[np.uint64(column - board[column] + n)] = 0
    return result


each_of = numba.njit(parallel=True, nogil=True, cache=True)(_each_of)
"""Conflicts of every board, ``(boards, groups) -> int64 (count,)`` for shape ``(count, n)``.

Boards are dealt to ``groups`` pieces of work with separate counters, which numba's threading layer
spreads over the cores.
"""
