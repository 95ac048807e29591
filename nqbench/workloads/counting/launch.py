"""Launch geometry: depth, block size, grid, shares. Everything that needs the device's facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.workloads.counting.configuration import Configuration
from nqbench.workloads.counting.factors import NOT_APPLICABLE
from nqbench.workloads.counting.levels import Levels

_JOBS_PER_THREAD: Final = 4
"""Default for pools and static shares, on the average: enough to even out the threads, few enough
to leave many blocks. Both pools of zhang2011 so have the same number of threads."""

_WARP: Final = 32

_GRIDS: Final = {
    "one_per_thread": ("from_jobs", "from_jobs_plus_one"),
    "block_pool": ("from_jobs",),
    "strided": ("from_jobs", "number", "per_sm"),
    "contiguous": ("from_jobs", "number", "per_sm"),
    "global_pool": ("from_jobs", "number", "per_sm"),
}
_WHY: Final = {
    "one_per_thread": "which needs a thread for every job",
    "block_pool": "whose grid follows from pool_size",
}


@dataclass(frozen=True, slots=True)
class Geometry:
    """Grid of a launch. ``share``: jobs per thread (static shares) or per pool, else 0."""

    jobs: int
    blocks: int
    threads: int
    share: int


def fill_launch(
    levels: Levels,
    given: Mapping[str, Level],
    own: Mapping[str, Level],
    jobs: int,
    device: DeviceFacts,
) -> Levels:
    """Resolve block size, pool size and grid of levels whose ``depth`` is a number."""
    levels = dict(levels)
    explicit = {name for name, level in given.items() if level != NOT_APPLICABLE}
    if "block_size" not in explicit:
        levels["block_size"] = _fitting_block(levels, device)
    if levels["assignment"] == "block_pool" and levels["pool_size"] == NOT_APPLICABLE:
        levels["pool_size"] = _JOBS_PER_THREAD * cast(int, levels["block_size"])
    levels["blocks"] = _grid_level(levels, explicit, own, jobs, device)
    return levels


def geometry(config: Configuration, jobs: int, device: DeviceFacts) -> Geometry:
    """Grid for a number of jobs; what the level of ``blocks`` stands for on this device."""
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
        threads = blocks * size
        share = -(-jobs // threads) if config.assignment == "contiguous" else 0
    return Geometry(jobs, blocks, blocks * size, share)


def _fitting_block(levels: Levels, device: DeviceFacts) -> int:
    """The default block size, or the largest multiple of a warp below it that fits."""
    wanted = min(cast(int, levels["block_size"]), device.max_threads_per_block)
    sizes: list[int] = [wanted, *range((wanted - 1) // _WARP * _WARP, 0, -_WARP)]
    for size in sizes:
        config = Configuration.from_levels(dict(levels) | {"block_size": size})
        if (
            config.static_shared_bytes <= device.shared_per_block
            and config.shared_bytes <= device.shared_per_block_optin
        ):
            return size
    return wanted


def _grid_level(
    levels: Levels,
    explicit: set[str],
    own: Mapping[str, Level],
    jobs: int,
    device: DeviceFacts,
) -> Level:
    assignment = cast(str, levels["assignment"])
    accepted = _GRIDS[assignment]
    if "blocks" in explicit:
        level = levels["blocks"]
        if _kind(level) not in accepted:
            reason = _WHY.get(assignment, "which takes from_jobs, a number, or {per_sm: k}")
            raise InfeasibleError(
                f"blocks: {_text(level)} makes no sense with assignment: {assignment}, {reason};"
                f" leave blocks out or use {accepted[0]}",
                "blocks",
            )
        if "jobs_per_thread" in explicit and level != "from_jobs":
            raise InfeasibleError(
                f"blocks: {_text(level)} and jobs_per_thread: {levels['jobs_per_thread']} both fix"
                " the number of threads; give one of them",
                "blocks",
            )
        return level
    if "jobs_per_thread" in explicit:
        return "from_jobs"
    system_level = own.get("blocks")
    if system_level is not None and _kind(system_level) in accepted:
        return system_level
    if "per_sm" in accepted:
        return {"per_sm": _filling_blocks(Configuration.from_levels(levels), jobs, device)}
    return "from_jobs"


def _kind(level: Level) -> str:
    if isinstance(level, str):
        return level
    return "number" if isinstance(level, int) else "per_sm"


def _text(level: Level) -> str:
    return f"{{per_sm: {level['per_sm']}}}" if isinstance(level, Mapping) else str(level)


def _filling_blocks(config: Configuration, jobs: int, device: DeviceFacts) -> int:
    """Blocks that a multiprocessor holds at once as far as threads and shared memory go, or fewer
    where that would leave the threads with too few jobs each to share out."""
    shared = config.shared_bytes + device.shared_reserved_per_block
    limits = [
        device.max_blocks_per_multiprocessor,
        device.max_threads_per_multiprocessor // config.block_size,
        jobs // (_JOBS_PER_THREAD * config.block_size * device.multiprocessors),
    ]
    if shared:
        limits.append(device.shared_per_multiprocessor // shared)
    return max(1, min(limits))
