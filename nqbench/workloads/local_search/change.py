"""Cost changes in single precision, as ``distance.cuh`` computes them, bit for bit (numba).

``places`` are coordinates in tour order, float32, shape ``(n, 2)``. Numba neither contracts nor
reorders these operations, and IEEE 754 fixes the square root, so that every device agrees.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled


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
