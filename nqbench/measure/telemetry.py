"""The state of a device while it was timed: readings during the launches, and their summary.

A watch reads the device's sensor at both edges of a measurement, just after the warm-up and just
after the last launch, and in a thread during it. Kernel times come from the GPU's own events, so a
reading does not affect them; it may delay the next launch, which is not timed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from nqbench.device import Reading, Sensor
from nqbench.record import Record

PERIOD_S: Final = 0.1
"""Between readings of a measurement: NVML itself updates power and clocks every 20 to 100 ms."""
QUANTITIES: Final = ("sm_mhz", "memory_mhz", "temperature_c", "power_mw")
THROTTLING: Final = (
    "hw_slowdown",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
)
"""Reasons that concern the machine's cooling and supply and not the kernel: the measurement is
marked. ``sw_power_cap`` is not one of them: a GPU at its power limit works as designed, a kernel
that reaches the limit does so every time, and the limit is part of the measurement's key."""
IDLE: Final = "gpu_idle"
"""Not listed as a reason: between two launches every GPU is idle."""

STEADY_CLOCK: Final = 0.01
"""SM clocks whose medians stay within 1% over all measurements cannot explain an effect above
that."""
SETTING: Final = "applications_clocks_setting"
"""The driver's word for clocks that a user has fixed below the boost range."""


class Watch:
    """Reads a sensor from ``start`` to ``stop``; without a sensor it does nothing.

    A measurement whose launches together last less than a period (``longest_s``) is read at its
    edges only.
    """

    def __init__(
        self, sensor: Sensor | None, period_s: float = PERIOD_S, longest_s: float = math.inf
    ) -> None:
        self._sensor, self._period_s = sensor, period_s
        self._between = sensor is not None and longest_s >= period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.readings: list[Reading] = []

    def start(self) -> None:
        """Read once, and go on in a thread."""
        self._read()
        if self._between:
            self._thread.start()

    def stop(self) -> None:
        """End the thread, and read once more."""
        self._over.set()
        if self._between:
            self._thread.join()
        self._read()

    def _follow(self) -> None:
        while not self._over.wait(self._period_s):
            self._read()

    def _read(self) -> None:
        if self._sensor is not None:
            self.readings.append(self._sensor.read())


def summary(readings: Sequence[Reading]) -> dict[str, Any]:
    """The readings of a measurement as a record holds them; empty without readings.

    ``{sm_mhz: {min, median, max}, ..., energy_mj, clock_reasons, readings}``. ``energy_mj`` is what
    the whole GPU took between the first and the last reading. Quantities that the device does not
    report are absent.
    """
    if not readings:
        return {}
    found: dict[str, Any] = {}
    for name in QUANTITIES:
        values = [v for r in readings if (v := getattr(r, name)) is not None]
        if values:
            found[name] = {"min": min(values), "median": median(values), "max": max(values)}
    first, last = readings[0].energy_mj, readings[-1].energy_mj
    if first is not None and last is not None:
        found["energy_mj"] = last - first
    reasons = dict.fromkeys(word for reading in readings for word in reading.reasons)
    found["clock_reasons"] = [word for word in reasons if word != IDLE]
    found["readings"] = len(readings)
    return found


def throttled(telemetry: Mapping[str, Any]) -> str:
    """Why a measurement with this summary is throttled, in a sentence; empty if it is not."""
    words = [w for w in telemetry.get("clock_reasons", ()) if w in THROTTLING]
    if not words:
        return ""
    clock = telemetry.get("sm_mhz")
    heat = telemetry.get("temperature_c")
    seen = [f"at {clock['min']} to {clock['max']} MHz"] if clock else []
    seen += [f"{heat['max']} degrees C"] if heat else []
    return (
        f"the GPU slowed itself down ({', '.join(words)}{'; ' if seen else ''}{', '.join(seen)});"
        " see to its cooling and power supply, or lower its clocks, then run again"
    )


def clock_warning(records: Iterable[Record], identity: Mapping[str, Any]) -> str:
    """One sentence if the SM clock differed between the timed measurements of a GPU, else empty.

    NVML does not report whether clocks are locked, so this checks the readings: measurements of one
    run at different clocks are not comparable.
    """
    good = [r for r in records if r.round > 0 and r.measured and r.samples_s]
    seen = [r.telemetry for r in good if "sm_mhz" in r.telemetry]
    clocks = [one["sm_mhz"]["median"] for one in seen]
    if not clocks or min(clocks) >= max(clocks) * (1 - STEADY_CLOCK):
        return ""
    bus = identity.get("pci_bus_id")
    gpu = f" -i {bus}" if bus else ""
    held = sum(SETTING in one.get("clock_reasons", ()) for one in seen)
    set_ = " although they are limited by a setting" if held == len(seen) else ""
    return (
        f"the SM clock is not locked: between measurements it ranged from {min(clocks):g} to"
        f" {max(clocks):g} MHz{set_}; rounds average over this, but for narrower intervals lock it"
        f" with 'sudo nvidia-smi{gpu} --lock-gpu-clocks={min(clocks):.0f}' (undone by"
        " --reset-gpu-clocks); nqbench changes no setting of a GPU"
    )
