"""Variants of the evaluation kernels without arithmetic or memory (``nqbench bottleneck``).

They do the first evaluation of a search, that of the start tour. Our kernels begin it with a best
known change, as in every later evaluation: just above that of the best move, so that they still
have to find it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.plan import KernelPlan, MultiLaunchPlan, Outputs, Plan
from nqbench.workloads.base import Variant
from nqbench.workloads.local_search.factors import THRESHOLD
from nqbench.workloads.local_search.plans import NO_BEST
from nqbench.workloads.local_search.reference import reference_search
from nqbench.workloads.local_search.results import LEXICOGRAPHIC
from nqbench.workloads.variants import alone, built_as

EVALUATION, DELTAS, BEST, INVALID, HINTS = "evaluation", "deltas", "best", "invalid", "hints"
_SIGN: Final = np.uint32(0xFFFFFFFF)


def variant_of(plan: Plan, variant: Variant) -> KernelPlan:
    """The evaluation kernel of a search, built as ``variant``.

    Raises ``InfeasibleError`` for a search on the CPU, and for the kernel that applies the
    moves itself.
    """
    if not isinstance(plan, MultiLaunchPlan):
        raise InfeasibleError("a search on the CPU has no kernel to build without memory accesses")
    if plan.kernels[EVALUATION].entry.startswith("evaluation_resident"):
        raise InfeasibleError(
            "local_search.resident applies the move within its evaluation kernel; measure"
            " local_search.fused, whose evaluation is the same"
        )
    kernel = alone(plan, EVALUATION, cleared=(INVALID, HINTS), outputs=(DELTAS, BEST, INVALID))
    about, key = plan.about, NO_BEST
    instance, n, seed = str(about["instance"]), int(about["n"]), int(about["seed"])
    changes = reference_search(instance, n, seed, 1, LEXICOGRAPHIC).changes
    if len(changes):  # just above the key of the best move of the start tour: ``packed``
        key = int(np.nextafter(changes[0], np.float32(0)).view(np.uint32) ^ _SIGN) << 32
    known = np.array([key], np.uint64)
    buffers = tuple(replace(b, data=known) if b.name == BEST else b for b in kernel.buffers)
    return built_as(replace(kernel, buffers=buffers), variant)


def answer(outputs: Outputs) -> int:
    """Bits of the best change found, as an unsigned number; 0 if none ends below the threshold.

    Negative: minus the moves that the mapping sent outside the neighbourhood, which were skipped.
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
