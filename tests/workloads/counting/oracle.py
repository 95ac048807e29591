"""Independent truth for small boards, in plain Python and as unlike the kernels as it can be.

Queens are column numbers; two of them attack each other if they share a column or a diagonal.
"""

from __future__ import annotations

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
