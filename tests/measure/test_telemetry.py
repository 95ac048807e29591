"""What readings of a sensor become, and that watching costs a measurement nothing but threads."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from nqbench.device import Reading, Sensor
from nqbench.devices.cuda.nvml import CLOCK_REASONS, reasons_of
from nqbench.measure.telemetry import THROTTLING, Watch, clock_warning, summary, throttled
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


def test_a_measurement_is_read_at_both_edges() -> None:
    watch = Watch(Script(Reading(sm_mhz=1000), Reading(sm_mhz=2000)))
    watch.start()
    assert len(watch.readings) == 1
    watch.stop()
    assert [r.sm_mhz for r in watch.readings] == [1000, 2000]
    watch = Watch(None)
    watch.start()
    watch.stop()
    assert summary(watch.readings) == {}
    assert throttled({}) == ""


@pytest.mark.parametrize(("longest_s", "between"), [(0.0005, False), (0.5, True)])
def test_only_a_measurement_that_can_last_a_period_needs_a_thread(
    longest_s: float, between: bool
) -> None:
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
        Reading(1200, 2600, 40, 100_000, 5_000, ("gpu_idle",)),
        Reading(1900, 2600, 52, 650_000, 5_400, ("sw_power_cap",)),
        Reading(1800, 2600, 55, 690_000, 5_900, ("sw_power_cap", "gpu_idle")),
    ]
    assert summary(readings) == {
        "sm_mhz": {"min": 1200, "median": 1800, "max": 1900},
        "memory_mhz": {"min": 2600, "median": 2600, "max": 2600},
        "temperature_c": {"min": 40, "median": 52, "max": 55},
        "power_mw": {"min": 100_000, "median": 650_000, "max": 690_000},
        "energy_mj": 900,
        "clock_reasons": ["sw_power_cap"],
        "readings": 3,
    }


def test_what_a_chip_does_not_tell_is_absent() -> None:
    assert summary([Reading(sm_mhz=5), Reading(sm_mhz=7)]) == {
        "sm_mhz": {"min": 5, "median": 6, "max": 7},
        "clock_reasons": [],
        "readings": 2,
    }


@pytest.mark.parametrize("word", CLOCK_REASONS.values())
def test_only_slowdowns_count_as_throttling(word: str) -> None:
    said = throttled(summary([Reading(reasons=(word,))]))
    assert (word in said) == (word in THROTTLING)
    assert (said == "") == (
        word
        not in (
            "hw_slowdown",
            "sw_thermal_slowdown",
            "hw_thermal_slowdown",
            "hw_power_brake_slowdown",
        )
    )


def test_bits_become_words_and_an_unknown_bit_is_kept() -> None:
    assert reasons_of(0) == ()
    assert reasons_of(0x4 | 0x40) == ("sw_power_cap", "hw_thermal_slowdown")
    assert reasons_of(0x1000 | 0x1) == ("gpu_idle", "0x1000")


def block(sm_mhz: float, *reasons: str, round_: int = 1) -> Record:
    """A timed measurement at a clock."""
    telemetry: dict[str, Any] = {
        "sm_mhz": {"min": sm_mhz, "median": sm_mhz, "max": sm_mhz},
        "clock_reasons": list(reasons),
    }
    return Record(
        "k", {}, "cuda:0", round_, "ok", value_s=1.0, samples_s=(1.0,), telemetry=telemetry
    )


def test_clocks_that_move_between_measurements_are_told_with_a_way_to_lock_them() -> None:
    said = clock_warning([block(1980), block(1755), block(1900)], {"pci_bus_id": "0000:01:00.0"})
    assert "ranged from 1755 to 1980 MHz" in said
    assert "sudo nvidia-smi -i 0000:01:00.0 --lock-gpu-clocks=1755" in said
    assert "nqbench changes no setting" in said
    assert "limited by a setting" not in said


def test_steady_clocks_and_untimed_measurements_give_no_warning() -> None:
    assert clock_warning([block(1980), block(1975)], {}) == ""
    assert clock_warning([block(1980), block(300, round_=0)], {}) == ""
    assert clock_warning([], {}) == ""
    slowed = replace(block(900), status="throttled")  # told on its own
    assert clock_warning([block(1980), slowed], {}) == ""
