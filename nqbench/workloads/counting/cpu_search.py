"""Somers' sequential search, compiled by numba.

One flat loop, an explicit stack of the columns still to try, and one mask array per attacked
direction; the algorithm that feinbube2010 (section III) and tanaka2011 (section 1) start from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.counting.compiled import compiled


@compiled
def solutions_below(n: int, row: int, columns: int, left: int, right: int, free: int) -> int:
    """Solutions of the sub-tree at ``row`` whose next queen may stand in ``free``.

    ``columns, left, right`` are the columns attacked in that row.
    """
    board = (1 << n) - 1
    last = n - 1
    column_masks = np.zeros(n, np.int64)
    left_masks = np.zeros(n, np.int64)
    right_masks = np.zeros(n, np.int64)
    stack = np.zeros(n, np.int64)
    column_masks[row] = columns
    left_masks[row] = left
    right_masks[row] = right
    top = row
    count = 0
    while True:
        if free == 0:
            if row == top:
                return count
            row -= 1
            free = stack[row]
            continue
        if row == last:
            count += 1  # at most one column is open in the last row
            free = 0
            continue
        queen = free & -free
        stack[row] = free ^ queen
        columns = column_masks[row] | queen
        left = (left_masks[row] | queen) << 1
        right = (right_masks[row] | queen) >> 1
        row += 1
        column_masks[row] = columns
        left_masks[row] = left
        right_masks[row] = right
        free = board & ~(columns | left | right)


@compiled
def half_tree(n: int) -> int:
    """Solutions of a board of at least two rows, by mirror symmetry: twice those with the first
    queen in the left half and, for odd N, with the first in the middle and the second left of it.
    """
    board = (1 << n) - 1
    left_half = (1 << (n // 2)) - 1
    count = solutions_below(n, 0, 0, 0, 0, left_half)
    if n % 2 == 1:
        middle = 1 << (n // 2)
        free = board & ~(middle | middle << 1 | middle >> 1) & left_half
        count += solutions_below(n, 1, middle, middle << 1, middle >> 1, free)
    return 2 * count


@compiled
def solutions_of_jobs(n: int, depth: int, masks: NDArray[Any], begin: int, end: int) -> int:
    """Solutions of the jobs ``begin .. end - 1``; ``masks`` as in ``jobs.Jobs.words``."""
    board = (1 << n) - 1
    count = 0
    for job in range(begin, end):
        columns = np.int64(masks[3 * job])
        left = np.int64(masks[3 * job + 1])
        right = np.int64(masks[3 * job + 2])
        free = board & ~(columns | left | right)
        count += solutions_below(n, depth, columns, left, right, free)
    return count
