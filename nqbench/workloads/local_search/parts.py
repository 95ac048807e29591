"""The evaluation kernels taken apart into arithmetic and memory (``nqbench bottleneck``).

What is taken apart is the first evaluation of a search: of the start tour.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.plan import KernelPlan, Outputs, Plan, ProgramPlan
from nqbench.workloads.local_search.factors import THRESHOLD
from nqbench.workloads.local_search.reference import reference_search
from nqbench.workloads.separable import Part, alone, built_as

EVALUATION: Final = "evaluation"
DELTAS: Final = "deltas"
BEST: Final = "best"
INVALID: Final = "invalid"
_SIGN: Final = np.uint32(0xFFFFFFFF)


def part_of(plan: Plan, part: Part) -> KernelPlan:
    """The evaluation kernel of a search, built as ``part``.

    Raises ``InfeasibleError`` for a search on the processor, and for the kernel that applies the
    moves itself.
    """
    if not isinstance(plan, ProgramPlan):
        raise InfeasibleError("a search on the processor has no kernel to take apart")
    if plan.kernels[EVALUATION].entry.startswith("evaluation_resident"):
        raise InfeasibleError(
            "local_search.resident applies the move within its evaluation kernel; take"
            " local_search.fused apart, whose evaluation is the same"
        )
    kernel = alone(plan, EVALUATION, cleared=(INVALID,), outputs=(DELTAS, BEST, INVALID))
    return built_as(kernel, part)


def answer(outputs: Outputs) -> int:
    """Bits of the best change found, as an unsigned number; 0 if none ends below the threshold.

    Negative: minus the moves that the mapping sent outside the neighbourhood, which were left out.
    """
    if BEST in outputs:
        return int(np.uint32(int(outputs[BEST][0]) >> 32) ^ _SIGN)
    if invalid := int(outputs[INVALID][0]):
        return -invalid
    least = np.float32(outputs[DELTAS].min())
    return int(least.view(np.uint32)) if least <= np.float32(THRESHOLD) else 0


def expected(instance: str, n: int, seed: int, mapping: str) -> int:
    """The same by the reference search: the change of its first move, if it makes one."""
    changes = reference_search(instance, n, seed, 1, mapping).changes
    return int(changes[0].view(np.uint32)) if len(changes) else 0
