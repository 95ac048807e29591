"""What the search of one job does, compiled by numba: how much, and step by step.

A *descent* is a queen placed above the last row, which enters the row below; it is *dead* where
that row has no open column. A *solution* is a queen placed in the last row. Every count of the
loops follows from these three (``enumeration.loop_iterations``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled

SOMERS: Final = 0
TWO_WAY: Final = 1
IRRC: Final = 2


@compiled
def work_of_jobs(
    n: int, depth: int, masks: NDArray[Any], begin: int, end: int, out: NDArray[np.int64]
) -> None:
    """Descents, dead descents and solutions of the jobs ``begin .. end - 1``.

    ``masks`` as in ``jobs.Jobs.words`` of the encoding ``masks``; ``out`` has shape
    ``(end - begin, 3)``. At least three rows are left to search.
    """
    board = np.int64((1 << n) - 1)
    # Unsigned, since signed indices would be tested for wrapping around (20% of the time).
    one = np.uint64(1)
    top = np.uint64(0)
    above_last = np.uint64(n - depth - 2)
    columns_above = np.zeros(n, np.int64)
    left_above = np.zeros(n, np.int64)
    right_above = np.zeros(n, np.int64)
    free_above = np.zeros(n, np.int64)
    for job in range(begin, end):
        columns = np.int64(masks[3 * job])
        left = np.int64(masks[3 * job + 1])
        right = np.int64(masks[3 * job + 2])
        free = board & ~(columns | left | right)
        row = top
        descents = 0
        dead = 0
        solutions = 0
        while True:
            if free == 0:
                if row == top:
                    break
                row -= one
                columns = columns_above[row]
                left = left_above[row]
                right = right_above[row]
                free = free_above[row]
                continue
            queen = free & -free
            free ^= queen
            next_columns = columns | queen
            next_left = (left | queen) << 1
            next_right = (right | queen) >> 1
            below = board & ~(next_columns | next_left | next_right)
            descents += 1
            if below == 0:
                dead += 1
            elif row == above_last:
                solutions += 1  # no other column can be open in the last row
            else:
                columns_above[row] = columns
                left_above[row] = left
                right_above[row] = right
                free_above[row] = free
                row += one
                columns = next_columns
                left = next_left
                right = next_right
                free = below
        out[job - begin, 0] = descents
        out[job - begin, 1] = dead
        out[job - begin, 2] = solutions


@compiled
def trace(
    n: int, depth: int, loop: int, masks: NDArray[Any], job: int, places: NDArray[np.bool_]
) -> int:
    """Run one job exactly as a kernel's loop does; returns its iterations.

    ``loop`` is one of ``SOMERS``, ``TWO_WAY``, ``IRRC``. ``places[i]`` becomes whether iteration
    ``i`` places a queen (or steps back); nothing is written beyond its length.
    """
    board = np.int64((1 << n) - 1)
    bottom = n - depth - 1
    columns = np.zeros(n + 1, np.int64)
    left = np.zeros(n + 1, np.int64)
    right = np.zeros(n + 1, np.int64)
    free = np.zeros(n + 1, np.int64)
    columns[0] = np.int64(masks[3 * job])
    left[0] = np.int64(masks[3 * job + 1])
    right[0] = np.int64(masks[3 * job + 2])
    free[0] = board & ~(columns[0] | left[0] | right[0])
    row = 0
    iterations = 0
    while row >= 0:
        placing = free[row] != 0
        if iterations < places.size:
            places[iterations] = placing
        iterations += 1
        step = -1  # back to the row above
        if placing:
            queen = free[row] & -free[row]
            free[row] ^= queen
            if row == bottom:
                step = 0 if loop == TWO_WAY else -1
            else:
                columns[row + 1] = columns[row] | queen
                left[row + 1] = (left[row] | queen) << 1
                right[row + 1] = (right[row] | queen) >> 1
                below = board & ~(columns[row + 1] | left[row + 1] | right[row + 1])
                free[row + 1] = below
                step = 0 if loop == IRRC and below == 0 else 1
        row += step
    return iterations


@compiled
def lockstep(lengths: NDArray[np.int64], places: NDArray[np.bool_]) -> int:
    """Iterations of a warp in which its lanes both place and step back.

    ``lengths`` and the rows of ``places`` are of its lanes, which run in step, one iteration
    each, until each has done its own (``shape (lanes,)`` and ``(lanes, longest)``).
    """
    split = 0
    for iteration in range(lengths.max()):
        placing = 0
        active = 0
        for lane in range(lengths.size):
            if iteration < lengths[lane]:
                active += 1
                placing += places[lane, iteration]
        if 0 < placing < active:
            split += 1
    return split
