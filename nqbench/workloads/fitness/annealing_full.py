"""The paper's search on the processor, compiled as a whole: every board is evaluated in full.

Evaluation and the rest alternate every few microseconds, and clocks between them would be a part of
what they time. So the walk runs a second time on the values of the first one, without evaluating:
that is the time of everything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.fitness import annealing_walk as walks
from nqbench.workloads.fitness.annealing_cooling import Cooling, Walk, shuffle_key

KEPT: Final = 1 << 20
"""Values that are kept for the second walk; longer walks are scaled from that many (8 MB)."""

_EVALUATORS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "cpu_serial": ("cpu_pairs", "serial_conflicts"),
        "cpu_histogram": ("cpu_histogram", "histogram_conflicts"),
    }
)
REPEATS: Final = 3

_Compiled = Callable[..., int]
_other_s: dict[tuple[int, int, Cooling, str], float] = {}
_advance = walks.advance


def full_walk(n: int, key: int, cooling: Cooling, evaluator: str) -> tuple[Walk, float, float]:
    """Anneal; the walk, its seconds, and those of all but the evaluations.

    The second walk is made once in a process, so that a repeated (and timed) call is the search.
    """
    evaluated, _ = _loops(evaluator)
    kept = np.empty(KEPT, np.int64)
    began = time.perf_counter()
    board, state, rest = _fresh(n, key, cooling)
    evaluated(board, state, *rest, kept)
    total_s = time.perf_counter() - began
    steps = int(state[walks.STEP])
    which = (n, key, cooling, evaluator)
    if which not in _other_s:
        _other_s[which] = _remembered_s(n, key, cooling, evaluator, kept)
    other_s = min(total_s, _other_s[which] * max(1.0, (steps + 1) / KEPT))
    ended = Walk(board, int(state[walks.CONFLICTS]), steps, int(state[walks.ACCEPTED]))
    return ended, total_s, other_s


def _remembered_s(
    n: int, key: int, cooling: Cooling, evaluator: str, kept: NDArray[np.int64]
) -> float:
    """Seconds of the walk that looks up; the least of some, since it is short."""
    _, remembered = _loops(evaluator)
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        board, state, rest = _fresh(n, key, cooling)
        remembered(board, state, *rest, kept)
        times.append(time.perf_counter() - began)
    return min(times)


def _fresh(n: int, key: int, cooling: Cooling) -> tuple[NDArray[Any], NDArray[Any], Any]:
    state = np.zeros(walks.STATE_WORDS, np.int64)
    state[walks.FIRST] = -1
    board = walks.shuffled(n, np.uint64(shuffle_key(key)))
    rest = (cooling.table(), np.uint64(key), cooling.moves(n), cooling.limit(n))
    return board, state, rest


@lru_cache
def _loops(evaluator: str) -> tuple[_Compiled, _Compiled]:
    """The walk that evaluates and keeps, and the one that looks up.

    Not cached on disk: a cached copy would not notice a change of the evaluator's file.
    """
    module, name = _EVALUATORS[evaluator]
    evaluate = getattr(import_module(f"nqbench.workloads.fitness.{module}"), name)

    def evaluated(board, state, table, key, moves, limit, kept):  # type: ignore[no-untyped-def]
        count = 0
        going = True
        while going:
            measured = evaluate(board)
            if count < kept.size:
                kept[count] = measured
            count += 1
            going = _advance(board, state, table, key, moves, limit, measured)
        return count

    def remembered(board, state, table, key, moves, limit, kept):  # type: ignore[no-untyped-def]
        count = 0
        going = True
        while going and count < kept.size:
            going = _advance(board, state, table, key, moves, limit, kept[count])
            count += 1
        return count

    compiled = numba.njit(nogil=True)
    return compiled(evaluated), compiled(remembered)
