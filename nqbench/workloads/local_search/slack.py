"""How far a rough change of our kernels may be from the exact one.

Both kernels of ours (``tiled.cuh``) look at every move with an approximate root, and only at those
that may be the best with the arithmetic that decides. That is safe as long as
``|rough - exact| <= slack`` for every move of an instance. With u = 2^-24, D the largest distance
and every sum of two distances at most 2 D, of four at most 4 D:

- A squared distance is rounded twice in either way of computing it (three times exactly, twice
  rough, the difference of the coordinates alike in both): 2 u, of which the root leaves u. The
  exact root adds u, the rough one ``ROOT_ERROR`` = 8 u. The two differ by at most 11 u D, and the
  eight distances of a move by 88 u D.
- Exact sums: twice 2 + 2 + 4, and the difference 4, in all 20 u D.
- Rough sums: those of the new distances 2 + 2 + 4, of the old ones 2 + 2, and the difference 4, in
  all 16 u D. What is added to the best known change is rounded upwards, which keeps more moves.
- Neighbours on the tour: the same eight distances, of which two are exactly zero and the edge
  between them stands twice; adding it back is one more sum, 4 u D.

That is 128 u D; ``_ROUNDINGS`` has room for the products of errors. Squares that underflow, or that
the approximate root takes for zero, are below 2^-126, so that a distance loses 2^-63 at most.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROOT_ERROR: Final = 2.0**-21
"""Largest relative error assumed of ``sqrt.approx.ftz.f32``: 4 units in the last place. OpenCL,
whose root in single precision it may be, allows 3; ``tests/gpu`` looks at all normal numbers."""

_U: Final = 2.0**-24
_ROUNDINGS: Final = 160
_UNDERFLOW: Final = 2.0**-56
_LARGEST: Final = 2.0**60
"""Beyond this distance squares and their sums might overflow in one way of computing them only."""


def slack(cities: NDArray[Any]) -> np.float32:
    """Bound on ``|rough - exact|`` for all moves on ``cities``, float32 of shape ``(n, 2)``.

    Infinite, so that every move is computed exactly, where distances might overflow.
    """
    extent = np.ptp(cities.astype(np.float64), axis=0)
    farthest = math.hypot(*extent)
    if not farthest < _LARGEST:  # also if there is a NaN
        return np.float32(np.inf)
    bound = np.float32(_ROUNDINGS * _U * farthest + _UNDERFLOW)
    return np.float32(np.nextafter(bound, np.float32(np.inf)))
