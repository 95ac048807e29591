"""Annealing on the processor: functions that host plans name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import HostResult, Outputs
from nqbench.workloads.fitness.annealing_cooling import (
    Cooling,
    Walk,
    shuffle_key,
    walk,
)

Evaluate = Callable[[NDArray[np.int32]], int]

_EVALUATORS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "cpu_serial": ("cpu_pairs", "serial_conflicts"),
        "cpu_histogram": ("cpu_histogram", "histogram_conflicts"),
    }
)


def walk_measured(n: int, key: int, cooling: Cooling, evaluate: Evaluate) -> tuple[Walk, float]:
    """Anneal with every board evaluated in full; also the seconds spent in ``evaluate``.

    The walk is that of ``reference_walk``, since evaluations are exact.
    """
    from nqbench.workloads.fitness import annealing_walk as walks  # numba: slow to import

    word = np.uint64(key)
    board = walks.shuffled(n, np.uint64(shuffle_key(key)))
    state = np.zeros(walks.STATE_WORDS, np.int64)
    state[walks.FIRST] = -1
    table, moves, limit = cooling.table(), cooling.moves(n), cooling.limit(n)
    clock, spent = time.perf_counter, 0.0
    going = True
    while going:
        began = clock()
        measured = evaluate(board)
        spent += clock() - began
        going = walks.advance(board, state, table, word, moves, limit, measured)
    conflicts, steps = int(state[walks.CONFLICTS]), int(state[walks.STEP])
    return Walk(board, conflicts, steps, int(state[walks.ACCEPTED])), spent


def anneal_full(n: int, key: int, evaluator: str, *schedule: float) -> HostResult:
    """``sa_cpu``: the paper's search. Phases ``evaluation``, ``other`` and ``total`` (seconds).

    ``schedule`` are the fields of ``Cooling``.
    """
    from importlib import import_module

    module, name = _EVALUATORS[evaluator]
    evaluate = getattr(import_module(f"nqbench.workloads.fitness.{module}"), name)
    began = time.perf_counter()
    ended, spent = walk_measured(n, key, cooling_of(schedule), evaluate)
    total = time.perf_counter() - began
    phases = {"evaluation": spent, "other": total - spent, "total": total}
    return HostResult(ended.conflicts, phases, outputs_of(ended))


def anneal_delta(n: int, key: int, *schedule: float) -> HostResult:
    """``sa_delta``: the same walk, each proposal in constant time by the counts of diagonals."""
    ended = walk(n, key, cooling_of(schedule))
    return HostResult(ended.conflicts, {}, outputs_of(ended))


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
