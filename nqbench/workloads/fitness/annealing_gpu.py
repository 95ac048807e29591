"""``sa_gpu``: the paper's search with a GPU scheme as its evaluator, as a program."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.facts import DeviceFacts
from nqbench.plan import ProgramContext, ProgramPlan
from nqbench.workloads.fitness import gpu_plans
from nqbench.workloads.fitness.annealing_cooling import Cooling, chain_key
from nqbench.workloads.fitness.annealing_evaluators import evaluator_levels
from nqbench.workloads.fitness.annealing_factors import EVALUATOR_LEVELS
from nqbench.workloads.fitness.annealing_host import cooling_of, outputs_of, walk_measured
from nqbench.workloads.fitness.levels import Levels
from nqbench.workloads.fitness.programs import conflicts_of
from nqbench.workloads.levels import number

PROGRAM: Final = "nqbench.workloads.fitness.annealing_gpu:anneal"
EVALUATION: Final = "evaluation"
"""The phase of whole evaluations: allocation, copies and kernels, and the host's part in them."""


def settle_evaluator(levels: Levels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Resolve the evaluator's factors in place; its numbers, for one evaluation.

    Raises ``InfeasibleError`` for a scheme of the processor and for a factor it does not have.
    """
    own = evaluator_levels(levels)
    derived = gpu_plans.settle(own, device)
    levels |= {name: own[name] for name in EVALUATOR_LEVELS}
    return derived


def program_plan(levels: Levels, device: DeviceFacts) -> ProgramPlan:
    """The evaluator's plan, driven by the search."""
    n, key = number(levels, "n"), chain_key(number(levels, "seed"))
    start = np.arange(n, dtype=np.int32)[np.newaxis, :]
    base = gpu_plans.make_plan(evaluator_levels(levels), start, device)
    schedule = astuple(Cooling.from_levels(levels))
    return replace(
        base,
        name="fitness.anneal",
        function=PROGRAM,
        arguments=(n, key, schedule, *base.arguments),
        groups=(EVALUATION,),
    )


def anneal(
    context: ProgramContext, n: int, key: int, schedule: tuple[float, ...], *evaluation: Any
) -> None:
    """The search; ``evaluation`` are the arguments of ``programs.evaluate``."""

    def evaluate(board: NDArray[np.int32]) -> int:
        with context.group(EVALUATION):
            return int(conflicts_of(context, board, *evaluation)[0])

    ended = walk_measured(n, key, cooling_of(schedule), evaluate)
    for name, values in outputs_of(ended).items():
        context.keep(name, values)
