"""Counting points made executable."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, CpuPlan, Kernel, KernelPlan
from nqbench.point import FactorLevels
from nqbench.system.machine import timed
from nqbench.workloads.counting.configuration import Configuration, derived, result_words
from nqbench.workloads.counting.cpu import MIN_SPLIT_N
from nqbench.workloads.counting.jobs import counting_s, make_jobs, words_per_job
from nqbench.workloads.counting.probe import probe_buffers
from nqbench.workloads.counting.resolve import resolve_cpu, resolve_kernel
from nqbench.workloads.levels import number

SOURCE: Final = Path(__file__).with_name("nqueens.cu")
OPTIONS: Final = ("--std=c++20",)
"""Of the compiler: an object as a template argument is C++20."""

_MAKING_BLOCK: Final = 128
"""Threads per block of the kernel that makes the jobs: its ``kMakers`` warps."""
_WARP: Final = 32

_ABSENT: Final = np.uint64(0)
"""Null pointer, for an argument that the instance never reads."""

QUICK: Final[ContextVar[bool]] = ContextVar("quick", default=False)
"""Whether a launch is to be over soon, rather than timed: see ``border.few_starts``."""
FEW_ROWS: Final = 4
"""Rows of which there are thousands of placements."""

Words = NDArray[np.uint32]


Made = tuple[tuple[Buffer, ...], int, float, Kernel | None]
"""The buffer ``jobs``, what else fills it, and ``light_from`` and ``split_s`` of ``jobs.Jobs``."""


def _made_on_cpu(config: Configuration, some: Words | None, count: int) -> Made:
    n, depth, closed = config.n, config.depth, config.closed_jobs
    if some is None:
        jobs = make_jobs(n, depth, config.encoding, config.symmetry, closed)
        words, light_from, split_s = jobs.words, jobs.light_from, jobs.split_s
    else:
        from nqbench.workloads.counting import border

        words, light_from, split_s = border.jobs(n, depth, closed, some), count, 0.0
    assert words.size == count * words_per_job(config.encoding, depth)
    return (Buffer("jobs", str(words.dtype), words.size, data=words),), light_from, split_s, None


def _made_on_gpu(config: Configuration, some: Words | None, count: int) -> Made:
    from nqbench.workloads.counting import border

    n, depth, closed = config.n, config.depth, config.closed_jobs
    split_s = 0.0
    row = depth - border.EXPANDED_ROWS
    if some is None and QUICK.get() and 1 <= row <= FEW_ROWS:
        words, split_s = timed(lambda: border.few_starts(n, row))
    elif some is None:
        border.starts(7, 6)  # compile it before the clock starts
        (row, words), split_s = timed(lambda: border.starts(n, depth))
        split_s += counting_s(n, depth, closed)
    else:
        row, words = border.starts(n, depth, some)
    starts = words.size // border.WORDS
    kernel = Kernel(
        source=SOURCE,
        entry=f"make_jobs<{config.cuda('n', 'depth', 'loop', 'encoding', 'symmetry')}, {row}>",
        options=OPTIONS,
        arguments=("starts", np.uint32(starts), "jobs", "made"),
        grid=(-(-starts * _WARP // _MAKING_BLOCK), 1, 1),
        block=(_MAKING_BLOCK, 1, 1),
    )
    buffers = (
        Buffer("jobs", "uint32", words_per_job(config.encoding, depth) * count),
        Buffer("starts", "uint32", words.size, data=words),
        Buffer("made", "uint32", 1, zero=True),
    )
    return buffers, count, split_s, kernel


def kernel_plan(
    given: FactorLevels, system: str | None, device: DeviceFacts, some: Words | None = None
) -> KernelPlan:
    """Make the jobs, or what a GPU makes them from, and the plan of their kernel.

    ``some``: count only what is below these jobs of ``symmetry: full``, of at most ``depth`` rows;
    ``given`` then holds the depth, and nobody asks for the time that making jobs takes.
    """
    _, config, grid = resolve_kernel(given, system, device, some)
    make = _made_on_gpu if config.jobs_made == "gpu" else _made_on_cpu
    of_jobs, light_from, split_s, prepare = make(config, some, grid.jobs)
    buffers = [*of_jobs]
    scratch: Argument = _ABSENT
    counter: Argument = _ABSENT
    if config.memory == "global":
        scratch = "scratch"
        buffers.append(Buffer("scratch", "uint32", config.words_per_block * grid.blocks))
    if config.assignment in ("global_pool", "warp_pool"):
        counter = "counter"
        taken = grid.threads if config.assignment == "global_pool" else 0
        start = np.array([taken], np.uint32)
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
            np.uint32(grid.share or 1),
            np.uint32(light_from),
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
        options=OPTIONS,
        cache=config.cache,
        prepare=prepare,
        split_s=split_s,
        about=derived(config, grid)
        | {"depth": config.depth, "probe": config.probe, "symmetry": config.symmetry},
    )


def cpu_plan(given: FactorLevels, system: str) -> CpuPlan:
    """A CPU program as a plan."""
    n = number(resolve_cpu(given, system), "n")
    name = system.partition(".")[2]
    function = f"{__package__}.cpu:count_{name}"
    # Small boards take another path, which must be compiled as well.
    return CpuPlan(f"counting.{name}", function, (n,), (min(n, MIN_SPLIT_N),), {"n": n})
