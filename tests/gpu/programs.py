"""Programs for the tests on a real GPU, and a workload of one of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.facts import DeviceFacts
from nqbench.machine import Machine
from nqbench.plan import Buffer, Kernel, Outputs, Plan, ProgramPlan, Variable
from nqbench.point import Level, Point
from nqbench.workloads.base import Workload

SOURCE: Final = Path(__file__).with_name("programs.cu")
HERE: Final = "tests.gpu.programs"
BIG: Final = 64 << 20
"""Bytes: allocating and freeing that much takes a time that the clock shows."""
WIDTH: Final = 64
THREADS, BLOCKS, ROUNDS = 256, 264, 1000


def kernel(entry: str, *arguments: Any, threads: int = 1, blocks: int = 1, **more: Any) -> Kernel:
    return Kernel(SOURCE, entry, arguments, (blocks, 1, 1), (threads, 1, 1), **more)


def program(name: str, kernels: Mapping[str, Kernel], *arguments: Any) -> ProgramPlan:
    """A program of this module with the buffers that its kernels use, and a big one of the run."""
    buffers = (
        Buffer("out", "int32", 4096, zero=True, output=True),
        Buffer("reals", "float32", THREADS * BLOCKS, zero=True, output=True),
        Buffer("big", "uint8", BIG, per_run=True),
    )
    return ProgramPlan(kernels, buffers, f"{HERE}:{name}", arguments)


WAIT: Final = {"wait": kernel("wait", Variable("ns", "uint64"))}
EMPTY: Final = {"empty": kernel("empty", "out", Variable("step", "int32"))}
COUNT: Final = {"count": kernel("count", "out", Variable("step", "int32"))}
STRAY: Final = {**COUNT, "stray": kernel("stray", "out")}
FUSED: Final = {
    "fused": kernel("fused", "reals", np.int32(ROUNDS), threads=THREADS, blocks=BLOCKS),
    "count": kernel("count", "out", Variable("step", "int32"), threads=32),
}


def nested(n: int) -> dict[str, Kernel]:
    """A kernel that launches kernels."""
    entry = f"parent<{WIDTH}>"
    threads = -(-n // WIDTH)
    return {"parent": kernel(entry, "out", np.int32(n), threads=threads, device_launch=True)}


def waits(machine: Machine, times: int, ns: int) -> None:
    for _ in range(times):
        machine.launch("wait", ns=ns)


def launches(machine: Machine, times: int) -> None:
    for step in range(times):
        machine.launch("empty", step=step)


def asks(machine: Machine, times: int) -> None:
    """The host looks at a word after each launch, as a search does that stops when it is done."""
    for _ in range(times):
        machine.launch("count", step=1)
        seen = machine.download("out", 1)
    machine.keep("seen", seen)


def mixed(machine: Machine, seconds: float) -> None:
    """One of everything that has a phase."""
    machine.allocate("big")
    machine.clear("big")
    machine.upload("out", np.zeros(4096, np.int32))
    for step in range(3):
        machine.launch("count", step=step)
    with machine.phase("decide"):
        time.sleep(seconds)
    machine.keep("seen", machine.download("out", 1))
    machine.free("big")


def strays(machine: Machine) -> None:
    machine.launch("count", step=1)
    machine.launch("stray")
    machine.download("out", 1)


def once(machine: Machine) -> None:
    machine.launch("parent")


def fuses(machine: Machine, times: int) -> None:
    for _ in range(times):
        machine.launch("fused")
        machine.launch("count", step=1)


class Counting(Workload):
    """The answer is 32 n: n launches of 32 threads that each count one."""

    name = f"{HERE}:COUNTING"

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        return program("fuses", FUSED, factors["n"])

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        return int(outputs["out"][0])

    def expected(self, factors: Mapping[str, Level]) -> int | None:
        n = factors["n"]
        assert isinstance(n, int)
        return 32 * n

    def work(self, factors: Mapping[str, Level]) -> float:
        n = factors["n"]
        assert isinstance(n, int)
        return float(n)


COUNTING = Counting()


def point(n: int) -> Point:
    """A point of that workload."""
    return Point("programs", "sizes", COUNTING.name, None, {"n": n}, {}, "")
