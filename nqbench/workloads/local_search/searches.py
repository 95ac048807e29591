"""Searches on the CPU, compiled by numba: the paper's programs for one core, and the reference.

Move numbers are mapped to positions as in ``mapping.cuh``, and changes computed as in
``distance.cuh``, identical in every bit: numba neither contracts nor reorders single precision, and
IEEE 754 fixes the square root. So every device agrees with the reference, and the wrong pairs of a
GPU can be counted without one.

The paper's programs (section 5 and appendix A, :func:`search`) look up the city at a position
through the tour each time, as the GPU versions do.

The reference (:func:`reference_search`) finds its tour in another way than any system. A swap of x
and y changes the cost changes only of moves that touch x - 1 .. x + 1 or y - 1 .. y + 1. So the
best move of each row (all moves with one x) is kept, and after a swap six columns of each row and
six rows are evaluated again: some 12 n moves per iteration instead of n^2 / 2. The moves taken are
identical to those of a search that evaluates all.

``cities`` are coordinates, float32 of shape ``(n, 2)``, and ``tour`` the city at each position.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import CpuResult, Outputs
from nqbench.workloads.compiled import compiled
from nqbench.workloads.local_search.factors import MAPPING_CODES, THRESHOLD
from nqbench.workloads.local_search.instance import load_instance

Words = NDArray[Any]
QUADRATIC: Final = MAPPING_CODES["quadratic"]
RECTANGLE: Final = MAPPING_CODES["rectangle"]

_HALF: Final = np.float32(0.5)
_FOUR: Final = np.float32(4.0)
_EIGHT: Final = np.float32(8.0)
_ZERO: Final = np.float32(0.0)


@compiled
def positions(k: int, n: int, mapping: int) -> tuple[int, int]:
    """Positions ``(x, y)`` of move ``k``; not a valid pair where single precision fails."""
    m = n - 1
    if mapping == RECTANGLE:
        width = m if m % 2 == 1 else m - 1
        row = k // width
        column = k - row * width
        length = m - 1 - row
        if column < length:
            return row + 1, row + 2 + column
        return m - (width - length), m - (column - length)
    b = np.float32(2 * m - 1)
    number = np.float32(k)
    under = b * b - _EIGHT * number
    # A GPU turns NaN into row 0, which is as invalid here.
    root = np.sqrt(under) if under >= _ZERO else b
    row = int((b - root) * _HALF) if mapping == QUADRATIC else int(_FOUR * number / (b + root))
    return row + 1, k - (row * m - row * (row + 1) // 2) + row + 2


@compiled
def is_valid(x: int, y: int, n: int) -> bool:
    """Whether a pair is a move."""
    return 1 <= x < y < n


@compiled
def rank(x: int, y: int, n: int, mapping: int) -> int:
    """Number of the move (x, y): the inverse of ``positions``, in exact integers."""
    m = n - 1
    row = x - 1
    if mapping == RECTANGLE:
        width = m if m % 2 == 1 else m - 1
        height = m * (m - 1) // 2 // width
        if row < height:
            return row * width + (y - 2 - row)
        length = m - x  # of the reversed row
        return (m - 1 - (width - length)) * width + (width - length) + (m - y)
    return row * m - row * (row + 1) // 2 + (y - x - 1)


@compiled
def _distance(cities: Words, a: int, b: int) -> Any:
    dx = cities[a, 0] - cities[b, 0]
    dy = cities[a, 1] - cities[b, 1]
    return np.sqrt(dx * dx + dy * dy)


@compiled
def change(tour: Words, cities: Words, x: int, y: int) -> Any:
    """Change of the length (float32) if positions ``1 <= x < y`` swap their cities; neighbours keep
    the edge between them, so that only two edges of each other remain to change."""
    n = len(tour)
    before_x, at_x = tour[x - 1], tour[x]
    at_y, after_y = tour[y], tour[y + 1 if y + 1 < n else 0]
    if y == x + 1:
        added = _distance(cities, before_x, at_y) + _distance(cities, at_x, after_y)
        taken = _distance(cities, before_x, at_x) + _distance(cities, at_y, after_y)
        return added - taken
    after_x, before_y = tour[x + 1], tour[y - 1]
    added = (_distance(cities, before_x, at_y) + _distance(cities, at_y, after_x)) + (
        _distance(cities, before_y, at_x) + _distance(cities, at_x, after_y)
    )
    taken = (_distance(cities, before_x, at_x) + _distance(cities, at_x, after_x)) + (
        _distance(cities, before_y, at_y) + _distance(cities, at_y, after_y)
    )
    return added - taken


@compiled
def best_by_number(tour: Words, cities: Words, mapping: int) -> tuple[int, int, Any, int]:
    """``(x, y, change, invalid)`` over move numbers; ``invalid`` counts invalid pairs."""
    n = len(tour)
    best = np.float32(0.0)
    best_x, best_y, invalid = 0, 0, 0
    for k in range((n - 1) * (n - 2) // 2):
        x, y = positions(k, n, mapping)
        if not is_valid(x, y, n):
            invalid += 1
            continue
        delta = change(tour, cities, x, y)
        if delta < best:
            best, best_x, best_y = delta, x, y
    return best_x, best_y, best, invalid


def invalid_moves(n: int, mapping: str) -> int:
    """How many move numbers a mapping sends outside the neighbourhood, for any tour."""
    return int(_invalid(n, MAPPING_CODES[mapping]))


@compiled
def _invalid(n: int, mapping: int) -> int:
    count = 0
    for k in range((n - 1) * (n - 2) // 2):
        x, y = positions(k, n, mapping)
        if not is_valid(x, y, n):
            count += 1
    return count


@compiled
def best_by_loops(tour: Words, cities: Words, _mapping: int) -> tuple[int, int, Any, int]:
    """The same by two nested loops, in the same order; it takes a mapping, but needs none."""
    n = len(tour)
    best = np.float32(0.0)
    best_x, best_y = 0, 0
    for x in range(1, n - 1):
        for y in range(x + 1, n):
            delta = change(tour, cities, x, y)
            if delta < best:
                best, best_x, best_y = delta, x, y
    return best_x, best_y, best, 0


_SEARCHES = {"numbers": best_by_number, "loops": best_by_loops}


def search(
    cities: NDArray[np.float32],
    start: NDArray[np.uint32],
    iterations: int,
    threshold: float,
    enumeration: str,
    mapping: int,
) -> CpuResult:
    """Local search from ``start``, at most ``iterations`` moves.

    ``enumeration`` is ``numbers`` or ``loops``. Phases: ``evaluation``, ``apply``, ``total``.
    Outputs: ``tour``, ``changes`` (applied, in order), ``invalid`` (move numbers mapped outside the
    neighbourhood), ``evaluations``, ``applied``.
    """
    find = _SEARCHES[enumeration]
    tour = start.copy()
    changes: list[float] = []
    evaluations, invalid = 0, 0
    evaluation_s = apply_s = 0.0
    started = time.perf_counter()
    while len(changes) < iterations:
        began = time.perf_counter()
        x, y, best, missed = find(tour, cities, mapping)
        ended = time.perf_counter()
        evaluation_s += ended - began
        evaluations += 1
        invalid += missed
        if best > np.float32(threshold):
            break
        tour[x], tour[y] = tour[y], tour[x]
        changes.append(best)
        apply_s += time.perf_counter() - ended
    outputs: Outputs = {
        "tour": tour,
        "changes": np.array(changes, np.float32),
        "invalid": np.array([invalid], np.uint64),
        "evaluations": np.array([evaluations], np.uint64),
        "applied": np.array([len(changes)], np.uint64),
    }
    total_s = time.perf_counter() - started
    phases = {"evaluation": evaluation_s, "apply": apply_s, "total": total_s}
    return CpuResult(len(changes), phases, outputs)


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
    tour: Words, cities: Words, x: int, y: int, last: int, best_y: int, best: Any, mapping: int
) -> tuple[int, Any]:
    """The better of (best_y, best) and the moves (x, y .. last); ``best_y`` 0: none yet."""
    n = len(tour)
    for other in range(y, last + 1):
        delta = change(tour, cities, x, other)
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
    cities: Words, tour: Words, iterations: int, threshold: np.float32, mapping: int, changes: Words
) -> tuple[int, int]:
    n = len(tour)
    best_y = np.zeros(n, np.int64)
    best = np.zeros(n, np.float32)
    for x in range(1, n - 1):
        best_y[x], best[x] = _best_of_row(tour, cities, x, x + 1, n - 1, 0, best[x], mapping)
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
        tour[x], tour[y] = tour[y], tour[x]
        for row in range(1, n - 1):
            near_x = abs(row - x) <= _REACH or abs(row - y) <= _REACH
            stale = abs(best_y[row] - x) <= _REACH or abs(best_y[row] - y) <= _REACH
            if near_x or stale:
                best_y[row], best[row] = _best_of_row(
                    tour, cities, row, row + 1, n - 1, 0, best[row], mapping
                )
                continue
            for middle in (x, y):
                first, last = max(middle - _REACH, row + 1), min(middle + _REACH, n - 1)
                best_y[row], best[row] = _best_of_row(
                    tour, cities, row, first, last, best_y[row], best[row], mapping
                )
    return iterations, iterations


@lru_cache(maxsize=64)
def reference_search(n: int, seed: int, iterations: int, mapping: str) -> Search:
    """Best-improvement local search from the instance's start, at most ``iterations`` moves.

    Among equally good moves the first in the order of ``mapping`` is taken: lexicographic for the
    two formulas with a root, the rectangle's own for that.
    """
    given = load_instance(n, seed)
    tour = given.start.copy()
    changes = np.zeros(iterations, np.float32)
    code = MAPPING_CODES[mapping]
    applied, evaluations = _run(
        given.cities, tour, iterations, np.float32(THRESHOLD), code, changes
    )
    return Search(tour, int(applied), int(evaluations), changes[:applied])
