"""NVML's readings and settings over a pretended NVML; tests/gpu asks the real one the same."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from nqbench.device import Reading
from nqbench.devices.cuda.query import SETTINGS, NvmlSensor, nvml_settings
from nqbench.errors import DeviceError

ANSWERS: dict[str, Any] = {
    "nvmlDeviceGetHandleByPciBusId": "gpu",
    "nvmlDeviceGetClockInfo": {1: 1755, 2: 2619},
    "nvmlDeviceGetTemperature": 61,
    "nvmlDeviceGetPowerUsage": 412_345,
    "nvmlDeviceGetTotalEnergyConsumption": 987_654,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0x44,
    "nvmlSystemGetDriverVersion": b"580.65.06",  # bytes, as older bindings give
    "nvmlDeviceGetMaxClockInfo": {1: 1980, 2: 2619},
    "nvmlDeviceGetApplicationsClock": {1: 1755, 2: 2619},
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetPersistenceMode": 0,
}
"""By question; a mapping gives the answer for the last argument."""


class FakeNvml(types.ModuleType):
    """NVML with one GPU; ``refused`` names the questions that it does not answer."""

    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")
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
        if name not in ANSWERS:
            raise AttributeError(name)

        def ask(*arguments: Any) -> Any:
            self.refuse(name)
            answer = ANSWERS[name]
            return answer[arguments[-1]] if isinstance(answer, dict) else answer

        return ask


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_it_reads_the_state_in_the_units_of_the_names(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = NvmlSensor("0000:01:00.0")
    assert sensor.read() == Reading(
        1755, 2619, 61, 412_345, 987_654, ("sw_power_cap", "hw_thermal_slowdown")
    )
    monkeypatch.setitem(ANSWERS, "nvmlDeviceGetCurrentClocksEventReasons", 0x8)
    assert sensor.read().reasons == ("hw_slowdown",)  # the newer name is preferred
    sensor.close()
    sensor.close()
    assert nvml.opened == 0


def test_what_the_chip_does_not_answer_is_none(nvml: FakeNvml) -> None:
    nvml.refused = {
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetApplicationsClock",
    }
    assert NvmlSensor("bus").read() == Reading(1755, 2619, 61)
    assert nvml_settings("bus") == {
        "driver": "580.65.06",
        "max_sm_mhz": 1980,
        "max_memory_mhz": 2619,
        "application_sm_mhz": None,
        "application_memory_mhz": None,
        "power_limit_w": 700.0,
        "ecc": True,
        "mig": None,
        "persistence": False,
    }


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ("nvmlInit", "does not start"),
        ("nvmlDeviceGetHandleByPciBusId", "does not show the GPU bus"),
        ("import", "pip install nvidia-ml-py"),
    ],
)
def test_absence_is_one_sentence_and_leaves_nothing_open(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, refused: str, words: str
) -> None:
    nvml.refused = {refused}
    if refused == "import":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DeviceError, match=words):
        NvmlSensor("bus")
    assert nvml_settings("bus") == dict.fromkeys(SETTINGS)
    assert nvml.opened == 0


def test_the_real_package_has_every_name_that_is_used() -> None:
    pynvml = pytest.importorskip("pynvml")
    constants = (name for name in dir(FakeNvml) if name.startswith(("nvml", "NVML")))
    for name in (*ANSWERS, *constants):
        assert hasattr(pynvml, name), name
