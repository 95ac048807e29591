"""Searches on the CPU, compiled by numba: the jobs, what the search of each does, and Somers' own.

Rows are filled from the top and columns from bit 0 up, so that jobs come out in lexicographic order
of their columns. One depth-first walk serves counting the jobs and all three encodings.

A *descent* is a queen placed above the last row, which enters the row below; it is *dead* where
that row has no open column. A *solution* is a queen placed in the last row. Every count of the
loops follows from these three (``enumeration.loop_iterations``).

Somers' search is one flat loop with an explicit stack of the columns still to try and one mask
array per attacked direction: the algorithm that feinbube2010 (section III) and tanaka2011
(section 1) start from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled

_U = np.uint64


@compiled
def bits_in(word: int) -> int:
    """Number of set bits; written as LLVM recognises it, for one instruction."""
    x: Any = _U(word)
    x -= x >> _U(1) & _U(0x5555555555555555)
    x = (x & _U(0x3333333333333333)) + (x >> _U(2) & _U(0x3333333333333333))
    x = x + (x >> _U(4)) & _U(0x0F0F0F0F0F0F0F0F)
    return int(x * _U(0x0101010101010101) >> _U(56))


@compiled
def prefixes(
    n: int, depth: int, first_row: int, restrict: bool, encoding: int, limit: int, out: NDArray[Any]
) -> int:
    """Write every valid placement of ``depth >= 2`` rows to ``out``; returns how many there are.

    ``restrict``: a first queen in the middle column leaves the second one the left half. With an
    empty ``out`` they are counted, the last row by its open columns instead of being
    walked: ``limit + 1`` as soon as there are more than ``limit``. ``encoding`` 0: ``depth``
    one-hot words per job; 1: one base-N number; 2: the words (columns, left diagonals, right
    diagonals) attacked in the next row. Widths in bits: the left diagonals are kept to 32, as on
    the device.
    """
    board = (1 << n) - 1
    queens = np.zeros(depth, np.int64)
    codes = np.zeros(depth + 1, np.int64)
    columns = np.zeros(depth + 1, np.int64)
    left = np.zeros(depth + 1, np.int64)
    right = np.zeros(depth + 1, np.int64)
    free = np.zeros(depth + 1, np.int64)
    free[0] = first_row
    counted_row = depth - 2 if out.size == 0 else depth
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
            codes[row + 1] = codes[row] * n + bits_in(queen - 1)
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
        below = board & ~(next_columns | next_left | next_right)
        if row == 0 and restrict and n % 2 == 1 and queen == 1 << (n // 2):
            below &= queen - 1  # the left half: every job counts for two mirror images
        if row == counted_row:
            job += bits_in(below)
            if job > limit:
                return limit + 1
            continue
        row += 1
        columns[row] = next_columns
        left[row] = next_left
        right[row] = next_right
        free[row] = below
    return job


Bits = int | np.int64


@compiled
def enter(
    path: NDArray[np.int64],
    open_to: NDArray[np.int64],
    row: Any,
    columns: Bits,
    left: Bits,
    right: Bits,
) -> None:
    """Go to a row in which queens above attack these columns: rows of ``path`` are the queens, what
    is attacked, and the columns still to try, by row of the board; ``open_to`` are all to try."""
    path[1, row], path[2, row], path[3, row] = columns, left, right
    path[4, row] = open_to[row] & ~(columns | left | right)


@compiled
def work_of_jobs(
    n: int, depth: int, masks: NDArray[Any], begin: int, end: int, out: NDArray[np.int64]
) -> None:
    """Descents, dead descents and solutions of the jobs ``begin .. end - 1``.

    ``masks`` as in ``jobs.Jobs.words`` of the encoding ``masks``; ``out`` has shape
    ``(end - begin, 3)``. At least three rows are left to search.
    """
    open_to = np.full(n, (1 << n) - 1)
    path = np.zeros((5, n), np.int64)
    # Unsigned, since signed indices would be tested for wrapping around (20% of the time).
    top, one, above_last = _U(depth), _U(1), _U(n - 2)
    for job in range(begin, end):
        columns, left = np.int64(masks[3 * job]), np.int64(masks[3 * job + 1])
        enter(path, open_to, top, columns, left, np.int64(masks[3 * job + 2]))
        descents = dead = solutions = 0
        row = top
        while True:
            queen = path[4, row] & -path[4, row]
            if not queen:
                if row == top:
                    break
                row -= one
                continue
            path[4, row] ^= queen
            columns, left = path[1, row] | queen, path[2, row] | queen
            enter(path, open_to, row + one, columns, left << 1, (path[3, row] | queen) >> 1)
            descents += 1
            if not path[4, row + one]:
                dead += 1
            elif row == above_last:
                solutions += 1  # no other column can be open in the last row
            else:
                row += one
        out[job - begin, 0] = descents
        out[job - begin, 1] = dead
        out[job - begin, 2] = solutions


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


@compiled
def next_board(path: NDArray[np.int64], open_to: NDArray[np.int64], top: int) -> bool:
    """Find the next board below the row ``top`` of ``path`` (``enter``), depth first, if any."""
    last = open_to.size - 1
    row = last
    while row >= top:
        queen = path[4, row] & -path[4, row]
        if not queen:
            row -= 1
            continue
        path[4, row] ^= queen
        path[0, row] = queen
        if row == last:
            return True
        columns, left, right = path[1, row] | queen, path[2, row] | queen, path[3, row] | queen
        row += 1
        enter(path, open_to, row, columns, left << 1, right >> 1)
    return False


@compiled
def solutions_of_groups(n: int, groups: NDArray[np.int64], begin: int, end: int) -> int:
    """What ``middle.cpu`` finds, by a search row by row: solutions of the groups times weights.

    Of odd boards with a middle queen off the centre, a solution whose queen in the middle column is
    farther from the centre counts twice, and one whose queen there is nearer not at all.
    """
    h = n // 2
    open_to = np.zeros(n, np.int64)
    path = np.zeros((5, n), np.int64)
    total = 0
    for group in range(begin, end):
        open_to[:h], open_to[n - h :] = groups[group, 0], groups[group, 1]
        nearest = 0
        if n % 2:
            nearest = h - groups[group, 2]
            open_to[h] = 1 << groups[group, 2]
        enter(path, open_to, 0, 0, 0, 0)
        while next_board(path, open_to, 0):
            farther = 0
            for row in range(n):
                if nearest and path[0, row] == 1 << h:
                    farther = abs(row - h) - nearest
            if farther >= 0:
                total += groups[group, 3] * (1 + (farther > 0))
    return total
