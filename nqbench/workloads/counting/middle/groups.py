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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from math import comb
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Symmetry = Literal["mirror", "quarter", "middle"]
SYMMETRIES: Final[tuple[Symmetry, ...]] = get_args(Symmetry)
Words = NDArray[np.uint32]

NO_COLUMN: Final = 31
"""The ``middle`` of groups of even boards, which have no middle row."""
NO_ROW: Final = 7
"""``QuarterLists.crossed`` of a quarter without a queen in a middle column."""
_AT_ONCE: Final = 1 << 22
"""Quarter boards tried at a time: some hundred megabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups by column sets (one bit per column), the middle row's queen, and the weight: how many
    groups this one stands for. Arrays of shape ``(groups,)``."""

    upper: Words
    lower: Words
    middle: Words
    weight: Words

    def __len__(self) -> int:
        return len(self.upper)

    def part(self, index: slice | NDArray[np.intp]) -> Groups:
        """Some of the groups."""
        return Groups(self.upper[index], self.lower[index], self.middle[index], self.weight[index])


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
    half has the middle column (``quarter`` and ``middle``).
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
    names = ("upper", "lower", "middle", "weight")
    return Groups(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def packed_groups(n: int) -> NDArray[np.int64]:
    """The fewest groups whose lists need no more columns than theirs, of shape ``(groups, 4)``:
    upper and lower columns, the middle row's queen, the weight."""
    every = groups(n, "middle" if n % 2 else "quarter")
    columns = (every.upper, every.lower, every.middle, every.weight)
    return np.stack(columns, axis=1).astype(np.int64)


def _centred(sets: Words, n: int, middle: int, symmetry: Symmetry) -> Groups:
    """One group of each orbit of mirror and flip, which leave the middle row as it is."""
    images = [sets, mirrored(sets, n)]
    if symmetry != "mirror":
        images += [_group(image, n, middle, image).lower for image in images]
    orbits = np.sort(images, axis=0)
    weight = 1 + np.count_nonzero(np.diff(orbits, axis=0), axis=0).astype(np.uint32)
    kept = orbits[0] == sets
    return _group(sets[kept], n, middle, weight[kept])


def _group(upper: Words, n: int, middle: int, weight: Words) -> Groups:
    others = np.uint32((1 << n) - 1 & ~(1 << middle if middle != NO_COLUMN else 0))
    return Groups(upper, others ^ upper, np.full_like(upper, middle), weight)


def middle_weight(n: int, h: int, v: int) -> int:
    """How often a solution with these H and V (in half columns and half rows) counts.

    For odd n those with V > H count twice, for even n those with V < H: H is known before the lists
    are made if a single row has it, and filters both of them if it is the larger of two.
    """
    return 1 if h == v else 2 * ((v > h) == (n % 2 == 1))


@dataclass(frozen=True, slots=True, eq=False)
class QuarterLists:
    """Placements of ``rows`` rows on every set of so many columns that attack none of their own.

    Those of the set number k (of ``subsets(n, rows)``) are ``starts[k] .. starts[k + 1] - 1``.
    ``rising`` has bit ``c + rows - 1 - r`` of each queen in row r and column c: the diagonals
    towards larger columns, as the last row meets them, those included that have left the board.
    ``falling`` has bit ``c + r``: those towards smaller columns, as the first row meets them.
    ``last``: column of the last row's queen. ``crossed``: first row with a queen in a middle
    column, or ``NO_ROW``.
    """

    starts: Words
    rising: Words
    falling: Words
    last: NDArray[np.uint8]
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
    return QuarterLists(starts, rising, falling, boards[:, -1].astype(np.uint8), crossed)


Queen = tuple[int, int]


def solutions_by_definition(n: int, symmetry: Symmetry = "quarter") -> int:
    """a(n) from the middle in plain Python, slow: what the other programs must agree with."""
    return solutions_of(groups(n, symmetry), n, transposed=symmetry == "middle")


def solutions_of(some: Groups, n: int, *, transposed: bool = False) -> int:
    """The solutions of some groups with their weights, by the definition."""
    found = 0
    for upper, lower, middle, weight in zip(
        some.upper, some.lower, some.middle, some.weight, strict=True
    ):
        centre = [(n // 2, int(middle))] if middle != NO_COLUMN else []
        below = [[(n - 1 - r, c) for r, c in half] for half in _halves(int(lower), n)]
        for above in _halves(int(upper), n):
            for half in below:
                board = [*above, *centre, *half]
                if _peaceful(board):
                    twice = _twice(board, n) if transposed else 1
                    found += int(weight) * twice
    return found


def _halves(columns: int, n: int) -> Iterator[list[Queen]]:
    """Placements on the columns in the rows from 0 on; rows and columns of their queens."""
    order = permutations(c for c in range(n) if columns >> c & 1)
    return filter(_peaceful, (list(enumerate(columns)) for columns in order))


def _peaceful(queens: Sequence[Queen]) -> bool:
    return all(abs(r - s) != abs(c - d) for (r, c), (s, d) in combinations(queens, 2))


def _twice(board: Sequence[Queen], n: int) -> int:
    middle = {(n - 1) // 2, n // 2}
    h = max(abs(2 * c - n + 1) for r, c in board if r in middle)
    v = max(abs(2 * r - n + 1) for r, c in board if c in middle)
    return middle_weight(n, h, v)
