"""Candidate boards: making, reading and judging them.

A board is a permutation of 0..n-1 (``int32``, shape ``(n,)``): the queen of column ``i`` stands in
row ``board[i]``, so that neither rows nor columns can conflict. Its fitness is the number of pairs
of queens on a common diagonal.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError
from nqbench.point import Level
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
        raise InfeasibleError(
            f"board: valid does not exist at n: {n}; use board: random, or n from {MIN_VALID_N}",
            "board",
        )


def conflicts(board: NDArray[np.integer[Any]]) -> int:
    """Pairs of queens on a common diagonal: the sum of c(c-1)/2 over diagonals with c queens.

    Takes O(n) time and memory. The board must be a permutation (:func:`checked`).
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


def checked(values: NDArray[Any], what: str, n: int | None = None) -> Board:
    """``values`` as a board. Raises ``InfeasibleError`` in one sentence if they are not one.

    ``what`` names them in the message; ``n`` is the size asked for, if any.
    """
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
        shape = "x".join(map(str, values.shape)) or "a single value"
        raise InfeasibleError(
            f"{what} holds {values.dtype} of shape {shape}, not one list of whole numbers; a board"
            " lists the row of each column's queen, from 0",
            "board_file",
        )
    if n is not None and values.size != n:
        raise InfeasibleError(f"{what} has {values.size} queens, but n is {n}; set n to match", "n")
    if not is_board(values):
        rows, queens = np.unique(values, return_counts=True)
        wrong = rows[(rows < 0) | (rows >= values.size) | (queens > 1)][0]
        raise InfeasibleError(
            f"{what} is not a permutation of 0 to {values.size - 1}: row {wrong} is outside, or"
            " holds several queens; each row must occur once, and rows count from 0",
            "board_file",
        )
    return values.astype(np.int32)


def read_board(path: Path, n: int | None = None) -> Board:
    """A board from a file: ``.npy``, ``.npz`` (its first array) or text (numbers and spaces).

    An array of several boards (2-D, as a data set holds them) gives its first one. Raises
    ``InfeasibleError`` in one sentence if the file cannot be read or holds no board.
    """
    try:
        values = _load(path)
    except Exception as error:  # numpy reads a header as Python source: many kinds
        raise InfeasibleError(
            f"board_file: {path} cannot be read as .npy, .npz or numbers in text ({error})",
            "board_file",
        ) from error
    if values.ndim == 2 and len(values):
        values = values[0]
    return checked(values, f"board_file: {path}", n)


def _load(path: Path) -> NDArray[Any]:
    if path.suffix in (".npy", ".npz"):
        with path.open("rb") as file:  # numpy leaves a damaged archive open
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return np.asarray(loaded)
            name = "boards" if "boards" in loaded.files else next(iter(loaded.files), "boards")
            return np.asarray(loaded[name])
    words = path.read_text(encoding="utf-8").replace(",", " ").split()
    return np.array([int(word) for word in words], np.int64)


def boards_of(levels: Mapping[str, Level]) -> Board:
    """The boards of a point, shape ``(batch, n)``: random ones have seeds ``seed``, ``seed`` + 1,
    ...; of a valid or given board every second copy is mirrored.

    A file is read again each time, since it may have changed.
    """
    n, seed, batch = number(levels, "n"), levels["seed"], levels.get("batch")
    count = batch if isinstance(batch, int) else 1
    if levels["board"] == "random":
        assert isinstance(seed, int)
        return np.stack([random_board(n, seed + k) for k in range(count)])
    given = levels["board"] == "file"
    board = read_board(Path(str(levels["board_file"])), n) if given else valid_board(n)
    return np.stack([board[:: -1 if k % 2 else 1] for k in range(count)])


def expected(levels: Mapping[str, Level]) -> int:
    """The right answer of a point, from the conflicts of its boards; see :func:`combined`."""
    return combined([conflicts(board) for board in boards_of(levels)])


def combined(each: list[int]) -> int:
    """One number for the conflicts of a batch: the sum of (k + 1) x conflicts of board k.

    The weights reveal exchanged results; for one board it is its conflicts.
    """
    return sum(place * value for place, value in enumerate(each, start=1))
