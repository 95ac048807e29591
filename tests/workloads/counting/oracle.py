"""Independent truth for small boards, in plain Python and as unlike the kernels as it can be.

Queens are column numbers; two of them attack each other if they share a column or a diagonal.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache


@cache
def placements(n: int, rows: int) -> tuple[tuple[int, ...], ...]:
    """Valid placements of the first ``rows`` rows, in lexicographic order."""
    if rows == 0:
        return ((),)
    return tuple(
        (*above, column)
        for above in placements(n, rows - 1)
        for column in range(n)
        if all(
            column != other and abs(column - other) != rows - 1 - row
            for row, other in enumerate(above)
        )
    )


def solutions(n: int) -> int:
    """Number of solutions."""
    return len(placements(n, n))


def completions(n: int, prefix: tuple[int, ...]) -> int:
    """Number of solutions that begin with ``prefix``."""
    return sum(1 for board in placements(n, n) if board[: len(prefix)] == prefix)


def jobs(n: int, depth: int, rule: str) -> list[tuple[int, ...]]:
    """Prefixes that a split should give: ``all``, ``restrict_second`` or ``full_middle``."""
    middle = n // 2
    kept = []
    for prefix in placements(n, depth):
        if rule != "all":
            if prefix[0] > (n - 1) // 2:
                continue
            in_middle = n % 2 == 1 and prefix[0] == middle
            if in_middle and rule == "restrict_second" and prefix[1] > middle:
                continue
        kept.append(prefix)
    return kept


def attacked(n: int, prefix: tuple[int, ...]) -> tuple[int, int, int]:
    """Masks of (columns, left diagonals, right diagonals) attacked in the row after ``prefix``."""
    columns = left = right = 0
    for row, column in enumerate(prefix):
        distance = len(prefix) - row
        columns |= 1 << column
        left |= 1 << (column + distance)
        right |= (1 << column) >> distance
    return columns, left, right


def images(board: tuple[int, ...]) -> set[tuple[int, ...]]:
    """The board under the eight symmetries of the square."""
    n = len(board)
    found = set()
    for _ in range(4):
        turned = [0] * n
        for row, column in enumerate(board):
            turned[column] = n - 1 - row
        board = tuple(turned)
        found |= {board, tuple(n - 1 - column for column in board)}
    return found


def distances(board: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Of the queens in the first row, last row, first column and last column from a corner."""
    n = len(board)
    places = (board[0], board[-1], board.index(0), board.index(n - 1))
    first, last, west, east = (min(place, n - 1 - place) for place in places)
    return first, last, west, east


def weight(board: tuple[int, ...]) -> Fraction:
    """For how many solutions this one stands if only the first queen in the left half (odd boards:
    or middle) with the largest distance counts."""
    n, found = len(board), distances(board)
    if 2 * board[0] > n - 1 or found[0] < max(found):
        return Fraction(0)
    return Fraction(4, found.count(found[0])) * (1 if 2 * board[0] == n - 1 else 2)


def visited(n: int, above: tuple[int, ...] = (), rows: int = 0) -> tuple[int, int]:
    """Queens placed by the search of one eighth, and twelve times the weights of its solutions; in
    the first ``rows`` rows only, if that is not 0.

    The first queen in a corner is left out; a middle one leaves the second row its left half.
    """
    row, queens, weights = len(above), 0, 0
    for column in range(n):
        board = (*above, column)
        if row == 0 and not 1 <= column <= (n - 1) // 2:
            continue
        if row == 1 and 2 * board[0] == n - 1 and 2 * column > n - 1:
            continue
        if any(column == c or abs(column - c) == row - r for r, c in enumerate(above)):
            continue
        largest, here = board[0], min(row, n - 1 - row)
        if column in (0, n - 1) and here > largest:
            continue
        if row == n - 1:
            if min(column, n - 1 - column) > largest:
                continue
            sides = distances(board).count(largest)
            below = 1, 12 * 4 * 2 // sides
        else:
            placed, found = visited(n, board, rows) if row + 1 != rows else (0, 0)
            below = 1 + placed, found
        queens += below[0]
        weights += below[1]
    return queens, weights
