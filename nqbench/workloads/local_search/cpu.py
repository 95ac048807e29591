"""The paper's programs for one core (section 5 and appendix A), compiled by numba.

Both look up the city at a position through the tour each time, as the GPU versions do.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import CpuResult, Outputs
from nqbench.workloads.compiled import compiled
from nqbench.workloads.local_search.mapping import is_valid, positions


@compiled
def _distance(cities: NDArray[Any], a: int, b: int) -> Any:
    dx = cities[a, 0] - cities[b, 0]
    dy = cities[a, 1] - cities[b, 1]
    return np.sqrt(dx * dx + dy * dy)


@compiled
def _change(tour: NDArray[Any], cities: NDArray[Any], x: int, y: int) -> Any:
    """As ``change.change``, through the permutation."""
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
def best_by_number(
    tour: NDArray[Any], cities: NDArray[Any], mapping: int
) -> tuple[int, int, Any, int]:
    """``(x, y, change, invalid)`` over move numbers; ``invalid`` counts invalid pairs."""
    n = len(tour)
    best = np.float32(0.0)
    best_x, best_y, invalid = 0, 0, 0
    for k in range((n - 1) * (n - 2) // 2):
        x, y = positions(k, n, mapping)
        if not is_valid(x, y, n):
            invalid += 1
            continue
        delta = _change(tour, cities, x, y)
        if delta < best:
            best, best_x, best_y = delta, x, y
    return best_x, best_y, best, invalid


@compiled
def best_by_loops(
    tour: NDArray[Any],
    cities: NDArray[Any],
    mapping: int,  # noqa: ARG001 (so that both are called alike)
) -> tuple[int, int, Any, int]:
    """The same by two nested loops, in the same order and without a mapping."""
    n = len(tour)
    best = np.float32(0.0)
    best_x, best_y = 0, 0
    for x in range(1, n - 1):
        for y in range(x + 1, n):
            delta = _change(tour, cities, x, y)
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
