"""This machine: its CPU, the memory that this process may still take, times of short work."""

from __future__ import annotations

import mmap
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

from nqbench.errors import DeviceUnavailable
from nqbench.system.files import text

RUN_BYTES: Final = 700 << 20
"""Address space that a simulated run and its report need (measured with two threads: with 0.67 GB
it hung, with 0.77 it finished). With less, OpenBLAS retries its allocations forever while it loads,
LLVM and the compiler abort, and the loader cannot map a file."""

LIST_BYTES: Final = 160 << 20
"""The same for commands that only list: they load numpy. With 0.11 GB OpenBLAS cannot start a
thread and ends the process with the signal of Ctrl-C; 0.16 are enough."""

REPEATS: Final = 5
"""Readings of short work: their median survives two disturbed ones."""
SHORT_S: Final = 0.05
"""No further reading after this time: long work is costly, and hardly disturbed."""

_MEMINFO: Final = Path("/proc/meminfo")
_CGROUP: Final = Path("/sys/fs/cgroup")

T = TypeVar("T")


def cpu_model() -> str:
    """Name of the CPU, as the operating system gives it."""
    for line in text(Path("/proc/cpuinfo")).splitlines():  # empty if not Linux, or hidden
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cpu_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def spans(count: int, pieces: int) -> list[tuple[int, int]]:
    """Begin and end of consecutive pieces of ``range(count)``."""
    return [(count * k // pieces, count * (k + 1) // pieces) for k in range(pieces)]


def check_room(room_bytes: int = RUN_BYTES) -> None:
    """Raise ``DeviceUnavailable`` if a limit (``ulimit -v``, ``ulimit -d``, no overcommitment)
    leaves less than ``room_bytes``. Reserves them for a moment and touches none."""
    try:
        mmap.mmap(-1, room_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        raise DeviceUnavailable(
            f"there is not enough memory: nqbench loads libraries that need {room_bytes >> 20} MB"
            " of address space, and a limit leaves less; raise ulimit -v and ulimit -d, or close"
            " programs"
        ) from error


def free_memory_bytes(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Bytes of host memory that this process may still take; ``None`` if that is unknown.

    The smaller of what the kernel reports as available and what the container's limit leaves.
    """
    found = [
        int(line.split()[1]) * 1024
        for line in text(meminfo).splitlines()
        if line.startswith("MemAvailable:")
    ]
    limit, used = text(cgroup / "memory.max"), text(cgroup / "memory.current")
    if limit.strip().isdigit() and used.strip().isdigit():
        found.append(max(0, int(limit) - int(used)))
    if not found and "SC_AVPHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def timed(action: Callable[[], T]) -> tuple[T, float]:
    """The result of ``action`` and the seconds it takes: the median of up to five calls.

    ``action`` must be repeatable; one that takes longer than ``SHORT_S`` is called once.
    """
    readings: list[float] = []
    while True:
        started = time.perf_counter()
        result = action()
        readings.append(time.perf_counter() - started)
        if len(readings) == REPEATS or sum(readings) >= SHORT_S:
            return result, median(readings)
