"""What makes a launch start from a known state: a stream held back, and an emptied L2 cache.

A kernel that is launched on an idle GPU starts as soon as it arrives, so that the time between the
start event and the kernel contains the host's own work of queueing it: microseconds, and many more
if the host is interrupted. Held back, the stream starts the three in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.compiler.compile import compile_cubin
from nqbench.errors import DeviceError

SOURCE: Final = Path(__file__).with_name("blocking_kernel.cu")
LIMIT_S: Final = 1.0
"""A stream is held no longer than this, whatever the host does. Queueing takes some 20 us; only a
call that itself waits for the GPU would take a second, and that would be a deadlock."""
DEFAULT_CARVEOUT: Final = -1
"""The driver chooses the L1 split: how every kernel starts out."""
FLUSH_TIMES: Final = 2
"""Bytes written to empty an L2 cache, over its size: caches place lines by a hash of the address
and keep them by approximate age, so that one pass over the size leaves some of the old lines."""


class Hold:
    """A kernel that keeps the default stream waiting. Raises PyCUDA's errors where it cannot be.

    ``expired`` says that the last hold ended by its limit and not by the host.
    """

    def __init__(self, cuda: Any, arch: str, limit_s: float = LIMIT_S) -> None:
        compiled = compile_cubin(SOURCE, "hold", arch)
        self._cuda = cuda
        self._module = cuda.module_from_buffer(compiled.image)
        self._function = self._module.get_function(compiled.symbol)
        self._function.prepare(["P", np.dtype(np.uint64).char])
        self._flags = cuda.pagelocked_zeros(2, np.uint32, mem_flags=cuda.host_alloc_flags.DEVICEMAP)
        self._pointer = int(self._flags.base.get_device_pointer())
        self._limit_ns = np.uint64(round(limit_s * 1e9))
        self._carveout = DEFAULT_CARVEOUT

    @contextmanager
    def held(self, carveout_percent: int) -> Iterator[None]:
        """Hold the stream while the ``with`` block queues work, then let it run.

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
        """Whether the last hold reached its limit; the GPU must be idle."""
        return bool(self._flags[1])


class L2Flush:
    """A buffer that displaces everything else from the L2 cache when it is written."""

    def __init__(self, cuda: Any, spec: str, l2_bytes: int) -> None:
        """Allocate it. Raises ``DeviceError`` if the cache's size is unknown or memory is short."""
        if l2_bytes <= 0:
            raise DeviceError(
                f"{spec} does not tell the size of its L2 cache, which cannot be flushed then;"
                " measure with l2: hot"
            )
        self._cuda = cuda
        self.nbytes = FLUSH_TIMES * l2_bytes
        try:
            self._buffer = cuda.mem_alloc(self.nbytes)
        except cuda.MemoryError as error:
            raise DeviceError(
                f"{spec} has no {self.nbytes} bytes of memory left for flushing its L2 cache;"
                " measure with l2: hot, or a smaller configuration"
            ) from error

    def queue(self) -> None:
        """Write the buffer, in the order of the stream and without waiting."""
        self._cuda.memset_d8(self._buffer, 0, self.nbytes)
