"""From the levels a user gives to a level for every factor.

Three sources, the stronger first: the levels given, the system's own, the defaults. A level that
means nothing next to the others is refused when it was given and dropped (``-``) when it was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.system.suggest import suggestion
from nqbench.workloads.counting.factors import (
    DEFAULTS,
    FACTORS,
    MAX_N,
    MIN_N,
    NOT_APPLICABLE,
)
from nqbench.workloads.counting.jobs import ODD_RULES, Encoding, Symmetry, count_jobs
from nqbench.workloads.counting.systems import SYSTEMS, is_host, paper_of
from nqbench.workloads.levels import check_level

Levels = dict[str, Level]

_ENOUGH_JOBS: Final = 2_000
"""`depth: auto` without a rule of the paper's own: enough jobs for a warp on every scheduler of a
small GPU, few enough to keep the split negligible."""

_ZHANG_ROWS: Final = 11
_TANAKA_DEPTH: Final = 5

_OF_PAPERS: Final[Levels] = {"allocation": "static", "storage": "arrays", "layout": "per_thread"}
"""What a paper's system takes where its own memory had no such choice and another is asked for:
the forms the papers start from."""

_STATIC_SHARES: Final = ("strided", "contiguous")


def system_levels(system: str | None) -> Mapping[str, Level]:
    """Levels of a named system; ``StudyError`` with the nearest name if there is none."""
    if system is None:
        return {}
    if system not in SYSTEMS:
        raise StudyError(
            f"no system {system!r} in workload counting; {suggestion(system, SYSTEMS)}"
        )
    return SYSTEMS[system]


def fill_levels(given: Mapping[str, Level], system: str | None) -> Levels:
    """Every factor but the launch (``depth``, ``blocks``, ...) resolved; ``auto`` may remain.

    Raises ``StudyError`` for an unknown name, ``InfeasibleError`` for a senseless combination.
    """
    own = system_levels(system)
    explicit = {name: level for name, level in given.items() if level != NOT_APPLICABLE}
    for name, level in explicit.items():
        check_level("counting", FACTORS, name, level)
    _check_n(explicit.get("n"), MIN_N)

    levels: Levels = dict.fromkeys(FACTORS, NOT_APPLICABLE) | dict(DEFAULTS)
    if system is not None:
        levels |= _OF_PAPERS
    levels |= {name: level for name, level in own.items() if level != NOT_APPLICABLE}
    levels |= explicit
    for name, reason in _senseless(levels).items():
        if name in explicit:
            raise InfeasibleError(
                f"{name}: {explicit[name]} makes no sense with {reason}; leave {name} out",
                name,
            )
        levels[name] = NOT_APPLICABLE
    if levels["memory"] == "shared_stack" and levels["storage"] != "arrays":
        if "storage" in explicit:
            raise InfeasibleError(
                f"storage: {levels['storage']} makes no sense with memory: shared_stack, which"
                " keeps only one quantity in shared memory; use storage: arrays",
                "storage",
            )
        levels["storage"] = "arrays"
    if levels["storage"] == "chunk" and levels["layout"] == "interleaved":
        raise InfeasibleError(
            "storage: chunk with layout: interleaved is the same order of words as interleaved"
            " arrays; use storage: arrays",
            "layout",
        )
    return levels


def host_levels(given: Mapping[str, Level], system: str) -> Levels:
    """Levels of a host program, which takes nothing but ``n``."""
    for name, level in given.items():
        if level == NOT_APPLICABLE:
            continue
        check_level("counting", FACTORS, name, level)
        if name != "n":
            raise InfeasibleError(
                f"{name}: {level} means nothing to {system}, which runs on the host and takes"
                f" only n; leave {name} out",
                name,
            )
    _check_n(given.get("n"), 1)
    return dict.fromkeys(FACTORS, NOT_APPLICABLE) | {"n": given["n"]}


def auto_depth(n: int, system: str | None, encoding: Encoding, symmetry: Symmetry) -> int:
    """The paper's own depth where it is in 2..N-3, otherwise the least that gives enough jobs."""
    paper = paper_of(system)
    rule = {"zhang2011": n - _ZHANG_ROWS, "tanaka2011": _TANAKA_DEPTH}.get(paper, 0)
    if 2 <= rule <= n - 3:
        return rule
    for depth in range(2, n - 3):
        jobs = count_jobs(n, depth, symmetry, ODD_RULES[encoding], _ENOUGH_JOBS)
        if jobs >= _ENOUGH_JOBS:
            return depth
    return n - 3


def _senseless(levels: Levels) -> dict[str, str]:
    """Factors that mean nothing next to the others, and what excludes them."""
    found: dict[str, str] = {}
    memory, rows, assignment = levels["memory"], levels["rows"], levels["assignment"]
    if memory == "local":
        reason = "memory: local, whose order the compiler and the hardware fix"
        found |= dict.fromkeys(("allocation", "storage", "layout"), reason)
    if memory == "global":
        found["allocation"] = "memory: global, since it speaks of shared memory"
    if rows != "max":
        found["max_board"] = f"rows: {rows}, which reserves rows by N"
    if assignment != "block_pool":
        found["pool_size"] = f"assignment: {assignment}, which has no pool per block"
    if assignment not in _STATIC_SHARES:
        found["jobs_per_thread"] = f"assignment: {assignment}, which has no static share"
    return found


def _check_n(n: Level | None, least: int) -> None:
    if not isinstance(n, int):
        raise StudyError("a point of workload counting needs a number n")
    if not least <= n <= MAX_N:
        kind = "the kernels take" if least == MIN_N else "the host programs take"
        raise InfeasibleError(
            f"n: {n} is outside what {kind}, {least} to {MAX_N}; choose n in that range"
            + (", or a cpu.* system for smaller boards" if n < least else ""),
            "n",
        )


def check_device(system: str | None, device: DeviceFacts) -> None:
    """Refuse a GPU kernel on a device that is none (``WrongDeviceError``)."""
    if device.kind == "cpu" and not is_host(system):
        what = system or "a point of the factor space"
        raise WrongDeviceError(
            f"{what} is a GPU kernel and device {device.name} is the host's CPU; use a GPU"
            " (--device cuda:0), a simulator, or the systems cpu.somers and cpu.multicore"
        )
