"""A kernel on a CUDA GPU: loading, launching, its resources, and the plan of a single kernel."""

from __future__ import annotations

import ctypes
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.compiler.bindings import linker_version
from nqbench.compiler.compiled import Compiled, occupancy, resources_of
from nqbench.device import Launch, Prepared, Resources
from nqbench.devices.cuda import driver as cuda_driver
from nqbench.devices.cuda.gpu import ABANDONED, DEFAULT_CARVEOUT, Gpu, late
from nqbench.devices.cuda.query import FIRST_CARVEOUT_CAPABILITY
from nqbench.errors import DeviceError
from nqbench.multi_launch import symbol_bytes
from nqbench.plan import (
    PREPARE,
    Argument,
    Buffer,
    CachePreference,
    Kernel,
    KernelPlan,
    Outputs,
    Variable,
    with_addresses,
)
from nqbench.system.machine import REPEATS, timed
from nqbench.vocabulary import of_kernel

KEPT_BYTES: Final = 1 << 28
"""A buffer so large is kept: to allocate and free 100 GB takes a quarter of a second."""
CARVEOUT_PERCENT: Final[Mapping[CachePreference, int]] = {
    "default": -1,  # the driver chooses
    "prefer_l1": 0,
    "prefer_shared": 100,
}
"""Share of the combined L1 and shared memory requested for shared memory; a hint to the driver."""


class CudaPrepared(Prepared):
    """What a kernel and a program on a GPU have in common: their buffers, and the end of them."""

    def __init__(self, device: Gpu, label: str, buffers: Sequence[Buffer]) -> None:
        self.device, self._label = device, label
        self.memory = DeviceMemory(device, label, buffers)
        self._closed = self._profiling = False

    def profile_first_launches(self) -> None:
        """See ``Prepared``; the kernel that makes the input has been launched already."""
        self._profiling = True

    def fetch(self) -> Outputs:
        """Copy the output buffers to the host."""
        with self.device.translated(f"fetching the results of {self._label}"):
            return self.memory.outputs()

    def refill(self, data: Outputs, *, again: bool = True) -> bool:
        """See ``Prepared``."""
        with self.device.translated(f"filling the buffers of {self._label}"):
            return self.memory.refill(data, again)

    def close(self) -> None:
        """Free the device memory."""
        if not self._closed:
            self._closed = True
            held = self._let_go()
            if self.device.lost:
                ABANDONED.extend(held)
            self.memory.close()

    @abstractmethod
    def _let_go(self) -> Sequence[Any]:
        """Let go of what was loaded; what must be kept in a lost process, where freeing it would
        wait for the GPU."""

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError(f"{self._label} is closed and cannot be launched")


class CudaKernel(CudaPrepared):
    """A plan of one kernel on a GPU: the loaded kernel and its buffers."""

    def __init__(self, device: Gpu, plan: KernelPlan, compiled: Mapping[str, Compiled]) -> None:
        super().__init__(device, label_of(plan), plan.buffers)
        self._flush: Callable[[], None] | None = None
        self._kernel: LoadedKernel | None = None
        self._make: Callable[[], float] | None = None
        try:
            with device.translated(f"preparing {self._label}"):
                self._kernel = LoadedKernel(device, plan, compiled["kernel"], plan.buffers)
                self.resources: Resources = self._kernel.resources
                self.memory.allocate_all()
                self.transfer_s = self.memory.copy()
                self._arguments = self._packed(plan)
                if plan.prepare is not None:
                    self._prepare(plan.prepare, compiled[PREPARE], plan.buffers)
        except DeviceError:
            self.close()
            raise

    @cached_property
    def prepare_s(self) -> float | None:
        """See ``Prepared``: the median launch, without the one that loaded the code."""
        if self._make is None:
            return None
        with self.device.translated(f"timing the input of {self._label}"):
            return median(self._make() for _ in range(REPEATS))

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Restore what the kernel overwrites, run it once, wait. Time is between two GPU events.

        All but the first launch are queued behind the blocking kernel. Raises ``LaunchError``
        (``fatal`` after a fault such as an illegal address: replace the process) and
        ``LaunchTimeout`` (the kernel still runs: replace the process too).
        """
        self._check_open()
        assert self._kernel is not None
        with self.device.translated(f"renewing the buffers of {self._label}"):
            self.memory.renew()
            self._kernel.set_symbols()
            self.device.synchronize()
        profiling, self._profiling = self._profiling, False
        with self.device.translated(f"launch of {self._label}"), cuda_driver.profiled(profiling):
            finish = self._kernel.queue_timed(self._arguments, self._flush)
            if timeout_s is not None:
                self._wait(timeout_s)
            kernel_s, blocked = finish()
            self.device.synchronize()
        return Launch(kernel_s, blocked=blocked)

    def fetch(self) -> Outputs:
        """The output buffers and module variables."""
        found = super().fetch()
        assert self._kernel is not None
        with self.device.translated(f"fetching the variables of {self._label}"):
            return {**found, **self._kernel.results()}

    def flush_l2(self) -> None:
        """From now on, empty the L2 cache before every launch, outside the timed interval."""
        with self.device.translated(f"flushing L2 for {self._label}"):
            self._flush = self.device.l2_flush()

    def _let_go(self) -> Sequence[Any]:
        self._make = None  # it holds this object: a module is unloaded where its context is current
        return (self._kernel,)

    def _packed(self, kernel: Kernel) -> list[Any]:
        """Arguments as PyCUDA packs them: a pointer for a buffer's name, else the scalar itself."""
        found = self.memory.allocations
        given = [int(found[a]) if isinstance(a, str) else a for a in kernel.arguments]
        return [
            with_addresses(a, found.__getitem__).tobytes() if isinstance(a, np.void) else a
            for a in given
        ]

    def _prepare(self, kernel: Kernel, compiled: Compiled, buffers: Sequence[Buffer]) -> None:
        loaded = LoadedKernel(self.device, kernel, compiled, buffers)
        arguments = self._packed(kernel)
        loaded.set_symbols()

        def make() -> float:
            self.memory.renew()
            self.device.synchronize()
            return loaded.queue_timed(arguments)()[0]

        self._make = make
        self._make()
        self.device.synchronize()
        own = loaded.resources.items()
        self.resources = {**self.resources, **{of_kernel(name, PREPARE): v for name, v in own}}

    def _wait(self, timeout_s: float) -> None:
        done = self.device.cuda.Event()
        done.record()
        start = time.monotonic()
        while not done.query():
            waited = time.monotonic() - start
            if waited > timeout_s:
                raise late(self.device, self._label, timeout_s)
            if waited > 0.002:  # a short kernel is polled without sleeping
                time.sleep(0.0005)  # far below any timeout; the GPU's own clock does the timing


class LoadedKernel:
    """A kernel in the current context, ready to launch with packed arguments.

    Raises ``DeviceError`` for arguments that cannot be packed and for too much shared memory.
    """

    def __init__(
        self, device: Gpu, kernel: Kernel, compiled: Compiled, buffers: Sequence[Buffer]
    ) -> None:
        self._device, self._kernel = device, kernel
        self._grid = tuple(map(int, kernel.grid))
        self._block = tuple(map(int, kernel.block))
        self._launched = False
        if kernel.pending_launches:
            cuda_driver.allow_pending_launches(kernel.pending_launches)
        self._module = device.cuda.module_from_buffer(compiled.image)
        self._function = self._module.get_function(compiled.symbol)
        self._cooperative: cuda_driver.LoadedCopy | None = None
        if kernel.cooperative:
            self._cooperative = cuda_driver.LoadedCopy(compiled.image, compiled.symbol)
        self._symbols = self._find_symbols(compiled)
        self._carveout = self._configure()
        codes = [type_code(kernel.entry, buffers, argument) for argument in kernel.arguments]
        self._function.prepare(codes)
        self._types = [
            ctypes.c_void_p if code == "P" else np.ctypeslib.as_ctypes_type(code)
            for code in codes
            if not code.endswith("s")
        ]
        if kernel.cooperative and len(self._types) < len(codes):
            raise DeviceError(f"{label_of(kernel)}: a cooperative launch takes no struct by value")
        self.resources: Resources = {
            **self._resources(compiled),
            **({"nvjitlink": linker_version()} if kernel.device_launch else {}),
        }

    def results(self) -> Outputs:
        """The module variables that are outputs."""
        found: Outputs = {}
        for name, (address, _) in zip(self._kernel.symbols, self._symbols, strict=True):
            if name in self._kernel.results:
                found[name] = np.empty_like(self._kernel.symbols[name])
                self._device.cuda.memcpy_dtoh(found[name], address)
        return found

    def set_symbols(self) -> None:
        """Copy the plan's contents into the kernel's module variables."""
        for address, data in self._symbols:
            self._device.cuda.memcpy_htod(address, data)

    def queue(self, arguments: Sequence[Any]) -> None:
        """Queue a launch and return. ``arguments`` are addresses and scalars."""
        self._launched = True
        shared_bytes = self._kernel.shared_bytes
        if self._cooperative is not None:
            values = [a.item() if isinstance(a, np.generic) else a for a in arguments]
            self._cooperative.launch(self._grid, self._block, shared_bytes, values, self._types)
            return
        self._function.prepared_call(self._grid, self._block, *arguments, shared_size=shared_bytes)

    def _timed_together(self, arguments: Sequence[Any]) -> Callable[[], float]:
        """Queue a cooperative launch between two events; the function gives the seconds."""
        start, end = (self._device.cuda.Event() for _ in range(2))
        start.record()
        self.queue(arguments)
        end.record()

        def elapsed() -> float:
            end.synchronize()
            return float(start.time_till(end)) * 1e-3

        return elapsed

    def queue_timed(
        self, arguments: Sequence[Any], before: Callable[[], None] | None = None
    ) -> Callable[[], tuple[float, bool]]:
        """Queue a launch between two events, after ``before``; behind a blocking kernel if it can.

        The returned function waits; it gives the seconds between the events, and whether kernel and
        events were all queued while the stream was blocked. After a blocking kernel was not
        released in time, no further launch is blocked.
        """
        # Not the first: the driver may then wait for the GPU to enlarge local memory. It may also
        # wait before a kernel that launches kernels, for their pool of launches.
        can_block = self._launched and not self._kernel.device_launch
        blocker = self._device.blocking_kernel() if can_block else None
        if before is not None:
            before()
        joint = self._device.facts.compute_capability >= FIRST_CARVEOUT_CAPABILITY
        split = self._carveout if joint else DEFAULT_CARVEOUT
        with nullcontext() if blocker is None else blocker.blocking(split):
            if self._cooperative is not None:
                elapsed = self._timed_together(arguments)
            else:
                elapsed = self._function.prepared_timed_call(
                    self._grid, self._block, *arguments, shared_size=self._kernel.shared_bytes
                )

        def finish() -> tuple[float, bool]:
            seconds = float(elapsed())
            self._launched = True
            if blocker is not None and blocker.expired:
                self._device.stop_blocking()
                return seconds, False
            return seconds, blocker is not None

        return finish

    def _find_symbols(self, compiled: Compiled) -> list[tuple[int, NDArray[np.uint8]]]:
        """Address and contents of each module variable of the plan."""
        found = []
        for name in self._kernel.symbols:
            symbol = compiled.variables[name]
            if self._cooperative is not None:
                address, nbytes = self._cooperative.variable(symbol)
            else:
                address, nbytes = self._module.get_global(symbol)
            data = symbol_bytes(self._kernel, name, int(nbytes))
            found.append((int(address), np.frombuffer(data, np.uint8)))
        return found

    def _configure(self) -> int:
        """Request dynamic shared memory above 48 KiB and the L1 split; returns its percentage."""
        attribute = self._device.cuda.function_attribute
        facts, kernel = self._device.facts, self._kernel
        if kernel.shared_bytes > facts.shared_per_block_optin:
            raise DeviceError(
                f"{label_of(kernel)} asks for {kernel.shared_bytes} bytes of dynamic shared memory"
                f" per block; {self._device.spec} has {facts.shared_per_block_optin}: use a smaller"
                " block or fewer rows"
            )
        static = int(self._function.get_attribute(attribute.SHARED_SIZE_BYTES))
        if kernel.shared_bytes > 0 and static + kernel.shared_bytes > facts.shared_per_block:
            self._function.set_attribute(
                attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.shared_bytes
            )
            if self._cooperative is not None:
                self._cooperative.allow_shared(kernel.shared_bytes)
        percent = CARVEOUT_PERCENT[kernel.cache]
        if kernel.cache == "default":
            return percent
        if facts.compute_capability >= FIRST_CARVEOUT_CAPABILITY:
            self._function.set_attribute(attribute.PREFERRED_SHARED_MEMORY_CARVEOUT, percent)
        else:
            config = self._device.cuda.func_cache
            self._function.set_cache_config(
                config.PREFER_L1 if kernel.cache == "prefer_l1" else config.PREFER_SHARED
            )
        return percent

    def _resources(self, compiled: Compiled) -> dict[str, int | float | str]:
        """Registers, memory and occupancy, by the compiler, the driver and our own computation."""
        attribute = self._device.cuda.function_attribute
        facts, kernel = self._device.facts, self._kernel
        taken = resources_of(compiled)
        block_size = int(np.prod(kernel.block))
        registers = int(self._function.get_attribute(attribute.NUM_REGS))
        static_shared = int(self._function.get_attribute(attribute.SHARED_SIZE_BYTES))
        shared = static_shared + kernel.shared_bytes
        ours = occupancy(facts, registers, shared, block_size, kernel.cache)
        probe = cuda_driver.LoadedCopy(compiled.image, compiled.symbol)
        blocks = probe.blocks_per_multiprocessor(block_size, kernel.shared_bytes, self._carveout)
        probe.close()
        warps = blocks * -(-block_size // facts.warp_size)
        return {
            "registers": registers,
            "stack_bytes": taken.stack_bytes,
            "local_bytes": int(self._function.get_attribute(attribute.LOCAL_SIZE_BYTES)),
            "spill_bytes": taken.spill_bytes,
            "spill_store_bytes": taken.spill_store_bytes,
            "spill_load_bytes": taken.spill_load_bytes,
            "static_shared_bytes": static_shared,
            "dynamic_shared_bytes": kernel.shared_bytes,
            "carveout_percent": self._carveout,
            "blocks_per_multiprocessor": blocks,
            "occupancy": warps / facts.max_warps_per_multiprocessor,
            "occupancy_computed": ours.fraction,
            "occupancy_limiter": ours.limiter,
        }


def label_of(kernel: Kernel) -> str:
    """What messages call a kernel: its instance and its geometry."""
    return f"kernel {kernel.entry} {kernel.grid}x{kernel.block}"


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
    if isinstance(argument, np.void):  # its bytes, at a multiple of its alignment
        return f"0{ {1: 'b', 2: 'h', 4: 'i', 8: 'q'}[argument.dtype.alignment] }{argument.nbytes}s"
    if isinstance(argument, np.generic):
        return argument.dtype.char
    said = f"kernel {entry} takes {argument!r}; arguments are buffer names or numpy scalars"
    raise DeviceError(said)


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
        self._device.free_spare()
        # Freed memory comes back with its contents: the right answer of the point before.
        self.refill({}, again=False)

    def allocate(self, name: str) -> None:
        """Allocate one buffer. Raises ``DeviceError`` if it does not fit."""
        self.allocations[name] = self._new(self._buffers[name])

    def free(self, name: str) -> None:
        """Free one buffer."""
        self.allocations.pop(name).free()

    def copy(self) -> float:
        """Host-to-device copies; seconds from an idle GPU to an idle GPU."""
        host = {b.name: self._host(b) for b in self._lasting if b.data is not None}
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

    def refill(self, data: Outputs, again: bool) -> bool:
        """See ``Prepared``."""
        filled = False
        for buffer in self._lasting:
            place = self.allocations[buffer.name]
            if buffer.name in data:
                self._cuda.memcpy_htod(place, self._host(replace(buffer, data=data[buffer.name])))
                if buffer.restore:
                    self._copy_on_device(buffer, self._pristine, self.allocations)
            elif buffer.output and buffer.blank and buffer.nbytes:
                word, whole = buffer.fill(again=again), buffer.nbytes // 4
                if whole:
                    self._cuda.memset_d32(place, word, whole)
                for byte in range(buffer.nbytes % 4):
                    end = int(place) + 4 * whole + byte
                    self._cuda.memset_d8(end, word >> 8 * byte & 0xFF, 1)
                filled = True
        return filled or bool(data)

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
        keeps = self._device.keeps_memory and not self._device.lost
        for name in [*self.allocations] if keeps else ():
            if (nbytes := self._buffers[name].nbytes) >= KEPT_BYTES:
                self._device.spare.setdefault(nbytes, []).append(self.allocations.pop(name))
        everything = (*self.allocations.values(), *self._pristine.values())
        if self._device.lost:
            ABANDONED.extend(everything)
        else:
            for allocation in everything:
                allocation.free()
        self.allocations.clear()
        self._pristine.clear()

    def _host(self, buffer: Buffer) -> NDArray[Any]:
        return buffer.placed(lambda name: int(self.allocations[name]), host_array(buffer))

    def _new(self, buffer: Buffer) -> Any:
        if spare := self._device.spare.get(buffer.nbytes):
            return spare.pop()
        try:
            return self._cuda.mem_alloc(max(1, buffer.nbytes))
        except self._cuda.MemoryError as error:
            if any(self._device.spare.values()):
                self._device.free_spare()
                return self._new(buffer)
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
