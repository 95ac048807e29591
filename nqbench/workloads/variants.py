"""Kernels that can be built without their arithmetic, or without their memory accesses.

The kernel's source says which is which, with the macros of ``parts.cuh``. The method is that of
Brodtkorb et al., section 6.5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceKind
from nqbench.plan import KernelPlan, Outputs, Plan, ProgramPlan
from nqbench.point import Level

Part = Literal["full", "math_only", "memory_only"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)


@runtime_checkable
class Separable(Protocol):
    """A workload that can take a kernel apart. One that cannot has no such members."""

    part_n: Mapping[DeviceKind, int]
    """The size to take where none is asked for, by kind of device: one that fills it."""

    def part(self, plan: Plan, part: Part) -> KernelPlan:
        """The plan's main kernel alone, built as ``part``; ``full`` changes nothing but that.

        The kernel finds the memory that it has at its first launch within the plan. Raises
        ``InfeasibleError`` with the reason where arithmetic and memory cannot be told apart.
        """

    def part_answer(self, plan: KernelPlan, outputs: Outputs) -> int:
        """One number out of the outputs of the ``full`` part, as ``Workload.answer``.

        The other parts compute nothing of meaning, and are not asked.
        """

    def part_expected(self, factors: Mapping[str, Level]) -> int | None:
        """The known right one, or ``None`` if nobody knows it."""


@runtime_checkable
class Inseparable(Protocol):
    """A workload that knows why none of its kernels can be taken apart."""

    inseparable: str
    """The reason, as the rest of a sentence that begins with the system's name."""


def part_options(part: Part) -> tuple[str, ...]:
    """The compiler's option that builds a part; none for ``full``."""
    return () if part == "full" else (f"-DNQBENCH_PART={PARTS.index(part)}",)


def built_as(plan: KernelPlan, part: Part) -> KernelPlan:
    """The same launch of the kernel, built as ``part``."""
    return replace(plan, options=(*plan.options, *part_options(part)))


def alone(
    plan: ProgramPlan,
    name: str,
    *,
    cleared: Collection[str] = (),
    outputs: Collection[str] = (),
) -> KernelPlan:
    """One kernel of a program as a plan of its own, with the buffers that it takes.

    Buffers have the plan's data, or zeros if they are among ``cleared``, before every launch; those
    in ``outputs`` are fetched. Raises ``InfeasibleError`` for a kernel that gets numbers from the
    program, or launches kernels itself.
    """
    kernel = plan.kernels[name]
    if kernel.device_launch:
        raise InfeasibleError(
            f"kernel {name} launches kernels itself, and only a kernel that does all of its work"
            " can be taken apart"
        )
    arguments = tuple(a for a in kernel.arguments if isinstance(a, str | np.generic))
    if len(arguments) < len(kernel.arguments):
        raise InfeasibleError(f"kernel {name} gets numbers from its program at each launch")
    used = {a for a in arguments if isinstance(a, str)}
    return KernelPlan(
        source=kernel.source,
        entry=kernel.entry,
        arguments=arguments,
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
        grid=kernel.grid,
        block=kernel.block,
        shared_bytes=kernel.shared_bytes,
        static_shared_bytes=kernel.static_shared_bytes,
        options=kernel.options,
        cache=kernel.cache,
        about={**plan.about, "kernel": name},
    )
