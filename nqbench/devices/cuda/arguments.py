"""What a plan's buffers and scalars become before they go to a CUDA GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.plan import Argument, Buffer, Variable


def type_code(entry: str, buffers: Sequence[Buffer], argument: Argument | Variable) -> str:
    """Format code under which PyCUDA packs an argument; raises ``DeviceError`` for a bad one."""
    if isinstance(argument, str):
        if argument not in {buffer.name for buffer in buffers}:
            known = ", ".join(buffer.name for buffer in buffers) or "none"
            raise DeviceError(
                f"kernel {entry} takes a buffer {argument!r} that its plan lacks; buffers: {known}"
            )
        return "P"
    if isinstance(argument, Variable):
        return np.dtype(argument.dtype).char
    if isinstance(argument, np.generic):
        return argument.dtype.char
    raise DeviceError(
        f"kernel {entry} takes {argument!r}; arguments are buffer names or numpy scalars"
    )


def host_array(buffer: Buffer) -> NDArray[Any]:
    """The buffer's data as the kernel expects it: contiguous, of its type and length."""
    data = np.ascontiguousarray(buffer.data, dtype=buffer.dtype).reshape(-1)
    if data.size != buffer.length:
        raise DeviceError(
            f"buffer {buffer.name} has {data.size} elements of data but a length of {buffer.length}"
        )
    return data
