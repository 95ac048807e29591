"""The GPUs of this machine: facts from the driver, identity from PyCUDA and NVML."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from nqbench.devices.cuda import driver as cuda_driver
from nqbench.devices.cuda.nvml import nvml_settings
from nqbench.errors import DeviceError, DeviceUnavailable
from nqbench.facts import DeviceFacts
from nqbench.simulator.models import capability_facts
from nqbench.system.versions import installed

FIRST_CARVEOUT_CAPABILITY: Final = (7, 0)  # Volta joined L1 cache and shared memory
ATTRIBUTES: Final = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "max_threads_per_block": "MAX_THREADS_PER_BLOCK",
    "max_blocks_per_multiprocessor": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "max_grid_x": "MAX_GRID_DIM_X",
    "registers_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "registers_per_block": "MAX_REGISTERS_PER_BLOCK",
    "shared_per_block": "MAX_SHARED_MEMORY_PER_BLOCK",
    "shared_per_block_optin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "shared_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "shared_reserved_per_block": "RESERVED_SHARED_MEMORY_PER_BLOCK",
}
"""Facts that an attribute of the driver gives."""


def load_pycuda() -> Any:
    """``pycuda.driver``, initialised. Raises ``DeviceUnavailable`` with how to fix it.

    ``pycuda.autoinit`` is never used: importing it would create a context.
    """
    cuda_driver.require_driver()
    try:
        cuda = importlib.import_module("pycuda.driver")
    except ImportError as error:
        raise DeviceUnavailable(
            f"PyCUDA cannot be imported ({_first_line(error)}); run 'make ablation' or"
            f" '{sys.executable} scripts/setup.py' to build it (needs g++ and the Python headers)"
        ) from error
    try:
        cuda.init()
    except cuda.Error as error:
        raise DeviceUnavailable(
            f"the NVIDIA driver does not start ({_first_line(error)}); 'nvidia-smi' shows its"
            f" state{_hidden()}"
        ) from error
    return cuda


def find_gpus() -> dict[str, DeviceFacts]:
    """All usable GPUs by spec, at least one, without creating a context.

    Raises ``DeviceUnavailable`` naming what is missing: driver, PyCUDA or GPU.
    """
    count = load_pycuda().Device.count()
    if count == 0:
        raise DeviceUnavailable(
            "the NVIDIA driver sees no GPU; check CUDA_VISIBLE_DEVICES and 'nvidia-smi'"
        )
    return {f"cuda:{index}": gpu_facts(index) for index in range(count)}


def _hidden() -> str:
    """A remark if the environment may hide GPUs, which the driver does not report."""
    value = os.environ.get(cuda_driver.VISIBLE)
    if value is None:
        return ""
    return f"; {cuda_driver.VISIBLE} is {value!r} here, and GPUs that it does not name are hidden"


def find_device(cuda: Any, index: int) -> Any:
    """PyCUDA's device object, or ``DeviceUnavailable`` naming those that exist."""
    count = cuda.Device.count()
    if index >= count:
        there = ", ".join(f"cuda:{i}" for i in range(count)) or "none"
        raise DeviceUnavailable(f"there is no GPU cuda:{index}; GPUs here: {there}{_hidden()}")
    return cuda.Device(index)


def gpu_facts(index: int) -> DeviceFacts:
    """Limits of a GPU, from the driver's attributes. Makes no context."""
    cuda = load_pycuda()
    device = find_device(cuda, index)

    def ask(name: str) -> int:
        return int(device.get_attribute(getattr(cuda.device_attribute, name)))

    capability = device.compute_capability()
    asked: dict[str, Any] = {fact: ask(attribute) for fact, attribute in ATTRIBUTES.items()}
    threads, warp = ask("MAX_THREADS_PER_MULTIPROCESSOR"), ask("WARP_SIZE")
    return replace(
        capability_facts(*capability),  # what no attribute gives
        name=device.name(),
        compute_capability=capability,
        warp_size=warp,
        max_threads_per_multiprocessor=threads,
        max_warps_per_multiprocessor=threads // warp,
        memory_bytes=int(device.total_memory()),
        **asked,
    )


def gpu_identity(index: int) -> dict[str, object]:
    """Everything that distinguishes this GPU and its software from another, as JSON data.

    Only settings are read, nothing that varies from minute to minute: this is part of the key of
    every measurement. What NVML does not report (no library, no permission) is ``None``.
    """
    cuda = load_pycuda()
    device = find_device(cuda, index)
    major, minor = device.compute_capability()
    bus_id = device.pci_bus_id()
    from nqbench.compiler.nvrtc import compiler_version

    uuid = None
    with suppress(DeviceError):
        uuid = cuda_driver.device_uuid(index)
    built = ".".join(str(part) for part in cuda.get_version()[:2])
    version = cuda.get_driver_version()
    return {
        "name": device.name(),
        "uuid": uuid,
        "pci_bus_id": bus_id,
        "compute_capability": f"{major}.{minor}",
        "cuda_driver": f"{version // 1000}.{version % 1000 // 10}",
        "cuda_headers": built,
        "nvrtc": compiler_version(),
        "pycuda": installed("pycuda"),
        "cuda_bindings": installed("cuda-bindings"),
        **nvml_settings(bus_id),
    }


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
