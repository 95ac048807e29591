"""Groups of half boards that are counted together, their weights, and lists of quarter boards.

Half a board has ``h = n // 2`` rows. A group is the set of columns of its upper half, that of its
lower half and, for odd n, the column of the queen in the middle row. Mirror and flip make groups
with as many solutions: ``symmetry: mirror`` counts one half of them, ``quarter`` one quarter.
``middle`` adds the transposed board: with H the largest distance from the centre of a queen in the
middle row (rows, if n is even), V of one in the middle columns, a transposed solution has them
swapped, so that those with H on one side of V count twice, and those with H = V once. Mirror and
flip change neither, so that both rules multiply.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from math import comb, gcd
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Symmetry = Literal["mirror", "quarter", "middle"]
SYMMETRIES: Final[tuple[Symmetry, ...]] = get_args(Symmetry)
Words = NDArray[np.uint32]
Groups = NDArray[np.int64]
"""Of shape ``(groups, 4)``: upper and lower columns, one bit for each, the middle row's queen, and
the weight: how many groups this one stands for."""

NO_COLUMN: Final = 31
"""The ``middle`` of groups of even boards, which have no middle row."""
NO_ROW: Final = 7
"""``QuarterLists.crossed`` of a quarter without a queen in a middle column."""
_RUN: Final = 4096
"""Groups of an odd board that are dealt out together, since they share lists."""
GOLDEN: Final = 0.6180339887498949
"""Steps of this share of a circle spread evenly, however many they are."""
_AT_ONCE: Final = 1 << 22
"""Quarter boards tried at a time: some hundred megabytes."""


@cache
def subsets(n: int, size: int) -> Words:
    """All sets of ``size`` of ``n`` columns as ascending words, which is their colex order."""
    if size in (0, n):
        return np.array([(1 << size) - 1], np.uint32)
    last = np.uint32(1 << (n - 1))
    return np.concatenate([subsets(n - 1, size), subsets(n - 1, size - 1) | last])


def mirrored(sets: Words, n: int) -> Words:
    """The sets of the mirrored board."""
    found = np.zeros_like(sets)
    for column in range(n):
        found |= (sets >> np.uint32(column) & np.uint32(1)) << np.uint32(n - 1 - column)
    return found


def groups(n: int, symmetry: Symmetry = "quarter") -> Groups:
    """The groups of a board of ``n >= 2`` queens: 46,508 quarters at n = 20.

    For odd n the queen of the middle row is in the left half or the centre; left of it the upper
    half has the middle column (``quarter``). ``middle`` has the same groups.
    """
    if n % 2 == 0:
        return _centred(subsets(n, n // 2), n, NO_COLUMN, symmetry)
    parts = []
    for middle in range(n // 2 + 1):
        sets = subsets(n - 1, n // 2)
        below = np.uint32((1 << middle) - 1)
        sets = (sets & below) | (sets & ~below) << np.uint32(1)
        if middle == n // 2:
            parts.append(_centred(sets, n, middle, symmetry))
            continue
        if symmetry != "mirror":
            sets = sets[(sets >> np.uint32(n // 2) & np.uint32(1)).astype(bool)]
        parts.append(_group(sets, n, middle, np.full_like(sets, 2 if symmetry == "mirror" else 4)))
    return _near(np.concatenate(parts), n)


def columns_apart(n: int) -> int:
    """Columns in which neighbouring groups of an odd board differ, the middle queen's among them:
    so few that the lists of all sets that differ there alone fit into a cache."""
    h = n // 2
    return h if h < 10 else (h + 1) // 2


def _near(every: Groups, n: int) -> Groups:
    """In an order in which groups with a set of columns in common are near each other: those that
    differ in half of the columns, which share lists on a GPU, and of these those that do on a CPU.
    """
    key = np.zeros(len(every), np.int64)
    for size in (n // 2, columns_apart(n)):
        piece = every[:, 2] // size
        key = (key << 2 | piece) << n | every[:, 0] & ~(((1 << size) - 1) << piece * size)
    return every[np.argsort(key, kind="stable")]


def _centred(sets: Words, n: int, middle: int, symmetry: Symmetry) -> Groups:
    """One group of each orbit of mirror and flip, which leave the middle row as it is."""
    images = [sets, mirrored(sets, n)]
    if symmetry != "mirror":
        images += [_others(image, n, middle) for image in images]
    orbits = np.sort(images, axis=0)
    weight = 1 + np.count_nonzero(np.diff(orbits, axis=0), axis=0)
    kept = orbits[0] == sets
    return _group(sets[kept], n, middle, weight[kept])


def _group(upper: Words, n: int, middle: int, weight: NDArray[Any]) -> Groups:
    columns = (upper, _others(upper, n, middle), np.full_like(upper, middle), weight)
    return np.stack(columns, axis=1).astype(np.int64)


def _others(upper: Words, n: int, middle: int) -> Words:
    return np.uint32((1 << n) - 1 & ~(1 << middle if middle != NO_COLUMN else 0)) ^ upper


def dealt_groups(n: int) -> Groups:
    """The groups of a board, dealt out (``dealt``)."""
    return dealt(groups(n), _RUN if n % 2 else 1)


def dealt(rows: NDArray[Any], run: int = 1) -> NDArray[Any]:
    """Rows in an order in which neighbours are far apart, so that consecutive ones are alike; those
    of a ``run`` stay together."""
    count = -(-len(rows) // run)
    stride = int(GOLDEN * count)
    while gcd(stride, count) > 1:
        stride += 1
    places = (np.arange(count) * stride % count * run)[:, None] + np.arange(run)
    found: NDArray[Any] = rows[places[places < len(rows)]]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class QuarterLists:
    """Placements of ``rows`` rows on every set of so many columns that attack none of their own.

    Those of the set number k (of ``subsets(n, rows)``) are ``starts[k] .. starts[k + 1] - 1``.
    ``rising`` has bit ``c + rows - 1 - r`` of each queen in row r and column c: the diagonals
    towards larger columns, as the last row meets them, those included that have left the board.
    ``falling`` has bit ``c + r``: those towards smaller columns, as the first row meets them.
    ``crossed``: first row with a queen in a middle column, or ``NO_ROW``.
    """

    starts: Words
    rising: Words
    falling: Words
    crossed: NDArray[np.uint8]


def quarter_lists(n: int, rows: int) -> QuarterLists:
    """The lists of all sets: a million placements for n = 20, 18 million for 22 and six rows."""
    sets = subsets(n, rows)
    bits = (sets[:, None] >> np.arange(n, dtype=np.uint32) & 1).astype(bool)
    columns = np.nonzero(bits)[1].astype(np.int8).reshape(len(sets), rows)
    orders = np.array(list(permutations(range(rows))), np.intp)
    found, counts = [], []
    step = max(1, _AT_ONCE // len(orders))
    for begin in range(0, len(sets), step):
        tried = columns[begin : begin + step][:, orders]  # (sets, orders, rows)
        free = np.ones(tried.shape[:2], bool)
        for r, s in combinations(range(rows), 2):
            free &= np.abs(tried[..., r] - tried[..., s]) != s - r
        found.append(tried[free])
        counts.append(free.sum(axis=1))
    boards = np.concatenate(found)
    crossed = np.full(len(boards), NO_ROW, np.uint8)
    rising, falling = np.zeros((2, len(boards)), np.uint32)
    for r in reversed(range(rows)):
        column = boards[:, r].astype(np.uint32)
        rising |= np.uint32(1) << column + np.uint32(rows - 1 - r)
        falling |= np.uint32(1) << column + np.uint32(r)
        crossed[(column == n // 2) | (column == (n - 1) // 2)] = r
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.uint32)
    assert len(starts) == comb(n, rows) + 1
    return QuarterLists(starts, rising, falling, crossed)
