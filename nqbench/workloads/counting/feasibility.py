"""Limits: what a configuration may take, checked before anything is compiled or allocated."""

from __future__ import annotations

from typing import Final

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.workloads.counting.configuration import Configuration
from nqbench.workloads.counting.jobs import count_jobs
from nqbench.workloads.counting.launch import Geometry
from nqbench.workloads.counting.probe import probe_words

MAX_JOB_BYTES: Final = 4 * 2**30
"""Host memory for the jobs of one point. It also keeps every word index of a job below 2^30, so
that the kernels index with 32 bits."""

MAX_THREADS: Final = 2**30
"""Threads of a grid: thread and job numbers, and their sums, stay below 2^32 on the device."""

_TOTAL: Final = 8
_INT31: Final = 2**31 - 1


def check_depth(n: int, depth: int) -> None:
    """Rows placed on the host must leave at least three to search."""
    if not 2 <= depth <= n - 3:
        raise InfeasibleError(
            f"depth: {depth} is outside 2 to N-3 = {n - 3} at n: {n}; choose a depth in that range"
            " or auto",
            "depth",
        )


def check_rows(config: Configuration) -> None:
    """`rows: max` must hold the board."""
    if config.max_board is not None and config.max_board < config.n:
        raise InfeasibleError(
            f"max_board: {config.max_board} is less than n: {config.n}; raise max_board to at least"
            " n, or use rows: remaining",
            "max_board",
        )


def check_block(config: Configuration, device: DeviceFacts) -> None:
    """Threads and shared memory of one block against the device's limits."""
    if config.block_size > device.max_threads_per_block:
        raise InfeasibleError(
            f"block_size: {config.block_size} is over the {device.max_threads_per_block} threads"
            f" per block of {device.name}; choose at most {device.max_threads_per_block}",
            "block_size",
        )
    for kind, taken, limit in (
        ("static shared memory", config.static_shared_bytes, device.shared_per_block),
        ("shared memory", config.shared_bytes, device.shared_per_block_optin),
    ):
        if taken > limit:
            fits = config.block_size * limit // taken
            advice = f"a block_size of at most {fits}" if fits else "another memory"
            raise InfeasibleError(
                f"{taken} bytes of {kind} per block ({config.words_per_thread} words for each of"
                f" {config.block_size} threads) are over the limit of {limit} on {device.name}; try"
                f" {advice}, or rows: remaining",
                "block_size",
            )


def checked_jobs(config: Configuration) -> int:
    """Number of jobs, refused where they cannot be numbered or stored."""
    n, depth = config.n, config.depth
    if config.encoding == "base_n" and n**depth > _INT31:
        raise InfeasibleError(
            f"encoding: base_n at n: {n}, depth: {depth} needs numbers up to {n}^{depth} ="
            f" {n**depth}, over the 31 bits of an int; use a smaller depth or encoding: masks",
            "depth",
        )
    limit = MAX_JOB_BYTES // config.bytes_per_job
    jobs = count_jobs(n, depth, config.symmetry, config.odd_rule, limit)
    if jobs > limit:
        raise InfeasibleError(
            f"depth: {depth} at n: {n} gives more than {limit} jobs of {config.bytes_per_job}"
            f" bytes, over the limit of {MAX_JOB_BYTES} bytes for one point; use a smaller depth",
            "depth",
        )
    return jobs


def check_grid(config: Configuration, grid: Geometry, device: DeviceFacts) -> None:
    """Grid and device memory."""
    if grid.blocks > device.max_grid_x or grid.threads > MAX_THREADS:
        limit = min(device.max_grid_x, MAX_THREADS // config.block_size)
        raise InfeasibleError(
            f"{grid.blocks} blocks of {config.block_size} threads are over the limit of {limit}"
            f" blocks on {device.name}; use fewer blocks, a larger pool_size or a smaller depth",
            "blocks",
        )
    taken = device_bytes(config, grid)
    if device.memory_bytes and taken > device.memory_bytes:
        raise InfeasibleError(
            f"{grid.jobs} jobs and the work space of {grid.blocks} blocks take {taken} bytes, over"
            f" the {device.memory_bytes} bytes of {device.name}; use a smaller depth"
            + (" or memory: shared" if config.memory == "global" else ""),
            "depth",
        )


def result_words(config: Configuration, grid: Geometry) -> int:
    """64-bit results a launch leaves behind."""
    if config.loop == "somers":
        return grid.jobs if config.assignment == "one_per_thread" else grid.threads
    return 1 if config.loop == "place_first" else grid.blocks


def device_bytes(config: Configuration, grid: Geometry) -> int:
    """Device memory of jobs, work space, results and a probe's numbers."""
    scratch = config.scratch_bytes_per_block * grid.blocks
    words = result_words(config, grid)
    words += probe_words(config.probe, grid.jobs, grid.blocks, config.block_size)
    return grid.jobs * config.bytes_per_job + scratch + _TOTAL * words
