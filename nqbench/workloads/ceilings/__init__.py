"""The limits of a GPU: copies, cached reads, floating-point and integer throughput.

They are the ceilings of a roofline. The same kernels test the bottleneck analysis: the number of
operations on each word is a factor, so they range from memory bound to compute bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.plan import Buffer, KernelPlan, Outputs, Plan
from nqbench.point import FactorLevels, Level
from nqbench.workloads.base import Factor, Resolved, Variant, Workload, factor_table
from nqbench.workloads.levels import given_levels, number
from nqbench.workloads.variants import built_as

SOURCE: Final = Path(__file__).with_name("ceilings.cu")
PERIOD: Final = 256
"""Input words repeat after this many, so that the answer is quick to compute at any size."""
QUAD: Final = 4
"""Words that a thread takes."""
WORD_BYTES: Final = 4
MASKS: Final = (0x5A5A5A5A, 0x0F0F0F0F)
FLOAT: Final = ("fma", "float_add")
OPERATIONS: Final = ("copy", *FLOAT, "int_add", "logic", "read")
MAX_STEPS: Final = 1 << 20
"""Results of the floating-point kernels stay whole numbers below 2^24, hence exact."""
MAX_PASSES: Final = 1 << 12
"""Sums of as many words, each below ``PERIOD``, stay within 32 bits."""


class Ceilings(Workload):
    """See ``workloads.base.Workload`` for what each member means."""

    name: str = "ceilings"
    factors: Mapping[str, Factor] = factor_table(f"""
n {QUAD}..{1 << 31}: 32-bit words read, and as many written
operation {"|".join(OPERATIONS)}: what is done with the words
steps 0..{MAX_STEPS}: operations on each word (read: passes)
block_size 32..1024 launch: threads per block
""")
    defaults: Mapping[str, Level] = {"operation": "copy", "steps": 0, "block_size": 256}
    systems: Mapping[str, FactorLevels] = {
        "ceilings.copy": {"operation": "copy", "steps": 0},
        "ceilings.read_l2": {"operation": "read", "steps": 32},
        "ceilings.fma": {"operation": "fma", "steps": 4096},
        "ceilings.float_add": {"operation": "float_add", "steps": 4096},
        "ceilings.int_add": {"operation": "int_add", "steps": 4096},
        "ceilings.logic": {"operation": "logic", "steps": 4096},
    }
    no_variants: str = ""
    variant_n: Mapping[DeviceKind, int] = {"cuda": 1 << 26, "sim": 1 << 12}

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        """Levels given, else those of the system, else the defaults; and whether they can run."""
        if device.kind == "cpu":
            raise WrongDeviceError("ceilings are a GPU's; use --device sim or cuda:0")
        explicit = given_levels(self.name, self.factors, self.systems, given, system)
        levels = super().resolve(explicit, system, device).factors
        n, steps, size = (number(levels, name) for name in ("n", "steps", "block_size"))
        reads = levels["operation"] == "read"
        if n % QUAD:
            raise InfeasibleError(f"n: {n} is not a multiple of {QUAD}, which a thread takes", "n")
        if reads and n & (n - 1):
            raise InfeasibleError(f"n: {n} is not a power of two, as operation: read needs it", "n")
        if reads and steps > MAX_PASSES:
            raise InfeasibleError(f"steps: {steps} passes are over {MAX_PASSES}", "steps")
        if levels["operation"] == "copy" and steps:
            raise InfeasibleError(f"steps: {steps}, but a copy has none; write 0", "steps")
        blocks = -(-n // (QUAD * size))
        return Resolved(levels, {"jobs": n // QUAD, "blocks": blocks, **amounts(levels)})

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """One thread for four words."""
        derived = self.resolve(factors, system, device).derived
        n, steps = np.int64(number(factors, "n")), np.uint32(number(factors, "steps"))
        operation, quads = str(factors["operation"]), np.uint32(n // QUAD)
        reads = operation == "read"
        constants = [np.uint32(mask) for mask in MASKS]  # a and b of the kernel
        if operation in FLOAT:
            constants = [np.float32(1).view(np.uint32)] * 2
        return KernelPlan(
            source=SOURCE,
            entry="read<Full>" if reads else f"stream<Full, Operation::{operation}>",
            arguments=(quads, steps, *(() if reads else constants), "words", "results"),
            buffers=(
                Buffer("words", "uint32", int(n), data=np.resize(_pattern(operation), int(n))),
                Buffer("results", "uint32", int(n), output=True),
            ),
            grid=(int(derived["blocks"]), 1, 1),
            block=(number(factors, "block_size"), 1, 1),
            about=derived,
        )

    def variant(self, plan: Plan, variant: Variant) -> KernelPlan:
        """The same kernel, built from the same source."""
        assert isinstance(plan, KernelPlan)
        return built_as(plan, variant)

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """The sum of all result words, as unsigned integers."""
        return int(np.sum(outputs["results"], dtype=np.uint64))

    def expected(self, factors: FactorLevels) -> int | None:
        """The sum over one period, computed by numpy, times the number of periods."""
        n, steps = number(factors, "n"), number(factors, "steps")
        operation = str(factors["operation"])
        words = _pattern(operation)
        if operation == "read":  # every pass reads each word once
            return steps * _repeated_sum(words, n)
        return _repeated_sum(_results(words, operation, steps), n)

    def work(self, factors: FactorLevels) -> float:
        """Operations and words moved."""
        return float(number(factors, "n") * (1 + number(factors, "steps")))


def amounts(levels: Mapping[str, Any]) -> dict[str, int]:
    """Bytes moved and operations done by one launch; a fused multiply-add is two."""
    n, steps, operation = int(levels["n"]), int(levels["steps"]), levels["operation"]
    passes = steps if operation == "read" else 1
    moved = {"bytes_moved": n * WORD_BYTES * (passes + 1)}
    if operation in ("copy", "read"):
        return moved
    kind = "float" if operation in FLOAT else "integer"
    return {**moved, f"{kind}_operations": (2 if operation == "fma" else 1) * n * steps}


def _pattern(operation: str) -> NDArray[np.uint32]:
    """One period of the input: the numbers from 0 on, as floats or as integers."""
    numbers = np.arange(PERIOD, dtype=np.uint32)
    return numbers.astype(np.float32).view(np.uint32) if operation in FLOAT else numbers


def _results(words: NDArray[np.uint32], operation: str, steps: int) -> NDArray[np.uint32]:
    """The words after the kernel's operations."""
    if operation in FLOAT:  # x * 1 + 1, or x + 1: whole numbers, exact in single precision
        return (words.view(np.float32) + np.float32(steps)).astype(np.float32).view(np.uint32)
    first, second = words[0::2].copy(), words[1::2].copy()
    a, b = map(np.uint32, MASKS)
    for _ in range(steps if operation != "copy" else 0):
        if operation == "int_add":
            first = first + second
            second = second + first
        else:
            first = first ^ (second & a)
            second = second ^ (first | b)
    return np.stack([first, second], axis=1).reshape(-1)


def _repeated_sum(period: NDArray[np.uint32], n: int) -> int:
    whole, rest = divmod(n, PERIOD)
    return whole * int(period.sum(dtype=np.uint64)) + int(period[:rest].sum(dtype=np.uint64))


WORKLOAD: Final = Ceilings()
