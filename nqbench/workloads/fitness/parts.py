"""The fitness kernels taken apart into arithmetic and memory (``nqbench bottleneck``)."""

from __future__ import annotations

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.plan import KernelPlan, Outputs, Plan, ProgramPlan
from nqbench.workloads.fitness.boards import combined
from nqbench.workloads.fitness.programs import CONFLICTS
from nqbench.workloads.variants import Part, alone, built_as

COUNTERS = "counters"


def part_of(plan: Plan, part: Part) -> KernelPlan:
    """The main kernel of a scheme, built as ``part``; its conflicts start at zero.

    Raises ``InfeasibleError`` for a search, for a scheme on the processor, and where another
    kernel finishes the count.
    """
    if not isinstance(plan, ProgramPlan) or plan.about.get("task") != "evaluate":
        raise InfeasibleError(
            "a search, or a scheme on the processor, is not taken apart; name a GPU scheme that"
            " evaluates a board, such as fitness_schemes.gpu_coarse"
        )
    if "sum" in plan.kernels:
        raise InfeasibleError(
            "tally: with final another kernel sums the counters, so that the count is not all there"
            " is to it; take tally=arrival",
            "tally",
        )
    main = next(iter(plan.kernels))
    kernel = alone(plan, main, cleared=(CONFLICTS, COUNTERS), outputs=(CONFLICTS,))
    return built_as(kernel, part)


def answer(outputs: Outputs) -> int:
    """Conflicts of the board, or of a batch of them."""
    return combined([int(value) for value in np.atleast_1d(outputs[CONFLICTS])])
