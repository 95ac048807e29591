"""Which PTX instructions are arithmetic, for the operations of a roofline.

Floating-point operations are counted as is usual for GPUs: a fused multiply-add is two, and so is
what a profiler's ``fadd + fmul + 2 ffma`` comes to. Integer and logic instructions are counted as
instructions. Addresses are integer arithmetic too: nothing in the code tells them apart.
"""

from __future__ import annotations

from typing import Final

from nqbench.devices.sim.ptx import Instruction

FUSED: Final = frozenset({"fma", "mad"})
FLOAT: Final = frozenset(
    {"add", "sub", "mul", "div", "sqrt", "rsqrt", "rcp", "ex2", "lg2", "sin", "cos", "tanh"}
)
FLOAT_TYPES: Final = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"})
INTEGER: Final = frozenset(
    {
        *(
            "add",
            "addc",
            "sub",
            "subc",
            "mul",
            "mad",
            "madc",
            "mul24",
            "mad24",
            "sad",
            "div",
            "rem",
        ),
        *("abs", "neg", "min", "max", "setp", "set", "dp2a", "dp4a"),
        *("and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "shf", "prmt"),
        *("popc", "clz", "bfind", "fns", "brev", "bfe", "bfi", "szext", "bmsk"),
    }
)


def float_operations(instruction: Instruction) -> int:
    """Floating-point operations of one execution by one thread."""
    if FLOAT_TYPES.isdisjoint(instruction.modifiers):
        return 0
    if instruction.opcode in FUSED:
        return 2
    return int(instruction.opcode in FLOAT)


def integer_operations(instruction: Instruction) -> int:
    """1 for an integer or logic instruction, else 0. Logic of predicates is none."""
    if instruction.opcode not in INTEGER or "pred" in instruction.modifiers:
        return 0
    return int(FLOAT_TYPES.isdisjoint(instruction.modifiers))
