"""The fork/join scheme on the processor: threads around ``cpu_stealing``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.system.cpu import cpu_count
from nqbench.workloads.fitness.cpu_crew import run_in_threads


@dataclass(frozen=True, slots=True)
class Joined:
    """An evaluation: the conflicts, and the leaves run and tasks stolen by each worker."""

    conflicts: int
    leaves: tuple[int, ...]
    steals: tuple[int, ...]


def fork_join(board: NDArray[Any], threshold: int, workers: int = 0) -> Joined:
    """Conflicts of a board (``int32``, C-contiguous, shape ``(n,)``) by fork and join.

    ``threshold`` is the most queens of a leaf task, ``workers`` the threads (0: one per core, as
    Java's pool has). They are started and joined inside the call: the published 12 ms at n = 100,
    where one thread needs 46 microseconds, say that the paper's pool was not running either.
    """
    from nqbench.workloads.fitness.cpu_stealing import CAPACITY, DONE, LINE, push, work

    workers = workers or cpu_count()
    nodes = 2 << leaf_level(board.size, threshold)
    ends = np.zeros(workers * 2 * LINE, np.int64)
    deques = np.zeros(workers * CAPACITY, np.int64)
    sums = np.zeros(nodes, np.int64)
    ended = np.zeros(nodes, np.int64)
    tally = np.zeros(workers * LINE, np.int64)

    def run(worker: int) -> None:
        while work(board, threshold, worker, ends, deques, sums, ended, tally) != DONE:
            time.sleep(0)  # nothing to steal: another worker may need this core

    push(ends, deques, 0, 1)
    join = run_in_threads(run, range(1, workers))
    run(0)
    join()
    counts = tally.reshape(workers, LINE)
    return Joined(int(sums[0]), tuple(counts[:, 0].tolist()), tuple(counts[:, 1].tolist()))


def leaf_level(n: int, threshold: int) -> int:
    """Least number of halvings after which no range holds more than ``threshold`` queens."""
    level = 0
    while -(-n >> level) > threshold:  # the ceiling of n / 2**level
        level += 1
    return level
