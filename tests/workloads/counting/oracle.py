"""Independent truth for small boards, in plain Python and as unlike the kernels as it can be.

Queens are column numbers; two of them attack each other if they share a column or a diagonal.
"""

from __future__ import annotations

from collections import Counter
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


def eighth(n: int, depth: int) -> list[tuple[int, ...]]:
    """Placements of the first ``depth >= 2`` rows that the search of one eighth makes: no border
    queen is farther from a corner than the first one, who is not in a corner herself."""
    kept = []
    for prefix in jobs(n, depth, "restrict_second"):
        border = [min(r, n - 1 - r) for r, c in enumerate(prefix) if r and c in (0, n - 1)]
        border += [min(prefix[-1], n - 1 - prefix[-1])] if depth == n else []
        if prefix[0] and max(border, default=0) <= prefix[0]:
            kept.append(prefix)
    return kept


def from_the_middle(n: int, transposed: bool = False) -> Counter[tuple[int, int]]:
    """Solutions by the columns of their upper half and the queen of their middle row (31: no such
    row). ``transposed``: with H the largest distance from the centre in the middle row (rows, if n
    is even) and V that in the middle columns, those with V > H (even: V < H) count for both."""
    found: Counter[tuple[int, int]] = Counter()
    middle = {(n - 1) // 2, n // 2}
    for board in placements(n, n):
        h = max(abs(2 * board[r] - n + 1) for r in middle)
        v = max(abs(2 * board.index(c) - n + 1) for c in middle)
        twice = 1 if h == v else 2 * ((v > h) == (n % 2 == 1))
        group = sum(1 << c for c in board[: n // 2]), board[n // 2] if n % 2 else 31
        found[group] += twice if transposed else 1
    return found
