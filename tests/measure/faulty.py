"""A workload whose kernels and host programs fail in every way there is, for real."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.facts import DeviceFacts
from nqbench.plan import Buffer, CpuPlan, KernelPlan, Outputs, Plan
from nqbench.point import FactorLevels, Point
from nqbench.workloads import ExternalWorkload, register
from nqbench.workloads.base import Workload

NAME: Final = "tests.measure.faulty:FAULTY"
ANSWER: Final = 42
SOURCE: Final = Path(__file__).with_name("faulty.cu")
GREEDY_WORDS: Final = 1 << 45
"""256 TiB: more than any GPU has."""
SPARE_BYTES: Final = 64 << 20
"""What a greedy host program may still take: less than it asks for."""
HOST: Final = ("fine", "segfault", "greedy", "hang", "leave", "abort")


def fine() -> int:
    """Right, and long enough to be timed."""
    time.sleep(0.001)
    return ANSWER


def segfault() -> int:
    """Read address 0."""
    ctypes.string_at(0)
    return ANSWER


def greedy() -> int:
    """Ask for more memory than the process may have."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return int(np.ones(16 * SPARE_BYTES, np.uint8)[0])


def hang() -> int:
    """Never come back."""
    while True:
        time.sleep(1)


def leave() -> int:
    """End the process in the middle."""
    sys.stderr.write("the dongle is missing\n")
    sys.stderr.flush()
    os._exit(3)


def abort() -> int:
    """What a failed assertion in native code does."""
    os.abort()


class Faulty(Workload):
    """Its answer is always 42."""

    name = NAME
    systems: Mapping[str, FactorLevels] = {f"cpu.{name}": {} for name in HOST}
    cpu_systems: frozenset[str] = frozenset(systems)

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        if system is not None:
            return CpuPlan(system, f"tests.measure.faulty:{system.partition('.')[2]}", ())
        fault = str(factors["fault"])
        buffers = [Buffer("out", "uint64", 1, zero=True, output=True)]
        if fault == "greedy":
            buffers.append(Buffer("more", "uint64", GREEDY_WORDS))
        entry = {"refused": "refused<1>", "greedy": "good"}.get(fault, fault)
        threads = 1024 if fault == "heavy" else 32
        grid, block = (1, 1, 1), (threads, 1, 1)
        return KernelPlan(
            SOURCE, entry, ("out",), grid, block, buffers=tuple(buffers), about={"n": 1}
        )

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        return int(outputs["answer" if isinstance(plan, CpuPlan) else "out"][0])

    def expected(self, factors: FactorLevels) -> int | None:
        return ANSWER


FAULTY = Faulty()
register(ExternalWorkload("", str(SOURCE.parents[2]), NAME))


def kernel(fault: str, n: int = 1, skip: str = "") -> Point:
    """A point that runs a kernel with this fault; ``n`` only orders the points."""
    return Point("faults", "kernels", NAME, None, {"n": n, "fault": fault}, {}, skip)


def host(program: str, n: int = 1) -> Point:
    """A point that runs a host program."""
    return Point("faults", "hosts", NAME, f"cpu.{program}", {"n": n})
