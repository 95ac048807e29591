"""What PyCUDA does not offer of the CUDA driver: presence, error names, UUID, occupancy.

This uses only the driver library (through ctypes and cuda-bindings), so it can examine a machine
before PyCUDA is built, and recognise an unusable context after a fault.
"""

from __future__ import annotations

import ctypes
import functools
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from nqbench.errors import DeviceError, DeviceUnavailable

LIBRARY: Final = "libcuda.so.1"
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


def require_driver() -> None:
    """Raise ``DeviceUnavailable`` if there is no NVIDIA driver on this machine."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DeviceUnavailable(
            f"there is no NVIDIA driver on this machine ({LIBRARY} is not found); install NVIDIA's"
            " driver, or use sim or cpu"
        ) from error


@functools.cache
def _driver() -> Any:
    require_driver()
    from cuda.bindings import driver

    return driver


def _checked(answer: tuple[Any, ...], action: str) -> Any:
    status, *values = answer
    if int(status) != 0:
        raise DeviceError(f"the CUDA driver could not {action}: {status.name}")
    return values[0] if values else None


def device_uuid(index: int) -> str:
    """UUID of a GPU, or of its MIG instance in use; NVML writes ``GPU-`` or ``MIG-`` before it."""
    driver = _driver()
    _checked(driver.cuInit(0), "start")
    device = _checked(driver.cuDeviceGet(index), f"find GPU {index}")
    raw = _checked(driver.cuDeviceGetUuid(device), f"give the UUID of GPU {index}")
    return str(uuid.UUID(bytes=bytes(raw.bytes)))


def error_name(text: str) -> str:
    """Name of the CUDA error that a PyCUDA message describes, e.g. ``CUDA_ERROR_ILLEGAL_ADDRESS``.

    PyCUDA passes on the driver's description without its name. Returns ``""`` if none fits.
    """
    fitting = [words for words in _descriptions() if words in text]
    return _descriptions()[max(fitting, key=len)] if fitting else ""


@functools.cache
def _descriptions() -> dict[str, str]:
    driver = _driver()
    found: dict[str, str] = {}
    for code in driver.CUresult:
        status, words = driver.cuGetErrorString(code)
        if int(status) == 0 and words and int(code) != 0:
            found[words.decode()] = code.name
    return found


def sticky_error() -> str:
    """Name of the error that the current context is stuck in; ``""`` if it still works.

    After a fault on the device every further call returns that fault, and only a new process helps.
    """
    (status,) = _driver().cuCtxSynchronize()
    return "" if int(status) == 0 else str(status.name)


@contextmanager
def profiled(wanted: bool = True) -> Iterator[None]:
    """Record in a profiler attached to this process (in the current context), if wanted."""
    if wanted:
        _checked(_driver().cuProfilerStart(), "start the profiler")
    yield
    if wanted:
        _checked(_driver().cuProfilerStop(), "stop the profiler")


def allow_pending_launches(count: int) -> None:
    """Allow kernels of the current context ``count`` pending launches of their own.

    The driver reserves device memory for them. Raises ``DeviceError`` if there is too little.
    """
    driver = _driver()
    limit = driver.CUlimit.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT
    action = f"set memory aside for {count} pending launches of kernels by kernels"
    if int(_checked(driver.cuCtxGetLimit(limit), action)) < count:
        _checked(driver.cuCtxSetLimit(limit, count), action)


class LoadedCopy:
    """A kernel loaded a second time: PyCUDA does not expose its function handles.

    It answers for its occupancy in the current context, and is what a cooperative launch launches,
    which PyCUDA has not: its blocks may wait for one another.
    """

    def __init__(self, image: bytes, symbol: str) -> None:
        driver = _driver()
        self._module = _checked(driver.cuModuleLoadData(image), f"load kernel {symbol}")
        self._function = _checked(
            driver.cuModuleGetFunction(self._module, symbol.encode()), f"find kernel {symbol}"
        )
        self._symbol = symbol

    def variable(self, symbol: str) -> tuple[int, int]:
        """Address and size of a module variable."""
        status, address, nbytes = _driver().cuModuleGetGlobal(self._module, symbol.encode())
        if int(status) != 0:
            raise DeviceError(f"the CUDA driver could not find {symbol}: {status.name}")
        return int(address), int(nbytes)

    def allow_shared(self, nbytes: int) -> None:
        """Allow so much dynamic shared memory per block."""
        self._set("MAX_DYNAMIC_SHARED_SIZE_BYTES", nbytes)

    def launch(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared_bytes: int,
        values: Sequence[Any],
        types: Sequence[Any],
    ) -> None:
        """Queue a cooperative launch; ``types`` are the ctypes of the values. The driver refuses a
        grid whose blocks do not all fit on the GPU at a time."""
        answer = _driver().cuLaunchCooperativeKernel(
            self._function, *grid, *block, shared_bytes, 0, (tuple(values), tuple(types))
        )
        _checked(answer, f"launch {self._symbol} with all blocks of {grid} at a time")

    def blocks_per_multiprocessor(
        self, block_size: int, shared_bytes: int, carveout_percent: int
    ) -> int:
        """The driver's count of resident blocks; ``shared_bytes`` is the dynamic part."""
        self._set("PREFERRED_SHARED_MEMORY_CARVEOUT", carveout_percent)
        self._set("MAX_DYNAMIC_SHARED_SIZE_BYTES", shared_bytes)
        answer = _driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
            self._function, block_size, shared_bytes
        )
        return int(_checked(answer, "report the occupancy"))

    def close(self) -> None:
        """Unload the copy."""
        _checked(_driver().cuModuleUnload(self._module), "unload a kernel")

    def _set(self, name: str, value: int) -> None:
        attribute = getattr(_driver().CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        _checked(
            _driver().cuFuncSetAttribute(self._function, attribute, value), f"set {name.lower()}"
        )
