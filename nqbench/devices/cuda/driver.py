"""What PyCUDA does not offer of the CUDA driver: presence, error names, UUID, occupancy.

This uses only the driver library (through ctypes and cuda-bindings), so it can examine a machine
before PyCUDA is built, and recognise an unusable context after a fault.
"""

from __future__ import annotations

import ctypes
import functools
import uuid
from collections.abc import Sequence
from typing import Any, Final

from nqbench.errors import DeviceError, DeviceUnavailable

LIBRARY: Final = "libcuda.so.1"
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_PREFERRED_CARVEOUT: Final = "CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT"
_MAX_DYNAMIC_SHARED: Final = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"


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


def profiler_start() -> None:
    """Start recording in a profiler attached to this process (in the current context)."""
    _checked(_driver().cuProfilerStart(), "start the profiler")


def profiler_stop() -> None:
    """Stop recording."""
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


class CooperativeKernel:
    """A kernel loaded a second time, whose blocks may wait for one another.

    PyCUDA has no cooperative launches, and does not expose its function handles.
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
        driver = _driver()
        status, address, nbytes = driver.cuModuleGetGlobal(self._module, symbol.encode())
        if int(status) != 0:
            raise DeviceError(f"the CUDA driver could not find {symbol}: {status.name}")
        return int(address), int(nbytes)

    def allow_shared(self, nbytes: int) -> None:
        """Allow so much dynamic shared memory per block."""
        driver = _driver()
        attribute = getattr(driver.CUfunction_attribute, _MAX_DYNAMIC_SHARED)
        _checked(driver.cuFuncSetAttribute(self._function, attribute, nbytes), "set shared memory")

    def launch(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared_bytes: int,
        values: Sequence[Any],
        types: Sequence[Any],
    ) -> None:
        """Queue a launch; ``types`` are the ctypes of the values. The driver refuses a grid whose
        blocks do not all fit on the GPU at a time."""
        answer = _driver().cuLaunchCooperativeKernel(
            self._function, *grid, *block, shared_bytes, 0, (tuple(values), tuple(types))
        )
        _checked(answer, f"launch {self._symbol} with all blocks of {grid} at a time")

    def close(self) -> None:
        """Unload the copy."""
        _checked(_driver().cuModuleUnload(self._module), "unload a kernel")


class OccupancyProbe:
    """A kernel loaded a second time, to query its occupancy in the current context.

    PyCUDA does not expose its function handles, so the driver is asked about a copy.
    """

    def __init__(self, image: bytes, symbol: str) -> None:
        driver = _driver()
        self._module = _checked(driver.cuModuleLoadData(image), f"load kernel {symbol}")
        self._function = _checked(
            driver.cuModuleGetFunction(self._module, symbol.encode()), f"find kernel {symbol}"
        )

    def blocks_per_multiprocessor(
        self, block_size: int, shared_bytes: int, carveout_percent: int
    ) -> int:
        """The driver's count of resident blocks; ``shared_bytes`` is the dynamic part."""
        driver = _driver()
        attribute = driver.CUfunction_attribute
        for name, value in (
            (_PREFERRED_CARVEOUT, carveout_percent),
            (_MAX_DYNAMIC_SHARED, shared_bytes),
        ):
            _checked(
                driver.cuFuncSetAttribute(self._function, getattr(attribute, name), value),
                f"set {name}",
            )
        return int(
            _checked(
                driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    self._function, block_size, shared_bytes
                ),
                "report the occupancy",
            )
        )

    def close(self) -> None:
        """Unload the copy."""
        _checked(_driver().cuModuleUnload(self._module), "unload a kernel")
