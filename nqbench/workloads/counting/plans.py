"""Counting points made executable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, CpuPlan, KernelPlan
from nqbench.point import Level
from nqbench.workloads.counting.configuration import result_words
from nqbench.workloads.counting.cpu import MIN_SPLIT_N
from nqbench.workloads.counting.jobs import Jobs, make_jobs
from nqbench.workloads.counting.probe import probe_buffers
from nqbench.workloads.counting.resolve import derived, resolve_cpu, resolve_kernel
from nqbench.workloads.levels import number

SOURCE: Final = Path(__file__).with_name("nqueens.cu")

_CPU_FUNCTIONS: Final = {
    "cpu.somers": ("counting.somers", "nqbench.workloads.counting.cpu:count_somers"),
    "cpu.multicore": ("counting.multicore", "nqbench.workloads.counting.cpu:count_multicore"),
    "cpu.frontier": ("counting.frontier", "nqbench.workloads.counting.cpu:count_frontier"),
    "cpu.frontier_multicore": (
        "counting.frontier_multicore",
        "nqbench.workloads.counting.cpu:count_frontier_multicore",
    ),
}

_ABSENT: Final = np.uint64(0)
"""Null pointer, for an argument that the instance never reads."""


def kernel_plan(
    given: Mapping[str, Level],
    system: str | None,
    device: DeviceFacts,
    some: NDArray[np.uint32] | None = None,
) -> KernelPlan:
    """Make the jobs and the plan of their kernel: buffers, arguments, grid.

    ``some``: jobs of ``symmetry: full`` (``border.jobs_below``) instead of all of the board.
    """
    count = None if some is None else some.size // 3
    _, config, grid = resolve_kernel(given, system, device, count)
    if some is None:
        jobs = make_jobs(config.n, config.depth, config.encoding, config.symmetry)
    else:
        jobs = Jobs(some, grid.jobs, grid.jobs, 0.0)
    assert jobs.count == grid.jobs

    buffers = [Buffer("jobs", str(jobs.words.dtype), jobs.words.size, data=jobs.words)]
    scratch: Argument = _ABSENT
    counter: Argument = _ABSENT
    if config.memory == "global":
        scratch = "scratch"
        buffers.append(Buffer("scratch", "uint32", config.words_per_block * grid.blocks))
    if config.assignment == "global_pool":
        counter = "counter"
        start = np.array([grid.threads], np.uint32)
        buffers.append(Buffer("counter", "uint32", 1, data=start, restore=True))
    total = config.loop == "place_first"
    words = result_words(config, grid)
    buffers.append(Buffer("results", "uint64", words, zero=total, output=True))
    probes, probe_arguments = probe_buffers(config.probe, grid.jobs, grid.blocks, config.block_size)
    return KernelPlan(
        source=SOURCE,
        entry=config.entry,
        arguments=(
            "jobs",
            np.uint32(grid.jobs),
            np.uint32(grid.share),
            np.uint32(jobs.light_from),
            scratch,
            counter,
            "results",
            *probe_arguments,
        ),
        buffers=(*buffers, *probes),
        grid=(grid.blocks, 1, 1),
        block=(config.block_size, 1, 1),
        shared_bytes=config.dynamic_shared_bytes,
        static_shared_bytes=config.static_shared_bytes,
        cache=config.cache,
        split_s=jobs.split_s,
        about=derived(config, grid)
        | {"depth": config.depth, "probe": config.probe, "symmetry": config.symmetry},
    )


def cpu_plan(given: Mapping[str, Level], system: str) -> CpuPlan:
    """A CPU program as a plan."""
    n = number(resolve_cpu(given, system), "n")
    name, function = _CPU_FUNCTIONS[system]
    # Small boards take another path, which must be compiled as well.
    return CpuPlan(name, function, (n,), (min(n, MIN_SPLIT_N),), {"n": n})
