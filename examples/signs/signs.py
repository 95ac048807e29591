"""In how many ways do signs make 1, 2, ..., n add up to zero? (OEIS A063865)"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import Buffer, KernelPlan, Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.base import Factor, Resolved, Workload
from nqbench.workloads.levels import number


class Signs(Workload):
    """See ``nqbench.workloads.base.Workload`` for what each member means."""

    name: str = "signs"
    factors: Mapping[str, Factor] = {
        factor.name: factor
        for factor in (
            Factor("n", "numbers to be given signs", number=(1, 31)),
            Factor("bound", "when a branch is given up", ("none", "sum")),
            Factor("depth", "signs fixed by the thread's number", number=(1, 24), launch=True),
            Factor("block_size", "threads per block", number=(1, 1024), launch=True),
        )
    }
    defaults: Mapping[str, Level] = {"depth": 10, "block_size": 128, "bound": "none"}
    systems: Mapping[str, Mapping[str, Level]] = {"signs.bounded": {"bound": "sum"}}
    core_work_per_s: float = 1e9  # of its work: sums of signs

    def resolve(
        self, given: Mapping[str, Level], system: str | None, device: DeviceFacts
    ) -> Resolved:
        """Levels given, else those of the system, else the defaults; and whether they can run."""
        if device.kind == "cpu":
            raise WrongDeviceError("signs is a GPU kernel; use --device sim or cuda:0")
        levels = super().resolve(given, system, device).factors
        n, depth, block_size = (number(levels, name) for name in ("n", "depth", "block_size"))
        if depth > n:
            raise InfeasibleError(f"depth: {depth} is more than n: {n}", "depth")
        if block_size > device.max_threads_per_block:
            limit = device.max_threads_per_block
            raise InfeasibleError(f"block_size: {block_size} is over {limit}", "block_size")
        return Resolved(levels, {"jobs": 2**depth, "blocks": -(-(2**depth) // block_size)})

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        """One thread for each choice of the first signs, one count for each thread."""
        derived = self.resolve(factors, system, device).derived
        jobs, blocks = int(derived["jobs"]), int(derived["blocks"])
        n, depth = np.int32(number(factors, "n")), np.int32(number(factors, "depth"))
        return KernelPlan(
            source=Path(__file__).with_name("signs.cu"),
            entry=f"signs<{'true' if factors['bound'] == 'sum' else 'false'}>",
            arguments=(n, depth, "counts"),
            buffers=(Buffer("counts", "uint64", jobs, output=True),),
            grid=(blocks, 1, 1),
            block=(number(factors, "block_size"), 1, 1),
            about=derived,
        )

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """The sum over the threads."""
        del plan
        return int(np.sum(outputs["counts"], dtype=np.uint64))

    def expected(self, factors: Mapping[str, Level]) -> int:
        """Counted another way than the kernel does: how often each sum occurs, number by number."""
        ways = {0: 1}
        for k in range(1, number(factors, "n") + 1):
            grown: dict[int, int] = {}
            for total, count in ways.items():
                for new in (total + k, total - k):
                    grown[new] = grown.get(new, 0) + count
            ways = grown
        return ways.get(0, 0)

    def work(self, factors: Mapping[str, Level]) -> float:
        """Leaves of the search tree."""
        return float(2 ** number(factors, "n"))


WORKLOAD: Final = Signs()
