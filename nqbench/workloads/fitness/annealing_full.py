"""The paper's search on the processor, compiled as a whole: every board is evaluated in full.

Evaluation and the rest alternate every few microseconds, and clocks between them would be a part of
what they time. So the walk runs a second time on the values of the first one, without evaluating:
that is the time of everything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.fitness import annealing_walk as walks
from nqbench.workloads.fitness.annealing_cooling import Cooling, Walk, shuffle_key
from nqbench.workloads.fitness.annealing_evaluators import COMPILED

KEPT: Final = 1 << 20
"""Values that are kept for the second walk; longer walks are scaled from that many (8 MB)."""

REPEATS: Final = 3
"""Of the second walk, whose least time counts, since it is short."""

_Compiled = Callable[..., int]
_advance = walks.advance


@dataclass(frozen=True, slots=True, eq=False)
class FullWalk:
    """A search that has ended. ``kept`` are the conflicts of its first boards, in order."""

    n: int
    key: int
    cooling: Cooling
    evaluator: str
    ended: Walk
    total_s: float
    kept: NDArray[np.int64]

    def phases(self) -> dict[str, float]:
        """Seconds of the evaluations and of all else; walks again without evaluating."""
        values = self.ended.evaluations + 1
        longer = max(1.0, values / self.kept.size)
        other_s = min(self.total_s, longer * min(self.remembered()[1] for _ in range(REPEATS)))
        return {
            "evaluation": self.total_s - other_s,
            "other": other_s,
            "total": self.total_s,
        }

    def remembered(self) -> tuple[Walk, float]:
        """The walk on the values that were kept, as far as they go, and its seconds."""
        _, remembered = _loops(self.evaluator)
        began = time.perf_counter()
        board, state, rest = _fresh(self.n, self.key, self.cooling)
        remembered(board, state, *rest, self.kept)
        return _walk_of(board, state), time.perf_counter() - began


def full_walk(n: int, key: int, cooling: Cooling, evaluator: str) -> FullWalk:
    """Anneal, every board evaluated by ``evaluator``."""
    evaluated, _ = _loops(evaluator)
    kept = np.empty(KEPT, np.int64)
    began = time.perf_counter()
    board, state, rest = _fresh(n, key, cooling)
    evaluated(board, state, *rest, kept)
    total_s = time.perf_counter() - began
    return FullWalk(n, key, cooling, evaluator, _walk_of(board, state), total_s, kept)


def _walk_of(board: NDArray[Any], state: NDArray[Any]) -> Walk:
    return Walk(board, *(int(state[at]) for at in (walks.CONFLICTS, walks.STEP, walks.ACCEPTED)))


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
    module, name = COMPILED[evaluator]
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
