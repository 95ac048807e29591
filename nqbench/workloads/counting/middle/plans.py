"""The system ``middle`` on a GPU: its levels, its three kernels, and the program that drives them.

Groups are counted in batches: list the halves of both sides, order them, count the pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import comb, perm
from pathlib import Path
from typing import Any, Final, cast

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
OPTIONS: Final = ("--std=c++20",)
MAX_N: Final = 24
"""Beyond, the words of a quarter board and a tile's mask have no room."""

_WARP: Final = 32
_WORD: Final = 8
_LIST_THREADS: Final = 128  # kListThreads
_JOIN_THREADS: Final = 512  # kJoinThreads
_UNCUT_N, _MOST_CUTS = 20, 4
"""Boards up to this one have lists of some ten thousand halves, and every two rows make them six to
seven times as long; `split: auto` cuts them once more in two rows."""
_WIDE_N: Final = 19
"""Boards from which a block of `order` has 1,024 threads (`Middle::order_threads`), else 512."""
_EXACT_N: Final = 22
"""The largest even board of `symmetry: middle`."""
_COLUMNS, _SIZES = 24, 8  # kColumns, kSizes
_AT_ONCE: Final = 8  # kAtOnce
_ARENA: Final = {"cuda": 1 << 30, "sim": 1 << 20}
"""Halves of a batch, by kind of device: 8 GB, and as much for them in order."""
_STAGED: Final = ((18, 8192), (24, 24576))
"""Words that `order` stages in shared memory, by the largest n: lists of the usual length at once;
of shorter ones a multiprocessor then has several blocks."""
_ORDER_BYTES: Final = 20_480
"""Static shared memory of `order`, at most."""
_ENTRIES_PER_BLOCK: Final = 1 << 14
"""Lower halves that one block of ``join`` has to itself, where a list is long."""
_LONGEST: Final[Mapping[int, int]] = {
    8: 14, 9: 16, 10: 34, 11: 44, 12: 132, 13: 170, 14: 570, 15: 688, 16: 2956, 17: 3734, 18: 17506
}  # fmt: skip
"""The longest list of any set of n // 2 columns, by enumeration."""


_CONFIG: Final = ("listing", "order", "masks", "pair_test", "symmetry")
"""Factors that are fields of the kernels' ``Middle`` (``halves.cuh``), in its order."""


def longest(n: int) -> int:
    """About the length of the longest list; they grow by n / 2 - 3 in two rows (5.9 at n = 18)."""
    if n in _LONGEST:
        return _LONGEST[n]
    return 14 if n < 8 else int(longest(n - 2) * (n / 2 - 3))


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
    levels = applied(FACTORS, own, explicit, MIDDLE)
    if levels["split"] == "auto":
        levels["split"] = min(_MOST_CUTS, max(0, (n - _UNCUT_N + 1) // 2))
    symmetry = levels["symmetry"]
    if symmetry not in groups_of.SYMMETRIES:
        said = f"symmetry: {symmetry} is not one of system {MIDDLE}"
        raise InfeasibleError(f"{said}, which takes {', '.join(groups_of.SYMMETRIES)}", "symmetry")
    if symmetry == "middle" and n % 2 == 0:
        if n > _EXACT_N:
            said = f"symmetry: middle at n: {n} has no room in a word for the column of a queen"
            raise InfeasibleError(f"{said}; use symmetry: quarter", "symmetry")
        if explicit.get("split", "auto") not in ("auto", 0):
            said = f"split: {explicit['split']} at n: {n} with symmetry: middle, which cuts a group"
            raise InfeasibleError(f"{said} itself; leave split out", "split")
        levels["split"] = 0
    return levels


def derived(levels: Mapping[str, Level], device: DeviceFacts) -> dict[str, int | float | str]:
    """Numbers that follow from the levels: groups, those of a batch, and the room of a list."""
    n = number(levels, "n")
    symmetry = cast(Symmetry, levels["symmetry"])
    count = len(groups_of.groups(n, symmetry)) if n < 20 else _about(n, symmetry)
    room = -(-longest(n) // _WARP) * _WARP
    staged = next(words for most, words in _STAGED if n <= most)
    staged = min(room, staged, (device.shared_per_block_optin - _ORDER_BYTES) // _WORD)
    arena = _ARENA["cuda" if device.kind == "cuda" else "sim"]
    if device.memory_bytes:
        arena = min(arena, device.memory_bytes // 32)  # a quarter of the memory for each list
    batch = max(1, min(count, arena // (2 * room)))
    return {"groups": count, "batch": batch, "room": room, "staged": staged}


def _about(n: int, symmetry: Symmetry) -> int:
    """Groups of a large board, within a percent."""
    share = 2 if symmetry == "mirror" else 4
    return comb(n, n // 2) * (n - n // 2 if n % 2 else 1) // share


def make_plan(
    given: Mapping[str, Level], device: DeviceFacts, some: Groups | None = None
) -> MultiLaunchPlan:
    """The plan of a point; ``some``: of these groups of its symmetry alone."""
    levels = resolve(given, device)
    numbers = derived(levels, device)
    n, symmetry = number(levels, "n"), cast(Symmetry, levels["symmetry"])
    found = groups_of.groups(n, symmetry) if some is None else some
    batch, room = min(len(found), int(numbers["batch"])), int(numbers["room"])
    sides = [_distinct(found[first : first + batch]) for first in range(0, len(found), batch)]
    most = max(len(sets) for sets, _ in sides)
    # Of a half, in the cells that it is in.
    copies = 3 if _exact(levels) else 1 + number(levels, "split") // 2
    tiles = -(-room // _WARP**2) * _WARP  # of a list, which begins at a multiple of 32
    tiles = 2 * batch * (copies * tiles + _WARP * _cells(levels))
    numbers |= {"batch": batch, "lists": most, "tiles": tiles}
    return MultiLaunchPlan(
        _kernels(levels, numbers),
        (*_inputs(n, found, sides), *_work_space(levels, numbers, len(found))),
        "counting.middle",
        f"{__name__}:count",
        (found, batch, room, [len(sets) for sets, _ in sides]),
        about={**numbers, "n": n, "symmetry": symmetry},
    )


def _exact(levels: Mapping[str, Level]) -> bool:
    """Whether a group has a cell for every column of the deciding queen (``Middle::exact``)."""
    return levels["symmetry"] == "middle" and number(levels, "n") % 2 == 0


def _cells(levels: Mapping[str, Level]) -> int:
    return number(levels, "n") if _exact(levels) else 1 << number(levels, "split")


def _distinct(some: Groups) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sets of columns of a batch, and of the sides of its groups their numbers among these."""
    sets, numbers = np.unique(some[:, :2], return_inverse=True)
    return sets, numbers.reshape(-1)


def _rows(n: int) -> tuple[int, int]:
    """Rows of the quarters at the border and at the middle."""
    half = n // 2
    return half // 2, half - half // 2


def _quarters(n: int) -> tuple[int, ...]:
    """Rows of the quarters that have lists of their own."""
    return tuple(dict.fromkeys(_rows(n)))


def _inputs(n: int, found: Groups, sides: list[Any]) -> list[Buffer]:
    binomials = [[comb(column, size) for size in range(_SIZES)] for column in range(_COLUMNS)]
    sets, numbers = map(np.concatenate, zip(*sides, strict=True))
    data: dict[str, NDArray[np.uint32]] = {
        "sets": sets.astype(np.uint32),
        "list_of": numbers.astype(np.uint32),
        "middle": found[:, 2].astype(np.uint32),
        "columns": found[:, :2].astype(np.uint32).reshape(-1),
        "binomials": np.array(binomials, np.uint32).reshape(-1),
        "picks": groups_of.subsets(n // 2, _rows(n)[0]),
        "quarter_sets": np.concatenate([groups_of.subsets(n, rows) for rows in _quarters(n)]),
    }
    return [Buffer(name, "uint32", words.size, data=words) for name, words in data.items()]


Numbers = Mapping[str, int | float | str]


def _work_space(levels: Mapping[str, Level], numbers: Numbers, groups: int) -> list[Buffer]:
    lists, room, tiles = int(numbers["lists"]), int(numbers["room"]), int(numbers["tiles"])
    cells, n = int(numbers["batch"]) * _cells(levels), number(levels, "n")
    return [
        Buffer("spans", "uint32", 2 * sum(comb(n, rows) for rows in _quarters(n))),
        Buffer("boards", "uint32", 2 * sum(perm(n, rows) for rows in _quarters(n)) + 2 * _AT_ONCE),
        Buffer("made", "uint32", 1),
        Buffer("halves", "uint64", lists * room),
        Buffer("sizes", "uint32", lists),
        Buffer("useful", "uint64", lists),
        Buffer("ordered", "uint64", tiles * _WARP),
        Buffer("masks", "uint64", tiles),
        Buffer("tops", "uint64", tiles // _WARP),
        Buffer("taken", "uint32", 1),
        Buffer("places", "uint32", 4 * cells),
        Buffer("widths", "uint32", cells),
        Buffer("next", "uint32", cells),
        Buffer("spilled", "uint32", groups, zero=True),
        Buffer("sums", "uint64", groups, zero=True),
    ]


def _word(name: str, level: str) -> str:
    """A level in CUDA: ``PairTest::shuffle``."""
    return f"{name.title().replace('_', '')}::{RESERVED_WORDS.get(level, level)}"


def _kernels(levels: Mapping[str, Level], numbers: Numbers) -> dict[str, Kernel]:
    n, cells = number(levels, "n"), _cells(levels)
    batch, staged = int(numbers["batch"]), int(numbers["staged"])
    words = [_word(name, str(levels[name])) for name in _CONFIG]
    config = ", ".join([str(n), *words, str(levels["split"])])
    first, count, at, room = (Variable(k, "uint32") for k in ("first", "count", "at", "room"))
    outer = _rows(n)[0]
    counts = [comb(n, rows) for rows in _quarters(n)]
    all_sets = sum(counts)
    parts = -(-int(numbers["room"]) // (_ENTRIES_PER_BLOCK * cells))

    def kernel(
        name: str, blocks: tuple[int, int], threads: int, *arguments: Argument | Variable
    ) -> Kernel:
        entry = f"{name}<Middle{{{config}}}>"
        shared = staged * _WORD if name == "order" else 0
        grid, block = (*blocks, 1), (threads, 1, 1)
        return Kernel(SOURCE, entry, arguments, grid, block, shared, options=OPTIONS)

    return {
        "join": kernel(
            *("join", (batch, cells * parts), _JOIN_THREADS, first, count, np.uint32(parts)),
            *("ordered", "masks", "tops", "places", "widths", "next", "spilled", "sums"),
        ),
        "list": kernel(
            *("list", (int(numbers["lists"]), 1), _LIST_THREADS, "sets", "binomials"),
            *("picks", np.uint32(comb(n // 2, outer)), "spans", np.uint32(counts[0] % all_sets)),
            *("boards", first, count, room, "halves", "sizes", "useful", "taken"),
        ),
        "quarters": kernel(
            *("quarters", (-(-all_sets // _LIST_THREADS), 1), _LIST_THREADS, "quarter_sets"),
            *(np.uint32(counts[0]), np.uint32(all_sets), "spans", "boards", "made"),
        ),
        "order": kernel(
            *("order", (batch, cells), 512 if n < _WIDE_N else 1024, first, count, at, room),
            *("middle", "columns", "list_of", "halves", "sizes", "useful", np.uint32(staged)),
            *(np.uint32(numbers["tiles"]), "taken", "ordered", "masks", "tops", "places", "widths"),
            *("next", "spilled"),
        ),
    }


def count(
    context: ProgramContext, groups: Groups, batch: int, room: int, lists: Sequence[int]
) -> None:
    """Keeps ``answer``, the solutions of each group as ``sums``, and as ``spilled`` the groups with
    a list that was longer than its room; these are counted again, with more. ``lists``: how many
    each batch has.
    """
    for name in ("spilled", "sums", "made", "boards"):  # reads go a little beyond a list
        context.clear(name)
    context.launch("quarters")
    begins = (0, *accumulate(lists))
    for first, begin, listed in zip(range(0, len(groups), batch), begins, lists, strict=False):
        context.launch("list", first=begin, count=listed, room=room)
        _pair(context, first, min(batch, len(groups) - first), first, room)
    spilled = first_spilled = np.flatnonzero(context.download("spilled"))
    most = max(lists) * room // 2
    while spilled.size:
        if room == most:
            raise DeviceError(
                f"{spilled.size} groups have more than {room} half boards on a side, all that the"
                " device has room for; count a smaller board"
            )
        room = min(most, 4 * room)
        context.clear("spilled")
        context.upload("list_of", np.arange(2))
        for group in spilled:
            context.upload("sets", groups[group, :2])
            context.launch("list", first=0, count=2, room=room)
            _pair(context, int(group), 1, 0, room)
        spilled = np.flatnonzero(context.download("spilled"))
    if first_spilled.size:
        context.upload("list_of")
        context.upload("sets")
    sums = context.download("sums")
    context.keep("sums", sums)
    context.keep("spilled", first_spilled)
    context.keep("answer", np.array([np.dot(sums, groups[:, 3].astype(np.uint64))], np.uint64))


def _pair(context: ProgramContext, first: int, groups: int, at: int, room: int) -> None:
    context.launch("order", first=first, count=groups, at=at, room=room)
    context.launch("join", first=first, count=groups)
