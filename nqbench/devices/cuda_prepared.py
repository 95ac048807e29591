"""A kernel loaded on a CUDA GPU: buffers, launch attributes, timed launches, results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from nqbench.closing import Closing
from nqbench.compile import Compiled
from nqbench.devices.cuda_arguments import host_array, type_code
from nqbench.devices.cuda_hold import DEFAULT_CARVEOUT, Hold, L2Flush
from nqbench.devices.cuda_query import FIRST_CARVEOUT_CAPABILITY
from nqbench.devices.cuda_resources import resources
from nqbench.devices.protocol import Launch
from nqbench.errors import DeviceError, LaunchTimeout
from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, CachePreference, KernelPlan, Outputs

CARVEOUT_PERCENT: Final[Mapping[CachePreference, int]] = {
    "default": -1,  # the driver chooses
    "prefer_l1": 0,
    "prefer_shared": 100,
}
"""Share of the joint L1 and shared memory that is asked for shared memory; a hint to the driver."""

_POLL_FIRST_S: Final = 0.002  # a short kernel is polled without sleeping
_POLL_SLEEP_S: Final = 0.0005  # far below any timeout; the GPU's own clock does the timing

ABANDONED: Final[list[Any]] = []
"""Driver objects of a lost process, kept so that nothing tries to free them."""


class Owner(Protocol):
    """What a prepared kernel needs of its device."""

    cuda: Any
    spec: str
    facts: DeviceFacts
    lost: bool

    def synchronize(self) -> None:
        """Wait until the GPU is idle."""

    def translated(self, deed: str) -> AbstractContextManager[None]:
        """Turn PyCUDA's errors into ``LaunchError``."""

    def hold(self) -> Hold | None:
        """What keeps launch latency out of kernel times, if there is."""

    def no_hold(self) -> None:
        """Hold no more."""

    def flush_l2(self) -> L2Flush:
        """What empties the L2 cache."""


class CudaPrepared(Closing):
    """A kernel loaded on a GPU with its buffers."""

    def __init__(self, device: Owner, plan: KernelPlan, compiled: Compiled) -> None:
        self._device = device
        self._cuda = device.cuda
        self._plan = plan
        self._label = f"kernel {plan.entry} {plan.grid}x{plan.block}"
        self._allocations: dict[str, Any] = {}
        self._pristine: dict[str, Any] = {}
        self._closed = False
        self._launched = False
        self._flush: L2Flush | None = None
        self._module: Any = None
        try:
            with device.translated(f"preparing {self._label}"):
                self._module = self._cuda.module_from_buffer(compiled.image)
                self._function = self._module.get_function(compiled.symbol)
                self._carveout = self._configure()
                self._allocate()
                self.transfer_s: float | None = self._copy()
                self._function.prepare([type_code(plan, argument) for argument in plan.arguments])
                self._arguments = [self._value(argument) for argument in plan.arguments]
                self.resources: Mapping[str, int | float | str] = resources(
                    device, plan, compiled, self._function, self._carveout
                )
        except DeviceError:
            self.close()
            raise

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Renew what the kernel overwrites, run it once, wait. Time is between two GPU events.

        All but the first launch are held back until kernel and events are queued. Raises
        ``LaunchError`` (``fatal`` after a fault such as an illegal address: replace the process)
        and ``LaunchTimeout`` (the kernel still runs: replace the process too).
        """
        if self._closed:
            raise DeviceError(f"{self._label} is closed and cannot be launched")
        with self._device.translated(f"renewing the buffers of {self._label}"):
            self._renew()
            self._device.synchronize()
        # Not the first: the driver may have to wait for the GPU then, to enlarge local memory.
        hold = self._device.hold() if self._launched else None
        with self._device.translated(f"launch of {self._label}"):
            if self._flush is not None:
                self._flush.queue()
            with nullcontext() if hold is None else hold.held(self._split()):
                elapsed = self._function.prepared_timed_call(
                    tuple(map(int, self._plan.grid)),
                    tuple(map(int, self._plan.block)),
                    *self._arguments,
                    shared_size=self._plan.shared_bytes,
                )
            if timeout_s is not None:
                self._wait(timeout_s)
            kernel_s = float(elapsed())
            self._device.synchronize()
        self._launched = True
        expired = hold is not None and hold.expired
        if expired:
            self._device.no_hold()
        return Launch(kernel_s=kernel_s, held=hold is not None and not expired)

    def use_cold_l2(self) -> None:
        """From now on, empty the L2 cache before every launch, outside the timed interval."""
        with self._device.translated(f"flushing L2 for {self._label}"):
            self._flush = self._device.flush_l2()

    def fetch(self) -> Outputs:
        """Copy the output buffers to the host."""
        outputs: Outputs = {}
        with self._device.translated(f"fetching the results of {self._label}"):
            for buffer in self._plan.buffers:
                if buffer.output:
                    outputs[buffer.name] = self._read(buffer)
        return outputs

    def close(self) -> None:
        """Free the device memory."""
        if self._closed:
            return
        self._closed = True
        if self._device.lost:
            # Freeing waits for the kernel, which may never end: keep the memory until the exit.
            ABANDONED.extend((*self._allocations.values(), *self._pristine.values(), self._module))
            return
        for allocation in (*self._allocations.values(), *self._pristine.values()):
            allocation.free()
        self._allocations.clear()
        self._pristine.clear()

    def _configure(self) -> int:
        """Ask for dynamic shared memory above 48 KiB and for the L1 split; the percentage asked."""
        attribute = self._cuda.function_attribute
        facts, plan = self._device.facts, self._plan
        if plan.shared_bytes > facts.shared_per_block_optin:
            raise DeviceError(
                f"{self._label} asks for {plan.shared_bytes} bytes of dynamic shared memory per"
                f" block; {self._device.spec} has {facts.shared_per_block_optin}: use a smaller"
                " block or fewer rows"
            )
        if plan.shared_bytes > facts.shared_per_block:
            self._function.set_attribute(attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, plan.shared_bytes)
        percent = CARVEOUT_PERCENT[plan.cache]
        if plan.cache == "default":
            return percent
        if facts.compute_capability >= FIRST_CARVEOUT_CAPABILITY:
            self._function.set_attribute(attribute.PREFERRED_SHARED_MEMORY_CARVEOUT, percent)
        else:
            config = self._cuda.func_cache
            self._function.set_cache_config(
                config.PREFER_L1 if plan.cache == "prefer_l1" else config.PREFER_SHARED
            )
        return percent

    def _split(self) -> int:
        """The L1 split that the holding kernel shares with this one."""
        joint = self._device.facts.compute_capability >= FIRST_CARVEOUT_CAPABILITY
        return self._carveout if joint else DEFAULT_CARVEOUT

    def _allocate(self) -> None:
        for buffer in self._plan.buffers:
            try:
                self._allocations[buffer.name] = self._cuda.mem_alloc(max(1, buffer.nbytes))
                if buffer.restore:
                    self._pristine[buffer.name] = self._cuda.mem_alloc(max(1, buffer.nbytes))
            except self._cuda.MemoryError as error:
                free, total = self._cuda.mem_get_info()
                raise DeviceError(
                    f"{self._label} needs {self._plan.device_bytes} bytes of GPU memory and buffer"
                    f" {buffer.name} ({buffer.nbytes} bytes) does not fit: {free} of {total} bytes"
                    f" are free on {self._device.spec}"
                ) from error

    def _copy(self) -> float:
        """Host-to-device copies; seconds from an idle GPU to an idle GPU."""
        host = {b.name: host_array(b) for b in self._plan.buffers if b.data is not None}
        self._device.synchronize()
        start = time.perf_counter()
        for name, data in host.items():
            if data.nbytes:
                self._cuda.memcpy_htod(self._allocations[name], data)
        self._device.synchronize()
        elapsed = time.perf_counter() - start
        for buffer in self._plan.buffers:
            if buffer.restore:
                self._copy_on_device(buffer, self._pristine, self._allocations)
        return elapsed

    def _renew(self) -> None:
        for buffer in self._plan.buffers:
            if buffer.restore:
                self._copy_on_device(buffer, self._allocations, self._pristine)
            elif buffer.zero and buffer.nbytes:
                self._cuda.memset_d8(self._allocations[buffer.name], 0, buffer.nbytes)

    def _copy_on_device(
        self, buffer: Buffer, target: Mapping[str, Any], source: Mapping[str, Any]
    ) -> None:
        if buffer.data is None:
            raise DeviceError(f"buffer {buffer.name} is to be restored but has no data")
        if buffer.nbytes:
            self._cuda.memcpy_dtod(target[buffer.name], source[buffer.name], buffer.nbytes)

    def _wait(self, timeout_s: float) -> None:
        done = self._cuda.Event()
        done.record()
        start = time.monotonic()
        while not done.query():
            waited = time.monotonic() - start
            if waited > timeout_s:
                late = LaunchTimeout(
                    f"{self._device.spec}: {self._label} did not end within {timeout_s:g} s"
                )
                late.fatal = self._device.lost = True
                raise late
            if waited > _POLL_FIRST_S:
                time.sleep(_POLL_SLEEP_S)

    def _read(self, buffer: Buffer) -> NDArray[Any]:
        host = np.empty(buffer.length, dtype=buffer.dtype)
        if host.nbytes:
            self._cuda.memcpy_dtoh(host, self._allocations[buffer.name])
        return host

    def _value(self, argument: Argument) -> Any:
        """What PyCUDA packs: a pointer for a buffer's name, else the scalar itself."""
        return int(self._allocations[argument]) if isinstance(argument, str) else argument
