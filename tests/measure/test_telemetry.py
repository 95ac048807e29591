"""What readings of a sensor become, and that watching costs a measurement nothing but threads."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from nqbench.device import Reading, Sensor
from nqbench.devices.cuda.query import CLOCK_REASONS, reasons_of
from nqbench.measure.telemetry import Watch, clock_warning, summary, throttled
from nqbench.record import Record


class Script(Sensor):
    """A sensor that gives the readings of a list, the last one again and again."""

    def __init__(self, *readings: Reading) -> None:
        self.readings = list(readings)
        self.threads: list[str] = []
        self.enough = threading.Event()

    def read(self) -> Reading:
        self.threads.append(threading.current_thread().name)
        if len(self.threads) == 5:
            self.enough.set()
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


@pytest.mark.parametrize(("longest_s", "between"), [(0.0005, False), (0.5, True)])
def test_only_what_can_last_a_period_needs_a_thread(longest_s: float, between: bool) -> None:
    """It reads as long as the measurement lasts, and ends with it."""
    before = threading.active_count()
    sensor = Script(Reading(sm_mhz=1000))
    watch = Watch(sensor, period_s=0.001, longest_s=longest_s)
    watch.start()
    assert threading.active_count() == before + between
    if between:
        assert sensor.enough.wait(60)
    watch.stop()
    assert threading.active_count() == before
    assert len(watch.readings) >= 6 if between else len(watch.readings) == 2
    assert len({*sensor.threads}) == 1 + between


def test_readings_become_bounds_medians_energy_and_words() -> None:
    readings = [
        Reading(1200, 2600, None, 100_000, 5_000, ("gpu_idle",)),
        Reading(1900, 2600, None, 650_000, 5_400, ("sw_power_cap",)),
        Reading(1800, 2600, None, 690_000, 5_900, ("sw_power_cap", "gpu_idle")),
    ]
    assert summary(readings) == {  # what a chip does not report is absent
        "sm_mhz": {"min": 1200, "median": 1800, "max": 1900},
        "memory_mhz": {"min": 2600, "median": 2600, "max": 2600},
        "power_mw": {"min": 100_000, "median": 650_000, "max": 690_000},
        "energy_mj": 900,
        "clock_reasons": ["sw_power_cap"],
        "readings": 3,
    }


def test_only_slowdowns_of_the_machine_count_as_throttling() -> None:
    assert reasons_of(0) == ()
    assert reasons_of(0x1000 | 0x1) == ("gpu_idle", "0x1000"), "an unknown bit is kept"
    throttling = []
    for bit, word in CLOCK_REASONS.items():
        assert reasons_of(bit) == (word,)
        if said := throttled(summary([Reading(reasons=(word,))])):
            assert word in said
            throttling.append(word)
    slowdowns = [f"{by}_slowdown" for by in ("hw", "sw_thermal", "hw_thermal", "hw_power_brake")]
    assert throttling == slowdowns
    hot = {"sm_mhz": {"min": 900, "max": 1200}, "temperature_c": {"max": 91}}
    for seen, told in ((hot, "; at 900 to 1200 MHz, 91 degrees C"), ({}, "")):
        said = throttled({"clock_reasons": ["gpu_idle", "hw_slowdown"], **seen})
        assert said.startswith(f"the GPU slowed itself down (hw_slowdown{told}); see to")


def clock_record(sm_mhz: float, **changed: Any) -> Record:
    """A timed measurement at a clock."""
    telemetry = {"sm_mhz": dict.fromkeys(("min", "median", "max"), sm_mhz), "clock_reasons": []}
    made = Record("k", {}, "cuda:0", 1, "ok", value_s=1.0, samples_s=(1.0,), telemetry=telemetry)
    return replace(made, **changed)


def test_clocks_that_move_between_measurements_are_reported_with_a_way_to_lock_them() -> None:
    assert clock_warning([], {}) == ""
    throttled = clock_record(900, status="throttled")  # reported by itself
    untimed = clock_record(300, samples_s=())
    for other in (clock_record(1960.2), clock_record(300, round=0), throttled, untimed):
        assert clock_warning([clock_record(1980), other], {}) == ""  # within 1%
    moving = [clock_record(mhz) for mhz in (1980, 1755, 1900)]
    said = clock_warning(moving, {"pci_bus_id": "0000:01:00.0"})
    assert "ranged from 1755 to 1980 MHz" in said
    assert "sudo nvidia-smi -i 0000:01:00.0 --lock-gpu-clocks=1755" in said
    assert "nqbench changes no setting" in said
    assert "limited by a setting" not in said
    for record in moving[:2]:
        record.telemetry["clock_reasons"].append("applications_clocks_setting")
    for seen, held in ((moving, False), (moving[:2], True)):
        said = clock_warning(seen, {})
        assert ("MHz although they are limited by a setting;" in said) == held
        assert "'sudo nvidia-smi --lock-gpu-clocks=1755'" in said
