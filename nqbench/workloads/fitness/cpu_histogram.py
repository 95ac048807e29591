"""The diagonal histogram on the processor, compiled by numba: O(n) in place of O(n^2).

A queen conflicts with every earlier one on its two diagonals, so that one pass over the board
suffices: add the counter of each diagonal to the sum, then raise it. Counters are 4-byte, the sum
is 64-bit.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled


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

Boards are dealt to ``groups`` pieces of work, each with counters of its own, which numba's
threading layer spreads over the cores.
"""
