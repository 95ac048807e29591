"""The CPU of this machine: its name and how many cores this process may use."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def cpu_model() -> str:
    """Name of the CPU, as the operating system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux, or hidden: the architecture is then all there is to say
    return platform.processor() or platform.machine()


def cpu_count() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
