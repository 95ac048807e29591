"""A workload of programs for tests: y = 1 + (0 + ... + n - 1) x by n launches, and its sum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nqbench.facts import DeviceFacts
from nqbench.multi_launch import ProgramContext
from nqbench.plan import (
    Buffer,
    CpuPlan,
    CpuResult,
    Kernel,
    MultiLaunchPlan,
    Outputs,
    Plan,
    Variable,
)
from nqbench.point import FactorLevels, Point
from nqbench.workloads import ExternalWorkload, register
from nqbench.workloads.base import Factor, Workload

NAME = "tests.measure.programs:PROGRAMS"
SOURCE = Path(__file__).parents[1] / "simulator" / "kernels" / "steps.cu"
LENGTH = 100


def steps(context: ProgramContext, count: int) -> None:
    """The program."""
    context.allocate("sum")
    context.clear("sum")
    for a in range(count):
        context.launch("scale", a=a)
    context.launch("add_up")
    context.keep("total", context.download("sum"))
    context.free("sum")


def on_the_host(x: NDArray[np.int32], count: int) -> CpuResult:
    """The same on the processor; it says where its time went."""
    y = 1 + sum(range(count)) * x
    phases = {"evaluation": 1.0, "total": 5.0}
    return CpuResult(int(y.sum()), phases, {"total": np.array([y.sum()])})


def tells_later() -> CpuResult:
    """It notes in ``calls`` that it is asked for its phases."""

    def phases() -> Mapping[str, float]:
        calls.append((0, np.zeros(0)))
        return {"evaluation": 0.3}

    return CpuResult(1, phases)


calls: list[tuple[int, NDArray[np.generic]]] = []


def recorded(number: int, values: NDArray[np.generic]) -> int:
    """Notes its arguments in ``calls``."""
    calls.append((number, values))
    return number


def _size(factors: FactorLevels) -> int:
    n = factors["n"]
    assert isinstance(n, int)
    return n


class Programs(Workload):
    """One system on a GPU, one on the processor, whose names do not tell."""

    name = NAME
    factors: Mapping[str, Factor] = {"n": Factor("n", "steps", number=(1, 1000))}
    systems: Mapping[str, FactorLevels] = {"sums.launched": {}, "sums.serial": {}}
    cpu_systems = frozenset({"sums.serial"})

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        n, x = _size(factors), np.arange(LENGTH, dtype=np.int32)
        if system in self.cpu_systems:
            return CpuPlan("on_the_host", "tests.measure.programs:on_the_host", (x, n))
        grid, block = (-(-LENGTH // 32), 1, 1), (32, 1, 1)
        scale = ("x", "y", np.int32(LENGTH), Variable("a", "int32"))
        return MultiLaunchPlan(
            {
                "scale": Kernel(SOURCE, "scale", scale, grid, block),
                "add_up": Kernel(SOURCE, "total", ("y", np.int32(LENGTH), "sum"), grid, block),
            },
            (
                Buffer("x", "int32", LENGTH, x),
                Buffer("y", "int32", LENGTH, np.ones(LENGTH), restore=True, output=True),
                Buffer("sum", "int64", 1, per_run=True),
            ),
            "steps",
            "tests.measure.programs:steps",
            (n,),
            about={"answer": self.expected(factors)},
        )

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        return int(outputs["total"][0])

    def expected(self, factors: FactorLevels) -> int:
        n = _size(factors)
        return LENGTH + n * (n - 1) // 2 * (LENGTH * (LENGTH - 1) // 2)

    def work(self, factors: FactorLevels) -> float:
        return float(LENGTH * _size(factors))


PROGRAMS = Programs()


def point(n: int, system: str = "sums.launched") -> Point:
    """One point of a study of these."""
    return Point("sums", "sizes", NAME, system, {"n": n})


register(ExternalWorkload("", str(SOURCE.parents[3]), NAME))
