"""``sa_cpu``: the paper's search with a scheme of the processor as its evaluator, as a plan.

With a scheme of one thread the search is compiled as a whole (``annealing_full``). One of several
threads is called for every board, as the paper's programs call theirs: it starts its threads, or
wakes TBB's, each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import CpuPlan, CpuResult
from nqbench.point import Level
from nqbench.workloads.fitness import cpu
from nqbench.workloads.fitness.annealing_cooling import Cooling
from nqbench.workloads.fitness.annealing_evaluators import COMPILED, evaluator_levels
from nqbench.workloads.fitness.annealing_factors import HOST_EVALUATOR_LEVELS
from nqbench.workloads.fitness.annealing_host import cooling_of, outputs_of, walk_measured
from nqbench.workloads.fitness.levels import Levels
from nqbench.workloads.levels import number

_HOST: Final = "nqbench.workloads.fitness.annealing_host:anneal_full"
_HERE: Final = "nqbench.workloads.fitness.annealing_cpu:anneal_in_threads"
_WARM_N: Final = 8
_WARM_LIMIT: Final = 16
"""Proposals of a warm-up, which is there to compile; each may start a thread per core."""


def settle_evaluator(levels: Levels) -> None:
    """Resolve the evaluator's factors in place; refuse what cannot evaluate on the processor.

    Raises ``InfeasibleError``, and ``WrongDeviceError`` for ``cpu_tbb`` without TBB.
    """
    own = evaluator_levels(levels)
    cpu.check_packages(own)
    levels |= {name: own[name] for name in HOST_EVALUATOR_LEVELS}


def host_plan(levels: Mapping[str, Level], key: int, cooling: Cooling) -> CpuPlan:
    """The search for resolved ``levels``; ``threads: auto`` is looked up, or measured first."""
    n, evaluator, schedule = number(levels, "n"), str(levels["evaluator"]), astuple(cooling)
    if evaluator in COMPILED:
        rest = (key, evaluator, *schedule)
        return CpuPlan("fitness.anneal_full", _HOST, (n, *rest), (_WARM_N, *rest))
    one = cpu.host_plan(evaluator_levels(levels), np.arange(n, dtype=np.int32)[np.newaxis, :])
    setting = one.arguments[1] if len(one.arguments) > 1 else 0
    warm_up = astuple(replace(cooling, max_evaluations=_WARM_LIMIT))
    return CpuPlan(
        "fitness.anneal_in_threads",
        _HERE,
        (n, key, evaluator, setting, *schedule),
        (_WARM_N, key, evaluator, min(setting, 2), *warm_up),
        one.about,
    )


def anneal_in_threads(
    n: int, key: int, evaluator: str, setting: int, *schedule: float
) -> CpuResult:
    """The search, every board evaluated by several threads.

    ``setting``: the threads of ``cpu_threads``, the threshold of ``cpu_forkjoin``. Phases
    ``evaluation`` (clocked around each call, which is many times longer than reading the clock),
    ``other`` and ``total``, in seconds.
    """
    evaluate = _evaluation(evaluator, setting)
    spent = 0.0

    def clocked(board: NDArray[np.int32]) -> int:
        nonlocal spent
        began = time.perf_counter()
        conflicts = evaluate(board)
        spent += time.perf_counter() - began
        return conflicts

    began = time.perf_counter()
    ended = walk_measured(n, key, cooling_of(schedule), clocked)
    total = time.perf_counter() - began
    phases = {"evaluation": spent, "other": total - spent, "total": total}
    return CpuResult(ended.conflicts, phases, outputs_of(ended))


def _evaluation(evaluator: str, setting: int) -> Callable[[NDArray[np.int32]], int]:
    if evaluator == "cpu_threads":
        return lambda board: cpu.threads(board, setting)
    if evaluator == "cpu_forkjoin":
        return lambda board: cpu.fork_join(board, setting)
    return cpu.tbb
