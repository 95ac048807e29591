"""The four loops as recursions over placements: which iteration places, which steps back.

Nothing is shared with the kernels or the compiled walk but the meaning of the loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

Prefix = tuple[int, ...]
WARP = 32


def open_columns(n: int, above: Prefix) -> list[int]:
    """Columns that no queen above attacks in the next row."""
    row = len(above)
    return [
        column
        for column in range(n)
        if all(column != c and abs(column - c) != row - r for r, c in enumerate(above))
    ]


def steps(n: int, prefix: Prefix, loop: str) -> Iterator[bool]:
    """The iterations of one job, in order: True places a queen, False steps back."""
    last = len(prefix) == n - 1
    for column in open_columns(n, prefix):
        yield True
        if last and loop != "branchy":
            return  # the placement itself is the way back
        below = (*prefix, column)
        if not last and (loop != "irrc" or open_columns(n, below)):
            yield from steps(n, below, loop)
    yield False


def traces(n: int, jobs: Sequence[Prefix], loop: str) -> list[list[bool]]:
    """The iterations of every job."""
    return [list(steps(n, prefix, "branchy" if loop == "place_first" else loop)) for prefix in jobs]


def lockstep(lanes: Sequence[Sequence[bool]]) -> tuple[int, int, int]:
    """Passes of a warp whose lanes run in step, those that split, and lanes over all passes."""
    passes = [
        [step for step in now if step is not None]
        for now in zip_longest(*lanes)  # None: this lane has finished
    ]
    return len(passes), sum(len(set(now)) == 2 for now in passes), sum(map(len, passes))


def warps(found: Sequence[Sequence[bool]]) -> list[Sequence[Sequence[bool]]]:
    """Consecutive jobs, one per lane."""
    return [found[i : i + WARP] for i in range(0, len(found), WARP)]
