"""Instances: the coordinates of the cities, and the tour that a search starts from.

They are drawn from a seed: coordinates uniform on the multiples of 2^-24 in [0, 1), each the top 24
bits of a word of PCG64, so single precision holds them exactly and every version of numpy gives the
same ones. The paper names neither its distribution nor its seed. Its
threshold of -1e-7 for a change that counts suggests a unit square.

Distances are Euclidean in single precision, as the paper's are. (TSPLIB rounds each to an integer.)

The slack of an instance (:func:`slack`) says how far a rough change of our kernels may be from the
exact one. Both kernels (``tiled.cuh``) evaluate every move with an approximate root, and only those
that may be the best with the exact arithmetic. That is safe as long as
``|rough - exact| <= slack`` for every move of an instance. With u = 2^-24, D the largest distance
and every sum of two distances at most 2 D, of four at most 4 D:

- A squared distance is rounded twice in either way of computing it (three times exactly, twice
  rough, the difference of the coordinates alike in both): 2 u, of which the root leaves u. The
  exact root adds u, the rough one ``ROOT_ERROR`` = 8 u. The two differ by at most 11 u D, and the
  eight distances of a move by 88 u D.
- Exact sums: twice 2 + 2 + 4, and the difference 4, in all 20 u D.
- Rough sums: those of the new distances 2 + 2 + 4, of the old ones 2 + 2, and the difference 4, in
  all 16 u D. The slack is added to the best known change and rounded up, which keeps more moves.
- Neighbours on the tour: the same eight distances, of which two are exactly zero and the edge
  between them stands twice; adding it back is one more sum, 4 u D.

That is 128 u D; ``_ROUNDINGS`` has room for the products of errors. Squares that underflow, or that
the approximate root takes for zero, are below 2^-126, so that a distance loses 2^-63 at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MANTISSA_BITS: Final = 24
_CITIES, _TOUR = 0, 1  # streams of one seed
_KEPT: Final = 8  # instances of one study and its neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """``cities``: coordinates, float32, shape ``(n, 2)``; ``start``: the city at each position of
    the first tour, uint32, shape ``(n,)``. Both are read-only."""

    cities: NDArray[np.float32]
    start: NDArray[np.uint32]

    @property
    def n(self) -> int:
        """Cities."""
        return len(self.start)


@lru_cache(maxsize=_KEPT)
def load_instance(n: int, seed: int) -> Instance:
    """The instance of ``n`` cities for a seed, and its start."""
    cities, start = uniform_cities(n, seed), random_tour(n, seed)
    cities.setflags(write=False)
    start.setflags(write=False)
    return Instance(cities, start)


def uniform_cities(n: int, seed: int) -> NDArray[np.float32]:
    """Coordinates of ``n`` cities in the unit square, shape ``(n, 2)``."""
    words = _words(seed, _CITIES, 2 * n) >> np.uint64(64 - _MANTISSA_BITS)
    return (words.astype(np.float32) * np.float32(2.0**-_MANTISSA_BITS)).reshape(n, 2)


def random_tour(n: int, seed: int) -> NDArray[np.uint32]:
    """A random order of the cities: they are sorted by random words (ties: by number)."""
    return np.argsort(_words(seed, _TOUR, n), kind="stable").astype(np.uint32)


def _words(seed: int, stream: int, count: int) -> NDArray[np.uint64]:
    generator = np.random.PCG64(np.random.SeedSequence([seed, stream]))
    return np.asarray(generator.random_raw(count), np.uint64)


ROOT_ERROR: Final = 2.0**-21
"""Largest relative error assumed of ``sqrt.approx.ftz.f32``: 4 units in the last place. OpenCL,
whose root in single precision it may be, allows 3; ``tests/gpu`` checks all normal numbers."""

_U: Final = 2.0**-24
_ROUNDINGS: Final = 160
_UNDERFLOW: Final = 2.0**-56
_LARGEST: Final = 2.0**60
"""Beyond this distance only one of the two computations might overflow."""


def slack(cities: NDArray[Any]) -> np.float32:
    """Bound on ``|rough - exact|`` for all moves on ``cities``, float32 of shape ``(n, 2)``.

    Infinite, so that every move is computed exactly, where distances might overflow. The module's
    docstring derives it.
    """
    farthest = math.hypot(*np.ptp(cities.astype(np.float64), axis=0))
    if not farthest < _LARGEST:  # also for NaN
        return np.float32(np.inf)
    bound = np.float32(_ROUNDINGS * _U * farthest + _UNDERFLOW)
    return np.float32(np.nextafter(bound, np.float32(np.inf)))
