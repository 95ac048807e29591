"""The CPU programs: the baselines that the papers' speed-ups refer to, and the fastest one here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final

import numpy as np

from nqbench.system.machine import cpu_count
from nqbench.workloads.counting.jobs import make_jobs

MIN_SPLIT_N: Final = 13
"""Boards below this take less than 5 ms on one core: starting threads would cost as much."""

_SPLIT_DEPTH: Final = 4
"""Rows placed before the work is shared: 1,000 to 50,000 jobs for N of 10 to 22."""

_CHUNKS_PER_THREAD: Final = 32
"""Pieces of work per thread: waiting for the last one costs a few percent, handing out less."""


def count_somers(n: int) -> int:
    """Solutions for one board, by the sequential half-tree search on one core; ``n >= 1``."""
    from nqbench.workloads.counting.search import half_tree  # numba: slow to import

    return int(half_tree(n)) if n > 1 else 1


def count_multicore(n: int, threads: int = 0) -> int:
    """Solutions for one board on ``threads`` cores (0: all that this process may use).

    The same search, split at row 4; threads take the next piece when they are done with one.
    """
    if n < MIN_SPLIT_N:
        return count_somers(n)
    from nqbench.workloads.counting.search import solutions_of_jobs

    threads = threads or cpu_count()
    jobs = make_jobs(n, _SPLIT_DEPTH, "masks")

    def part(begin: int, end: int) -> int:
        return int(solutions_of_jobs(n, _SPLIT_DEPTH, jobs.words, begin, end))

    heavy, light = jobs.light_from, jobs.count
    pieces = [(2, span) for span in _spans(0, heavy, threads)]
    pieces += [(1, span) for span in _spans(heavy, light, threads)]
    with ThreadPoolExecutor(threads) as pool:
        counts = pool.map(lambda piece: piece[0] * part(*piece[1]), pieces)
        return sum(counts)


def count_frontier(n: int) -> int:
    """Solutions for one board by one eighth of the tree (``border``), on one core."""
    return count_frontier_multicore(n, 1)


def count_frontier_multicore(n: int, threads: int = 0) -> int:
    """Solutions for one board by one eighth of the tree (``border``) on ``threads`` cores.

    0 threads: all cores that this process may use.
    """
    from nqbench.workloads.counting import border

    if n < border.MIN_N:
        return count_somers(n)
    threads = (threads or cpu_count()) if n >= MIN_SPLIT_N else 1
    depth = min(_SPLIT_DEPTH, n - 2)
    jobs = border.jobs(n, depth)

    def part(span: tuple[int, int]) -> int:
        return int(border.weights_of_jobs(n, depth, jobs, *span))

    spans = _spans(0, jobs.size // 3, threads)
    if threads == 1:
        return border.total(sum(map(part, spans)))
    with ThreadPoolExecutor(threads) as pool:
        return border.total(sum(pool.map(part, spans)))


def _spans(begin: int, end: int, threads: int) -> list[tuple[int, int]]:
    """Consecutive pieces that cover ``begin .. end - 1``."""
    pieces = min(end - begin, threads * _CHUNKS_PER_THREAD)
    edges = np.linspace(begin, end, pieces + 1).astype(int).tolist()
    return list(pairwise(edges))
