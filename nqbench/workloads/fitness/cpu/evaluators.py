"""The CPU schemes: functions that plans name, compiled by numba.

========================  ==========================================================================
``serial``                Algorithm 1: all pairs, one thread
``serial_unoptimized``    the same without optimization by the compiler
``threads``               Algorithms 2 and 3: threads started and joined in every call
``tbb``                   Algorithms 4 and 5: a parallel reduction by TBB's scheduler
``stealing.fork_join``    Algorithm 6 (lost): ranges halved down to a threshold, work stealing
``histogram``             ours: diagonals counted in one pass
``histogram_batch``       the same for many boards, spread over the cores
========================  ==========================================================================

Operations and bytes of each are stated in ``counts``. Every function takes boards as
``boards.Board`` (``int32``, values 0..n-1) and returns 64-bit counts. Nothing is compiled at
import; the first call compiles (or loads from numba's cache), which ``CpuPlan.warm_up`` keeps out
of the times. Importing this module imports numba (half a second).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import llvmlite.binding as llvm
import numba
import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.plan import CpuResult
from nqbench.system.machine import cpu_count
from nqbench.workloads.compiled import compiled, compiled_in_parallel
from nqbench.workloads.fitness.cpu.tbb import TBB_GRAIN, check_layer, load_tbb

BATCH_GROUPS_PER_CORE: Final = 4
"""Pieces of a batch per core: enough to balance the cores, with few sets of counters."""


@compiled
def row_conflicts(board: NDArray[Any], queen: np.uint32, n: np.uint32) -> np.int64:
    """Conflicts of one queen with all those right of it: the inner loop of every pair scheme.

    Unsigned indices, since signed ones would be tested for wrapping around; ``n`` as an argument,
    since with ``board.shape`` instead the loop takes 1.5 times as long.
    """
    row = board[queen]
    count = np.uint32(0)
    for other in range(queen + np.uint32(1), n):
        apart = np.int32(abs(np.int32(row - board[other])))
        if apart == np.int32(other - queen):
            count = np.uint32(count + np.uint32(1))
    return np.int64(count)


@compiled
def serial_conflicts(board: NDArray[Any]) -> np.int64:
    """Algorithm 1 of the fitness paper: all pairs i < j, on one thread."""
    count = np.int64(0)
    for queen in range(board.shape[0]):
        count += row_conflicts(board, np.uint32(queen), np.uint32(board.shape[0]))
    return count


@compiled
def cyclic_conflicts(board: NDArray[Any], counters: NDArray[Any], thread: int) -> None:
    """Algorithm 2: the rows ``thread``, ``thread`` + T, ... for T = ``len(counters)``.

    The sum goes to ``counters[thread]``. Each row adds to it in memory, as the paper's threads do,
    so that neighbouring counters share a cache line (false sharing) as theirs did.
    """
    threads = counters.shape[0]
    counters[thread] = 0
    for queen in range(thread, board.shape[0], threads):
        counters[thread] += row_conflicts(board, np.uint32(queen), np.uint32(board.shape[0]))


@compiled_in_parallel
def parallel_conflicts(board: NDArray[Any]) -> np.int64:
    """Sum over all rows by numba's threading layer; shape and type as ``serial_conflicts``."""
    count = np.int64(0)
    for queen in numba.prange(board.shape[0]):
        count += row_conflicts(board, np.uint32(queen), np.uint32(board.shape[0]))
    return count


@compiled
def histogram_conflicts(board: NDArray[Any]) -> np.int64:
    """Conflicts of one board, shape ``(n,)``; its counters are allocated and cleared here."""
    n = board.shape[0]
    rising = np.zeros(2 * n, np.int32)
    return _count(board, rising, np.zeros(2 * n, np.int32))


@compiled
def _count(board: NDArray[Any], rising: NDArray[Any], falling: NDArray[Any]) -> np.int64:
    """A queen conflicts with every earlier one on its two diagonals: one pass over the board adds
    the counter of each diagonal to the sum, and then raises it. O(n)."""
    n = board.shape[0]
    total = np.int64(0)
    for column in range(n):
        up = np.uint64(column + board[column])
        down = np.uint64(column - board[column] + n)
        total += rising[up] + falling[down]
        rising[up] += 1
        falling[down] += 1
    return total


@compiled_in_parallel
def each_of(boards: NDArray[Any], groups: int) -> NDArray[np.int64]:
    """Conflicts of every board, ``int64`` of shape ``(count,)`` for boards of shape ``(count, n)``.

    Boards are dealt to ``groups`` pieces of work with separate counters, which numba's threading
    layer spreads over the cores.
    """
    count, n = boards.shape
    result = np.empty(count, np.int64)
    for group in numba.prange(groups):
        rising = np.zeros(2 * n, np.int32)
        falling = np.zeros(2 * n, np.int32)
        for index in range(group, count, groups):
            board = boards[index]
            result[index] = _count(board, rising, falling)
            for column in range(n):  # clearing what was touched is cheaper than 4n counters
                rising[np.uint64(column + board[column])] = 0
                falling[np.uint64(column - board[column] + n)] = 0
    return result


def serial(board: NDArray[Any]) -> int:
    """Conflicts of a board, all pairs on one thread."""
    return int(serial_conflicts(fixed(board)))


def serial_unoptimized(board: NDArray[Any]) -> int:
    """The same by code that the compiler did not optimize.

    The paper compiled "with the default option", which for C++ may mean no optimization and would
    inflate every speed-up over its baseline. Numba cannot show what that costs: its unoptimized
    code carries Python's semantics (reference counts, checked ranges) and takes 5 times as long as
    C++. So the algorithm stands in ``pair_conflicts.ll`` as C++ compilers emit it before
    optimizing, with every variable in memory, and is compiled as it is (``-O0``).
    """
    queens = fixed(board)
    return machine_code()[1](queens.ctypes.data, queens.size)


IR: Final = Path(__file__).with_name("pair_conflicts.ll").read_text(encoding="utf-8")


@cache
def machine_code() -> tuple[Any, Callable[[int, int], int]]:
    """The engine that owns the code of ``IR``, and the function ``(address of the board, n) ->
    count``. Calling it releases the GIL. No optimization passes run."""
    module = llvm.parse_assembly(IR)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, target_machine())
    engine.finalize_object()
    address = engine.get_function_address("pair_conflicts")
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int32)
    return engine, cast("Callable[[int, int], int]", prototype(address))


def target_machine() -> Any:
    """LLVM's machine for this CPU, generating code without optimization."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=0,
        jit=True,
    )


def threads(board: NDArray[Any], count: int) -> int:
    """Conflicts by ``count`` threads, row i on thread i mod ``count``, started and joined here.

    The paper's threads are C++ ``std::thread``; Python's are the same threads of the operating
    system, each about 30 microseconds slower to start and join (59 against 26 measured on Linux).
    They run without the interpreter's lock. Raises ``DeviceError`` if the system refuses one.
    """
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
    before = numba.set_parallel_chunksize(TBB_GRAIN)
    try:
        conflicts = int(parallel_conflicts(fixed(board)))
    finally:
        numba.set_parallel_chunksize(before)
    check_layer()
    return conflicts


def histogram(board: NDArray[Any]) -> int:
    """Conflicts by counting diagonals, on one thread."""
    return int(histogram_conflicts(fixed(board)))


def histogram_batch(boards: NDArray[Any]) -> CpuResult:
    """Conflicts of every board, shape ``(count, n)``; ``outputs["conflicts"]`` lists them."""
    load_tbb()  # a later cpu_tbb needs it loaded first; any layer will do here
    groups = min(len(boards), BATCH_GROUPS_PER_CORE * cpu_count())
    each = each_of(fixed(boards), groups)
    return CpuResult(int(each.sum()), outputs={"conflicts": each})


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
