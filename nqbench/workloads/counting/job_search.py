"""Enumeration of the valid placements of the first rows, compiled by numba.

One depth-first walk serves counting and all three encodings. Rows are filled from the top, columns
from bit 0 up, so that jobs come out in lexicographic order of their columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled

Words = NDArray[np.int64]


@compiled
def lowest_column(bits: int) -> int:
    """Index of the lowest set bit of a non-zero board row."""
    column = 0
    while not bits & 1:
        bits >>= 1
        column += 1
    return column


@compiled
def bit_count(bits: int) -> int:
    """Number of set bits."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@compiled
def second_row(n: int, restrict: bool, first_queen: int) -> int:
    """Columns that the second queen may take as far as symmetry goes.

    With ``restrict``, a first queen in the middle column leaves only the left half, so that every
    job stands for two mirror images.
    """
    if restrict and n % 2 == 1 and first_queen == 1 << (n // 2):
        return (1 << (n // 2)) - 1
    return (1 << n) - 1


@compiled
def count_prefixes(n: int, depth: int, first_row: int, restrict: bool, limit: int) -> int:
    """Valid placements of ``depth >= 2`` rows, or ``limit + 1`` as soon as there are more.

    The last row is counted by its open columns instead of being walked.
    """
    board = (1 << n) - 1
    columns = np.zeros(depth + 1, np.int64)
    left = np.zeros(depth + 1, np.int64)
    right = np.zeros(depth + 1, np.int64)
    free = np.zeros(depth + 1, np.int64)
    free[0] = first_row
    row = 0
    count = 0
    while row >= 0:
        if free[row] == 0:
            row -= 1
            continue
        queen = free[row] & -free[row]
        free[row] ^= queen
        next_columns = columns[row] | queen
        next_left = (left[row] | queen) << 1
        next_right = (right[row] | queen) >> 1
        below = board & ~(next_columns | next_left | next_right)
        if row == 0:
            below &= second_row(n, restrict, queen)
        if row + 2 == depth:
            count += bit_count(below)
            if count > limit:
                return limit + 1
            continue
        row += 1
        columns[row] = next_columns
        left[row] = next_left
        right[row] = next_right
        free[row] = below
    return count


@compiled
def fill_prefixes(
    n: int, depth: int, first_row: int, restrict: bool, encoding: int, out: NDArray[Any]
) -> int:
    """Write every placement to ``out`` and return how many there are.

    ``encoding`` 0: ``depth`` one-hot words per job; 1: one base-N number; 2: the words (columns,
    left diagonals, right diagonals) attacked in the next row. Widths in bits: the left diagonals
    are kept to 32, as on the device.
    """
    board = (1 << n) - 1
    queens = np.zeros(depth, np.int64)
    codes = np.zeros(depth + 1, np.int64)
    columns = np.zeros(depth + 1, np.int64)
    left = np.zeros(depth + 1, np.int64)
    right = np.zeros(depth + 1, np.int64)
    free = np.zeros(depth + 1, np.int64)
    free[0] = first_row
    row = 0
    job = 0
    while row >= 0:
        if free[row] == 0:
            row -= 1
            continue
        queen = free[row] & -free[row]
        free[row] ^= queen
        queens[row] = queen
        if encoding == 1:
            codes[row + 1] = codes[row] * n + lowest_column(queen)
        next_columns = columns[row] | queen
        next_left = ((left[row] | queen) << 1) & 0xFFFFFFFF
        next_right = (right[row] | queen) >> 1
        if row + 1 == depth:
            if encoding == 0:
                for d in range(depth):
                    out[job * depth + d] = queens[d]
            elif encoding == 1:
                out[job] = codes[depth]
            else:
                out[3 * job] = next_columns
                out[3 * job + 1] = next_left
                out[3 * job + 2] = next_right
            job += 1
            continue
        row += 1
        columns[row] = next_columns
        left[row] = next_left
        right[row] = next_right
        free[row] = board & ~(next_columns | next_left | next_right)
        if row == 1:
            free[row] &= second_row(n, restrict, queen)
    return job
