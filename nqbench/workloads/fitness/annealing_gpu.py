"""``sa_gpu``: the paper's search with a GPU scheme as its evaluator, as a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.machine import Machine
from nqbench.plan import ProgramPlan
from nqbench.point import Level
from nqbench.workloads.fitness import gpu_plans
from nqbench.workloads.fitness.annealing_cooling import Cooling, chain_key
from nqbench.workloads.fitness.annealing_factors import EVALUATOR_LEVELS, GPU_EVALUATORS
from nqbench.workloads.fitness.annealing_host import cooling_of, outputs_of, walk_measured
from nqbench.workloads.fitness.levels import Levels
from nqbench.workloads.fitness.programs import conflicts_of
from nqbench.workloads.fitness.schemes import SCHEMES
from nqbench.workloads.level_checks import number

PROGRAM: Final = "nqbench.workloads.fitness.annealing_gpu:anneal"
EVALUATION: Final = "evaluation"
"""The phase of whole evaluations: allocation, copies and kernels, and the host's part in them."""
_UNSET: Final = "-"


def settle_evaluator(levels: Levels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Resolve the evaluator's factors in place; its numbers, for one evaluation.

    Raises ``InfeasibleError`` for a scheme of the processor and for a factor it does not have.
    """
    own = _evaluator_levels(levels)
    derived = gpu_plans.settle(own, device)
    levels |= {name: own[name] for name in EVALUATOR_LEVELS}
    return derived


def program_plan(levels: Levels, device: DeviceFacts) -> ProgramPlan:
    """The evaluator's plan, driven by the search."""
    n, key = number(levels, "n"), chain_key(number(levels, "seed"))
    start = np.arange(n, dtype=np.int32)[np.newaxis, :]
    base = gpu_plans.make_plan(_evaluator_levels(levels), start, device)
    schedule = astuple(Cooling.from_levels(levels))
    return replace(
        base,
        program=PROGRAM,
        arguments=(n, key, schedule, *base.arguments),
        groups=(EVALUATION,),
    )


def anneal(
    machine: Machine, n: int, key: int, schedule: tuple[float, ...], *evaluation: Any
) -> None:
    """The search; ``evaluation`` are the arguments of ``programs.evaluate``."""

    def evaluate(board: NDArray[np.int32]) -> int:
        with machine.group(EVALUATION):
            return int(conflicts_of(machine, board, *evaluation)[0])

    ended = walk_measured(n, key, cooling_of(schedule), evaluate)
    for name, values in outputs_of(ended).items():
        machine.keep(name, values)


def _evaluator_levels(levels: Mapping[str, Level]) -> Levels:
    """A point of the evaluator's scheme: its defaults, and what the search was given."""
    evaluator = str(levels["evaluator"])
    if evaluator not in GPU_EVALUATORS:
        raise InfeasibleError(
            f"evaluator: {evaluator} is a scheme of the processor; use {', '.join(GPU_EVALUATORS)},"
            " or system: fitness_schemes.sa_cpu",
            "evaluator",
        )
    scheme = SCHEMES[evaluator]
    for name in EVALUATOR_LEVELS:
        if levels[name] != _UNSET and name not in scheme.levels:
            raise InfeasibleError(
                f"{name}: {levels[name]} means nothing to evaluator: {evaluator}; leave {name} out",
                name,
            )
    given = {name: levels[name] for name in EVALUATOR_LEVELS if levels[name] != _UNSET}
    blank = dict.fromkeys(levels, _UNSET)
    return {**blank, **scheme.levels, **given, "n": levels["n"], "scheme": evaluator}
