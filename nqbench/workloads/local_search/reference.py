"""The tour that a correct search ends with, computed in another way than by any system.

A swap of x and y changes the cost changes only of moves that touch x - 1 .. x + 1 or
y - 1 .. y + 1. So the best move of each row (all moves with one x) is kept, and after a swap six
columns of each row and six rows are evaluated again: some 12 n moves per iteration instead of
n^2 / 2. The moves taken are identical to those of a search that evaluates all.

Cost changes are computed in single precision exactly as in ``distance.cuh``. Numba neither
contracts nor reorders these operations, and IEEE 754 fixes the square root, so every device agrees.
``places`` are coordinates in tour order, float32, shape ``(n, 2)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled
from nqbench.workloads.local_search.factors import MAPPING_CODES, THRESHOLD
from nqbench.workloads.local_search.instance import load_instance
from nqbench.workloads.local_search.mapping import rank


@compiled
def distance(places: NDArray[Any], p: int, q: int) -> np.float32:
    """Between the cities at positions ``p`` and ``q``."""
    dx = places[p, 0] - places[q, 0]
    dy = places[p, 1] - places[q, 1]
    return np.sqrt(dx * dx + dy * dy)  # type: ignore[no-any-return]


@compiled
def change(places: NDArray[Any], x: int, y: int) -> np.float32:
    """Change of the length if positions ``1 <= x < y`` swap their cities; neighbours keep the edge
    between them, so that only two edges of each other remain to change."""
    after = y + 1 if y + 1 < len(places) else 0
    if y == x + 1:
        added = distance(places, x - 1, y) + distance(places, x, after)
        taken = distance(places, x - 1, x) + distance(places, y, after)
        return added - taken
    added = (distance(places, x - 1, y) + distance(places, y, x + 1)) + (
        distance(places, y - 1, x) + distance(places, x, after)
    )
    taken = (distance(places, x - 1, x) + distance(places, x, x + 1)) + (
        distance(places, y - 1, y) + distance(places, y, after)
    )
    return added - taken


@compiled
def swap(tour: NDArray[Any], places: NDArray[Any], x: int, y: int) -> None:
    """Swap two positions in the tour and in the coordinates kept in its order."""
    city = tour[x]
    tour[x] = tour[y]
    tour[y] = city
    for axis in range(2):
        value = places[x, axis]
        places[x, axis] = places[y, axis]
        places[y, axis] = value


_KEPT: Final = 64
_REACH: Final = 1  # a move's change reads its positions' neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Where a search ends: the ``tour``; how many moves were ``applied`` and how often the whole
    neighbourhood was evaluated (``evaluations``); and the changes applied, in order."""

    tour: NDArray[np.uint32]
    applied: int
    evaluations: int
    changes: NDArray[np.float32]


@compiled
def _best_of_row(
    places: NDArray[Any], x: int, y: int, last: int, best_y: int, best: Any, mapping: int
) -> tuple[int, Any]:
    """The better of (best_y, best) and the moves (x, y .. last); ``best_y`` 0: none yet."""
    n = len(places)
    for other in range(y, last + 1):
        delta = change(places, x, other)
        if (
            best_y == 0
            or delta < best
            or (delta == best and rank(x, other, n, mapping) < rank(x, best_y, n, mapping))
        ):
            best = delta
            best_y = other
    return best_y, best


@compiled
def _run(
    cities: NDArray[Any],
    tour: NDArray[Any],
    iterations: int,
    threshold: np.float32,
    mapping: int,
    changes: NDArray[Any],
) -> tuple[int, int]:
    n = len(tour)
    places = np.empty_like(cities)
    for p in range(n):
        places[p] = cities[tour[p]]
    best_y = np.zeros(n, np.int64)
    best = np.zeros(n, np.float32)
    for x in range(1, n - 1):
        best_y[x], best[x] = _best_of_row(places, x, x + 1, n - 1, 0, best[x], mapping)
    for applied in range(iterations):
        x = 1
        for other in range(2, n - 1):
            if best[other] < best[x] or (
                best[other] == best[x]
                and rank(other, best_y[other], n, mapping) < rank(x, best_y[x], n, mapping)
            ):
                x = other
        if best[x] > threshold:
            return applied, applied + 1
        y = best_y[x]
        changes[applied] = best[x]
        swap(tour, places, x, y)
        for row in range(1, n - 1):
            near_x = abs(row - x) <= _REACH or abs(row - y) <= _REACH
            stale = abs(best_y[row] - x) <= _REACH or abs(best_y[row] - y) <= _REACH
            if near_x or stale:
                best_y[row], best[row] = _best_of_row(
                    places, row, row + 1, n - 1, 0, best[row], mapping
                )
                continue
            for middle in (x, y):
                first, last = max(middle - _REACH, row + 1), min(middle + _REACH, n - 1)
                best_y[row], best[row] = _best_of_row(
                    places, row, first, last, best_y[row], best[row], mapping
                )
    return iterations, iterations


@lru_cache(maxsize=_KEPT)
def reference_search(instance: str, n: int, seed: int, iterations: int, mapping: str) -> Search:
    """Best-improvement local search from the instance's start, at most ``iterations`` moves.

    Among equally good moves the first in the order of ``mapping`` is taken: lexicographic for the
    two formulas with a root, the rectangle's own for that.
    """
    given = load_instance(instance, n, seed)
    tour = given.start.copy()
    changes = np.zeros(iterations, np.float32)
    code = MAPPING_CODES[mapping]
    applied, evaluations = _run(
        given.cities, tour, iterations, np.float32(THRESHOLD), code, changes
    )
    return Search(tour, int(applied), int(evaluations), changes[:applied])
