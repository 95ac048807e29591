"""The CPU schemes: functions that plans name.

========================  ==========================================================================
``serial``                Algorithm 1: all pairs, one thread
``serial_unoptimized``    the same without optimization by the compiler
``threads``               Algorithms 2 and 3: threads started and joined in every call
``tbb``                   Algorithms 4 and 5: a parallel reduction by TBB's scheduler
``fork_join``             Algorithm 6 (lost): ranges halved down to a threshold, work stealing
``histogram``             ours: diagonals counted in one pass
``histogram_batch``       the same for many boards, spread over the cores
========================  ==========================================================================

Operations and bytes of each are stated in ``counts``. Every function takes boards as
``boards.Board`` (``int32``, values 0..n-1) and returns 64-bit counts. Nothing is compiled at
import; the first call compiles (or loads from numba's cache), which ``CpuPlan.warm_up`` keeps out
of the times.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.plan import CpuResult
from nqbench.system.machine import cpu_count
from nqbench.workloads.fitness.cpu.tbb import check_layer, load_tbb

TBB_GRAIN: Final = 16
"""Rows in TBB's smallest piece. The paper's range has TBB's default of one row; TBB splits it into
a few pieces per thread, and further when one is stolen. Numba gives TBB a range of pieces that it
has numbered before, with the same partitioner, and every piece costs a call: with one row each
that adds 250% at n = 1,000 and 40% at 10,000, with 16 rows 15% and 3%."""

BATCH_GROUPS_PER_CORE: Final = 4
"""Pieces of a batch per core: enough to balance the cores, with few sets of counters."""


@dataclass(frozen=True, slots=True)
class Joined:
    """An evaluation: the conflicts, and the leaves run and tasks stolen by each worker."""

    conflicts: int
    leaves: tuple[int, ...]
    steals: tuple[int, ...]


def serial(board: NDArray[Any]) -> int:
    """Conflicts of a board, all pairs on one thread."""
    from nqbench.workloads.fitness.cpu.compiled import serial_conflicts

    return int(serial_conflicts(fixed(board)))


def serial_unoptimized(board: NDArray[Any]) -> int:
    """The same by code that the compiler did not optimize."""
    from nqbench.workloads.fitness.cpu.unoptimized import unoptimized_conflicts

    return unoptimized_conflicts(fixed(board))


def threads(board: NDArray[Any], count: int) -> int:
    """Conflicts by ``count`` threads, row i on thread i mod ``count``, started and joined here.

    The paper's threads are C++ ``std::thread``; Python's are the same threads of the operating
    system, each about 30 microseconds slower to start and join (59 against 26 measured on Linux).
    They run without the interpreter's lock. Raises ``DeviceError`` if the system refuses one.
    """
    from nqbench.workloads.fitness.cpu.compiled import cyclic_conflicts

    queens = fixed(board)
    counters = np.empty(count, np.int64)
    join = run_in_threads(lambda thread: cyclic_conflicts(queens, counters, thread), range(count))
    join()
    return int(counters.sum())


def tbb(board: NDArray[Any]) -> int:
    """Conflicts by a parallel reduction over the rows, scheduled by TBB.

    Raises ``DeviceError`` if numba's parallel loops use another layer in this process.
    """
    fault = load_tbb()
    if fault:
        raise DeviceError(f"cpu_tbb cannot run: {fault}")
    import numba

    from nqbench.workloads.fitness.cpu.compiled import parallel_conflicts

    before = numba.set_parallel_chunksize(TBB_GRAIN)
    try:
        conflicts = int(parallel_conflicts(fixed(board)))
    finally:
        numba.set_parallel_chunksize(before)
    check_layer()
    return conflicts


def fork_join(board: NDArray[Any], threshold: int) -> int:
    """Conflicts by fork and join, with leaves of at most ``threshold`` queens."""
    return fork_join_counted(fixed(board), threshold).conflicts


def histogram(board: NDArray[Any]) -> int:
    """Conflicts by counting diagonals, on one thread."""
    from nqbench.workloads.fitness.cpu.compiled import histogram_conflicts

    return int(histogram_conflicts(fixed(board)))


def histogram_batch(boards: NDArray[Any]) -> CpuResult:
    """Conflicts of every board, shape ``(count, n)``; ``outputs["conflicts"]`` lists them."""
    from nqbench.workloads.fitness.cpu.compiled import each_of

    load_tbb()  # a later cpu_tbb needs it loaded first; any layer will do here
    groups = min(len(boards), BATCH_GROUPS_PER_CORE * cpu_count())
    each = each_of(fixed(boards), groups)
    return CpuResult(int(each.sum()), outputs={"conflicts": each})


def fork_join_counted(board: NDArray[Any], threshold: int, workers: int = 0) -> Joined:
    """The evaluation of a board (``int32``, C-contiguous, shape ``(n,)``) by fork and join.

    ``threshold`` is the most queens of a leaf task, ``workers`` the threads (0: one per core, as
    Java's pool has). They are started and joined inside the call: the published 12 ms at n = 100,
    where one thread needs 46 microseconds, suggest that the paper's pool was not running before.
    """
    from nqbench.workloads.fitness.cpu.stealing import CAPACITY, DONE, LINE, push, work

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


def run_in_threads(work: Callable[[int], object], numbers: Iterable[int]) -> Callable[[], None]:
    """Start a thread for each number that calls ``work(number)``; returns a function to join them.

    If the system refuses a thread, the earlier ones are joined and ``DeviceError`` says how many
    there were.
    """
    started: list[threading.Thread] = []

    def join() -> None:
        for thread in started:
            thread.join()

    wanted = list(numbers)
    for number in wanted:
        thread = threading.Thread(target=work, args=(number,))
        try:
            thread.start()
        except RuntimeError as error:
            join()
            raise DeviceError(
                f"the system gave this process only {len(started)} of {len(wanted)} threads"
                f" ({error}); use fewer threads, or raise its limit (ulimit -u, or that of the"
                " container)"
            ) from error
        started.append(thread)
    return join


def fixed(board: NDArray[Any]) -> NDArray[np.int32]:
    """A read-only view (or copy): numba compiles separately for read-only arrays."""
    view = np.ascontiguousarray(board, np.int32).view()
    view.setflags(write=False)
    return view
