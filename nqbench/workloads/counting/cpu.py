"""The CPU programs: the baselines that the papers' speed-ups refer to, and the fastest one here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nqbench.system.machine import cpu_count, spans
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
    from nqbench.workloads.counting.search import solutions_of_jobs

    jobs = make_jobs(n, _SPLIT_DEPTH, "masks")
    count = partial(solutions_of_jobs, n, _SPLIT_DEPTH, jobs.words)

    def part(begin: int, end: int) -> int:
        light = min(max(begin, jobs.light_from), end)
        return 2 * count(begin, light) + count(light, end)

    return _summed(part, jobs.count, n)


def count_frontier(n: int, all_cores: bool = False) -> int:
    """Solutions for one board by one eighth of the tree (``border``)."""
    from nqbench.workloads.counting import border
    from nqbench.workloads.counting.border_search import weights_of_jobs

    if n < border.MIN_N:
        return count_somers(n)
    depth = min(_SPLIT_DEPTH, n - 2)
    jobs = border.jobs(n, depth)
    count = jobs.size // border.WORDS
    return border.total(_summed(partial(weights_of_jobs, n, depth, jobs), count, n, all_cores))


def count_middle(n: int, all_cores: bool = False) -> int:
    """Solutions for one board from the middle (``middle.cpu``); ``n <= 23``."""
    from nqbench.workloads.counting.middle import cpu, groups
    from nqbench.workloads.counting.middle.vectors import paths

    if n < cpu.MIN_N:
        return count_somers(n)
    every = groups.dealt_groups(n) if all_cores else groups.groups(n)  # neighbours are alike
    count = partial(cpu.solutions_of_groups, paths()[-1], cpu.board_of(n), every)
    return _summed(count, len(every), n, all_cores)


count_frontier_multicore = partial(count_frontier, all_cores=True)
count_middle_multicore = partial(count_middle, all_cores=True)


def _summed(part: Callable[[int, int], int], count: int, n: int, all_cores: bool = True) -> int:
    """The sum of ``part(begin, end)`` over pieces of ``range(count)``; one of a small board."""
    from nqbench.workloads.compiled import on_all_cores  # numba: slow to import

    pieces = cpu_count() * _CHUNKS_PER_THREAD if all_cores and n >= MIN_SPLIT_N else 1
    return sum(on_all_cores(lambda span: int(part(*span)), spans(count, min(count, pieces))))
