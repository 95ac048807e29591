"""From the levels a user gives to a level for every factor, and to the grid of a launch.

In order of precedence: the levels given, the system's own, the defaults. A level without meaning
next to the others is refused if it was given, and becomes ``-`` if it was not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import FactorLevels, Level
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.counting import configuration, factors
from nqbench.workloads.counting.factors import FACTORS, MIN_N, takes_closed_jobs
from nqbench.workloads.counting.jobs import ODD_RULES, Encoding, Symmetry, count_jobs
from nqbench.workloads.counting.systems import MIDDLE_N, SYSTEMS, paper_of
from nqbench.workloads.levels import Levels, applied, blocks_held, given_levels, number

_ENOUGH_JOBS: Final = 2_000
"""`depth: auto` without a paper's own rule: enough jobs for a warp on every scheduler of a small
GPU, few enough to keep the split negligible."""

_ZHANG_ROWS: Final = 11
_TANAKA_DEPTH: Final = 5

_FRONTIER: Final = "frontier"
_FRONTIER_DEPTH: Final = 7
_UNROLLED_DEPTH: Final = 8
_FRONTIER_JOBS: Final = {"cpu": 2**23, "gpu": 2**28}
"""Eight rows (seven without closed jobs), which suited an H200 best at N = 18, as far as the jobs
stay few enough, by where they are made: a fraction of a second of the CPU, 4 GB of a GPU."""

_OF_PAPERS: Final[Levels] = {"allocation": "static", "storage": "arrays", "layout": "per_thread"}
"""Levels of a paper's system if its own memory offers no such choice and another memory is asked
for: the forms that the papers start from."""

_JOBS_PER_THREAD: Final = 4
"""Default mean for pools and static shares: enough to balance the threads, few enough to leave many
blocks. Both pools of zhang2011 then have the same number of threads."""

_WARP: Final = 32

_RULES: Final[list[tuple[str, ...]]] = re.findall(
    r"^([a-z_ ]+?)(?:: (.*?))? *\| (\w+): (.*?) *\| (.*)$",
    Path(__file__).with_name("rules.txt").read_text(encoding="utf-8"),
    re.MULTILINE,
)
"""Factors, their levels (none: the factors are meaningless), another one, its levels, and why."""


def fill_levels(given: FactorLevels, system: str | None) -> Levels:
    """Every factor but the launch (``depth``, ``blocks``, ...) resolved; ``auto`` may remain.

    Raises ``StudyError`` for an unknown name, ``InfeasibleError`` for contradictory levels.
    """
    explicit = given_levels("counting", FACTORS, SYSTEMS, given, system)
    n = number(explicit, "n")
    if n < MIN_N:
        said = f"n: {n} is less than the {MIN_N} of the kernels; use a cpu.* system for it"
        raise InfeasibleError(said, "n")
    for name in factors.MIDDLE_FACTORS:
        if name in explicit:
            said = f"{name}: {explicit[name]} means nothing to a search of the tree"
            raise InfeasibleError(f"{said}; leave {name} out, or use system: middle", name)
    own = SYSTEMS[system] if system else {}

    levels: Levels = dict.fromkeys(FACTORS, NOT_APPLICABLE) | dict(factors.DEFAULTS)
    if system is not None:
        levels |= _OF_PAPERS
    levels |= {name: level for name, level in own.items() if level != NOT_APPLICABLE}
    levels |= explicit
    if levels["memory"] == "shared_stack" and "storage" not in explicit:
        levels["storage"] = "arrays"
    for names, wrong, other, beside, why in _RULES:
        if not _among(levels[other], beside):
            continue
        for name in names.split():
            if wrong and not _among(levels[name], wrong):
                continue
            if name in explicit or (wrong and name != "blocks"):
                advice = "" if wrong else f"; leave {name} out"
                raise InfeasibleError(
                    f"{name}: {_text(levels[name])} makes no sense with {other}: {levels[other]},"
                    f" {why}{advice}",
                    name,
                )
            levels[name] = NOT_APPLICABLE  # a system's grid, for one, that does not suit
    if levels["symmetry"] not in factors.TREE_SYMMETRIES:
        said = f"symmetry: {levels['symmetry']} is of half boards; use system: middle, or one of"
        raise InfeasibleError(f"{said} {', '.join(factors.TREE_SYMMETRIES)}", "symmetry")
    if levels["loop"] == "unrolled":
        _check_unrolled(levels)
    return levels


def _among(level: Level, words: str) -> bool:
    kind = level if isinstance(level, str) else "per_sm" if isinstance(level, Mapping) else "number"
    return (kind in words.removeprefix("!").split()) != words.startswith("!")


def _text(level: Level) -> str:
    return f"{{per_sm: {level['per_sm']}}}" if isinstance(level, Mapping) else str(level)


def _check_unrolled(levels: Levels) -> None:
    """Refuse numbers that ``loop: unrolled`` cannot be with."""
    n, block_size = number(levels, "n"), levels["block_size"]
    if n > factors.UNROLLED_N:
        raise InfeasibleError(
            f"loop: unrolled at n: {n}, whose rows leave no room for their numbers in a word; use"
            f" loop: lookahead (system frontier.lookahead) beyond n: {factors.UNROLLED_N}",
            "loop",
        )
    if isinstance(block_size, int) and block_size % _WARP:
        raise InfeasibleError(
            f"block_size: {block_size} with loop: unrolled, whose warps vote as a whole; choose a"
            f" multiple of {_WARP}",
            "block_size",
        )


def resolve_cpu(given: FactorLevels, system: str) -> Levels:
    """Levels of a CPU program, which takes nothing but ``n``."""
    levels = applied(FACTORS, {}, given_levels("counting", FACTORS, SYSTEMS, given, system), system)
    if system.startswith("cpu.middle") and number(levels, "n") > MIDDLE_N:
        raise InfeasibleError(f"{system} takes n up to {MIDDLE_N}; cpu.frontier takes any")
    return levels


def auto_depth(levels: FactorLevels, system: str | None) -> int:
    """The paper's own depth where it is in 2..N-3, otherwise the least that gives enough jobs.

    ``levels`` holds ``n``, ``encoding`` and ``symmetry``.
    """
    n = number(levels, "n")
    encoding = cast(Encoding, levels["encoding"])
    symmetry = cast(Symmetry, levels["symmetry"])
    paper = paper_of(system)
    rule = {"zhang2011": n - _ZHANG_ROWS, "tanaka2011": _TANAKA_DEPTH}.get(paper, 0)
    if paper == _FRONTIER:
        closed = takes_closed_jobs(levels["loop"])
        rows, most_rows = (
            (_UNROLLED_DEPTH, _UNROLLED_DEPTH) if closed else (_ZHANG_ROWS, _FRONTIER_DEPTH)
        )
        rule = min(n - rows, most_rows)
        most = _FRONTIER_JOBS["gpu" if levels.get("jobs_made") == "gpu" else "cpu"]
        while rule > 2 and count_jobs(n, rule, symmetry, limit=most, closed=closed) > most:
            rule -= 1
    if 2 <= rule <= n - 3:
        return rule
    for depth in range(2, n - 3):
        jobs = count_jobs(n, depth, symmetry, ODD_RULES[encoding], _ENOUGH_JOBS)
        if jobs >= _ENOUGH_JOBS:
            return depth
    return n - 3


def _least_depth(n: int, lookahead: int) -> int:
    """Rows of a job so that the right diagonals that have left the board never reach the mark in
    bit 0 while a border is closed (``unrolled.cuh``)."""
    return 2 * n - 35 + lookahead if lookahead > 1 else 0


def _fitting_block(levels: Levels, device: DeviceFacts) -> int:
    """The default block size, or the largest multiple of a warp below it that fits. ``loop:
    unrolled`` takes one with which a multiprocessor holds the most threads: at n = 20, 192 are 3%
    faster than 128 on an H200."""
    wanted = min(cast(int, levels["block_size"]), device.max_threads_per_block)
    sizes: list[int] = [wanted, *range((wanted - 1) // _WARP * _WARP, 0, -_WARP)]

    def configured(size: int) -> configuration.Configuration:
        return configuration.Configuration.from_levels(levels | {"block_size": size})

    def threads(size: int) -> int:  # that a multiprocessor holds
        return size * blocks_held(device, size, configured(size).shared_bytes)

    if levels["loop"] == "unrolled":
        sizes = sorted(
            range(_WARP, 2 * wanted + 1, _WARP),
            key=lambda size: (threads(size), size == wanted, size),
            reverse=True,
        )
    for size in sizes:
        config = configured(size)
        static_fits = config.static_shared_bytes <= device.shared_per_block
        if static_fits and config.shared_bytes <= device.shared_per_block_optin:
            return size
    return wanted


def _grid_level(levels: Levels, explicit: set[str], jobs: int, device: DeviceFacts) -> Level:
    level = levels["blocks"]
    if "jobs_per_thread" in explicit:
        if "blocks" in explicit and level != "from_jobs":
            raise InfeasibleError(
                f"blocks: {_text(level)} and jobs_per_thread: {levels['jobs_per_thread']} both fix"
                " the number of threads; give one of them",
                "blocks",
            )
        return "from_jobs"
    if level != NOT_APPLICABLE:
        return level
    if levels["assignment"] in ("one_per_thread", "block_pool"):
        return "from_jobs"
    # What a multiprocessor holds at once; fewer if each thread would have too few jobs.
    config = configuration.Configuration.from_levels(levels)
    enough = jobs // (_JOBS_PER_THREAD * config.block_size * device.multiprocessors)
    held = blocks_held(device, config.block_size, config.shared_bytes)
    return {"per_sm": max(1, min(enough, held))}


def resolve_kernel(
    given: FactorLevels,
    system: str | None,
    device: DeviceFacts,
    some: NDArray[np.uint32] | None = None,
) -> tuple[Levels, configuration.Configuration, configuration.Geometry]:
    """Levels, configuration and grid of a kernel's point, all limits checked.

    ``some``: a launch takes what is below these jobs of fewer rows; by default all of the board.
    """
    if device.kind == "cpu":
        what = system or "a point of the factor space"
        raise WrongDeviceError(
            f"{what} is a GPU kernel and device {device.name} is a CPU; use a GPU"
            " (--device cuda:0), a simulator, or a cpu.* system (nqbench kernels)"
        )
    levels = fill_levels(given, system)
    _fill_depth(levels, system, device)
    config = configuration.Configuration.from_levels(levels)
    if some is None:
        jobs = configuration.checked_jobs(config)
    else:
        from nqbench.workloads.counting import border

        jobs = border.count_jobs(config.n, config.depth, closed=config.closed_jobs, above=some)
    explicit = {name for name, level in given.items() if level != NOT_APPLICABLE}
    if "block_size" not in explicit:
        levels["block_size"] = _fitting_block(levels, device)
    if levels["assignment"] == "block_pool" and levels["pool_size"] == NOT_APPLICABLE:
        levels["pool_size"] = _JOBS_PER_THREAD * number(levels, "block_size")
    levels["blocks"] = _grid_level(levels, explicit, jobs, device)
    config = configuration.Configuration.from_levels(levels)
    return levels, config, configuration.checked_grid(config, jobs, device)


def _fill_depth(levels: Levels, system: str | None, device: DeviceFacts) -> None:
    """Resolve depth and look-ahead of a kernel that the device can run."""
    if not factors.has_instructions(device, levels["loop"]):
        both = (factors.UNROLLED_CAPABILITY, device.compute_capability)
        least, own = (".".join(map(str, capability)) for capability in both)
        raise InfeasibleError(
            f"loop: unrolled has instructions of compute capability {least} and later, and"
            f" {device.name} has {own}; use loop: lookahead (system frontier.lookahead)",
            "loop",
        )
    if levels["depth"] == "auto":
        levels["depth"] = auto_depth(levels, system)
    n, depth = number(levels, "n"), number(levels, "depth")
    configuration.check_depth(n, depth)
    if levels["lookahead"] == "auto":  # two rows where a job is deep enough for that
        levels["lookahead"] = 2 if depth >= _least_depth(n, 2) else 1
    lookahead = levels["lookahead"]
    if isinstance(lookahead, int) and depth < (least_depth := _least_depth(n, lookahead)):
        raise InfeasibleError(
            f"lookahead: {lookahead} at n: {n}, depth: {depth} needs a depth of {least_depth} or"
            " more, so that a word holds the diagonals; use that or lookahead: 1",
            "lookahead",
        )
