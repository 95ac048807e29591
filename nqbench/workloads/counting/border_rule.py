"""The rule of ``border``, row by row, and its words: for the searches, numba's and NumPy's."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Jobs = NDArray[np.uint32]

SHIFT: Final = 27
"""Bits above the widest board: of ``columns`` a job's ties, of ``left`` its distance."""

WORDS: Final = 3
"""Of a job; ``expand`` says which."""


def allowed(n: int, distance: int, row: int) -> int:
    """Columns that the rule leaves open in a row."""
    board = (1 << n) - 1
    if row == n - 1:
        corner = (1 << (distance + 1)) - 1
        return board & (corner | corner << (n - 1 - distance))
    return board & ~(1 | 1 << (n - 1)) if distance < row < n - 1 - distance else board


def rows_needed(n: int, distance: int, depth: int) -> int:
    """Rows of a job of at least ``depth`` so that the rule no longer closes the border columns
    below it: the largest distance never does."""
    return max(depth, distance + 1) if distance < (n - 1) // 2 else depth


def tying(n: int, distance: int, row: int) -> int:
    """Columns of a row below the first in which a border queen has the largest distance."""
    if row == n - 1:
        return 1 << distance | 1 << (n - 1 - distance)
    return 1 | 1 << (n - 1) if row in (distance, n - 1 - distance) else 0
