"""Candidate boards: making and judging them.

A board is a permutation of 0..n-1 (``int32``, shape ``(n,)``): the queen of column ``i`` stands in
row ``board[i]``, so that neither rows nor columns can conflict. Its fitness is the number of pairs
of queens on a common diagonal.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError
from nqbench.point import FactorLevels
from nqbench.workloads.levels import number

Board = NDArray[np.int32]

MIN_VALID_N: Final = 4
"""The smallest board with a solution, except for the trivial one."""


def random_board(n: int, seed: int) -> Board:
    """A uniformly random permutation, the same for the same ``n`` and ``seed``."""
    return np.random.default_rng(seed).permutation(n).astype(np.int32)


def valid_board(n: int) -> Board:
    """A board without conflicts, for any n >= 4, and for n = 1.

    Source: the construction of Hoffman, Loessi and Moore (1969). With even n, the queens of the
    first half stand on the odd lines (0-based) and those of the second half on the even ones, if
    n mod 6 is not 2; otherwise they are shifted around. An odd n adds a corner to the board of
    n - 1, whose main diagonal is free. Raises ``InfeasibleError`` for n = 2 and 3.
    """
    check_valid_exists(n)
    if n % 2:
        without_corner = valid_board(n - 1) if n > 1 else np.empty(0, np.int32)
        return np.append(without_corner, n - 1).astype(np.int32)
    half = n // 2
    board = np.empty(n, np.int32)
    column = np.arange(half, dtype=np.int64)
    if n % 6 != 2:
        board[:half] = 2 * column + 1
        board[half:] = 2 * column
    else:
        row = (2 * column + half - 1) % n
        board[column] = row
        board[n - 1 - column] = n - 1 - row
    return board


def check_valid_exists(n: int) -> None:
    """Raise ``InfeasibleError`` for n = 2 and 3."""
    if n < MIN_VALID_N and n != 1:
        said = f"board: valid does not exist at n: {n}; use board: random, or n from {MIN_VALID_N}"
        raise InfeasibleError(said, "board")


def conflicts(board: NDArray[np.integer[Any]]) -> int:
    """Pairs of queens on a common diagonal: the sum of c(c-1)/2 over diagonals with c queens.

    Takes O(n) time and memory.
    """
    row = board.astype(np.int64)
    column = np.arange(row.size, dtype=np.int64)
    total = 0
    for diagonal in (column + row, column - row + row.size - 1):
        queens = np.bincount(diagonal)
        total += int(np.sum(queens * (queens - 1) // 2))
    return total


def is_board(values: NDArray[Any]) -> bool:
    """Whether every row of 0..n-1 occurs once."""
    seen = values.astype(np.int64)
    inside = bool(np.all((seen >= 0) & (seen < seen.size)))
    return inside and bool(np.all(np.bincount(seen, minlength=seen.size) == 1))


def boards_of(levels: FactorLevels) -> Board:
    """The boards of a point, shape ``(batch, n)``: random ones have seeds ``seed``, ``seed`` + 1,
    ...; of a valid board every second copy is mirrored.
    """
    n, seed, batch = number(levels, "n"), levels["seed"], levels.get("batch")
    count = batch if isinstance(batch, int) else 1
    if levels["board"] == "random":
        assert isinstance(seed, int)
        return np.stack([random_board(n, seed + k) for k in range(count)])
    board = valid_board(n)
    return np.stack([board[:: -1 if k % 2 else 1] for k in range(count)])


def expected(levels: FactorLevels) -> int:
    """The right answer of a point, from the conflicts of its boards; see :func:`combined`."""
    return combined([conflicts(board) for board in boards_of(levels)])


def combined(each: list[int]) -> int:
    """One number for the conflicts of a batch: the sum of (k + 1) x conflicts of board k.

    The weights reveal exchanged results; for one board it is its conflicts.
    """
    return sum(place * value for place, value in enumerate(each, start=1))
