"""A ``pynvml`` for one pretended GPU, with what nqbench asks and nothing else."""

from __future__ import annotations

import types
from typing import Any

OLD_REASONS = "nvmlDeviceGetCurrentClocksThrottleReasons"
NEW_REASONS = "nvmlDeviceGetCurrentClocksEventReasons"
ANSWERS: dict[str, Any] = {
    "nvmlSystemGetDriverVersion": b"580.65.06",  # bytes, as older versions give
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetHandleByPciBusId": "handle",
    "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=80 << 30),
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetName": b"Pretended H100",
    "nvmlDeviceGetUUID": "GPU-1234",
    "nvmlDeviceGetPersistenceMode": 0,
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetClockInfo": {1: 1755, 2: 2619},
    "nvmlDeviceGetMaxClockInfo": {1: 1980, 2: 2619},
    "nvmlDeviceGetApplicationsClock": {1: 1755, 2: 2619},
    "nvmlDeviceGetDefaultApplicationsClock": 1755,
    "nvmlDeviceGetTemperature": 61,
    "nvmlDeviceGetPowerUsage": 412_345,
    "nvmlDeviceGetTotalEnergyConsumption": 987_654,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetGraphicsRunningProcesses": [],
    "nvmlSystemGetProcessName": "python",
}
"""By question; a mapping gives the answer for the last argument."""


class FakeNvml(types.ModuleType):
    """NVML with one GPU; ``refused`` names the questions that it does not answer. The clock-event
    reasons are among ``changed``, by their old name or the new one."""

    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    def __init__(self, **changed: Any) -> None:
        super().__init__("pynvml")
        self.answers = ANSWERS | changed
        self.refused: set[str] = set()
        self.opened = 0

    def nvmlInit(self) -> None:  # noqa: N802 (NVML's own name, here and below)
        self.refuse("nvmlInit")
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def refuse(self, question: str) -> None:
        if question in self.refused:
            raise self.NVMLError("Not Supported")

    def __getattr__(self, name: str) -> Any:
        assert not name.startswith("nvmlDeviceSet"), f"{name} would change the GPU"
        if name not in self.answers:
            raise AttributeError(name)

        def ask(*arguments: Any) -> Any:
            self.refuse(name)
            answer = self.answers[name]
            return answer[arguments[-1]] if isinstance(answer, dict) else answer

        return ask
