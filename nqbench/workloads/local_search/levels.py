"""From the levels a user gives to a level for every factor, with all limits checked; and the
operations and bytes of one evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.workloads.levels import (
    Levels,
    applied,
    check_block,
    check_size,
    given_levels,
    number,
)
from nqbench.workloads.local_search.factors import (
    APPLY_SIZES,
    AUTO_ITERATIONS,
    CPU_SYSTEMS,
    FACTORS,
    GENERAL,
    KERNEL_DEFAULTS,
    MAX_ITERATIONS,
    SYSTEMS,
    TILE_X,
)
from nqbench.workloads.local_search.instance import with_digest

WARP: Final = 32
_TILE_WARPS_PER_SM: Final = 8
"""Warps of work that `tile_x: auto` leaves for each multiprocessor: two for each of its four
schedulers, below which they wait for square roots."""
_ROWS: Final = (63, 33, 15)
"""Heights of a tile that `tile_y: auto` tries, multiples of the three rows between two votes: a
thread starts with distances worth over three rows, so that lower tiles cost a quarter more."""
MAX_BLOCK: Final = {1: 1024, 2: 1024, 4: 512, 8: 512}
"""Most threads of a block by ``tile_x``, for their registers; ``most_threads`` in tiled.cuh."""

_DISTANCE: Final = 6
_CITY_BYTES: Final = 4 + 8  # its number in the tour, and its coordinates
_PLACE_BYTES: Final = 8 + 4  # coordinates in tour order, and the cost of its two edges
_MAPPING: Final = {"quadratic": 6, "rearranged": 7}
"""Of the mapping: multiply 2 k, b b - 8 k, root, and the row from it."""


def resolve_levels(given: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Levels:
    """Every factor with its level; ``-`` if it does not apply to the kernel.

    Raises ``StudyError`` for an unknown name or an unreadable instance, ``InfeasibleError`` for
    what cannot run, ``WrongDeviceError`` for a kernel on the CPU.
    """
    explicit = given_levels("local_search", FACTORS, SYSTEMS, given, system)
    n = number(explicit, "n")
    check_size(FACTORS, n)
    own: Levels = {**GENERAL, **(SYSTEMS[system] if system else {})}
    who = str(system)
    if system not in CPU_SYSTEMS:
        kernel = str(explicit.get("kernel", own.get("kernel", "indexed")))
        base = {**GENERAL, **KERNEL_DEFAULTS[kernel]}
        own = {**base, **{k: v for k, v in own.items() if k in base}, "kernel": kernel}
        who = f"kernel: {kernel}"
    levels = applied(FACTORS, own, explicit, who)
    if levels["iterations"] == "auto":
        levels["iterations"] = min(AUTO_ITERATIONS * n, MAX_ITERATIONS)
    levels["instance"] = with_digest(str(levels["instance"]), n)
    if system not in CPU_SYSTEMS:
        _resolve_kernel(levels, system, device)
    return levels


def _resolve_kernel(levels: Levels, system: str | None, device: DeviceFacts) -> None:
    if device.kind == "cpu":
        raise WrongDeviceError(
            f"{system or 'a point of the factor space'} is a GPU kernel and device {device.name} is"
            " a CPU; use a GPU (--device cuda:0), a simulator, or one of the systems"
            f" {', '.join(sorted(CPU_SYSTEMS))}"
        )
    check_block(levels, device)
    size = number(levels, "block_size")
    if levels["kernel"] == "indexed":
        if number(levels, "apply_size") not in APPLY_SIZES:
            raise InfeasibleError(
                f"apply_size: {levels['apply_size']} is not a power of two from 32 to 1024",
                "apply_size",
            )
        return
    if size % WARP:
        raise InfeasibleError(
            f"block_size: {size} is not a multiple of {WARP}, which kernel: {levels['kernel']}"
            " needs to reduce whole warps",
            "block_size",
        )
    _resolve_tile(levels, device)


def _resolve_tile(levels: Levels, device: DeviceFacts) -> None:
    """The largest tile that leaves enough warps for the device, unless it was given."""
    if levels["tile_x"] not in ("auto", *TILE_X):
        raise InfeasibleError(f"tile_x: {levels['tile_x']} is not 1, 2, 4 or 8", "tile_x")
    n = number(levels, "n")
    size = number(levels, "block_size")
    if levels["tile_x"] != "auto" and size > (most := MAX_BLOCK[number(levels, "tile_x")]):
        raise InfeasibleError(
            f"block_size: {size} is over {most}, all that registers allow with tile_x:"
            f" {levels['tile_x']}; take a smaller block or tile_x: 2",
            "block_size",
        )
    tried = [across for across in reversed(TILE_X) if size <= MAX_BLOCK[across]]
    wanted = _TILE_WARPS_PER_SM * device.multiprocessors * WARP
    for across in tried if levels["tile_x"] == "auto" else (levels["tile_x"],):
        for rows in _ROWS if levels["tile_y"] == "auto" else (levels["tile_y"],):
            levels["tile_x"], levels["tile_y"] = across, rows
            if n * n // 2 >= wanted * int(str(across)) * int(str(rows)):
                return


def traffic(levels: Mapping[str, Level]) -> dict[str, int | float | str]:
    """Operations and bytes of one move, from which the hardware's limits on a search follow.

    An operation is an addition, subtraction, multiplication or square root in single precision, a
    fused multiply-add is two; a distance takes six. Bytes are those that a thread asks for,
    from any memory: all data of an instance fit the L2 cache, so device memory serves them at most
    once per launch.

    ``operations_per_move``, ``roots_per_move`` and ``bytes_per_move`` of the evaluation, and the
    ``fp32_instructions_per_move`` that the operations take at least: one each, but that tiles fuse
    two of a distance and leave its root to the special function units.

    For two positions that are not neighbours, with whole tiles: eight distances and seven
    additions, or, tiled, (X + 2) / X distances and four additions, and one for each row. The few
    moves that tiles evaluate twice are not counted.
    """
    kernel = levels["kernel"]
    if kernel in ("tiled", "resident"):
        across = number(levels, "tile_x")
        distances = (across + 2) / across
        return {
            "operations_per_move": _DISTANCE * distances + 4 + 1 / across,
            "fp32_instructions_per_move": 4 * distances + 4 + 1 / across,
            "roots_per_move": distances,
            "bytes_per_move": _PLACE_BYTES / across,
        }
    mapping = _MAPPING.get(str(levels["mapping"]), 0)
    operations = 8 * _DISTANCE + 7 + mapping
    return {
        "operations_per_move": operations,
        "fp32_instructions_per_move": operations,
        "roots_per_move": 8 + (1 if mapping else 0),
        "bytes_per_move": 6 * _CITY_BYTES,
    }
