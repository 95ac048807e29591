"""NVML's readings and settings over a pretended NVML; tests/gpu asks the real one the same."""

from __future__ import annotations

import sys

import pytest

from nqbench.device import Reading
from nqbench.devices.cuda.query import SETTINGS, NvmlSensor, nvml_settings
from nqbench.errors import DeviceError
from tests.doctor.fake_pynvml import ANSWERS, OLD_REASONS, FakeNvml


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml(**{OLD_REASONS: 0x44})
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_it_reads_the_state_in_the_units_of_the_names(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = NvmlSensor("0000:01:00.0")
    assert sensor.read() == Reading(
        1755, 2619, 61, 412_345, 987_654, ("sw_power_cap", "hw_thermal_slowdown")
    )
    nvml.answers["nvmlDeviceGetCurrentClocksEventReasons"] = 0x8
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
