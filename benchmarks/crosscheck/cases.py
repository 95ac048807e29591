"""The kernels that both tools time, as plans, and how to tell that they ran rightly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.facts import DeviceFacts
from nqbench.plan import Buffer, KernelPlan, Outputs
from nqbench.workloads import get

SPIN_SOURCE: Final = Path(__file__).parents[1] / "spin.cu"
SPINS_US: Final = (50, 100, 200, 1_000, 10_000, 100_000, 1_000_000)
COUNTING: Final = (
    *(("zhang2011.low_divergence", n) for n in (13, 14, 15, 16, 17, 18)),
    ("zhang2011.pool_monolithic", 16),  # its counter is renewed before every launch
    ("tanaka2011.both", 15),  # its result is cleared before every launch
    ("feinbube2010.opt4_compact", 16),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel by name: ``spin_50us``, or ``SYSTEM_nN`` of the counting workload."""

    name: str
    system: str = ""
    n: int = 0
    spin_us: int = 0


CASES: Final = {
    case.name: case
    for case in (
        *(Case(f"spin_{us}us", spin_us=us) for us in SPINS_US),
        *(Case(f"{system}_n{n}", system, n) for system, n in COUNTING),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A case on a GPU. ``right`` judges the outputs of the latest launch."""

    case: Case
    plan: KernelPlan
    right: Callable[[Outputs], bool]


def make_job(case: Case, facts: DeviceFacts) -> Job:
    """The plan of a case for a GPU with these facts."""
    if case.spin_us:
        return _spin(case)
    workload = get("counting")
    found = workload.resolve({"n": case.n}, case.system, facts)
    plan = workload.plan(found.factors, case.system, facts)
    assert isinstance(plan, KernelPlan)
    expected = workload.expected(found.factors)
    return Job(case, plan, lambda outputs: workload.answer(plan, outputs) == expected)


def _spin(case: Case) -> Job:
    plan = KernelPlan(
        source=SPIN_SOURCE,
        entry="spin",
        arguments=(np.uint64(case.spin_us * 1000), "launches"),
        buffers=(Buffer("launches", "uint64", 1, zero=True, output=True),),
        grid=(1, 1, 1),
        block=(1, 1, 1),
    )
    return Job(case, plan, lambda outputs: int(outputs["launches"][0]) == 1)
