"""Counting points resolved and made executable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, CpuPlan, KernelPlan
from nqbench.point import Level
from nqbench.workloads.counting import feasibility
from nqbench.workloads.counting.configuration import Configuration
from nqbench.workloads.counting.cpu import LEAST_SPLIT_N
from nqbench.workloads.counting.jobs import make_jobs
from nqbench.workloads.counting.launch import Geometry, fill_launch, geometry
from nqbench.workloads.counting.levels import (
    Levels,
    auto_depth,
    check_device,
    fill_levels,
    host_levels,
    system_levels,
)
from nqbench.workloads.counting.probe import probe_buffers

SOURCE: Final = Path(__file__).with_name("nqueens.cu")

_HOST_FUNCTIONS: Final = {
    "cpu.somers": ("counting.somers", "nqbench.workloads.counting.cpu:count_somers"),
    "cpu.multicore": ("counting.multicore", "nqbench.workloads.counting.cpu:count_multicore"),
}

_ABSENT: Final = np.uint64(0)
"""Null pointer, for an argument that the instance never reads."""


def settle(
    given: Mapping[str, Level], system: str | None, device: DeviceFacts
) -> tuple[Levels, Configuration, Geometry]:
    """Levels, configuration and grid of a kernel point, all limits checked."""
    check_device(system, device)
    levels = fill_levels(given, system)
    levels["depth"] = _depth(levels, system)
    jobs = feasibility.checked_jobs(Configuration.from_levels(levels))
    levels = fill_launch(levels, given, system_levels(system), jobs, device)
    config = Configuration.from_levels(levels)
    feasibility.check_rows(config)
    feasibility.check_block(config, device)
    grid = geometry(config, jobs, device)
    feasibility.check_grid(config, grid, device)
    return levels, config, grid


def _depth(levels: Levels, system: str | None) -> int:
    n, depth = levels["n"], levels["depth"]
    assert isinstance(n, int)
    if not isinstance(depth, int):
        encoding, symmetry = levels["encoding"], levels["symmetry"]
        depth = auto_depth(n, system, encoding, symmetry)  # type: ignore[arg-type]
    feasibility.check_depth(n, depth)
    return depth


def resolve_host(given: Mapping[str, Level], system: str) -> Levels:
    """Levels of a host program."""
    return host_levels(given, system)


def derived(config: Configuration, grid: Geometry) -> dict[str, int | float | str]:
    """Numbers that follow from a configuration; the names that `where` conditions may use."""
    return {
        "jobs": grid.jobs,
        "blocks": grid.blocks,
        "threads": grid.threads,
        "warps_per_block": -(-config.block_size // 32),
        "mean_jobs_per_thread": grid.jobs / grid.threads,
        "share": grid.share,
        "rows_reserved": config.rows_reserved,
        "words_per_thread": config.words_per_thread,
        "static_shared_bytes": config.static_shared_bytes,
        "dynamic_shared_bytes": config.dynamic_shared_bytes,
        "shared_bytes": config.shared_bytes,
        "scratch_bytes": config.scratch_bytes_per_block * grid.blocks,
        "job_bytes": grid.jobs * config.bytes_per_job,
        "device_bytes": feasibility.device_bytes(config, grid),
    }


def kernel_plan(given: Mapping[str, Level], system: str | None, device: DeviceFacts) -> KernelPlan:
    """Make the jobs and lay out buffers, arguments and grid."""
    _, config, grid = settle(given, system, device)
    jobs = make_jobs(config.n, config.depth, config.encoding, config.symmetry)
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
    words = feasibility.result_words(config, grid)
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
        about=derived(config, grid) | {"depth": config.depth, "probe": config.probe},
    )


def host_plan(given: Mapping[str, Level], system: str) -> CpuPlan:
    """A host program as a plan."""
    n = resolve_host(given, system)["n"]
    assert isinstance(n, int)
    name, function = _HOST_FUNCTIONS[system]
    return CpuPlan(name, function, (n,), (LEAST_SPLIT_N,), {"n": n})
