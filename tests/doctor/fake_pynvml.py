"""A ``pynvml`` for one pretended GPU, with what the doctor asks and nothing else."""

from __future__ import annotations

import types
from typing import Any


class NVMLError(Exception):
    """Base of NVML's errors."""


DEFAULTS: dict[str, Any] = {
    "nvmlSystemGetDriverVersion": "580.95.05",
    "nvmlSystemGetCudaDriverVersion": 13000,
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=80 << 30, used=1 << 30),
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetName": b"Pretended H100",  # bytes, as older versions give
    "nvmlDeviceGetUUID": "GPU-1234",
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetTemperature": 41,
    "nvmlDeviceGetClockInfo": 345,
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetApplicationsClock": 1410,
    "nvmlDeviceGetDefaultApplicationsClock": 1410,
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetGraphicsRunningProcesses": [],
    "nvmlSystemGetProcessName": "python",
}


def make(**changed: Any) -> Any:
    """The module; a changed value that is an exception is raised by its function."""
    module = types.ModuleType("pynvml")
    names = {"NVMLError": NVMLError, "NVML_TEMPERATURE_GPU": 0, "NVML_CLOCK_SM": 1, "open": 0}
    vars(module).update(names)

    def opened(step: int) -> None:
        vars(module)["open"] += step

    module.nvmlInit = lambda: opened(1)  # type: ignore[attr-defined]
    module.nvmlShutdown = lambda: opened(-1)  # type: ignore[attr-defined]
    for name, value in (DEFAULTS | changed).items():
        setattr(module, name, _function(value))
    return module


def _function(value: Any) -> Any:
    def answer(*arguments: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return answer
