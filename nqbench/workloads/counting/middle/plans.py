"""The system ``middle`` on a GPU: its levels, its four kernels, and the program that drives them.

Groups are counted in batches: list the halves of both sides, order them, count the pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import comb, factorial
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError, InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.multi_launch import ProgramContext
from nqbench.plan import Argument, Buffer, Kernel, MultiLaunchPlan, Variable
from nqbench.point import Level
from nqbench.workloads.counting.factors import FACTORS, MIDDLE, MIN_N, RESERVED_WORDS
from nqbench.workloads.counting.middle import groups as groups_of
from nqbench.workloads.counting.middle.groups import Groups, Symmetry
from nqbench.workloads.counting.systems import SYSTEMS
from nqbench.workloads.levels import Levels, applied, given_levels, number

SOURCE: Final = Path(__file__).with_name("middle.cu")
OPTIONS: Final = ("--std=c++20", "-default-device")  # of lambdas, for NVRTC 13.0
MAX_N: Final = 24
"""Beyond, the words of a quarter board and a tile's mask have no room."""

_WARP, _WORD, _QUARTER_THREADS = 32, 8, 128  # kWarp, bytes of a half, kQuarterThreads
_COUNTS, _PAIR_WORDS = 3, 6  # kCounts, of a Pair
_JOIN_THREADS, _JOIN_BLOCKS = 128, 8  # kJoinThreads, and blocks of a multiprocessor that fit
_PART: Final = 1536
"""Halves of the longest list of a cell to each of its parts that warps join."""
_ARENA: Final = {"cuda": 1 << 30, "sim": 1 << 20}
"""Halves of a batch as they are listed, by kind of device: 8 GB (72 GB where only so all blocks
have many groups), and about as much for those that are ordered."""
_TILE_BYTES: Final = _WARP * _WORD + _WORD + 1  # with its masks
_ORDER_BYTES: Final = 7_168
"""Static shared memory of `order`, at most; at n = 24 it has 2,048 bins in place of 1,024."""
_LONGEST: Final[Mapping[int, int]] = {
    8: 14, 9: 16, 10: 34, 11: 44, 12: 132, 13: 170, 14: 570, 15: 688, 16: 2956, 17: 3734, 18: 17506,
    19: 21030, 20: 114142, 21: 137830, 22: 787552, 23: 984604
}  # fmt: skip
"""The longest list of any set of n // 2 columns, by enumeration; beyond 18 the longest that a
climb from random sets found. A group with a longer one is counted again."""


_CONFIG: Final = ("listing", "order", "masks", "pair_test", "symmetry")
"""Factors that are fields of the kernels' ``Middle`` (``words.cuh``), in its order."""


class OrderShape(NamedTuple):
    """Of ``order``: threads of a block, blocks of a multiprocessor, which take groups until none is
    left, bits of a key that tell the bucket, and halves in shared memory at most."""

    threads: int
    blocks: int
    bucket_bits: int
    staged: int


def order_shape(levels: Mapping[str, Level]) -> OrderShape:
    """The fastest on an H200 of those that were tried."""
    if levels["order"] == "none":
        return OrderShape(128, 16, 6, _WARP)
    n = number(levels, "n")
    shapes = {18: (512, 3, 0, 7168), 19: (256, 6, 0, 4096), 20: (512, 2, 3, 11264)}
    shapes |= {21: (512, 2, 2, 11264), 22: (512, 2, 5, 11264), 23: (512, 2, 4, 11264)}
    return OrderShape(*shapes.get(n, (128, 8, 0, 3072) if n < 18 else (1024, 1, 6, 24576)))


def longest(n: int) -> int:
    """About the length of the longest list; they grow by n / 2 - 4 in two rows (6.9 at n = 22)."""
    return _LONGEST.get(n) or (14 if n < 8 else int(longest(n - 2) * (n / 2 - 4)))


def _few(levels: Mapping[str, Level]) -> int:
    """``Middle::few`` (``words.cuh``): lists of odd boards of 15 to 19 queens are too short."""
    n = number(levels, "n")
    short = n % 2 and n // 5 == 3
    agree = levels["order"] != "none" and levels["masks"] == "and_or" and not short
    return (2 if n < 14 else 10 if n < 20 else 8) + n % 2 * 2 if agree else 32


def _tiles(levels: Mapping[str, Level], room: int) -> tuple[int, int]:
    """For each group of many, and for one whose lists are as long as their room. A cut puts about a
    third of a list into two cells; long lists have a third of their room in the mean; tiles that
    agree are filled where a diagonal changes (``agree`` in ``order.cuh``)."""
    n, cuts, few = number(levels, "n"), number(levels, "split"), _few(levels)
    ends = max(1 << max(order_shape(levels).bucket_bits, 2 * n - 37), 2 * room >> cuts + few)
    alone = 2 * room * (1 + cuts) // _WARP + ((2 * _WARP + ends * (few < 32)) << cuts + 1)
    share = 0.75 if n % 2 else 1 if n < 22 else (0.6 + 0.15 * cuts) / (1 + cuts)
    return int(alone * share), alone


def resolve(given: Mapping[str, Level], device: DeviceFacts) -> Levels:
    """Every factor with its level. Raises ``InfeasibleError``, ``WrongDeviceError``."""
    explicit = given_levels("counting", FACTORS, SYSTEMS, given, MIDDLE)
    n = number(explicit, "n")
    if device.kind == "cpu":
        raise WrongDeviceError(
            f"{MIDDLE} is a GPU kernel and device {device.name} is a CPU; use a GPU"
            " (--device cuda:0), a simulator, or a cpu.* system (nqbench kernels)"
        )
    if not MIN_N <= n <= MAX_N:
        said = f"n: {n} is outside {MIN_N} to {MAX_N}, the boards of system {MIDDLE}"
        raise InfeasibleError(f"{said}; use frontier.lookahead", "n")
    own = {**SYSTEMS[MIDDLE], "symmetry": "middle" if n % 2 else "quarter"}
    own |= {"order": "none", "masks": "none"} if 15 <= n <= 17 else {}  # their lists are short
    levels = applied(FACTORS, own, explicit, MIDDLE)
    if levels["split"] == "auto":  # elsewhere more halves to order cost what `join` is shorter
        levels["split"] = 2 if n == 24 and levels["order"] != "none" else 0
    if levels["split"] and levels["order"] == "none":
        said = f"split: {levels['split']} needs an order, which finds the diagonals to cut by"
        raise InfeasibleError(f"{said}; use order: gray, masks: and_or, or split: 0", "split")
    if n > 21 and levels["pair_test"] == "shuffle" and _few(levels) == 32:
        said = f"pair_test: shuffle at n: {n} fits only with an order and masks: and_or"
        raise InfeasibleError(f"{said}; use these, or pair_test: words", "pair_test")
    if (symmetry := levels["symmetry"]) not in groups_of.SYMMETRIES:
        said = f"symmetry: {symmetry} is not one of system {MIDDLE}"
        raise InfeasibleError(f"{said}, which takes {', '.join(groups_of.SYMMETRIES)}", "symmetry")
    if symmetry == "middle" and n % 2 == 0:
        said = f"symmetry: middle at n: {n} is not there: it filters the lists of odd boards"
        raise InfeasibleError(f"{said}; use symmetry: quarter", "symmetry")
    return levels


def derived(levels: Mapping[str, Level], device: DeviceFacts) -> dict[str, int | float | str]:
    """Numbers that follow from the levels: groups, those of a batch, and the room of a list."""
    n = number(levels, "n")
    symmetry = cast(Symmetry, levels["symmetry"])
    count = comb(n, n // 2) * (n - n // 2 if n % 2 else 1) // (2 if symmetry == "mirror" else 4)
    if n < 20:  # else within a percent
        count = len(groups_of.groups(n, symmetry))
    # Beyond 18 a list may be longer than those that were found.
    room = -(-longest(n) * (100 if n < 19 else 105) // (100 * _WARP)) * _WARP
    shape = order_shape(levels)
    static = _ORDER_BYTES + (4 << 10 if n > 23 else 0)
    staged = min(shape.staged, (device.shared_per_block_optin - static) // _WORD - 2 * _WARP)
    if staged < _WARP or device.shared_per_block < 33 * 1024:  # which `list` takes from n = 21 on
        raise InfeasibleError(f"{device.name} has too little shared memory for system {MIDDLE}")
    cuts, (each, alone) = number(levels, "split"), _tiles(levels, room)
    # What is left beside the quarters and their table. The number of lists is rounded up.
    memory = max(0, (device.memory_bytes or 1 << 62) - 2 * _WORD * sum(_boards(n)) - (_WORD << n))
    fitting = (0.7 * memory - _TILE_BYTES * alone) / (2.2 * _WORD * room + _TILE_BYTES * each)
    arena = _ARENA["cuda" if device.kind == "cuda" else "sim"] * (9 if n in (22, 24) else 1)
    # Groups of an odd board share lists.
    batch = max(1, min(count, int(min(arena / (room * (0.4 if n % 2 else 2)), fitting))))
    # Of few groups each warp joins eight parts, of six tiles at least.
    few = 8 * _JOIN_BLOCKS * _JOIN_THREADS // _WARP * device.multiprocessors // count
    long = room // (4 if n % 2 else 1)  # a queen of the middle row leaves a quarter of a list
    parts = max(1, long // _PART, min(long // (6 * _WARP), few))
    # Lists that a block has room for: one is collected, and of 8 buckets the fullest has a quarter.
    rooms = 1 + 3 * (shape.bucket_bits > 0)
    working = min(shape.blocks * device.multiprocessors, batch << cuts)
    working = max(1, min(working, memory // (5 * _WORD * rooms * room)))
    if n % 2 == 0 and levels["order"] == levels["masks"] == "none":
        working = 0  # half boards are listed as they are paired: `kListed` (words.cuh)
    return {
        **{"groups": count, "batch": batch, "room": room, "staged": staged},
        **{"parts": parts, "rooms": rooms, "scratch": working * rooms * room},
    }


def make_plan(
    given: Mapping[str, Level], device: DeviceFacts, some: Groups | None = None
) -> MultiLaunchPlan:
    """The plan of a point; ``some``: of these groups of its symmetry alone."""
    levels = resolve(given, device)
    numbers = derived(levels, device)
    n, symmetry = number(levels, "n"), cast(Symmetry, levels["symmetry"])
    found = groups_of.groups(n, symmetry) if some is None else some
    full, room = min(len(found), int(numbers["batch"])), int(numbers["room"])
    batch = -(-len(found) // -(-len(found) // full))  # all of about one size
    # The sets of columns of each batch, and of the sides of its groups their numbers among these.
    spans = [found[first : first + batch, :2].ravel() for first in range(0, len(found), batch)]
    listed = not numbers["scratch"]
    sides = [(s, np.arange(s.size)) if listed else np.unique(s, return_inverse=True) for s in spans]
    most = max(len(sets) for sets, _ in sides) if n % 2 else 2 * full
    step = max(1, full // 8)  # so that it is the same for most launches of a count
    most = -(-most // step) * step
    each, alone = _tiles(levels, room)
    tiles, cuts = full * each + alone, number(levels, "split")
    numbers |= {"batch": full, "lists": most, "tiles": tiles, "cuts": cuts}
    return MultiLaunchPlan(
        _kernels(levels, numbers, device.multiprocessors),
        (*_inputs(n, found, sides), *_work_space(levels, numbers, len(found))),
        "counting.middle",
        f"{__name__}:count",
        (found, batch, room, [len(s) for s, _ in sides], listed),
        about={**numbers, "n": n, "symmetry": symmetry},
    )


def _quarters(n: int) -> tuple[int, ...]:
    """Rows of the quarters at the border, and of those at the middle if they have more."""
    return tuple(dict.fromkeys((n // 4, n // 2 - n // 4)))


def _boards(n: int) -> list[int]:
    """Room for quarters: a set has it for every order of its columns, in multiples of 32."""
    return [-(-factorial(rows) // _WARP) * _WARP * comb(n, rows) for rows in _quarters(n)]


def _inputs(n: int, found: Groups, sides: list[Any]) -> list[Buffer]:
    sets, numbers = map(np.concatenate, zip(*sides, strict=True))
    data: dict[str, NDArray[np.uint32]] = {
        "sets": sets.astype(np.uint32),
        "list_of": numbers.astype(np.uint32),
        "queens": (found[:, 2] | found[:, 3] << 8).astype(np.uint32),
        "picks": groups_of.subsets(n // 2, _quarters(n)[0]),
        "quarter_sets": np.concatenate([groups_of.subsets(n, rows) for rows in _quarters(n)]),
    }
    return [Buffer(name, "uint32", words.size, data=words) for name, words in data.items()]


Numbers = Mapping[str, int | float | str]


def _work_space(levels: Mapping[str, Level], numbers: Numbers, groups: int) -> list[Buffer]:
    lists, room, tiles, scratch = (int(numbers[k]) for k in ("lists", "room", "tiles", "scratch"))
    n, cells = number(levels, "n"), int(numbers["batch"]) << int(numbers["cuts"])
    ordered = [Buffer("ordered", "uint64", tiles * _WARP), Buffer("scratch", "uint64", scratch)]
    return [
        Buffer("spans", "uint32", 2 << n),
        *(Buffer(name, "uint32", 2 * sum(_boards(n))) for name in ("boards", "columns")),
        Buffer("halves", "uint64", lists * room),
        Buffer("sizes", "uint32", lists),
        Buffer("useful", "uint64", lists),
        *(ordered if scratch else []),
        Buffer("masks", "uint64", tiles),
        Buffer("tops", "uint64", tiles // _WARP),
        Buffer("counts", "uint32", _COUNTS),
        Buffer("pairs", "uint32", _PAIR_WORDS * cells),
        Buffer("answer", "uint64", 2 + groups, zero=True),
    ]


def _kernels(
    levels: Mapping[str, Level], numbers: Numbers, multiprocessors: int
) -> dict[str, Kernel]:
    n, cuts = number(levels, "n"), np.uint32(numbers["cuts"])
    words = {name: RESERVED_WORDS.get(str(levels[name]), levels[name]) for name in _CONFIG}
    named = [f"{name.title().replace('_', '')}::{word}" for name, word in words.items()]
    shape = order_shape(levels)
    config = ", ".join(map(str, (n, *named, *shape[:3], _few(levels))))  # 18, Listing::quarters, ..
    names = ("first", "groups", "at", "room", "count", "group")
    first, groups, at, room, count, group = (Variable(name, "uint32") for name in names)
    listed = not numbers["scratch"]
    sets = [comb(n, rows) for rows in _quarters(n)]

    def kernel(name: str, blocks: int, threads: int, *arguments: Argument | Variable) -> Kernel:
        shared = (int(numbers["staged"]) + 2 * _WARP) * _WORD if name == "order" else 0
        grid, block = (blocks, 1, 1), (threads, 1, 1)
        entry = f"{name}<Middle{{{config}}}>"
        return Kernel(SOURCE, entry, arguments, grid, block, shared, options=OPTIONS)

    kernels = {
        "join": kernel(
            *("join", _JOIN_BLOCKS * multiprocessors, _JOIN_THREADS, first, groups, cuts),
            *(np.uint32(numbers["parts"]), "counts", "halves" if listed else "ordered", "masks"),
            *("tops", "pairs", "queens", "answer"),
        ),
        "quarters": kernel(
            *("quarters", -(-sum(sets) * _WARP // _QUARTER_THREADS), _QUARTER_THREADS),
            *("quarter_sets", np.uint32(sets[0]), np.uint32(sum(sets)), "spans", "boards"),
            "columns",
        ),
        "list": kernel(
            *("list", int(numbers["lists"]), 128 if n < 21 else 512),  # Middle::list_threads
            *("sets", "picks", "spans", "boards", "columns", first, count, room, group),
            *("halves", "sizes", "useful", "counts", "pairs", "answer"),
        ),
        "order": kernel(
            *("order", shape.blocks * multiprocessors, shape.threads, first, groups, at, room),
            *("queens", "list_of", "sizes", "useful", "halves", cuts, "counts", "answer"),
            *(np.uint32(numbers["staged"]), np.uint32(numbers["tiles"]), "ordered", "masks"),
            *("tops", "pairs", "scratch", np.uint64(numbers["scratch"])),
            np.uint32(numbers["rooms"]),
        ),
    }
    return {name: one for name, one in kernels.items() if name != "order" or not listed}


def count(
    context: ProgramContext, groups: Groups, batch: int, room: int, lists: list[int], listed: bool
) -> None:
    """Keeps ``answer``, and as ``spilled`` the groups for whose lists there was no room; these are
    counted again, alone and with more. ``lists``: of each batch; ``listed``: as unordered tiles."""

    def found() -> tuple[int, NDArray[np.intp]]:
        """The solutions, and the groups without room; without any, two words are read."""
        solutions, many = context.download("answer", 2)
        return int(solutions), np.flatnonzero(context.download("answer")[2:] if many else [])

    def pair(first: int, many: int, at: int) -> None:
        of_batch = {"first": first, "groups": many}
        if not listed:
            context.launch("order", **of_batch, at=at, room=room)
        context.launch("join", **of_batch)

    context.launch("quarters")
    begins = (0, *accumulate(lists))
    for first, begin, many in zip(range(0, len(groups), batch), begins, lists, strict=False):
        context.launch("list", first=begin, count=many, room=room, group=first)
        pair(first, min(batch, len(groups) - first), first)
    solutions, first_spilled = found()
    spilled, most = first_spilled, max(lists) * room // 2
    while spilled.size:
        if room == most:
            raise DeviceError(
                f"{spilled.size} groups find no room for their half boards, {room} a side, all"
                " that the device has; count a smaller board"
            )
        room = min(most, 4 * room)
        context.clear("answer")
        context.upload("list_of", np.arange(2))
        for group in spilled:
            context.upload("sets", groups[group, :2])
            context.launch("list", first=0, count=2, room=room, group=group)
            pair(int(group), 1, 0)
        more, spilled = found()
        solutions += more
    if first_spilled.size:
        context.upload("list_of")
        context.upload("sets")
    context.keep("spilled", first_spilled)
    context.keep("answer", np.array([solutions], np.uint64))
