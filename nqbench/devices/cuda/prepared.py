"""A plan of one kernel on a CUDA GPU: buffers, timed launches, results."""

from __future__ import annotations

import time
from typing import Final

from nqbench.compiler.compile import Compiled
from nqbench.devices.base import Launch, Prepared, Resources
from nqbench.devices.cuda.blocking_kernel import L2Flush
from nqbench.devices.cuda.kernel import LoadedKernel, label_of
from nqbench.devices.cuda.memory import ABANDONED, DeviceMemory, Owner, late
from nqbench.errors import DeviceError
from nqbench.plan import KernelPlan, Outputs

_POLL_FIRST_S: Final = 0.002  # a short kernel is polled without sleeping
_POLL_SLEEP_S: Final = 0.0005  # far below any timeout; the GPU's own clock does the timing


class CudaPrepared(Prepared):
    """A kernel loaded on a GPU with its buffers."""

    def __init__(self, device: Owner, plan: KernelPlan, compiled: Compiled) -> None:
        self._device = device
        self._label = label_of(plan)
        self._memory = DeviceMemory(device, self._label, plan.buffers)
        self._closed = False
        self._flush: L2Flush | None = None
        self._kernel: LoadedKernel | None = None
        try:
            with device.translated(f"preparing {self._label}"):
                self._kernel = LoadedKernel(device, plan, compiled, plan.buffers)
                self.resources: Resources = self._kernel.resources
                self._memory.allocate_all()
                self.transfer_s = self._memory.copy()
                # PyCUDA packs a pointer for a buffer's name, else the scalar itself.
                self._arguments = [
                    int(self._memory.allocations[a]) if isinstance(a, str) else a
                    for a in plan.arguments
                ]
        except DeviceError:
            self.close()
            raise

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Renew what the kernel overwrites, run it once, wait. Time is between two GPU events.

        All but the first launch are held back until kernel and events are queued. Raises
        ``LaunchError`` (``fatal`` after a fault such as an illegal address: replace the process)
        and ``LaunchTimeout`` (the kernel still runs: replace the process too).
        """
        if self._closed or self._kernel is None:
            raise DeviceError(f"{self._label} is closed and cannot be launched")
        with self._device.translated(f"renewing the buffers of {self._label}"):
            self._memory.renew()
            self._device.synchronize()
        with self._device.translated(f"launch of {self._label}"):
            flush = None if self._flush is None else self._flush.queue
            elapsed, held = self._kernel.queue_timed(self._arguments, flush)
            if timeout_s is not None:
                self._wait(timeout_s)
            kernel_s = float(elapsed())
            self._device.synchronize()
        return Launch(kernel_s=kernel_s, held=held())

    def flush_l2(self) -> None:
        """From now on, empty the L2 cache before every launch, outside the timed interval."""
        with self._device.translated(f"flushing L2 for {self._label}"):
            self._flush = self._device.flush_l2()

    def fetch(self) -> Outputs:
        """Copy the output buffers to the host."""
        with self._device.translated(f"fetching the results of {self._label}"):
            return self._memory.outputs()

    def close(self) -> None:
        """Free the device memory."""
        if self._closed:
            return
        self._closed = True
        if self._device.lost:
            ABANDONED.append(self._kernel)
        self._memory.close()

    def _wait(self, timeout_s: float) -> None:
        done = self._device.cuda.Event()
        done.record()
        start = time.monotonic()
        while not done.query():
            waited = time.monotonic() - start
            if waited > timeout_s:
                raise late(self._device, self._label, timeout_s)
            if waited > _POLL_FIRST_S:
                time.sleep(_POLL_SLEEP_S)
