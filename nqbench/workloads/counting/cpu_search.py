"""Somers' sequential search, compiled by numba.

One flat loop, an explicit stack of the columns still to try, and one mask array per attacked
direction; the algorithm that feinbube2010 (section III) and tanaka2011 (section 1) start from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled

Bits = int | np.int64


@compiled
def solutions_below(n: int, row: int, columns: Bits, left: Bits, right: Bits, free: Bits) -> int:
    """Solutions of the sub-tree at ``row`` whose next queen may stand in ``free``.

    ``columns, left, right`` are the columns attacked in that row.
    """
    board = (1 << n) - 1
    column_masks = np.zeros(n, np.int64)
    left_masks = np.zeros(n, np.int64)
    right_masks = np.zeros(n, np.int64)
    stack = np.zeros(n, np.int64)
    # Unsigned, since signed indices would be tested for wrapping around (20% of the time).
    one = np.uint64(1)
    top = np.uint64(row)
    last = np.uint64(n - 1)
    here = top
    column_masks[here] = columns
    left_masks[here] = left
    right_masks[here] = right
    count = 0
    while True:
        if free == 0:
            if here == top:
                return count
            here -= one
            free = stack[here]
        elif here == last:
            count += 1  # no other column can be open in the last row
            here -= one
            free = stack[here]
        else:
            queen = free & -free
            stack[here] = free ^ queen
            columns = column_masks[here] | queen
            left = (left_masks[here] | queen) << 1
            right = (right_masks[here] | queen) >> 1
            here += one
            column_masks[here] = columns
            left_masks[here] = left
            right_masks[here] = right
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
