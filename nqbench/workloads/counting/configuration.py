"""One kernel configuration: the numbers that follow from it, and the limits it must meet.

The word counts repeat what ``frame.cuh`` computes at compile time; tests compare them with the
shared memory that the compiler reports. Limits are checked before anything is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.plan import CachePreference
from nqbench.point import FactorLevels, Level
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.counting import factors
from nqbench.workloads.counting import jobs as jobs_of
from nqbench.workloads.counting.jobs import Encoding, Symmetry
from nqbench.workloads.counting.probe import PROBES, UNPROBED, probe_buffers
from nqbench.workloads.levels import check_block

WORD: Final = 4
_TOTAL: Final = 8
_QUANTITIES: Final = 4
_WARP: Final = 32
_DISTANCE_WORDS: Final = 64

MIN_DEPTH: Final = 2

MAX_JOB_BYTES: Final = 4 * 2**30
"""Memory for the jobs of one point, wherever they are made. It also keeps every word index of a job
below 2^30, so the kernels index with 32 bits."""

MAX_THREADS: Final = 2**30
"""Threads of a grid: thread and job numbers, and their sums, stay below 2^32 on the device."""

_INT31: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Configuration:
    """Resolved factors with their types. What does not apply is ``None``."""

    n: int
    depth: int
    memory: str
    rows: str
    allocation: str | None
    storage: str | None
    layout: str | None
    loop: str
    assignment: str
    encoding: Encoding
    cache: CachePreference
    symmetry: Symmetry
    block_size: int
    blocks: Level
    pool_size: int | None
    jobs_per_thread: int | None
    max_board: int | None
    probe: str
    jobs_made: str
    adders: str | None
    steps: int | None
    lookahead: int | None

    @classmethod
    def from_levels(cls, levels: FactorLevels) -> Configuration:
        """Typed view of complete levels without ``auto``."""
        values: dict[str, Any] = {
            field.name: None if levels[field.name] == NOT_APPLICABLE else levels[field.name]
            for field in fields(cls)
        }
        return cls(**values)

    @property
    def rows_reserved(self) -> int:
        """Board rows that a thread's arrays hold."""
        if self.rows == "max":
            return self.max_board or factors.MAX_BOARD
        return self.n if self.rows == "n" else self.n - self.depth

    @property
    def stack_extra(self) -> int:
        """Words by which the stack exceeds the masks in feinbube2010, Listings 4 to 6."""
        listed = self.loop == "somers" and self.rows == "max"
        return 2 if listed and self.storage not in ("chunk", "struct", "vector") else 0

    @property
    def words_per_block(self) -> int:
        """32-bit words of shared or global work space per block (0 for local memory)."""
        if self.memory == "local":
            return 0
        arrays = self.storage == "arrays"
        own = self.rows_reserved * (1 if arrays else _QUANTITIES)
        section = (own | 1 if self.layout == "padded" else own) * self.block_size
        sections = _QUANTITIES if arrays and self.memory != "shared_stack" else 1
        return sections * section + self.stack_extra * self.block_size

    @property
    def words_per_thread(self) -> int:
        """32-bit words of work space of one thread in any memory, padding included."""
        rows = self.rows_reserved
        local_rows = {"local": _QUANTITIES, "shared_stack": _QUANTITIES - 1}.get(self.memory, 0)
        local = local_rows * rows + (self.stack_extra if self.memory == "local" else 0)
        return local + self.words_per_block // self.block_size

    @property
    def static_shared_bytes(self) -> int:
        """Shared memory that the kernel declares: work space, pool index, sums of the warps."""
        words = self.words_per_block if self.allocation == "static" else 0
        words += self.assignment == "block_pool"
        if self.loop == "unrolled":  # solutions to be weighed, and a table of the distances
            words += (2 * (self.steps or 0) + 2) // 3 * self.block_size + _DISTANCE_WORDS
        warps = -(-self.block_size // _WARP)
        if self.loop not in ("somers", "place_first") and warps > 1:
            return -(-words * WORD // _TOTAL) * _TOTAL + warps * _TOTAL
        return words * WORD

    @property
    def dynamic_shared_bytes(self) -> int:
        """Shared memory asked for at launch."""
        return self.words_per_block * WORD if self.allocation == "dynamic" else 0

    @property
    def shared_bytes(self) -> int:
        """Shared memory per block, static and dynamic."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def scratch_bytes_per_block(self) -> int:
        """Global work space per block."""
        return self.words_per_block * WORD if self.memory == "global" else 0

    @property
    def closed_jobs(self) -> bool:
        """Whether the jobs have rows enough that the border columns never close below them."""
        return factors.takes_closed_jobs(self.loop)

    @property
    def bytes_per_job(self) -> int:
        """Size of one encoded job."""
        return WORD * jobs_of.words_per_job(self.encoding, self.depth)

    @property
    def entry(self) -> str:
        """Name expression of the kernel instance."""
        config = self.cuda(*factors.CONFIG_FIELDS)
        if self.probe == UNPROBED:
            return f"nqueens<{config}>"
        return f"nqueens_probed<{config}, {PROBES[self.probe].struct}>"

    def cuda(self, *names: str) -> str:
        """A ``Config`` (``config.cuh``) with these factors, in its order, where they apply."""
        given = []
        for name in names:
            level = getattr(self, name)
            if level is None:
                continue
            if isinstance(level, str):
                level = f"{name.capitalize()}::{factors.RESERVED_WORDS.get(level, level)}"
            given.append(f".{name} = {level}")
        return f"Config{{{', '.join(given)}}}"


@dataclass(frozen=True, slots=True)
class Geometry:
    """Grid of a launch. ``share``: jobs per thread (static shares) or per pool, else 0."""

    jobs: int
    blocks: int
    threads: int
    share: int


def check_depth(n: int, depth: int) -> None:
    """Rows placed before the search must leave at least three to it."""
    if not MIN_DEPTH <= depth <= n - 3:
        raise InfeasibleError(
            f"depth: {depth} is outside 2 to N-3 = {n - 3} at n: {n}; choose a depth in that range"
            " or auto",
            "depth",
        )


def checked_jobs(config: Configuration) -> int:
    """Number of jobs. Raises ``InfeasibleError`` if they cannot be numbered or stored."""
    n, depth = config.n, config.depth
    if config.encoding == "base_n" and n**depth > _INT31:
        raise InfeasibleError(
            f"encoding: base_n at n: {n}, depth: {depth} needs numbers up to {n}^{depth} ="
            f" {n**depth}, over the 31 bits of an int; use a smaller depth or encoding: masks",
            "depth",
        )
    limit = MAX_JOB_BYTES // config.bytes_per_job

    def count(rows: int) -> int:
        rule = jobs_of.ODD_RULES[config.encoding]
        return jobs_of.count_jobs(n, rows, config.symmetry, rule, limit, config.closed_jobs)

    jobs = count(depth)
    if jobs > limit:
        advice = "use a smaller depth"
        if config.closed_jobs and count(MIN_DEPTH) > limit:
            advice = f"loop: unrolled has more at any depth; nqbench count {n} takes them in chunks"
        raise InfeasibleError(
            f"depth: {depth} at n: {n} gives more than {limit} jobs of {config.bytes_per_job}"
            f" bytes, over the limit of {MAX_JOB_BYTES} bytes for one point; {advice}",
            "depth",
        )
    return jobs


def checked_grid(config: Configuration, jobs: int, device: DeviceFacts) -> Geometry:
    """The grid for a number of jobs, by the level of ``blocks`` on this device.

    Raises ``InfeasibleError`` if rows, a block, the grid or the memory are beyond a limit.
    """
    _check_block(config, device)
    size = config.block_size
    if config.assignment == "block_pool":
        assert config.pool_size is not None
        share = config.pool_size
        blocks = -(-jobs // share)
    else:
        share = config.jobs_per_thread or 1
        needed = -(-jobs // (size * share))
        level = config.blocks
        if isinstance(level, int):
            blocks = level
        elif isinstance(level, Mapping):
            blocks = min(level["per_sm"] * device.multiprocessors, needed)
        else:
            blocks = jobs // size + 1 if level == "from_jobs_plus_one" else needed
        share = -(-jobs // (blocks * size)) if config.assignment == "contiguous" else 0
    grid = Geometry(jobs, blocks, blocks * size, share)
    _check_grid(config, grid, device)
    return grid


def _check_block(config: Configuration, device: DeviceFacts) -> None:
    """The rows reserved, and threads and shared memory of one block, against their limits."""
    if config.max_board is not None and config.max_board < config.n:
        raise InfeasibleError(
            f"max_board: {config.max_board} is less than n: {config.n}; raise max_board to at least"
            " n, or use rows: remaining",
            "max_board",
        )
    check_block({"block_size": config.block_size}, device)
    for kind, taken, limit in (
        ("static shared memory", config.static_shared_bytes, device.shared_per_block),
        ("shared memory", config.shared_bytes, device.shared_per_block_optin),
    ):
        if taken > limit:
            step = _WARP if config.loop == "unrolled" else 1  # which takes whole warps
            fits = config.block_size * limit // taken // step * step
            smaller = f"a block_size of at most {fits}, " if fits else ""
            raise InfeasibleError(
                f"{taken} bytes of {kind} for a block of {config.block_size} threads are over the"
                f" limit of {limit} on {device.name}; try {smaller}rows: remaining or another"
                " memory",
                "block_size",
            )


def _check_grid(config: Configuration, grid: Geometry, device: DeviceFacts) -> None:
    # Every warp of a pool counts on by a share of 128 jobs when there are none left (unrolled.cuh).
    most = MAX_THREADS // 2 if config.assignment == "warp_pool" else MAX_THREADS
    if grid.blocks > device.max_grid_x or grid.threads > most:
        limit = min(device.max_grid_x, most // config.block_size)
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
    """64-bit results that a launch writes."""
    if config.loop == "somers":
        return grid.jobs if config.assignment == "one_per_thread" else grid.threads
    return 1 if config.loop == "place_first" else grid.blocks


def device_bytes(config: Configuration, grid: Geometry) -> int:
    """Device memory of jobs, work space, results and a probe's numbers."""
    scratch = config.scratch_bytes_per_block * grid.blocks
    words = result_words(config, grid)
    probes, _ = probe_buffers(config.probe, grid.jobs, grid.blocks, config.block_size)
    words += sum(buffer.length for buffer in probes)
    return grid.jobs * config.bytes_per_job + scratch + _TOTAL * words


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
        "device_bytes": device_bytes(config, grid),
    }
