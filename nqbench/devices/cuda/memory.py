"""Memory of a CUDA GPU: the buffers of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.devices.cuda.gpu import ABANDONED, Gpu
from nqbench.errors import DeviceError
from nqbench.plan import UNWRITTEN, Buffer
from nqbench.system.machine import timed


class DeviceMemory:
    """Allocations of buffers, with pristine copies of those that are restored.

    ``label`` is what messages call the plan. Buffers that are ``per_run`` are allocated and freed
    one by one; the others come with ``allocate_all``.
    """

    def __init__(self, device: Gpu, label: str, buffers: Sequence[Buffer]) -> None:
        self._device, self._cuda, self._label = device, device.cuda, label
        self._buffers = {buffer.name: buffer for buffer in buffers}
        self._lasting = tuple(buffer for buffer in buffers if not buffer.per_run)
        self._pristine: dict[str, Any] = {}
        self.allocations: dict[str, Any] = {}
        """PyCUDA's allocation of each buffer that exists now."""

    def allocate_all(self) -> None:
        """Allocate all but ``per_run`` buffers. Raises ``DeviceError`` if they do not fit."""
        for buffer in self._lasting:
            self.allocate(buffer.name)
            if buffer.restore:
                self._pristine[buffer.name] = self._new(buffer)
            if buffer.output and buffer.data is None and not buffer.zero and buffer.nbytes:
                # Freed memory comes back with its contents: the right answer of the point before.
                self._cuda.memset_d8(self.allocations[buffer.name], UNWRITTEN, buffer.nbytes)

    def allocate(self, name: str) -> None:
        """Allocate one buffer. Raises ``DeviceError`` if it does not fit."""
        self.allocations[name] = self._new(self._buffers[name])

    def free(self, name: str) -> None:
        """Free one buffer."""
        self.allocations.pop(name).free()

    def copy(self) -> float:
        """Host-to-device copies; seconds from an idle GPU to an idle GPU."""
        host = {b.name: host_array(b) for b in self._lasting if b.data is not None}
        self._device.synchronize()

        def transfer() -> None:
            for name, data in host.items():
                if data.nbytes:
                    self._cuda.memcpy_htod(self.allocations[name], data)
            self._device.synchronize()

        _, elapsed = timed(transfer)
        for buffer in self._lasting:
            if buffer.restore:
                self._copy_on_device(buffer, self._pristine, self.allocations)
        return elapsed

    def renew(self) -> None:
        """Reset buffers that are restored or zeroed to their first contents."""
        for buffer in self._lasting:
            if buffer.restore:
                self._copy_on_device(buffer, self.allocations, self._pristine)
            elif buffer.zero:
                self.clear(buffer.name)

    def clear(self, name: str) -> None:
        """Set every byte of a buffer to zero."""
        nbytes = self._buffers[name].nbytes
        if nbytes:
            self._cuda.memset_d8(self.allocations[name], 0, nbytes)

    def read(self, name: str, count: int | None = None) -> NDArray[Any]:
        """The first ``count`` elements of a buffer (default: all), once the GPU is idle."""
        buffer = self._buffers[name]
        host = np.empty(buffer.length if count is None else count, dtype=buffer.dtype)
        if host.nbytes:
            self._cuda.memcpy_dtoh(host, self.allocations[name])
        return host

    def outputs(self) -> dict[str, NDArray[Any]]:
        """The output buffers, once the GPU is idle."""
        return {buffer.name: self.read(buffer.name) for buffer in self._lasting if buffer.output}

    def close(self) -> None:
        """Free everything; keep it in a lost process, where freeing would wait for the kernel."""
        everything = (*self.allocations.values(), *self._pristine.values())
        if self._device.lost:
            ABANDONED.extend(everything)
        else:
            for allocation in everything:
                allocation.free()
        self.allocations.clear()
        self._pristine.clear()

    def _new(self, buffer: Buffer) -> Any:
        try:
            return self._cuda.mem_alloc(max(1, buffer.nbytes))
        except self._cuda.MemoryError as error:
            free, total = self._cuda.mem_get_info()
            needed = sum(b.nbytes * (2 if b.restore else 1) for b in self._buffers.values())
            raise DeviceError(
                f"{self._label} needs {needed} bytes of GPU memory and buffer"
                f" {buffer.name} ({buffer.nbytes} bytes) does not fit: {free} of {total} bytes"
                f" are free on {self._device.spec}"
            ) from error

    def _copy_on_device(
        self, buffer: Buffer, target: Mapping[str, Any], source: Mapping[str, Any]
    ) -> None:
        if buffer.data is None:
            raise DeviceError(f"buffer {buffer.name} is to be restored but has no data")
        if buffer.nbytes:
            self._cuda.memcpy_dtod(target[buffer.name], source[buffer.name], buffer.nbytes)


def host_array(buffer: Buffer) -> NDArray[Any]:
    """The buffer's data as the kernel expects it: contiguous, of its type and length."""
    data = np.ascontiguousarray(buffer.data, dtype=buffer.dtype).reshape(-1)
    if data.size != buffer.length:
        raise DeviceError(
            f"buffer {buffer.name} has {data.size} elements of data but a length of {buffer.length}"
        )
    return data
