"""NVML's view of the driver and the GPUs, as plain data. Only reads."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

COMPUTE_MODES: Final = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive"}
CLOCKS_SET: Final = 0x2
"""``nvmlClocksEventReasonApplicationsClocksSetting``: a setting fixes the clocks."""


def describe() -> dict[str, Any]:
    """Driver version, newest CUDA version and one entry for each GPU (JSON).

    What NVML does not report (unsupported, or not permitted) is ``None``. Raises ``ImportError``
    without its package and ``pynvml.NVMLError`` if it does not start.
    """
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    try:
        version = _asker(nvml)(nvml.nvmlSystemGetCudaDriverVersion)
        return {
            "driver": _text(nvml.nvmlSystemGetDriverVersion()),
            "cuda": None if version is None else [version // 1000, version % 1000 // 10],
            "gpus": [describe_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())],
        }
    finally:
        nvml.nvmlShutdown()


def describe_gpu(nvml: Any, index: int) -> dict[str, Any]:
    """One GPU: identity, modes, clocks (MHz), memory (bytes), other processes."""
    ask = _asker(nvml)
    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, gpu)
    capability = ask(nvml.nvmlDeviceGetCudaComputeCapability, gpu)
    reasons_of = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    reasons = ask(reasons_of or nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu)  # before 535
    return {
        "index": index,
        "name": _text(ask(nvml.nvmlDeviceGetName, gpu)),
        "uuid": _text(ask(nvml.nvmlDeviceGetUUID, gpu)),
        "capability": None if capability is None else list(capability),
        "memory_bytes": memory and memory.total,
        "memory_used_bytes": memory and memory.used,
        "persistence": _current(ask(nvml.nvmlDeviceGetPersistenceMode, gpu)),
        "mig": _current(ask(nvml.nvmlDeviceGetMigMode, gpu)),
        "ecc": _current(ask(nvml.nvmlDeviceGetEccMode, gpu)),
        "compute_mode": COMPUTE_MODES.get(ask(nvml.nvmlDeviceGetComputeMode, gpu)),
        "temperature_c": ask(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
        "sm_mhz": ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
        "max_sm_mhz": ask(nvml.nvmlDeviceGetMaxClockInfo, gpu, nvml.NVML_CLOCK_SM),
        "application_sm_mhz": ask(nvml.nvmlDeviceGetApplicationsClock, gpu, nvml.NVML_CLOCK_SM),
        "default_sm_mhz": ask(nvml.nvmlDeviceGetDefaultApplicationsClock, gpu, nvml.NVML_CLOCK_SM),
        "clocks_set": None if reasons is None else bool(reasons & CLOCKS_SET),
        "processes": _processes(nvml, gpu),
    }


def _asker(nvml: Any) -> Callable[..., Any]:
    def ask(question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except nvml.NVMLError:  # not supported by this chip, or not permitted
            return None

    return ask


def _processes(nvml: Any, gpu: Any) -> list[dict[str, Any]] | None:
    ask = _asker(nvml)
    found: dict[int, dict[str, Any]] = {}
    lists = [
        ask(nvml.nvmlDeviceGetComputeRunningProcesses, gpu),
        ask(nvml.nvmlDeviceGetGraphicsRunningProcesses, gpu),
    ]
    if all(one is None for one in lists):
        return None
    for process in (p for one in lists for p in one or ()):
        name = _text(ask(nvml.nvmlSystemGetProcessName, process.pid))
        found[process.pid] = {"pid": process.pid, "name": name}
    return list(found.values())


def _current(value: Any) -> bool | None:
    """A mode as on or off; NVML gives ``current`` or ``[current, pending]``."""
    if value is None:
        return None
    return bool(value[0] if isinstance(value, (list, tuple)) else value)


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
