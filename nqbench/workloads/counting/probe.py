"""Instrumented kernels: their buffers and their counters.

A probe counts inside the kernel (``probe.cuh``). Its numbers are exact: iterations and accesses
follow from the jobs alone; divergence follows from which lanes the hardware runs in step; clocks
are measured, with the instrumentation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import Argument, Buffer, KernelPlan, Outputs

UNPROBED: Final = "none"
WARP: Final = 32
JOBS: Final = "probe_jobs"
GROUPS: Final = "probe_groups"
_NULL: Final = np.uint64(0)

_STATISTICS: Final = ("min", "max", "mean", "variance", "sd")

COUNTERS: Final = dict(
    line.split(": ")
    for line in Path(__file__).with_name("counters.txt").read_text(encoding="utf-8").splitlines()
)
"""What an instrumented kernel counts (factor ``probe``). A profiler would also count the
instrumentation, so such a point has neither a time nor counters of the device."""

Numbers = NDArray[np.uint64]
Counters = dict[str, int | float]


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe's type in ``probe.cuh``, and the 64-bit words it leaves per job, thread and warp."""

    struct: str
    per_job: int = 0
    per_thread: int = 0
    per_warp: int = 0


PROBES: Final[Mapping[str, Probe]] = MappingProxyType(
    {
        "iterations": Probe("IterationProbe", per_job=1, per_thread=1),
        "clocks": Probe("ClockProbe", per_job=1, per_thread=1),
        "divergence": Probe("DivergenceProbe", per_warp=3),
        "accesses": Probe("AccessProbe", per_warp=2),
    }
)


def probe_buffers(
    level: str, jobs: int, blocks: int, block_size: int
) -> tuple[tuple[Buffer, ...], tuple[Argument, ...]]:
    """Output buffers of a probe, and the kernel's arguments for them (none without a probe)."""
    if level == UNPROBED:
        return (), ()
    probe = PROBES[level]
    warps = blocks * -(-block_size // WARP)
    lengths = {
        JOBS: probe.per_job * jobs,
        GROUPS: probe.per_thread * blocks * block_size + probe.per_warp * warps,
    }
    buffers = tuple(
        Buffer(name, "uint64", length, zero=True, output=True)
        for name, length in lengths.items()
        if length
    )
    return buffers, tuple(name if length else _NULL for name, length in lengths.items())


def summarise(plan: KernelPlan, outputs: Outputs) -> Counters:
    """Counters of one launch, by the names of ``COUNTERS``.

    ``outputs`` are the buffers of :func:`probe_buffers` after it. Empty for a plan without a probe.
    """
    level = plan.about.get("probe", UNPROBED)
    if level == UNPROBED:
        return {}
    groups = outputs[GROUPS]
    if level == "divergence":
        return divergence(groups.reshape(-1, 3))
    if level == "accesses":
        loads, stores = (int(total) for total in groups.reshape(-1, 2).sum(axis=0))
        return {
            "workspace_loads": loads,
            "workspace_stores": stores,
            "workspace_accesses": loads + stores,
        }
    what = {"iterations": "iterations", "clocks": "cycles"}[str(level)]
    jobs = outputs[JOBS]
    busy = groups[groups > 0]
    return {
        "probed_jobs": jobs.size,
        "probed_threads": busy.size,
        f"{what}_total": int(jobs.sum()),
        **statistics(f"{what}_per_job", jobs),
        **statistics(f"{what}_per_thread", busy),
        **utilization(groups, plan.block[0]),
    }


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of some numbers (at least one), over all of them and not of a sample."""

    count: int
    min: int
    max: int
    total: int
    mean: float
    variance: float

    @property
    def sd(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.variance)

    @classmethod
    def of(cls, values: NDArray[Any]) -> Spread:
        """The statistics of some numbers."""
        least, most, total = int(values.min()), int(values.max()), int(values.sum())
        return cls(values.size, least, most, total, float(values.mean()), float(values.var()))


def statistics(name: str, values: NDArray[Any]) -> Counters:
    """Least, most, mean, variance and standard deviation, over all of ``values`` (not empty)."""
    spread = Spread.of(values)
    return {f"{name}_{what}": getattr(spread, what) for what in _STATISTICS}


def utilization(threads: Numbers, block_size: int) -> Counters:
    """Warp utilization, zhang2011 equation 1, of the work of each thread, shape ``(threads,)``.

    ``warp_utilization`` sums over all warps before it divides, as the equation does; the least, the
    most and the mean are of the warps' own quotients. A thread without a job counts as idle; a warp
    without any is left out.
    """
    warps = -(-block_size // WARP)
    padded = np.zeros((threads.size // block_size, warps * WARP), np.float64)
    padded[:, :block_size] = threads.reshape(-1, block_size)
    lanes = np.full(warps, WARP)
    lanes[-1] = block_size - (warps - 1) * WARP  # the last warp of a block may be short
    work = padded.reshape(-1, WARP)
    longest = work.max(axis=1)
    busy = longest > 0
    done = work.sum(axis=1)[busy]
    possible = (longest * np.tile(lanes, work.shape[0] // warps))[busy]
    share = done / possible
    return {
        "probed_warps": int(busy.sum()),
        "warp_utilization": float(done.sum() / possible.sum()),
        "warp_utilization_min": float(share.min()),
        "warp_utilization_max": float(share.max()),
        "warp_utilization_mean": float(share.mean()),
    }


def divergence(warps: Numbers) -> Counters:
    """Counters of the place-or-retreat branch; a row per warp: passes, split ones, lanes."""
    passes, split, lanes = (int(total) for total in warps.sum(axis=0))
    return {
        "probed_warps": int((warps[:, 0] > 0).sum()),
        "warp_iterations": passes,
        "split_iterations": split,
        "split_iteration_share": split / passes,
        "active_lanes_mean": lanes / passes,
    }
