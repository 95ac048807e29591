"""Variants of the fitness kernels without arithmetic or memory (``nqbench bottleneck``)."""

from __future__ import annotations

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.plan import KernelPlan, Outputs, Plan, ProgramPlan
from nqbench.workloads.base import Variant
from nqbench.workloads.fitness.boards import combined
from nqbench.workloads.fitness.programs import CONFLICTS
from nqbench.workloads.variants import alone, built_as

COUNTERS = "counters"


def variant_of(plan: Plan, variant: Variant) -> KernelPlan:
    """The main kernel of a scheme, built as ``variant``; its conflicts start at zero.

    Raises ``InfeasibleError`` for a search, for a scheme on the CPU, and where another
    kernel finishes the count.
    """
    if not isinstance(plan, ProgramPlan) or plan.about.get("task") != "evaluate":
        raise InfeasibleError(
            "only a GPU scheme that evaluates a board has variants without arithmetic or memory,"
            " such as fitness_schemes.gpu_coarse; a search or a CPU scheme has none"
        )
    if "sum" in plan.kernels:
        raise InfeasibleError(
            "tally: with final another kernel sums the counters, so that the count is not all there"
            " is to it; take tally=arrival",
            "tally",
        )
    main = next(iter(plan.kernels))
    kernel = alone(plan, main, cleared=(CONFLICTS, COUNTERS), outputs=(CONFLICTS,))
    return built_as(kernel, variant)


def answer(outputs: Outputs) -> int:
    """Conflicts of the board, or of a batch of them."""
    return combined([int(value) for value in np.atleast_1d(outputs[CONFLICTS])])
