"""A ``pycuda.driver`` that keeps device memory in bytearrays and records every call, for tests.

It has what the CUDA device uses and nothing else, so that using more fails here too. ``kernel`` is
a Python function called as ``kernel(memory, *arguments)`` in place of the compiled one; of several
kernels each has its own in ``kernels``, by a part of its symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from nqbench.simulator.models import load_model

MODEL = load_model("sm_90").facts
DRIVER_VERSION = 13000
_DEVICE_ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": MODEL.multiprocessors,
    "WARP_SIZE": 32,
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_THREADS_PER_MULTIPROCESSOR": MODEL.max_threads_per_multiprocessor,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": MODEL.max_blocks_per_multiprocessor,
    "MAX_GRID_DIM_X": MODEL.max_grid_x,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": MODEL.registers_per_multiprocessor,
    "MAX_REGISTERS_PER_BLOCK": MODEL.registers_per_block,
    "MAX_SHARED_MEMORY_PER_BLOCK": MODEL.shared_per_block,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": MODEL.shared_per_block_optin,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": MODEL.shared_per_multiprocessor,
    "RESERVED_SHARED_MEMORY_PER_BLOCK": MODEL.shared_reserved_per_block,
    "L2_CACHE_SIZE": 50 << 20,
}


class Error(Exception):
    """Base of the driver's errors."""


class OutOfMemory(Error):
    """``pycuda.driver.MemoryError``."""


class LogicError(Error):
    """``pycuda.driver.LogicError``."""


class Names:
    """An enumeration whose members are their own names."""

    def __getattr__(self, name: str) -> str:
        return name


class FakeDriver:
    """The module ``pycuda.driver``, and the state of its one pretended GPU."""

    Error, MemoryError, LogicError = Error, OutOfMemory, LogicError
    device_attribute = function_attribute = func_cache = Names()
    event_flags = SimpleNamespace(DISABLE_TIMING=2)
    ctx_flags = SimpleNamespace(SCHED_AUTO=0, MAP_HOST=8)
    host_alloc_flags = SimpleNamespace(DEVICEMAP=2)

    def __init__(self) -> None:
        self.variables: dict[str, int] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.memory: dict[int, bytearray] = {}
        self.kernel: Callable[..., None] = lambda memory, *arguments: None
        self.kernels: dict[str, Callable[..., None]] = {}
        self.capacity = 1 << 30
        self.failures: dict[str, Error] = {}
        self.polls_until_done = 0
        self.kernel_ms = 2.5
        self.attributes = {"NUM_REGS": 24, "SHARED_SIZE_BYTES": 0, "LOCAL_SIZE_BYTES": 0}
        self.contexts = 0
        self.context_flags = 0
        self.flags = np.zeros(2, np.uint32)
        self.block_expires = False
        self.Device, self.Context, self.Event = (
            type(kind.__name__, (kind,), {"gpu": self}) for kind in (Device, Context, Event)
        )

    def note(self, name: str, *details: Any) -> None:
        """Record a call, and fail it if the test wants that."""
        self.calls.append((name, *details))
        if name in self.failures:
            raise self.failures[name]

    @contextmanager
    def profiled(self, wanted: bool = True) -> Iterator[None]:
        """In place of ``driver.profiled``."""
        if wanted:
            self.note("on")
        yield
        if wanted:
            self.note("off")

    def run(self, symbol: str, *arguments: Any) -> None:
        """Do what the kernel with this symbol does."""
        found = (kernel for part, kernel in self.kernels.items() if part in symbol)
        next(found, self.kernel)(self.memory, *arguments)

    def names(self) -> list[str]:
        """Names of the calls so far."""
        return [call[0] for call in self.calls]

    def used(self) -> int:
        """Bytes allocated."""
        return sum(len(block) for block in self.memory.values())

    def init(self) -> None:
        self.note("init")

    def get_version(self) -> tuple[int, int, int]:
        return 13, 0, 0

    def get_driver_version(self) -> int:
        return DRIVER_VERSION

    def module_from_buffer(self, image: bytes) -> Module:
        self.note("module_from_buffer")
        assert image.startswith(b"\x7fELF")
        return Module(self, image)

    def pagelocked_empty(self, shape: int, dtype: Any) -> Any:
        self.note("pagelocked_empty", shape)
        return np.full(shape, 0xCD, dtype)

    def pagelocked_zeros(self, shape: int, dtype: Any, mem_flags: int) -> Pagelocked:
        self.note("pagelocked_zeros")
        assert mem_flags == 2
        assert self.context_flags & 8, "mapped memory needs a context that maps"
        array = np.zeros(shape, dtype).view(Pagelocked)
        array.gpu = self
        self.flags = array
        return array

    def mem_get_info(self) -> tuple[int, int]:
        return self.capacity - self.used(), self.capacity

    def mem_alloc(self, nbytes: int) -> Allocation:
        self.note("mem_alloc", nbytes)
        if self.used() + nbytes > self.capacity:
            raise OutOfMemory("cuMemAlloc failed: out of memory")
        return Allocation(self, nbytes)

    def memcpy_htod(self, target: Allocation, host: Any) -> None:
        self.note("memcpy_htod", int(target))
        self.memory[int(target)][: host.nbytes] = host.tobytes()

    def memcpy_dtoh(self, host: Any, source: Allocation, how: str = "memcpy_dtoh") -> None:
        self.note(how, int(source))
        raw = bytes(self.memory[int(source)][: host.nbytes])
        host[:] = np.frombuffer(raw, dtype=host.dtype)

    def memcpy_dtoh_async(self, host: Any, source: Allocation) -> None:
        assert host.base is not None, "only page-locked memory can be copied to without waiting"
        self.memcpy_dtoh(host, source, "memcpy_dtoh_async")

    def memcpy_dtod(self, target: Allocation, source: Allocation, nbytes: int) -> None:
        self.note("memcpy_dtod", int(target), int(source))
        self.memory[int(target)][:nbytes] = self.memory[int(source)][:nbytes]

    def memset_d32(self, target: Allocation, value: int, count: int) -> None:
        self.note("memset_d32", int(target))
        self.memory[int(target)][: 4 * count] = value.to_bytes(4, "little") * count

    def memset_d8(self, target: Allocation, value: int, nbytes: int) -> None:
        self.note("memset_d8", int(target))
        self.memory[int(target)][:nbytes] = bytes([value]) * nbytes


class OfGpu:
    """A class of the module: ``gpu`` is the module's own."""

    gpu: FakeDriver


class Device(OfGpu):
    def __init__(self, index: int) -> None:
        self.index = index

    @staticmethod
    def count() -> int:
        return 1

    def name(self) -> str:
        return "Pretended H100"

    def pci_bus_id(self) -> str:
        return "0000:01:00.0"

    def compute_capability(self) -> tuple[int, int]:
        return MODEL.compute_capability

    def total_memory(self) -> int:
        return self.gpu.capacity

    def get_attribute(self, name: str) -> int:
        return _DEVICE_ATTRIBUTES[name]

    def make_context(self, flags: int) -> Any:
        self.gpu.note("make_context")
        self.gpu.context_flags = flags
        self.gpu.contexts += 1
        return self.gpu.Context()


class Context(OfGpu):
    @classmethod
    def synchronize(cls) -> None:
        cls.gpu.note("synchronize")

    @classmethod
    def pop(cls) -> None:
        cls.gpu.note("pop")

    def detach(self) -> None:
        self.gpu.contexts -= 1
        self.gpu.note("detach")


class Event(OfGpu):
    def __init__(self, flags: int = 0) -> None:
        self.flags = flags

    def synchronize(self) -> None:
        self.gpu.note("event_synchronize")

    def record(self) -> None:
        self.gpu.note("record")

    def time_till(self, end: Event) -> float:
        return self.gpu.kernel_ms

    def query(self) -> bool:
        self.gpu.note("query")
        self.gpu.polls_until_done -= 1
        return self.gpu.polls_until_done < 0


class Allocation:
    def __init__(self, gpu: FakeDriver, nbytes: int) -> None:
        self.gpu = gpu
        self.address = 0x1000 + 0x100000 * len(gpu.calls)
        gpu.memory[self.address] = bytearray(b"\xab" * nbytes)  # undefined contents

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        self.gpu.note("free", self.address)
        del self.gpu.memory[self.address]


class Pagelocked(np.ndarray[Any, np.dtype[np.uint32]]):
    """Page-locked host memory: an array whose writes are noted."""

    gpu: FakeDriver

    def __setitem__(self, where: Any, value: Any) -> None:
        if where == 0 and value == 1:
            self.gpu.note("release")
        super().__setitem__(where, value)

    @property
    def base(self) -> Any:
        return SimpleNamespace(get_device_pointer=lambda: 0xF1A6)


class Module:
    def __init__(self, gpu: FakeDriver, image: bytes) -> None:
        self.gpu, self.image = gpu, image

    def get_function(self, symbol: str) -> Function:
        if symbol.encode() not in self.image:
            raise LogicError("cuModuleGetFunction failed: named symbol not found")
        return Function(self.gpu, symbol)

    def get_global(self, symbol: str) -> tuple[int, int]:
        if symbol.encode() not in self.image:
            raise LogicError("cuModuleGetGlobal failed: named symbol not found")
        self.gpu.note("get_global", symbol)
        return self.gpu.variables.setdefault(symbol, Allocation(self.gpu, 16).address), 16


class Function:
    def __init__(self, gpu: FakeDriver, symbol: str) -> None:
        self.gpu, self.symbol = gpu, symbol
        self.codes: list[str] = []

    def prepare(self, codes: list[str]) -> None:
        self.codes = codes

    def get_attribute(self, name: str) -> int:
        return self.gpu.attributes[name]

    def set_attribute(self, name: str, value: int) -> None:
        self.gpu.note("set_attribute", name, value)

    def set_cache_config(self, value: str) -> None:
        self.gpu.note("set_cache_config", value)

    def prepared_call(
        self, grid: tuple[int, ...], block: tuple[int, ...], *arguments: Any, shared_size: int = 0
    ) -> None:
        assert len(arguments) == len(self.codes)
        if self.symbol != "_Z12block_streamPVjy":
            self.gpu.note("queue", self.symbol, grid, block, shared_size)
            self.gpu.run(self.symbol, *arguments)
            return
        self.gpu.note("block", grid, block, int(arguments[1]))
        assert self.gpu.flags.tolist() == [0, 0]
        if self.gpu.block_expires:
            self.gpu.flags[1] = 1

    def prepared_timed_call(
        self, grid: tuple[int, ...], block: tuple[int, ...], *arguments: Any, shared_size: int
    ) -> Callable[[], float]:
        self.gpu.note("launch", grid, block, shared_size, tuple(self.codes))
        assert len(arguments) == len(self.codes)
        self.gpu.run(self.symbol, *arguments)

        def elapsed() -> float:
            self.gpu.note("elapsed")
            return self.gpu.kernel_ms * 1e-3

        return elapsed
