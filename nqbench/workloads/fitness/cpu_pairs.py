"""Loops over pairs of queens, compiled by numba.

``board`` is ``int32``, C-contiguous, of shape ``(n,)`` with n < 2**31; the results are 64-bit.
Arithmetic is kept in 32 bits within a row, as that of a C++ ``int`` would be: numba's default of
64 bits leaves half of each vector register empty. At n = 10,000 this takes 2.8 ms, plain numba
23 ms, and Algorithm 1 in C by ``gcc -O3 -march=native`` 3.3 ms (one core with AVX-512).

Functions that call each other stand in one file, since numba's cache on disk notices a change of
a function's own file only.
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
    since with ``board.shape`` in its place the loop takes 1.5 times as long.
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
