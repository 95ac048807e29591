"""The CPU programs: the baselines that the papers' speed-ups refer to, and the fastest one here."""

from __future__ import annotations

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


def count_multicore(n: int) -> int:
    """Solutions for one board on all cores that this process may use.

    The same search, split at row 4; threads take the next piece when they are done with one.
    """
    if n < MIN_SPLIT_N:
        return count_somers(n)
    from nqbench.workloads.compiled import on_all_cores
    from nqbench.workloads.counting.search import solutions_of_jobs

    jobs = make_jobs(n, _SPLIT_DEPTH, "masks")

    def part(piece: tuple[int, int, int]) -> int:
        weight, begin, end = piece
        return weight * int(solutions_of_jobs(n, _SPLIT_DEPTH, jobs.words, begin, end))

    pieces = [(2, *span) for span in _spans(0, jobs.light_from)]
    pieces += [(1, *span) for span in _spans(jobs.light_from, jobs.count)]
    return sum(on_all_cores(part, pieces))


def count_frontier(n: int) -> int:
    """Solutions for one board by one eighth of the tree (``border``), on one core."""
    return _frontier(n, all_cores=False)


def count_frontier_multicore(n: int) -> int:
    """Solutions for one board by one eighth of the tree on all cores that this process may use."""
    return _frontier(n, all_cores=n >= MIN_SPLIT_N)


def _frontier(n: int, all_cores: bool) -> int:
    from nqbench.workloads.compiled import on_all_cores
    from nqbench.workloads.counting import border
    from nqbench.workloads.counting.border_search import weights_of_jobs

    if n < border.MIN_N:
        return count_somers(n)
    depth = min(_SPLIT_DEPTH, n - 2)
    jobs = border.jobs(n, depth)
    count = jobs.size // border.WORDS
    spans = _spans(0, count) if all_cores else [(0, count)]
    weights = on_all_cores(lambda s: int(weights_of_jobs(n, depth, jobs, *s)), spans)
    return border.total(sum(weights))


def count_middle(n: int) -> int:
    """Solutions for one board from the middle (``middle.cpu``), on one core; ``n <= 23``."""
    return _middle(n, all_cores=False)


def count_middle_multicore(n: int) -> int:
    """Solutions for one board from the middle on all cores that this process may use."""
    return _middle(n, all_cores=n >= MIN_SPLIT_N)


def _middle(n: int, all_cores: bool) -> int:
    from nqbench.workloads.compiled import on_all_cores
    from nqbench.workloads.counting.middle import cpu
    from nqbench.workloads.counting.middle.groups import packed_groups
    from nqbench.workloads.counting.middle.vectors import paths

    if n < cpu.MIN_N:
        return count_somers(n)
    board, groups, path = cpu.board_of(n), packed_groups(n), paths()[-1]
    step = cpu_count() * _CHUNKS_PER_THREAD if all_cores else 1  # neighbours are alike
    found = on_all_cores(
        lambda begin: int(cpu.solutions_of_groups(path, board, groups, begin, len(groups), step)),
        range(step),
    )
    return sum(found)


def _spans(begin: int, end: int) -> list[tuple[int, int]]:
    """Consecutive pieces that cover ``begin .. end - 1``."""
    pieces = min(end - begin, cpu_count() * _CHUNKS_PER_THREAD)
    edges = np.linspace(begin, end, pieces + 1).astype(int).tolist()
    return list(pairwise(edges))
