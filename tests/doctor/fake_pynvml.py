"""A ``pynvml`` for one pretended GPU, with what the doctor asks and nothing else."""

from __future__ import annotations

import types
from typing import Any


class NVMLError(Exception):
    """Base of NVML's errors."""


ANSWERS: dict[str, Any] = {
    "nvmlSystemGetDriverVersion": "580.95.05",
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=80 << 30),
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetName": b"Pretended H100",  # bytes, as older versions give
    "nvmlDeviceGetUUID": "GPU-1234",
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetClockInfo": 345,
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetApplicationsClock": 1410,
    "nvmlDeviceGetDefaultApplicationsClock": 1410,
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetGraphicsRunningProcesses": [],
    "nvmlSystemGetProcessName": "python",
}


class Package:
    """The module; a changed answer that is an exception is raised by its function."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1

    def __init__(self, **changed: Any) -> None:
        self.open = 0
        self._answers = ANSWERS | changed

    def nvmlInit(self) -> None:  # noqa: N802 (NVML's names)
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def __getattr__(self, name: str) -> Any:
        if name not in self._answers:
            raise AttributeError(name)
        return lambda *arguments: self._answer(self._answers[name])

    def _answer(self, value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value
