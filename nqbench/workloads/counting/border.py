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

``border_search`` has what is compiled by numba; this module does not load it before it is needed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nqbench.system.machine import cpu_count, spans
from nqbench.workloads.counting.border_rule import SHIFT as SHIFT
from nqbench.workloads.counting.border_rule import WORDS as WORDS
from nqbench.workloads.counting.border_rule import Jobs as Jobs
from nqbench.workloads.counting.border_rule import allowed, tying

MIN_N: Final = 4
"""On smaller boards a border queen may have no second corner to compare with."""

MANY: Final = 2**62
"""A limit that no number of jobs reaches."""

_SHARED_JOBS: Final = 1 << 13
"""Jobs of fewer rows to share between the cores: made in 0.1 ms, and enough to balance them."""
_JOBS_PER_CORE: Final = 1 << 10
"""Of these, for each thread: to count the jobs of n = 12, depth 5, one takes 0.06 ms, two 0.24."""
_PIECES: Final = 8
"""For each core, since what is below the first jobs takes longest."""
EXPANDED_ROWS: Final = 4
"""Rows that a warp of a GPU places: 3,513 jobs for each of 19,942 warps at n = 19, depth 8."""


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
    from nqbench.workloads.compiled import on_all_cores  # numba: slow to import
    from nqbench.workloads.counting.border_search import expand

    row, some = _enough_to_share(n, depth, above)
    nowhere = np.empty(0, np.uint32)
    found: list[int] = []

    def count(span: tuple[int, int]) -> None:
        if sum(found) <= limit:
            found.append(expand(n, row, depth, closed, some, *span, limit, nowhere))

    on_all_cores(count, _spans(some))
    return min(sum(found), limit + 1)


def jobs(n: int, depth: int, closed: bool = False, above: Jobs | None = None) -> Jobs:
    """All jobs of ``depth`` rows in depth-first order, made on all cores (``expand``)."""
    row, above = _enough_to_share(n, depth, above)
    return _expanded(n, row, above, depth, closed)


def starts(n: int, depth: int, above: Jobs | None = None) -> tuple[int, Jobs]:
    """What a GPU makes the jobs of ``depth`` rows from (``making.cuh``): jobs of fewer rows, and
    how many rows that is."""
    row = max(1 if above is None else _rows_of(n, above), depth - EXPANDED_ROWS)
    return row, jobs(n, row, above=above)


def few_starts(n: int, row: int) -> Jobs:
    """``jobs(n, row)`` in milliseconds without numba, which takes 0.6 s to load: thousands of them,
    for a launch that nobody times."""
    jobs = _of_one_row(n).reshape(-1, WORDS).astype(np.int64)
    board, columns = (1 << n) - 1, np.arange(n)
    for r in range(1, row):
        distance = jobs[:, 1] >> SHIFT
        rule = np.array([[allowed(n, d, r), tying(n, d, r)] for d in range((n + 1) // 2)])
        free = rule[distance, 0] & ~(jobs[:, 0] | jobs[:, 1] | jobs[:, 2])
        if r == 1:  # a first queen in the middle column leaves the second one the left half
            free &= np.where(2 * distance == n - 1, (1 << distance) - 1, board)
        job, column = np.nonzero(free[:, None] >> columns & 1)
        queen, distance = 1 << column, distance[job]
        ties = ((queen & rule[distance, 1]) != 0).astype(np.int64) << SHIFT
        left = (jobs[job, 1] | queen) << 1 & board | distance << SHIFT
        jobs = np.stack([(jobs[job, 0] | queen) + ties, left, (jobs[job, 2] | queen) >> 1], axis=1)
    return jobs.ravel().astype(np.uint32)


def _rows_of(n: int, jobs: Jobs) -> int:
    """Rows of some jobs: a column is attacked for each."""
    return (int(jobs[0]) & (1 << n) - 1).bit_count()


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


def _expanded(n: int, row: int, above: Jobs, depth: int, closed: bool) -> Jobs:
    from nqbench.workloads.compiled import in_order
    from nqbench.workloads.counting.border_search import expand

    def fill(span: tuple[int, int], out: Jobs) -> int:
        return WORDS * expand(n, row, depth, closed, above, *span, MANY, out)

    return in_order(_spans(above), fill, np.uint32)


def _spans(above: Jobs) -> list[tuple[int, int]]:
    """Parts of some jobs, several for each core that is worth it."""
    count = above.size // WORDS
    return spans(count, max(1, min(_PIECES * cpu_count(), count // _JOBS_PER_CORE)))
