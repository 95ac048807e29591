"""A GPU through PyCUDA's driver interface: its context, its errors, and what all plans on it share.

The blocking kernel blocks the stream until everything to be timed is queued behind it. A kernel
that is launched on an idle GPU starts as soon as it arrives, so the time between the start event
and the kernel contains the CPU work of queueing it: microseconds, and many more if the CPU is
interrupted. Behind a blocking kernel, start event, kernel and stop event run back to back.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.compiler.compile import compile_request
from nqbench.compiler.nvrtc import CompileRequest
from nqbench.device import Device
from nqbench.devices.cuda import driver as cuda_driver
from nqbench.devices.cuda.query import find_device, gpu_facts, load_pycuda
from nqbench.errors import DeviceError, DeviceUnavailable, LaunchError, LaunchTimeout

ABANDONED: Final[list[Any]] = []
"""Driver objects of a lost process, kept so that nothing tries to free them."""
SOURCE: Final = Path(__file__).with_name("blocking_kernel.cu")
LIMIT_S: Final = 1.0
"""Limit on the time that a stream is blocked. Queueing takes some 20 us; only a call that itself
waits for the GPU would take a second, and that would be a deadlock."""
DEFAULT_CARVEOUT: Final = -1
"""The driver chooses the L1 split, as for every new kernel."""
FLUSH_TIMES: Final = 2
"""Bytes written to flush an L2 cache, over its size. Caches place lines by a hash of the address
and replace them by approximate age, so one pass over the size leaves some of the old lines."""


class Gpu(Device):
    """GPU number ``index``, as the driver counts, for the plans that are prepared on it."""

    ramp_s = 0.3

    def __init__(self, index: int = 0) -> None:
        self.cuda = load_pycuda()
        self.index = index
        self.spec = f"cuda:{index}"
        self.facts = gpu_facts(index)
        self.lost = False
        """A fault or a kernel that does not end has made the GPU unusable in this process."""
        self.spare: dict[int, Any] = {}
        """Allocations that no plan has, by bytes (``keeps_memory``)."""
        self._context: Any = None
        self._blocking: BlockingKernel | None = None
        self._cannot_block = False
        self._flush: Callable[[], None] | None = None

    def blocking_kernel(self) -> BlockingKernel | None:
        """Keeps launch latency out of kernel times; ``None`` if this GPU cannot do it.

        It needs page-locked memory that the GPU can access, which a virtual GPU may not offer.
        """
        if self._blocking is None and not self._cannot_block:
            try:
                self._blocking = BlockingKernel(self.cuda, self.facts.arch)
            except self.cuda.Error:
                self._cannot_block = True
        return self._blocking

    def stop_blocking(self) -> None:
        """Stop blocking the stream in this process, after it was not released in time."""
        self._blocking, self._cannot_block = None, True

    def l2_flush(self) -> Callable[[], None]:
        """Empties the L2 cache, in the order of the stream and without waiting.

        Raises ``DeviceError`` if its size is unknown or memory is short.
        """
        if self._flush is None:
            device = find_device(self.cuda, self.index)
            l2_bytes = int(device.get_attribute(self.cuda.device_attribute.L2_CACHE_SIZE))
            nbytes = FLUSH_TIMES * l2_bytes
            if l2_bytes <= 0:
                raise DeviceError(
                    f"{self.spec} does not report the size of its L2 cache, so it cannot be"
                    " flushed; measure with l2: hot"
                )
            try:
                buffer = self.cuda.mem_alloc(nbytes)
            except self.cuda.MemoryError as error:
                raise DeviceError(
                    f"{self.spec} has no {nbytes} bytes of memory left for flushing its L2 cache;"
                    " measure with l2: hot, or a smaller configuration"
                ) from error
            self._flush = partial(self.cuda.memset_d8, buffer, 0, nbytes)
        return self._flush

    def close(self) -> None:
        """Destroy the context. Memory of plans still prepared goes with it."""
        context, self._context = self._context, None
        if context is None:
            return
        atexit.unregister(self.close)
        owned = self._blocking, self._flush, self.spare
        self._blocking, self._flush, self.spare = None, None, {}
        if self.lost:
            # Destroying it would wait for a kernel that may never end; the process ends instead.
            context.pop()
            ABANDONED.extend((context, owned))
            return
        del owned  # their memory is freed while there is still a context
        context.pop()
        context.detach()

    def activate(self) -> None:
        """Make the context, on first use."""
        if self._context is not None:
            return
        try:
            flags = self.cuda.ctx_flags
            self._context = find_device(self.cuda, self.index).make_context(
                flags.SCHED_AUTO | flags.MAP_HOST
            )
        except self.cuda.Error as error:
            raise DeviceUnavailable(
                f"{self.spec} gives no context ({error}); 'nvidia-smi' shows its compute mode,"
                " free memory and who else uses it"
            ) from error
        # PyCUDA aborts a process that ends with a context on its stack.
        atexit.register(self.close)

    def synchronize(self) -> None:
        """Wait until the GPU is idle."""
        self.cuda.Context.synchronize()

    @contextmanager
    def translated(self, action: str | Callable[[], str]) -> Iterator[None]:
        """Turn PyCUDA's errors into ``LaunchError``, fatal if the context no longer works."""
        try:
            yield
        except self.cuda.Error as error:
            stuck = cuda_driver.sticky_error()
            self.lost = self.lost or bool(stuck)
            name = stuck or cuda_driver.error_name(str(error)) or type(error).__name__
            after = "; this process can no longer use the GPU" if stuck else ""
            what = action if isinstance(action, str) else action()
            failure = LaunchError(f"{self.spec}: {what} failed with {name} ({error}){after}")
            failure.fatal = bool(stuck)
            raise failure from error


def late(gpu: Gpu, label: str, timeout_s: float) -> LaunchTimeout:
    """The error of a launch that outlasted its limit; the process is lost, as it still runs."""
    error = LaunchTimeout(f"{gpu.spec}: {label} did not end within {timeout_s:g} s")
    error.fatal = gpu.lost = True
    return error


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
