"""What a program drives a CUDA GPU through.

Everything goes to the default stream, in order. A program of thousands of small launches is timed
here, so that what a launch or a small download costs the host is part of what is measured: launches
are prepared, memory for small downloads is page-locked, and one event serves every wait.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.devices.cuda.binding import ProgramKernel
from nqbench.devices.cuda.memory import DeviceMemory, Owner, late
from nqbench.devices.program import buffer_of, check_group, contents, elements, kernel_of
from nqbench.errors import DeviceError
from nqbench.plan import Outputs, ProgramPlan

PINNED_BYTES: Final = 1 << 16
"""Downloads up to this size go through page-locked memory: the size up to which the driver itself
stages copies. Above it a copy takes longer than what a synchronous call costs."""


class CudaContext:
    """``nqbench.plan.ProgramContext`` on a GPU, for a timed run: it measures nothing itself."""

    def __init__(
        self,
        device: Owner,
        plan: ProgramPlan,
        kernels: Mapping[str, ProgramKernel],
        memory: DeviceMemory,
    ) -> None:
        self.facts = device.facts
        self.kept: Outputs = {}
        self.last = ""
        """Name of the kernel launched last."""
        self._device, self._cuda, self._plan = device, device.cuda, plan
        self._kernels, self._memory = kernels, memory
        self._buffers = {buffer.name: buffer for buffer in plan.buffers}
        self._event = device.cuda.Event(device.cuda.event_flags.DISABLE_TIMING)
        self._staging = _staging(device.cuda)
        self._views: dict[tuple[str, int], tuple[Any, NDArray[Any]]] = {}
        self._timeout_s: float | None = None
        self._deadline = float("inf")
        self._no_phase = nullcontext()

    def begin(self, timeout_s: float | None) -> None:
        """A run starts now. ``timeout_s`` limits it as a whole."""
        self.kept, self.last = {}, ""
        self._timeout_s = timeout_s
        self._deadline = float("inf") if timeout_s is None else time.perf_counter() + timeout_s

    def end(self) -> None:
        """The run is over. Raises ``DeviceError`` if it left a buffer of its own allocated."""
        left = self.release()
        if left:
            raise DeviceError(
                f"{self._plan.name} ends without freeing {', '.join(left)}, which it allocated"
            )

    def release(self) -> list[str]:
        """Free the buffers that the program has allocated and not freed; their names."""
        left = sorted(b for b in self._memory.allocations if self._buffers[b].per_run)
        for name in left:
            self._free(name)
        return left

    def allocate(self, *names: str) -> None:
        """See ``ProgramContext``."""
        for name in names:
            buffer_of(self._plan, name, per_run=True)
            if name in self._memory.allocations:
                raise DeviceError(f"{self._plan.name} allocates buffer {name!r} twice")
            self._memory.allocate(name)
            self._point(name, int(self._memory.allocations[name]))

    def free(self, *names: str) -> None:
        """See ``ProgramContext``."""
        for name in names:
            buffer_of(self._plan, name, per_run=True)
            self._here(name)
            self._free(name)

    def upload(self, name: str, data: NDArray[Any] | None = None) -> None:
        """See ``ProgramContext``."""
        values = contents(self._plan, buffer_of(self._plan, name), data)
        target = self._here(name)
        if values.nbytes:
            self._cuda.memcpy_htod(target, values)

    def clear(self, name: str) -> None:
        """See ``ProgramContext``."""
        buffer_of(self._plan, name)
        self._here(name)
        self._memory.clear(name)

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``. Raises ``LaunchTimeout`` once the run has outlasted its limit."""
        found = self._kernel(kernel)
        found.loaded.queue(found.arguments(variables))

    def download(self, name: str, count: int | None = None) -> NDArray[Any]:
        """See ``ProgramContext``."""
        buffer = buffer_of(self._plan, name)
        wanted = elements(self._plan, buffer, count)
        source = self._here(name)
        nbytes = wanted * np.dtype(buffer.dtype).itemsize
        if self._staging is None or not 0 < nbytes <= PINNED_BYTES:
            self._wait()
            return self._memory.read(name, wanted)
        raw, typed = self._view(name, wanted, nbytes)
        self._cuda.memcpy_dtoh_async(raw, source)
        self._wait()
        return typed.copy()

    def synchronize(self) -> None:
        """See ``ProgramContext``."""
        self._wait()

    def phase(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002 (see ProgramContext)
        """See ``ProgramContext``; a timed run tells no phases apart."""
        return self._no_phase

    def group(self, name: str) -> AbstractContextManager[None]:
        """See ``ProgramContext``; a timed run has none."""
        check_group(self._plan, name)
        return self._no_phase

    def keep(self, name: str, value: NDArray[Any]) -> None:
        """See ``ProgramContext``."""
        self.kept[name] = np.array(value)

    def _kernel(self, name: str) -> ProgramKernel:
        if name not in self._kernels:
            kernel_of(self._plan, name)  # raises, with the names there are
        if time.perf_counter() > self._deadline:
            raise self._late()
        self.last = name
        return self._kernels[name]

    def _wait(self) -> None:
        """Wait for all that is queued, without sleeping: a nap would be part of the time."""
        event, deadline = self._event, self._deadline
        event.record()
        if self._timeout_s is None:
            event.synchronize()
            return
        while not event.query():
            if time.perf_counter() > deadline:
                raise self._late()

    def _late(self) -> Exception:
        after = f" (after a launch of {self.last})" if self.last else ""
        return late(self._device, f"program {self._plan.name}{after}", self._timeout_s or 0.0)

    def _here(self, name: str) -> Any:
        """A buffer's allocation. Raises ``DeviceError`` if it has none at that time."""
        found = self._memory.allocations.get(name)
        if found is None:
            raise DeviceError(
                f"{self._plan.name} uses buffer {name!r}, which is not allocated at that time"
            )
        return found

    def _free(self, name: str) -> None:
        self._memory.free(name)
        self._point(name, None)

    def _point(self, name: str, address: int | None) -> None:
        for kernel in self._kernels.values():
            kernel.point(name, address)

    def _view(self, name: str, count: int, nbytes: int) -> tuple[Any, NDArray[Any]]:
        """Page-locked memory for a download: as bytes for the copy, and as what they mean."""
        if (name, count) not in self._views:
            raw = self._staging[:nbytes]
            self._views[name, count] = (raw, raw.view(self._buffers[name].dtype))
        return self._views[name, count]


def _staging(cuda: Any) -> Any:
    """Page-locked memory; ``None`` where there is none to be had, as on some virtual GPUs."""
    try:
        return cuda.pagelocked_empty(PINNED_BYTES, np.uint8)
    except cuda.Error:
        return None
