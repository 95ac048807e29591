"""What a plan's buffers and scalars become before they go to a CUDA GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.plan import Argument, Buffer, KernelPlan


def type_code(plan: KernelPlan, argument: Argument) -> str:
    """Format code under which PyCUDA packs an argument; raises ``DeviceError`` for a bad one."""
    if isinstance(argument, str):
        if argument not in {buffer.name for buffer in plan.buffers}:
            known = ", ".join(buffer.name for buffer in plan.buffers) or "none"
            raise DeviceError(
                f"kernel {plan.entry} takes a buffer {argument!r} that its plan lacks;"
                f" buffers: {known}"
            )
        return "P"
    if isinstance(argument, np.generic):
        return argument.dtype.char
    raise DeviceError(
        f"kernel {plan.entry} takes {argument!r}; arguments are buffer names or numpy scalars"
    )


def host_array(buffer: Buffer) -> NDArray[Any]:
    """The buffer's data as the kernel expects it: contiguous, of its type and length."""
    data = np.ascontiguousarray(buffer.data, dtype=buffer.dtype).reshape(-1)
    if data.size != buffer.length:
        raise DeviceError(
            f"buffer {buffer.name} has {data.size} elements of data but a length of {buffer.length}"
        )
    return data
