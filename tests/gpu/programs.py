"""Programs for the tests on a real GPU, and a workload of one of them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.facts import DeviceFacts
from nqbench.multi_launch import ProgramContext
from nqbench.plan import Buffer, Kernel, MultiLaunchPlan, Outputs, Plan, Variable
from nqbench.point import Level, Point
from nqbench.workloads import ExternalWorkload, register
from nqbench.workloads.base import Workload

SOURCE: Final = Path(__file__).with_name("programs.cu")
HERE: Final = "tests.gpu.programs"
BIG: Final = 64 << 20
"""Bytes: allocating and freeing that much takes a time that the clock shows."""
WIDTH: Final = 64
THREADS, BLOCKS, ROUNDS = 256, 264, 1000


def kernel(entry: str, *arguments: Any, threads: int = 1, blocks: int = 1, **more: Any) -> Kernel:
    return Kernel(SOURCE, entry, arguments, (blocks, 1, 1), (threads, 1, 1), **more)


def program(name: str, kernels: Mapping[str, Kernel], *arguments: Any) -> MultiLaunchPlan:
    """A program of this module with the buffers that its kernels use, and a big one of the run."""
    buffers = (
        Buffer("out", "int32", 4096, zero=True, output=True),
        Buffer("reals", "float32", THREADS * BLOCKS, zero=True, output=True),
        Buffer("big", "uint8", BIG, per_run=True),
    )
    return MultiLaunchPlan(kernels, buffers, name, f"{HERE}:{name}", arguments)


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


def waits(context: ProgramContext, times: int, ns: int) -> None:
    for _ in range(times):
        context.launch("wait", ns=ns)


def launches(context: ProgramContext, times: int) -> None:
    for step in range(times):
        context.launch("empty", step=step)


def asks(context: ProgramContext, times: int) -> None:
    """The host looks at a word after each launch, as a search does that stops when it is done."""
    for _ in range(times):
        context.launch("count", step=1)
        seen = context.download("out", 1)
    context.keep("seen", seen)


def mixed(context: ProgramContext, seconds: float) -> None:
    """One of everything that has a phase."""
    context.allocate("big")
    context.clear("big")
    context.upload("out", np.zeros(4096, np.int32))
    for step in range(3):
        context.launch("count", step=step)
    with context.phase("decide"):
        time.sleep(seconds)
    context.keep("seen", context.download("out", 1))
    context.free("big")


def strays(context: ProgramContext) -> None:
    context.launch("count", step=1)
    context.launch("stray")
    context.download("out", 1)


def once(context: ProgramContext) -> None:
    context.launch("parent")


def fuses(context: ProgramContext, times: int) -> None:
    for _ in range(times):
        context.launch("fused")
        context.launch("count", step=1)


LOST: Final = """
import os
from nqbench.devices.cuda.device import CudaDevice
from nqbench.errors import LaunchError, LaunchTimeout
from tests.gpu.programs import STRAY, WAIT, program

device = CudaDevice(0)
prepared = device.prepare({what})
try:
    prepared.launch({timeout_s})
except (LaunchError, LaunchTimeout) as error:
    print(type(error).__name__, error.fatal, error, flush=True)
prepared.close()
device.close()
os._exit(0)
"""


def lost(what: str, timeout_s: float | None) -> str:
    """What is said of a launch of the plan ``what``, a Python expression, that spoils its process;
    it runs in one of its own."""
    code = LOST.replace("{what}", what).replace("{timeout_s}", str(timeout_s))
    command, root = [sys.executable, "-c", code], SOURCE.parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Counting(Workload):
    """The answer is 32 n: n launches of 32 threads that each count one."""

    name = f"{HERE}:COUNTING"

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        return program("fuses", FUSED, factors["n"])

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        return int(outputs["out"][0])

    def expected(self, factors: Mapping[str, Level]) -> int | None:
        return 32 * int(str(factors["n"]))


COUNTING = Counting()


def point(n: int) -> Point:
    """A point of that workload, which workers may load."""
    register(ExternalWorkload("programs.yaml", str(Path(__file__).parents[2]), COUNTING.name))
    return Point("programs", "sizes", COUNTING.name, None, {"n": n}, {}, "")
