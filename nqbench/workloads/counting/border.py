"""One eighth of the search tree, rows still filled in order: the rule of the border queens.

A solution has a queen in each border row and column. Call a border queen's distance to its nearest
corner d. Only solutions are walked whose first-row queen has the largest d of the four, in the left
half: each stands for ``4 / k`` rotations times two mirror images, where k of the four border queens
share the largest d. A first queen in the middle column leaves the second one the left half.

With ``distance`` = d of the first-row queen:

- rows ``distance + 1 .. n - 2 - distance`` may not use the two border columns;
- the last row's queen stands within ``distance`` of a corner;
- ties are the border columns in rows ``distance`` and ``n - 1 - distance``, and d in the last row.

Weights are kept as whole numbers, ``12 / k``; a(n) is two thirds of their sum, which takes 59 bits
at n = 27.

Compiled by numba, apart from ``total``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.system.machine import cpu_count
from nqbench.workloads.compiled import compiled, on_all_cores

MIN_N: Final = 4
"""On smaller boards a border queen may have no second corner to compare with."""

SHIFT: Final = 27
"""Bits above the widest board: of ``columns`` a job's ties, of ``left`` its distance."""

WORDS: Final = 3
"""Of a job; ``expand`` says which."""

MANY: Final = 2**62
"""A limit that no number of jobs reaches."""

_SHARED_JOBS: Final = 1 << 13
"""Jobs of fewer rows to share between the cores: made in 0.1 ms, and enough to balance them."""
_JOBS_PER_CORE: Final = 1 << 10
"""Of these, for each thread: to count the jobs of n = 12, depth 5, one takes 0.06 ms, two 0.24."""
EXPANDED_ROWS: Final = 4
"""Rows that a warp of a GPU places: 3,513 jobs for each of 19,942 warps at n = 19, depth 8."""

Jobs = NDArray[np.uint32]

_U = np.uint64
_ZERO, _ONE, _TWO = _U(0), _U(1), _U(2)
_ENTRY = _U(8)  # words of a stack entry: a cache line, since a multiple is faster to address
_BEYOND = _U(1 << 63)  # an open column of every row below the board


def total(weights: int) -> int:
    """The number of solutions whose weights sum to this; -1 if no set of boards has that sum."""
    solutions, rest = divmod(2 * weights, 3)
    return -1 if rest else solutions


def count_jobs(
    n: int, depth: int, limit: int = MANY, closed: bool = False, above: Jobs | None = None
) -> int:
    """Number of jobs of ``depth >= 2`` rows, or ``limit + 1`` if there are more than ``limit``.

    Here and below: ``above`` are jobs of at most ``depth`` rows, without them the whole board is
    meant. ``closed``: a job has as many rows more as it takes until its next row cannot use the
    border columns (``rows_needed``).
    """
    row, above = _enough_to_share(n, depth, above)
    return min(int(_counts(n, row, above, depth, closed, limit).sum()), limit + 1)


def jobs(n: int, depth: int, closed: bool = False, above: Jobs | None = None) -> Jobs:
    """All jobs of ``depth`` rows in depth-first order, made on all cores (``expand``)."""
    row, above = _enough_to_share(n, depth, above)
    return _expanded(n, row, above, depth, closed)


def starts(n: int, depth: int, above: Jobs | None = None) -> tuple[int, Jobs]:
    """What a GPU makes the jobs of ``depth`` rows from (``making.cuh``): jobs of fewer rows, and
    how many rows that is."""
    row = max(1 if above is None else _rows_of(n, above), depth - EXPANDED_ROWS)
    return row, jobs(n, row, above=above)


def _rows_of(n: int, jobs: Jobs) -> int:
    """Rows of some jobs: a column is attacked for each."""
    return bits_in(int(jobs[0]) & (1 << n) - 1)


def _of_one_row(n: int) -> Jobs:
    # The largest distance has the most below its jobs: first, so that a launch ends evenly.
    distances = np.arange(1, (n + 1) // 2)[::-1]
    queens = 1 << distances
    words = (queens, queens << 1 | distances << SHIFT, queens >> 1)
    return np.stack(words, axis=1).ravel().astype(np.uint32)


def _enough_to_share(n: int, depth: int, above: Jobs | None) -> tuple[int, Jobs]:
    """The same jobs, or those of more rows but fewer than ``depth`` below them, with how many."""
    row, some = (1, _of_one_row(n)) if above is None else (_rows_of(n, above), above)
    while row < depth - 1 and 0 < some.size < WORDS * _SHARED_JOBS:
        row, some = row + 1, _expanded(n, row, some, row + 1, False)
    return row, some


def _counts(
    n: int, row: int, above: Jobs, depth: int, closed: bool, limit: int = MANY
) -> NDArray[np.int64]:
    """How many jobs of ``depth`` rows are below each; their sum is over ``limit`` where it ends."""
    counts = np.zeros(above.size // WORDS, np.int64)
    _share(n, row, depth, closed, above, limit, counts, np.empty(0, np.uint32))
    return counts


def _expanded(n: int, row: int, above: Jobs, depth: int, closed: bool) -> Jobs:
    counts = _counts(n, row, above, depth, closed)
    out = np.empty(WORDS * int(counts.sum()), np.uint32)
    if out.size:
        _share(n, row, depth, closed, above, MANY, np.cumsum(counts) - counts, out)
    return out


def _share(
    n: int, row: int, depth: int, closed: bool, above: Jobs, limit: int, at: Any, out: Jobs
) -> None:
    """``expand`` on as many cores as are worth it: core k takes every ``step``-th job."""
    step = max(1, min(cpu_count(), above.size // (WORDS * _JOBS_PER_CORE)))
    on_all_cores(
        lambda k: expand(n, row, depth, closed, above, k, step, limit, at, out), range(step)
    )


@compiled
def allowed(n: int, distance: int, row: int) -> int:
    """Columns that the rule leaves open in a row."""
    board = (1 << n) - 1
    if row == n - 1:
        corner = (1 << (distance + 1)) - 1
        return board & (corner | corner << (n - 1 - distance))
    if distance < row < n - 1 - distance:
        return board & ~(1 | 1 << (n - 1))
    return board


@compiled
def rows_needed(n: int, distance: int, depth: int) -> int:
    """Rows of a job of at least ``depth`` so that the rule no longer closes the border columns
    below it: the largest distance never does."""
    return max(depth, distance + 1) if distance < (n - 1) // 2 else depth


@compiled
def tying(n: int, distance: int, row: int) -> int:
    """Columns of a row below the first in which a border queen has the largest distance."""
    if row == n - 1:
        return 1 << distance | 1 << (n - 1 - distance)
    return 1 | 1 << (n - 1) if row in (distance, n - 1 - distance) else 0


@compiled
def bits_in(word: int) -> int:
    """Number of set bits; written as LLVM recognises it, for one instruction."""
    x: Any = _U(word)
    x -= x >> _ONE & _U(0x5555555555555555)
    x = (x & _U(0x3333333333333333)) + (x >> _TWO & _U(0x3333333333333333))
    x = x + (x >> _U(4)) & _U(0x0F0F0F0F0F0F0F0F)
    return int(x * _U(0x0101010101010101) >> _U(56))


@compiled
def expand(
    n: int,
    row: int,
    depth: int,
    closed: bool,
    above: Jobs,
    first: int,
    step: int,
    limit: int,
    at: NDArray[np.int64],
    out: Jobs,
) -> None:
    """Make the jobs of ``depth`` rows below every ``step``-th job of ``row`` rows, from ``first``.

    A job is three words: columns, left and right diagonals attacked in the next row; from bit
    ``SHIFT`` up, ``columns`` holds the ties so far and ``left`` the distance. ``at`` holds the
    place in ``out`` of the first job below each. With an empty ``out`` it takes their numbers, up
    to a sum over ``limit``: then the last two rows are counted without walking them.
    """
    board = (1 << n) - 1
    columns = np.zeros(n, np.int64)  # ties in the top bits
    left = np.zeros(n, np.int64)
    right = np.zeros(n, np.int64)
    free = np.zeros(n, np.int64)
    masks = np.zeros(n, np.int64)
    corners = np.zeros(n, np.int64)  # columns in which a queen ties
    least = depth
    total = 0
    for job in range(first, at.size, step):
        found = 0
        place = _U(WORDS * at[job])  # unsigned: signed indices would be tested for wrapping around
        distance: Any = np.int64(above[3 * job + 1]) >> SHIFT
        if closed:
            depth = rows_needed(n, distance, least)
        if depth == row:
            if out.size:
                for word in range(WORDS):
                    out[place + _U(word)] = above[3 * job + word]
            else:
                at[job] = 1
            total += 1
            continue
        for lower in range(row, depth):
            masks[lower] = allowed(n, distance, lower)
            corners[lower] = tying(n, distance, lower)
        if row == 1 and 2 * distance == n - 1:
            masks[1] &= (1 << distance) - 1
        columns[row] = np.int64(above[3 * job])
        left[row] = np.int64(above[3 * job + 1]) & board
        right[row] = np.int64(above[3 * job + 2])
        free[row] = masks[row] & ~(columns[row] | left[row] | right[row])
        here = row
        while here >= row:
            rest = free[here]
            if here == depth - 2 and not out.size:
                # Each queen leaves the row below what is open there, but for three columns.
                below = masks[here + 1] & ~(columns[here] | left[here] << 1 | right[here] >> 1)
                found += bits_in(rest) * bits_in(below) - bits_in(rest & below)
                found -= bits_in(rest & below << 1) + bits_in(rest & below >> 1)
                rest = 0
            if rest and here < depth - 1:
                queen = rest & -rest
                free[here] = rest ^ queen
                tie = 1 << SHIFT if queen & corners[here] else 0
                columns[here + 1] = (columns[here] | queen) + tie
                left[here + 1] = (left[here] | queen) << 1
                right[here + 1] = (right[here] | queen) >> 1
                here += 1
                free[here] = masks[here] & ~(columns[here] | left[here] | right[here])
                continue
            found += bits_in(rest)
            if total + found > limit:
                at[job] = found
                return
            if out.size:
                columns_here, corners_here = columns[here], corners[here]
                left_below = left[here] << 1 & board | distance << SHIFT
                right_below = right[here] >> 1
                while rest:
                    queen = rest & -rest
                    rest ^= queen
                    tie = 1 << SHIFT if queen & corners_here else 0
                    out[place] = (columns_here | queen) + tie
                    out[place + _ONE] = left_below | queen << 1 & board
                    out[place + _TWO] = right_below | queen >> 1
                    place += _U(3)
            here -= 1
        if not out.size:
            at[job] = found
        total += found


@compiled
def weights_of_jobs(n: int, depth: int, jobs: NDArray[np.uint32], begin: int, end: int) -> int:
    """Weights of the solutions below the jobs ``begin .. end - 1``, summed.

    A queen is placed only if she leaves a column open in each of the next three rows, so this
    visits 30% fewer than the rule alone. Her row is pushed before it is known whether she stands:
    a push without a branch costs less than a branch that a CPU cannot predict. ``n - depth >= 2``.
    """
    board = (_ONE << _U(n)) - _ONE
    border = _ONE | _ONE << _U(n - 1)
    last = _U(n - 1)
    row_masks = np.empty(n + 3, np.uint64)
    open_at = np.zeros(n, np.uint64)  # columns open when a row is entered, on the present path
    stack = np.zeros(8 * n, np.uint64)
    weights = 0
    for job in range(begin, end):
        distance: Any = np.int64(jobs[3 * job + 1] >> SHIFT)
        sides: Any = 1 + np.int64(jobs[3 * job] >> SHIFT)
        for row_number in range(n):
            row_masks[row_number] = _U(allowed(n, distance, row_number))
        row_masks[n:] = _BEYOND
        first, second = _U(distance), _U(n - 1 - distance)
        first_below = distance >= depth
        second_below = max(distance + 1, depth) <= n - 1 - distance
        at_distance = _ONE << first | _ONE << second
        columns = (board & ~_U(jobs[3 * job])) | _BEYOND
        left = _U(jobs[3 * job + 1]) & board
        right = _U(jobs[3 * job + 2])
        row = _U(depth)
        open_at[row] = columns
        free = columns & ~(left | right) & row_masks[row]
        if free == _ZERO:
            continue
        row += _ONE  # from here: the row below the one that the next queen goes to
        top = _ZERO
        while True:
            queen = free & (~free + _ONE)
            free ^= queen
            stack[top] = free
            stack[top + _U(1)] = columns
            stack[top + _U(2)] = left
            stack[top + _U(3)] = right
            stack[top + _U(4)] = row
            top += _U(free != _ZERO) << _U(3)
            columns ^= queen
            left = (left | queen) << _ONE
            right = (right | queen) >> _ONE
            free = columns & ~(left | right) & row_masks[row]
            second_free = columns & ~(left << _ONE | right >> _ONE) & row_masks[row + _ONE]
            third_free = columns & ~(left << _TWO | right >> _TWO) & row_masks[row + _TWO]
            open_at[row] = columns
            stands = (free != _ZERO) & (second_free != _ZERO) & (third_free != _ZERO)
            row += _ONE
            if stands:
                if row <= last:
                    continue
                share: Any = sides
                if free & at_distance:
                    share += 1
                if first_below and (open_at[first] ^ open_at[first + _ONE]) & border:
                    share += 1
                if second_below and (open_at[second] ^ open_at[second + _ONE]) & border:
                    share += 1
                weights += 12 // share
            if top == _ZERO:
                break
            top -= _ENTRY
            free = stack[top]
            columns = stack[top + _U(1)]
            left = stack[top + _U(2)]
            right = stack[top + _U(3)]
            row = stack[top + _U(4)]
    return weights


@compiled
def weights_of_boards(n: int, depth: int, jobs: Jobs, begin: int, end: int) -> int:
    """What ``weights_of_jobs`` sums up, by a search that knows the queens' moves alone: it walks
    all boards below the jobs and weighs each one as a whole."""
    board = (1 << n) - 1
    columns_above = np.zeros(n, np.int64)
    left_above = np.zeros(n, np.int64)
    right_above = np.zeros(n, np.int64)
    free_above = np.zeros(n, np.int64)
    queens = np.zeros(n, np.int64)
    top, last = _U(depth), _U(n - 1)
    weights = 0
    for job in range(begin, end):
        ties: Any = np.int64(jobs[3 * job] >> SHIFT)
        distance: Any = np.int64(jobs[3 * job + 1] >> SHIFT)
        columns: Any = np.int64(jobs[3 * job]) & board
        left: Any = np.int64(jobs[3 * job + 1]) & board
        right: Any = np.int64(jobs[3 * job + 2])
        free: Any = board & ~(columns | left | right)
        row = top
        while True:
            if free == 0:
                if row == top:
                    break
                row -= _ONE
                columns, left = columns_above[row], left_above[row]
                right, free = right_above[row], free_above[row]
                continue
            queen = free & -free
            queens[row] = queen
            if row == last:
                weights += _weight(n, depth, distance, ties, queens)
                free = 0
                continue
            columns_above[row], left_above[row] = columns, left
            right_above[row], free_above[row] = right, free ^ queen
            columns |= queen
            left = (left | queen) << 1
            right = (right | queen) >> 1
            free = board & ~(columns | left | right)
            row += _ONE
    return weights


@compiled
def _weight(n: int, depth: int, distance: int, ties: int, queens: NDArray[np.int64]) -> int:
    """Weight of a board whose rows from ``depth`` on are known; 0 if a border queen of these rows
    is farther from her corner than the first-row queen. ``ties``: of the rows above."""
    sides = 1 + ties
    for row in range(depth, n):
        column = 0
        while queens[row] >> column != 1:
            column += 1
        if row == n - 1:
            far = min(column, n - 1 - column)
        elif column in (0, n - 1):
            far = min(row, n - 1 - row)
        else:
            continue
        if far > distance:
            return 0
        if far == distance:
            sides += 1
    return 12 // sides
