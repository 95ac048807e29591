"""Local search points: levels for all factors within all limits, operations and bytes of an
evaluation, the plans, and what the CPU does between the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import numpy as np

from nqbench import plan
from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.multi_launch import ProgramContext
from nqbench.point import FactorLevels
from nqbench.workloads import levels as levels_of
from nqbench.workloads.levels import Levels, number
from nqbench.workloads.local_search import factors
from nqbench.workloads.local_search.instance import Instance, load_instance, slack

SOURCE: Final = Path(__file__).with_name("local_search.cu")
NO_BEST: Final = 2**64 - 1
STATE_WORDS: Final = 4  # of ``State`` in tiled.cuh
HINTS: Final = 32  # as there
GROUP: Final = 3  # as there

DONE, EVALUATIONS, APPLIED = 1, 2, 3  # words of ``State``
_ATTENDED: Final = ("local_search.iterate", f"{__name__}:iterate")
_UNATTENDED: Final = ("local_search.iterate_unattended", f"{__name__}:iterate_unattended")
_WARM_UP_N: Final = 5

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


def resolve_levels(given: FactorLevels, system: str | None, device: DeviceFacts) -> Levels:
    """Every factor with its level; ``-`` if it does not apply to the kernel.

    Raises ``StudyError`` for an unknown name or level, ``InfeasibleError`` for what cannot run,
    ``WrongDeviceError`` for a kernel on the CPU.
    """
    explicit = levels_of.given_levels(
        "local_search", factors.FACTORS, factors.SYSTEMS, given, system
    )
    n = number(explicit, "n")
    own: Levels = {**factors.GENERAL, **(factors.SYSTEMS[system] if system else {})}
    who = str(system)
    if system not in factors.CPU_SYSTEMS:
        kernel = str(explicit.get("kernel", own.get("kernel", "indexed")))
        base = {**factors.GENERAL, **factors.KERNEL_DEFAULTS[kernel]}
        own = {**base, **{k: v for k, v in own.items() if k in base}, "kernel": kernel}
        who = f"kernel: {kernel}"
    levels = levels_of.applied(factors.FACTORS, own, explicit, who)
    if levels["iterations"] == "auto":
        levels["iterations"] = min(factors.AUTO_ITERATIONS * n, factors.MAX_ITERATIONS)
    if system not in factors.CPU_SYSTEMS:
        _resolve_kernel(levels, system, device)
    return levels


def _resolve_kernel(levels: Levels, system: str | None, device: DeviceFacts) -> None:
    if device.kind == "cpu":
        raise WrongDeviceError(
            f"{system or 'a point of the factor space'} is a GPU kernel and device {device.name} is"
            " a CPU; use a GPU (--device cuda:0), a simulator, or one of the systems"
            f" {', '.join(sorted(factors.CPU_SYSTEMS))}"
        )
    levels_of.check_block(levels, device)
    size = number(levels, "block_size")
    if levels["kernel"] == "indexed":
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
    n = number(levels, "n")
    size = number(levels, "block_size")
    if levels["tile_x"] != "auto" and size > (most := MAX_BLOCK[number(levels, "tile_x")]):
        raise InfeasibleError(
            f"block_size: {size} is over {most}, all that registers allow with tile_x:"
            f" {levels['tile_x']}; take a smaller block or tile_x: 2",
            "block_size",
        )
    tried = [across for across in (8, 4, 2, 1) if size <= MAX_BLOCK[across]]
    wanted = _TILE_WARPS_PER_SM * device.multiprocessors * WARP
    for across in tried if levels["tile_x"] == "auto" else (levels["tile_x"],):
        for rows in _ROWS if levels["tile_y"] == "auto" else (levels["tile_y"],):
            levels["tile_x"], levels["tile_y"] = across, rows
            if n * n // 2 >= wanted * int(str(across)) * int(str(rows)):
                return


def traffic(levels: FactorLevels) -> dict[str, int | float | str]:
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


def make_plan(given: FactorLevels, system: str | None, device: DeviceFacts) -> plan.Plan:
    """The plan of a point."""
    levels = resolve_levels(given, system, device)
    n, seed = number(levels, "n"), number(levels, "seed")
    instance = load_instance(n, seed)
    about = derived(levels, device) | {"n": n, "seed": seed}
    if system in factors.CPU_SYSTEMS:
        return _cpu_plan(instance, levels, system, about)
    if levels["kernel"] == "indexed":
        return _indexed(instance, levels, about)
    return _tiled(instance, levels, about)


def grid_of(levels: FactorLevels) -> tuple[int, int]:
    """Tiles along x and y; those below the diagonal have nothing to do."""
    n = number(levels, "n")
    across = number(levels, "block_size") * number(levels, "tile_x")
    return -(-(n - 2) // across), -(-(n - 2) // number(levels, "tile_y"))


def tiles_with_moves(levels: FactorLevels) -> int:
    """Tiles that are not wholly below the diagonal: the last y is beyond the first x."""
    n, rows = number(levels, "n"), number(levels, "tile_y")
    width = number(levels, "block_size") * number(levels, "tile_x")
    across, up = grid_of(levels)
    ends = (min(2 + (row + 1) * rows, n) for row in range(up))
    return sum(min(across, -(-(end - 2) // width)) for end in ends)


def moves_of(n: int) -> int:
    """Moves of the neighbourhood: pairs of positions 1 <= x < y <= n - 1."""
    return (n - 1) * (n - 2) // 2


def derived(levels: FactorLevels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Numbers that follow from the levels: geometry, moves, operations and bytes of one."""
    n = number(levels, "n")
    moves = moves_of(n)
    numbers: dict[str, int | float | str] = {"moves_per_iteration": moves, **traffic(levels)}
    if levels["kernel"] == "indexed":
        level = levels["blocks"]
        each = level["per_sm"] * device.multiprocessors if isinstance(level, Mapping) else level
        blocks = int(each)
        threads = blocks * number(levels, "block_size")
        numbers |= {"blocks": blocks, "threads": threads, "moves_per_thread": -(-moves // threads)}
    elif levels["kernel"] != "-":
        across, up = grid_of(levels)
        # Of a tile: coordinates of its positions and of one more at each end, and the costs of its
        # edges, for all rows that its last group may reach.
        rows = number(levels, "tile_y") + GROUP - 1
        numbers |= {
            "blocks": across * up,
            "threads": across * up * number(levels, "block_size"),
            "dynamic_shared_bytes": 8 * (rows + 2) + 4 * rows,
        }
    return numbers


def _cpu_plan(
    instance: Instance, levels: Levels, system: str | None, about: Mapping[str, int | float | str]
) -> plan.CpuPlan:
    enumeration = "loops" if system == factors.CPU_TWO_LOOPS else "numbers"
    mapping = factors.MAPPING_CODES.get(str(levels["mapping"]), 0)
    small = load_instance(_WARM_UP_N, 1)
    iterations = number(levels, "iterations")
    return plan.CpuPlan(
        "local_search.search",
        f"{__package__}.searches:search",
        (instance.cities, instance.start, iterations, factors.THRESHOLD, enumeration, mapping),
        (small.cities, small.start, 1, factors.THRESHOLD, enumeration, mapping),
        about,
    )


def _tour(instance: Instance) -> plan.Buffer:
    return plan.Buffer("tour", "uint32", instance.n, data=instance.start, restore=True, output=True)


def _indexed(
    instance: Instance, levels: Levels, about: Mapping[str, int | float | str]
) -> plan.MultiLaunchPlan:
    """The paper's two kernels; ``deltas`` and ``moves`` have one word per evaluation thread."""
    n, mapping = np.uint32(instance.n), levels["mapping"]
    apply_size, threads = number(levels, "apply_size"), int(about["threads"])
    moves = int(about["moves_per_iteration"])
    cache = cast(plan.CachePreference, levels["cache"])
    evaluation = plan.Kernel(
        SOURCE,
        f"evaluation<Full, Moves::{levels['moves']}, Mapping::{mapping}>",
        ("tour", "cities", n, np.uint32(moves), "deltas", "moves", "invalid"),
        (int(about["blocks"]), 1, 1),
        (number(levels, "block_size"), 1, 1),
        cache=cache,
    )
    apply = plan.Kernel(
        SOURCE,
        f"apply<Reduction::{levels['reduction']}, Unroll::{levels['unroll']}, Mapping::{mapping},"
        f" {apply_size}>",
        ("tour", n, np.uint32(threads), "deltas", "moves", np.float32(factors.THRESHOLD)),
        (1, 1, 1),
        (apply_size, 1, 1),
        static_shared_bytes=8 * apply_size,
        cache=cache,
    )
    buffers = (
        _tour(instance),
        plan.Buffer("cities", "float32", 2 * instance.n, data=instance.cities.reshape(-1)),
        plan.Buffer("deltas", "float32", threads),
        plan.Buffer("moves", "uint32", threads),
        plan.Buffer("invalid", "uint64", 1, zero=True, output=True),
    )
    return plan.MultiLaunchPlan(
        {"evaluation": evaluation, "apply": apply},
        buffers,
        *_ATTENDED,
        (number(levels, "iterations"), factors.THRESHOLD),
        about=about,
    )


def _tiled(
    instance: Instance, levels: Levels, about: Mapping[str, int | float | str]
) -> plan.MultiLaunchPlan:
    """Our kernels; ``places`` are the coordinates in tour order, which every swap updates."""
    resident = levels["kernel"] == "resident"
    n, rows = np.uint32(instance.n), np.uint32(number(levels, "tile_y"))
    across, up = grid_of(levels)
    threshold = np.float32(factors.THRESHOLD)
    common: tuple[plan.Argument, ...] = (
        *("places", n, rows, threshold, slack(instance.cities)),
        *("best", "hints"),
    )
    name = "evaluation_resident<" if resident else "evaluation_tiled<Full, "
    kernels = {
        "evaluation": plan.Kernel(
            SOURCE,
            f"{name}{levels['tile_x']}>",
            ("tour", *common, "state", np.uint32(tiles_with_moves(levels))) if resident else common,
            (across, up, 1),
            (number(levels, "block_size"), 1, 1),
            shared_bytes=int(about["dynamic_shared_bytes"]),
            cache=cast(plan.CachePreference, levels["cache"]),
        )
    }
    places = instance.cities[instance.start].reshape(-1)
    unknown = np.full(HINTS, NO_BEST, np.uint64)
    buffers = [
        _tour(instance),
        plan.Buffer("places", "float32", 2 * instance.n, data=places, restore=True),
        plan.Buffer("best", "uint64", 1, data=unknown[:1], restore=True),
        plan.Buffer("hints", "uint64", HINTS, data=unknown, restore=True),
    ]
    iterations = number(levels, "iterations")
    if resident:
        buffers.append(plan.Buffer("state", "uint32", STATE_WORDS, zero=True))
        arguments = (iterations, number(levels, "check_every"))
        return plan.MultiLaunchPlan(kernels, tuple(buffers), *_UNATTENDED, arguments, about=about)
    buffers.append(plan.Buffer("deltas", "float32", 1))
    touched = ("tour", "places", "best", "hints", "deltas")
    kernels["apply"] = plan.Kernel(SOURCE, "apply_best", touched, (1, 1, 1), (HINTS, 1, 1))
    return plan.MultiLaunchPlan(
        kernels, tuple(buffers), *_ATTENDED, (iterations, factors.THRESHOLD), about=about
    )


def iterate(context: ProgramContext, iterations: int, threshold: float) -> None:
    """Two kernels and one word back per iteration, as in the paper (section 5).

    Kernels ``evaluation`` and ``apply``; ``deltas[0]`` is the best change of an iteration, which
    ``apply`` has applied unless it is above the threshold.
    """
    limit = np.float32(threshold)
    changes: list[np.float32] = []
    evaluations = 0
    while len(changes) < iterations:
        context.launch("evaluation")
        context.launch("apply")
        evaluations += 1
        best = context.download("deltas", 1)[0]
        if best > limit:
            break
        changes.append(best)
    context.keep("changes", np.array(changes, np.float32))
    context.keep("applied", np.array([len(changes)], np.uint64))
    context.keep("evaluations", np.array([evaluations], np.uint64))


def iterate_unattended(context: ProgramContext, iterations: int, check_every: int) -> None:
    """One kernel per iteration, which applies the move itself; the CPU checks the state
    (``State`` in ``tiled.cuh``) only every ``check_every`` launches."""
    left, done = iterations, False
    while left > 0 and not done:
        launches = min(left, check_every)
        for _ in range(launches):
            context.launch("evaluation")
        left -= launches
        state = context.download("state")
        done = bool(state[DONE])
    context.keep("evaluations", np.array([state[EVALUATIONS]], np.uint64))
    context.keep("applied", np.array([state[APPLIED]], np.uint64))
