"""A kernel that blocks the stream until everything to be timed is queued behind it.

A kernel that is launched on an idle GPU starts as soon as it arrives, so the time between the start
event and the kernel contains the CPU work of queueing it: microseconds, and many more if the CPU is
interrupted. Behind a blocking kernel, start event, kernel and stop event run back to back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.compiler.compile import CompileRequest, compile_request

SOURCE: Final = Path(__file__).with_name("blocking_kernel.cu")
LIMIT_S: Final = 1.0
"""Limit on the time that a stream is blocked. Queueing takes some 20 us; only a call that itself
waits for the GPU would take a second, and that would be a deadlock."""
DEFAULT_CARVEOUT: Final = -1
"""The driver chooses the L1 split, as for every new kernel."""


class BlockingKernel:
    """Blocks the default stream. Raises PyCUDA's errors if the GPU does not support it."""

    def __init__(self, cuda: Any, arch: str, limit_s: float = LIMIT_S) -> None:
        compiled = compile_request(CompileRequest("cubin", SOURCE, "block_stream", arch))
        self._cuda = cuda
        self._module = cuda.module_from_buffer(compiled.image)
        self._function = self._module.get_function(compiled.symbol)
        self._function.prepare(["P", np.dtype(np.uint64).char])
        self._flags = cuda.pagelocked_zeros(2, np.uint32, mem_flags=cuda.host_alloc_flags.DEVICEMAP)
        self._pointer = int(self._flags.base.get_device_pointer())
        self._limit_ns = np.uint64(round(limit_s * 1e9))
        self._carveout = DEFAULT_CARVEOUT

    @contextmanager
    def blocking(self, carveout_percent: int) -> Iterator[None]:
        """Block the stream while the ``with`` block queues work, then let it run.

        ``carveout_percent`` is the L1 split of the kernel that follows: with another one the GPU
        would have to change the split between the two, which takes time.
        """
        if carveout_percent != self._carveout:
            attribute = self._cuda.function_attribute.PREFERRED_SHARED_MEMORY_CARVEOUT
            self._function.set_attribute(attribute, carveout_percent)
            self._carveout = carveout_percent
        self._flags[:] = 0
        self._function.prepared_call((1, 1, 1), (1, 1, 1), self._pointer, self._limit_ns)
        try:
            yield
        finally:
            self._flags[0] = 1

    @property
    def expired(self) -> bool:
        """Whether it last ended at its limit instead of by the CPU; call it after the end."""
        return bool(self._flags[1])
