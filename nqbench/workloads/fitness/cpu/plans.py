"""Plans of the CPU schemes, and the number of threads that they take.

The paper's "adaptive" scheme keeps a map from size to the best of 1 to 60 threads. Here the map is
a file per size class below the user's cache folder (``$NQBENCH_CACHE_DIR`` if set), CPU, number of
cores, versions (Python, numba, nqbench) and code of the evaluation. A class is measured when a size
near it is first needed.
"""

from __future__ import annotations

import hashlib
import platform
import statistics
import time
from functools import cache
from math import log
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError, WrongDeviceError
from nqbench.plan import CpuPlan
from nqbench.point import FactorLevels
from nqbench.system.files import kept_json
from nqbench.system.machine import cpu_count, cpu_model
from nqbench.system.versions import __version__, installed
from nqbench.workloads.fitness.boards import random_board
from nqbench.workloads.fitness.cpu.tbb import TBB_GRAIN, load_tbb
from nqbench.workloads.levels import number

_WARM_N: Final = 8

CLASSES: Final = (100, 300, 1_000, 3_000, 10_000, 30_000)
"""Sizes measured; a board takes the count of the nearest (by ratio). Above the last one starting
threads costs under 1% of the evaluation, so the best count no longer changes with n."""

MAX_THREADS: Final = 60
"""As in the paper, section 2.2."""

ROUNDS: Final = 7
"""Evaluations per thread count, interleaved, so that clock drift favours none of them."""

LIMIT_S: Final = 4.0
"""No further round of a class begins after this time; the first is always completed."""

WITHIN: Final = 1.02
"""The least count within 2% of the fastest is taken: fewer threads disturb less, and the fastest of
60 medians would change with every measurement."""


def cpu_plan(levels: FactorLevels, boards: NDArray[Any]) -> CpuPlan:
    """The plan of a CPU scheme; ``boards`` has shape ``(batch, n)``.

    ``threads: auto`` is looked up, and measured first if this machine has no entry. Raises
    ``WrongDeviceError`` for ``cpu_tbb`` without TBB.
    """
    scheme, board = str(levels["scheme"]), boards[0]
    small, cores = np.arange(_WARM_N, dtype=np.int32), cpu_count()
    if scheme == "cpu_serial":
        plain = levels["optimization"] == "none"
        return _plan("serial_unoptimized" if plain else "serial", (board,), (small,))
    if scheme == "cpu_threads":
        given = levels["threads"]
        count = given if isinstance(given, int) else best_threads(board.size)
        return _plan("threads", (board, count), (small, 2), threads_used=count)
    if scheme == "cpu_tbb":
        check_packages(levels)
        return _plan("tbb", (board,), (small,), threads_used=cores, grain=TBB_GRAIN)
    if scheme == "cpu_forkjoin":
        threshold = number(levels, "threshold")
        return _plan("fork_join", (board, threshold), (small, 2), threads_used=cores)
    if len(boards) == 1:
        return _plan("histogram", (board,), (small,), threads_used=1)
    return _plan("histogram_batch", (boards,), (np.stack([small, small]),), threads_used=cores)


def check_packages(levels: FactorLevels) -> None:
    """Refuse ``cpu_tbb`` without TBB (``WrongDeviceError``: the point is skipped)."""
    if levels["scheme"] == "cpu_tbb" and (fault := load_tbb()):
        said = f"scheme: cpu_tbb needs Intel's TBB: {fault}; compare cpu_threads and cpu_forkjoin"
        raise WrongDeviceError(said)


def _plan(
    function: str, arguments: tuple[Any, ...], warm_up: tuple[Any, ...], **about: int
) -> CpuPlan:
    module = "stealing" if function == "fork_join" else "evaluators"
    found = f"{__package__}.{module}:{function}"
    return CpuPlan(f"fitness.{function}", found, arguments, warm_up, about)


def best_threads(n: int) -> int:
    """The thread count for a board of ``n`` queens; measured and stored if necessary.

    Quick (a file is read) once the size class of ``n``, the measured size nearest to it by ratio,
    is known; otherwise up to about 10 s. The file is in ``$NQBENCH_CACHE_DIR``, else in the user's
    cache folder.
    """
    return threads_of_class(min(CLASSES, key=lambda size: abs(log(size / n))))


@cache
def threads_of_class(size: int) -> int:
    """The best count for a size class on this machine, by the code that there is."""
    code = Path(__file__).with_name("evaluators.py").read_bytes()
    known = [cpu_model(), cpu_count(), platform.python_version(), installed("numba"), __version__]
    machine = hashlib.sha256(repr(known).encode() + code).hexdigest()[:16]
    return int(kept_json(f"threads/{size}-{machine}.json", lambda: choose(measure_class(size))))


def choose(seconds: dict[int, float]) -> int:
    """The least thread count whose time is within 2% of the fastest."""
    limit = WITHIN * min(seconds.values())
    return min(count for count, taken in seconds.items() if taken <= limit)


def measure_class(size: int) -> dict[int, float]:
    """Median seconds of an evaluation of ``size`` queens, by thread count from 1 to 60.

    Counts that the system refuses to start are left out.
    """
    from nqbench.workloads.fitness.cpu.evaluators import threads  # numba: slow to import

    board = random_board(size, seed=1)
    threads(board, 1)  # compiles
    samples: dict[int, list[float]] = {count: [] for count in range(1, MAX_THREADS + 1)}
    begun = time.perf_counter()
    for _ in range(ROUNDS):
        for count, taken in list(samples.items()):
            started = time.perf_counter()
            try:
                threads(board, count)
            except DeviceError:
                del samples[count]
                continue
            taken.append(time.perf_counter() - started)
        if time.perf_counter() - begun > LIMIT_S:
            break
    return {count: statistics.median(taken) for count, taken in samples.items()}
