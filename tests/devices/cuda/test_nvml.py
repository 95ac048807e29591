"""The NVML sensor over a pretended NVML; tests/gpu asks the real one the same."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from nqbench.devices.base import Reading
from nqbench.devices.cuda.nvml import NvmlSensor
from nqbench.errors import DeviceError


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
        self.settings: list[str] = []

    def answer(self, question: str, value: Any) -> Any:
        if question in self.refused:
            raise self.NVMLError("Not Supported")
        return value

    def nvmlInit(self) -> None:  # noqa: N802 (NVML's own names, here and below)
        self.answer("init", None)
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def nvmlDeviceGetHandleByPciBusId(self, bus: str) -> str:  # noqa: N802
        return str(self.answer("handle", bus))

    def nvmlDeviceGetClockInfo(self, gpu: str, which: int) -> int:  # noqa: N802
        return int(self.answer("clock", {1: 1755, 2: 2619}[which]))

    def nvmlDeviceGetTemperature(self, gpu: str, which: int) -> int:  # noqa: N802
        return int(self.answer("temperature", 61))

    def nvmlDeviceGetPowerUsage(self, gpu: str) -> int:  # noqa: N802
        return int(self.answer("power", 412_345))

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu: str) -> int:  # noqa: N802
        return int(self.answer("energy", 987_654))

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, gpu: str) -> int:  # noqa: N802
        return int(self.answer("reasons", 0x44))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("nvmlDeviceSet"):
            raise AssertionError(f"{name} would change the GPU")
        raise AttributeError(name)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_it_reads_the_state_in_the_units_of_the_names(nvml: FakeNvml) -> None:
    sensor = NvmlSensor("0000:01:00.0")
    assert sensor.read() == Reading(
        1755, 2619, 61, 412_345, 987_654, ("sw_power_cap", "hw_thermal_slowdown")
    )
    sensor.close()
    sensor.close()
    assert nvml.opened == 0


def test_the_newer_name_of_the_reasons_is_preferred(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        nvml, "nvmlDeviceGetCurrentClocksEventReasons", lambda gpu: 0x8, raising=False
    )
    assert NvmlSensor("bus").read().reasons == ("hw_slowdown",)


def test_what_the_chip_does_not_answer_is_none(nvml: FakeNvml) -> None:
    nvml.refused = {"energy", "power", "reasons"}
    assert NvmlSensor("bus").read() == Reading(1755, 2619, 61)


@pytest.mark.parametrize(
    ("refused", "words"), [("init", "does not start"), ("handle", "does not show the GPU bus")]
)
def test_absence_is_one_sentence_and_leaves_nothing_open(
    nvml: FakeNvml, refused: str, words: str
) -> None:
    nvml.refused = {refused}
    with pytest.raises(DeviceError, match=words):
        NvmlSensor("bus")
    assert nvml.opened == 0


def test_a_missing_package_names_what_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DeviceError, match="pip install nvidia-ml-py"):
        NvmlSensor("bus")


def test_the_real_package_has_every_name_that_is_used() -> None:
    pynvml = pytest.importorskip("pynvml")
    for name in (name for name in dir(FakeNvml) if name.startswith(("nvml", "NVML"))):
        assert hasattr(pynvml, name), name
