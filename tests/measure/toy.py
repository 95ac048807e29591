"""A tiny workload for tests: sizes 1 to 40, answer 2**n, quick to import in a worker."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from nqbench.facts import DeviceFacts
from nqbench.plan import Buffer, CpuPlan, KernelPlan, Outputs, Plan
from nqbench.point import FactorLevels, Level, Point
from nqbench.workloads import ExternalWorkload, register
from nqbench.workloads.base import Factor, Resolved, Workload

NAME = "tests.measure.toy:TOY"
STARTED = "NQBENCH_TEST_STARTED"
"""The variable with the file by which a call says that it has begun."""


def power(n: int) -> int:
    """The host plan."""
    return int(2**n)


def nap(n: int) -> int:
    """A host plan that takes n milliseconds."""
    time.sleep(n / 1000)
    return power(n)


def chatty(n: int) -> int:
    """A host plan that prints where the protocol would be, in Python and below it."""
    print("printed by a library")  # noqa: T201 (the point of it)
    os.write(1, b"written below Python\n")
    return power(n)


def waits(n: int) -> int:
    """A host plan that says that it has begun, and never ends."""
    Path(os.environ[STARTED]).touch()
    while True:
        time.sleep(1)


def fails(n: int) -> int:
    """A host plan with a mistake in it."""
    raise ZeroDivisionError("a mistake in the host plan")


class Toy(Workload):
    """Two raised to n."""

    name = NAME
    factors: Mapping[str, Factor] = {"flavour": Factor("flavour", "none", ("plain", "salted"))}
    systems: Mapping[str, FactorLevels] = {
        f"cpu.{name}": {} for name in ("power", "nap", "chatty", "waits", "fails")
    }
    cpu_systems: frozenset[str] = frozenset(systems)

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        return Resolved(dict(given), {"jobs": 1})

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        n = factors["n"]
        assert isinstance(n, int)
        if system is not None:
            return CpuPlan(system, f"tests.measure.toy:{system.partition('.')[2]}", (n,))
        return KernelPlan(
            source=Path("toy.cu"),
            entry=f"toy<{n}, {factors.get('flavour', 'plain')}>",
            arguments=("out",),
            buffers=(Buffer("out", "uint64", 1, output=True),),
            grid=(1, 1, 1),
            block=(32, 1, 1),
            split_s=0.001,
            about={"n": n, "answer": 2**n},
        )

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        return int(outputs["answer"][0])

    def expected(self, factors: FactorLevels) -> int | None:
        n = factors["n"]
        assert isinstance(n, int)
        return int(2**n)

    def work(self, factors: FactorLevels) -> float:
        n = factors["n"]
        assert isinstance(n, int)
        return float(4**n)


class Slow(Toy):
    """Takes forever to make the plan of size 13, for limits of time."""

    name = "tests.measure.toy:SLOW"

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        if factors["n"] == 13:
            time.sleep(600)
        return super().plan(factors, system, device)


TOY, SLOW = Toy(), Slow()
ROOT = str(Path(__file__).parents[2])
for name in (NAME, Slow.name):
    register(ExternalWorkload("", ROOT, name))


def slow_point(n: int) -> Point:
    """One point of the slow workload."""
    return Point("toy", "sizes", Slow.name, None, {"n": n}, {"jobs": 1})


def point(n: int, *, system: str | None = None, skip: str = "", **factors: Level) -> Point:
    """One point of the toy study."""
    return Point("toy", "sizes", NAME, system, {"n": n, **factors}, {"jobs": 1}, skip)
