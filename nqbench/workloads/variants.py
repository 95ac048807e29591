"""Kernels that can be built without their arithmetic, or without their memory accesses.

The kernel's source does both through a template argument, ``Full`` (``variants.cuh``). The method
is that of Brodtkorb et al., section 6.5.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields, replace
from typing import Final

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.plan import Kernel, KernelPlan, MultiLaunchPlan
from nqbench.workloads.base import Variant

_ACCESS: Final = {"full": "Full", "math_only": "MathOnly", "memory_only": "MemoryOnly"}


def built_as(plan: KernelPlan, variant: Variant) -> KernelPlan:
    """The same launch of the kernel, whose entry names ``Full``, built as ``variant``."""
    return replace(plan, entry=re.sub(r"\bFull\b", _ACCESS[variant], plan.entry))


def alone(
    plan: MultiLaunchPlan, name: str, *, cleared: Collection[str], outputs: Collection[str]
) -> KernelPlan:
    """One kernel of a program as a separate plan, with the buffers that it takes.

    Buffers have the plan's data, or zeros if they are among ``cleared``, before every launch; those
    in ``outputs`` are fetched. Raises ``InfeasibleError`` for a kernel that gets numbers from the
    program, or launches kernels itself.
    """
    kernel = plan.kernels[name]
    if kernel.device_launch:
        raise InfeasibleError(
            f"kernel {name} launches kernels itself, and only a kernel that does all of its work"
            " has variants"
        )
    arguments = tuple(a for a in kernel.arguments if isinstance(a, str | np.generic))
    if len(arguments) < len(kernel.arguments):
        raise InfeasibleError(f"kernel {name} gets numbers from its program at each launch")
    used = {a for a in arguments if isinstance(a, str)}
    own = {field.name: getattr(kernel, field.name) for field in fields(Kernel)}
    return KernelPlan(
        **{**own, "arguments": arguments},
        buffers=tuple(
            replace(
                buffer,
                per_run=False,
                zero=buffer.zero or buffer.name in cleared,
                output=buffer.name in outputs,
            )
            for buffer in plan.buffers
            if buffer.name in used
        ),
        about={**plan.about, "kernel": name},
    )
