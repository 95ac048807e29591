"""The schemes of the processor: functions that host plans name, and the plans themselves.

========================  ==========================================================================
``serial``                Algorithm 1: all pairs, one thread
``serial_unoptimized``    the same without optimisation by the compiler
``threads``               Algorithms 2 and 3: threads started and joined in every call
``tbb``                   Algorithms 4 and 5: a parallel reduction by TBB's scheduler
``fork_join``             Algorithm 6 (lost): ranges halved down to a threshold, work stealing
``histogram``             ours: diagonals counted in one pass
``histogram_batch``       the same for many boards, spread over the cores
========================  ==========================================================================

Operations and bytes of each are stated in ``traffic``. Every function takes boards as
``boards.Board`` (``int32``, values 0..n-1) and returns 64-bit counts. Nothing is compiled at
import; the first call compiles (or loads from numba's cache), which ``CpuPlan.warm_up`` keeps out
of the times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError, WrongDeviceError
from nqbench.plan import CpuPlan, CpuResult
from nqbench.point import Level
from nqbench.system.cpu import cpu_count
from nqbench.workloads.fitness.cpu_crew import run_in_threads

TBB_GRAIN: Final = 16
"""Rows in TBB's smallest piece. The paper's range has TBB's default of one row; TBB splits it into
a few pieces per thread, and further when one is stolen. Numba gives TBB a range of pieces that it
has numbered before, with the same partitioner, and every piece costs a call: with one row each
that adds 250% at n = 1,000 and 40% at 10,000, with 16 rows 15% and 3%."""

BATCH_GROUPS_PER_CORE: Final = 4
"""Pieces of a batch per core: idle cores find work, and few sets of counters are needed."""

_MODULE: Final = "nqbench.workloads.fitness.cpu"
_WARM_N: Final = 8


def serial(board: NDArray[Any]) -> int:
    """Conflicts of a board, all pairs on one thread."""
    from nqbench.workloads.fitness.cpu_pairs import serial_conflicts

    return int(serial_conflicts(_fixed(board)))


def serial_unoptimized(board: NDArray[Any]) -> int:
    """The same by code that the compiler did not optimise."""
    from nqbench.workloads.fitness.cpu_unoptimized import unoptimized_conflicts

    return unoptimized_conflicts(_fixed(board))


def threads(board: NDArray[Any], count: int) -> int:
    """Conflicts by ``count`` threads, row i on thread i mod ``count``, started and joined here.

    The paper's threads are C++ ``std::thread``; Python's are the same threads of the operating
    system, each about 30 microseconds dearer to start and join (59 against 26 measured on Linux).
    They run without the interpreter's lock. Raises ``DeviceError`` if the system refuses one.
    """
    from nqbench.workloads.fitness.cpu_pairs import cyclic_conflicts

    queens = _fixed(board)
    counters = np.empty(count, np.int64)
    join = run_in_threads(lambda thread: cyclic_conflicts(queens, counters, thread), range(count))
    join()
    return int(counters.sum())


def tbb(board: NDArray[Any]) -> int:
    """Conflicts by a parallel reduction over the rows, scheduled by TBB.

    Raises ``DeviceError`` if numba's parallel loops run on anything else in this process.
    """
    from nqbench.workloads.fitness.cpu_tbb import check_layer, load_tbb

    fault = load_tbb()
    if fault:
        raise DeviceError(f"cpu_tbb cannot run: {fault}")
    import numba

    from nqbench.workloads.fitness.cpu_pairs import parallel_conflicts

    before = numba.set_parallel_chunksize(TBB_GRAIN)
    try:
        conflicts = int(parallel_conflicts(_fixed(board)))
    finally:
        numba.set_parallel_chunksize(before)
    check_layer()
    return conflicts


def fork_join(board: NDArray[Any], threshold: int) -> int:
    """Conflicts by fork and join, with leaves of at most ``threshold`` queens."""
    from nqbench.workloads.fitness import cpu_forkjoin

    return cpu_forkjoin.fork_join(_fixed(board), threshold).conflicts


def histogram(board: NDArray[Any]) -> int:
    """Conflicts by counting diagonals, on one thread."""
    from nqbench.workloads.fitness.cpu_histogram import histogram_conflicts

    return int(histogram_conflicts(_fixed(board)))


def histogram_batch(boards: NDArray[Any]) -> CpuResult:
    """Conflicts of every board, shape ``(count, n)``; ``outputs["conflicts"]`` lists them."""
    from nqbench.workloads.fitness.cpu_histogram import each_of
    from nqbench.workloads.fitness.cpu_tbb import load_tbb

    load_tbb()  # so that cpu_tbb finds it if it runs later; any layer will do here
    groups = min(len(boards), BATCH_GROUPS_PER_CORE * cpu_count())
    each = each_of(_fixed(boards), groups)
    return CpuResult(int(each.sum()), outputs={"conflicts": each})


def host_plan(levels: Mapping[str, Level], boards: NDArray[Any]) -> CpuPlan:
    """The plan of a scheme of the processor; ``boards`` has shape ``(batch, n)``.

    ``threads: auto`` is looked up, and measured first if this machine has no entry. Raises
    ``WrongDeviceError`` for ``cpu_tbb`` without TBB.
    """
    scheme, board = str(levels["scheme"]), boards[0]
    small = _fixed(np.arange(_WARM_N, dtype=np.int32))
    if scheme == "cpu_serial":
        plain = levels["optimization"] == "none"
        return _plan("serial_unoptimized" if plain else "serial", (board,), (small,))
    if scheme == "cpu_threads":
        count = _threads(levels["threads"], board.size)
        return _plan("threads", (board, count), (small, 2), threads_used=count)
    if scheme == "cpu_tbb":
        check_packages(levels)
        return _plan("tbb", (board,), (small,), threads_used=cpu_count(), grain=TBB_GRAIN)
    if scheme == "cpu_forkjoin":
        threshold = levels["threshold"]
        assert isinstance(threshold, int)
        return _plan("fork_join", (board, threshold), (small, 2), threads_used=cpu_count())
    if len(boards) == 1:
        return _plan("histogram", (board,), (small,), threads_used=1)
    return _plan(
        "histogram_batch", (boards,), (np.stack([small, small]),), threads_used=cpu_count()
    )


def check_packages(levels: Mapping[str, Level]) -> None:
    """Refuse ``cpu_tbb`` where there is no TBB (``WrongDeviceError``: the point is skipped)."""
    if levels["scheme"] != "cpu_tbb":
        return
    from nqbench.workloads.fitness.cpu_tbb import load_tbb

    fault = load_tbb()
    if fault:
        raise WrongDeviceError(
            f"scheme: cpu_tbb needs Intel's TBB: {fault}; compare cpu_threads and cpu_forkjoin"
        )


def _plan(
    function: str, arguments: tuple[Any, ...], warm_up: tuple[Any, ...], **about: int
) -> CpuPlan:
    return CpuPlan(f"fitness.{function}", f"{_MODULE}:{function}", arguments, warm_up, about)


def _threads(level: Level, n: int) -> int:
    if isinstance(level, int):
        return level
    from nqbench.workloads.fitness.thread_counts import best_threads

    return best_threads(n)


def _fixed(board: NDArray[Any]) -> NDArray[np.int32]:
    """A read-only view (a copy if need be): numba compiles for read-only arrays apart."""
    view = np.ascontiguousarray(board, np.int32).view()
    view.setflags(write=False)
    return view
