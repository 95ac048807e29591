"""From the number of a move to the positions it swaps, identical to ``mapping.cuh`` in every bit.

Compiled by numba, which neither contracts nor reorders single precision: the wrong pairs of a GPU
can be counted without one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nqbench.workloads.compiled import compiled
from nqbench.workloads.local_search.factors import MAPPING_CODES

QUADRATIC: Final = MAPPING_CODES["quadratic"]
RECTANGLE: Final = MAPPING_CODES["rectangle"]

_HALF: Final = np.float32(0.5)
_FOUR: Final = np.float32(4.0)
_EIGHT: Final = np.float32(8.0)
_ZERO: Final = np.float32(0.0)


def moves_of(n: int) -> int:
    """Moves of the neighbourhood: pairs of positions 1 <= x < y <= n - 1."""
    return (n - 1) * (n - 2) // 2


@compiled
def positions(k: int, n: int, mapping: int) -> tuple[int, int]:
    """Positions ``(x, y)`` of move ``k``; not a valid pair where single precision fails."""
    m = n - 1
    if mapping == RECTANGLE:
        width = m if m % 2 == 1 else m - 1
        row = k // width
        column = k - row * width
        length = m - 1 - row
        if column < length:
            return row + 1, row + 2 + column
        return m - (width - length), m - (column - length)
    b = np.float32(2 * m - 1)
    number = np.float32(k)
    under = b * b - _EIGHT * number
    # A GPU turns NaN into row 0, which is as invalid here.
    root = np.sqrt(under) if under >= _ZERO else b
    row = int((b - root) * _HALF) if mapping == QUADRATIC else int(_FOUR * number / (b + root))
    return row + 1, k - (row * m - row * (row + 1) // 2) + row + 2


@compiled
def is_valid(x: int, y: int, n: int) -> bool:
    """Whether a pair is a move."""
    return 1 <= x < y < n


@compiled
def rank(x: int, y: int, n: int, mapping: int) -> int:
    """Number of the move (x, y): the inverse of ``positions``, in exact integers."""
    m = n - 1
    row = x - 1
    if mapping == RECTANGLE:
        width = m if m % 2 == 1 else m - 1
        height = m * (m - 1) // 2 // width
        if row < height:
            return row * width + (y - 2 - row)
        length = m - x  # of the reversed row
        return (m - 1 - (width - length)) * width + (width - length) + (m - y)
    return row * m - row * (row + 1) // 2 + (y - x - 1)


@compiled
def _count_invalid(n: int, mapping: int) -> int:
    """How many move numbers a mapping sends outside the neighbourhood."""
    invalid = 0
    for k in range((n - 1) * (n - 2) // 2):
        x, y = positions(k, n, mapping)
        if not is_valid(x, y, n):
            invalid += 1
    return invalid


def invalid_moves(n: int, mapping: str) -> int:
    """The same by the name of the mapping."""
    return int(_count_invalid(n, MAPPING_CODES[mapping]))
