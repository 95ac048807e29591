"""Annealing on the processor: functions that host plans name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import CpuResult, Outputs
from nqbench.workloads.fitness.annealing_cooling import (
    Cooling,
    Walk,
    shuffle_key,
    walk,
)

Evaluate = Callable[[NDArray[np.int32]], int]


def walk_measured(n: int, key: int, cooling: Cooling, evaluate: Evaluate) -> Walk:
    """Anneal with every board evaluated in full by ``evaluate``.

    The walk is that of ``annealing_cooling.walk``, since evaluations are exact.
    """
    from nqbench.workloads.fitness import annealing_walk as walks  # numba: slow to import

    board = walks.shuffled(n, np.uint64(shuffle_key(key)))
    state = np.zeros(walks.STATE_WORDS, np.int64)
    state[walks.FIRST] = -1
    word, table = np.uint64(key), cooling.table()
    moves, limit = cooling.moves(n), cooling.limit(n)
    while walks.advance(board, state, table, word, moves, limit, evaluate(board)):
        pass
    conflicts, steps = int(state[walks.CONFLICTS]), int(state[walks.STEP])
    return Walk(board, conflicts, steps, int(state[walks.ACCEPTED]))


def anneal_full(n: int, key: int, evaluator: str, *schedule: float) -> CpuResult:
    """``sa_cpu``: the paper's search. Phases ``evaluation``, ``other`` and ``total`` (seconds).

    ``schedule`` are the fields of ``Cooling``.
    """
    from nqbench.workloads.fitness.annealing_full import full_walk  # numba: slow to import

    done = full_walk(n, key, cooling_of(schedule), evaluator)
    return CpuResult(done.ended.conflicts, done.phases, outputs_of(done.ended))


def anneal_delta(n: int, key: int, *schedule: float) -> CpuResult:
    """``sa_delta``: the same walk, each proposal in constant time by the counts of diagonals."""
    ended = walk(n, key, cooling_of(schedule))
    return CpuResult(ended.conflicts, {}, outputs_of(ended))


def cooling_of(schedule: Sequence[float]) -> Cooling:
    """The schedule out of the plain numbers that a plan holds."""
    start, end, factor, moves, limit, attacked = schedule
    return Cooling(start, end, factor, int(moves), int(limit), attacked=bool(attacked))


def outputs_of(ended: Walk) -> Outputs:
    """What ``annealing.answer`` and ``annealing.findings`` read; arrays of shape ``(1,)`` and the
    board of shape ``(1, n)``."""
    return {
        "boards": ended.board[np.newaxis, :],
        "conflicts": np.array([ended.conflicts], np.uint64),
        "steps": np.array([ended.evaluations], np.uint32),
        "accepted": np.array([ended.accepted], np.uint32),
    }
