"""Loops over pairs of queens, compiled by numba.

``board`` is ``int32``, C-contiguous, of shape ``(n,)`` with n < 2**31; the results are 64-bit.
Arithmetic is kept in 32 bits within a row, as C++ ``int`` would be: with numba's default of 64 bits
half of each vector register is wasted (23 against 4.8 ms at n = 10,000).

Functions that call each other stand in one file, since numba's cache on disk notices a change of
a function's own file only.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.counting.compiled import compiled


@compiled
def row_conflicts(board: NDArray[Any], queen: int) -> np.int64:
    """Conflicts of one queen with all those right of it: the inner loop of every pair scheme."""
    first = np.uint32(queen)  # unsigned: signed indices would be tested for wrapping around
    n = np.uint32(board.shape[0])
    row = board[first]
    count = np.uint32(0)
    for other in range(first + np.uint32(1), n):
        apart = np.int32(abs(np.int32(row - board[other])))
        if apart == np.int32(other - first):
            count = np.uint32(count + np.uint32(1))
    return np.int64(count)


@compiled
def serial_conflicts(board: NDArray[Any]) -> np.int64:
    """Algorithm 1 of the fitness paper: all pairs i < j, on one thread."""
    count = np.int64(0)
    for queen in range(board.shape[0]):
        count += row_conflicts(board, queen)
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
        counters[thread] += row_conflicts(board, queen)


def _reduced(board: NDArray[Any]) -> np.int64:
    count = np.int64(0)
    for queen in numba.prange(board.shape[0]):
        count += row_conflicts(board, queen)
    return count


parallel_conflicts = numba.njit(parallel=True, nogil=True, cache=True)(_reduced)
"""Sum over all rows by numba's threading layer; shape and type as ``serial_conflicts``."""
