"""What a device can tell about its own state while it works: clocks, heat, power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

CLOCK_REASONS: Final = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""The driver's clock-event reasons by bit, after nvml.h (``nvmlClocksEventReason...``). The bits
are part of NVML's binary interface; their Python names have changed between versions."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of a device at one moment; ``None`` for what it does not tell.

    ``energy_mj``  millijoules since the driver was loaded: only differences mean something
    ``reasons``    why the clocks are not higher, in the words of :data:`CLOCK_REASONS`
    """

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_mw: int | None = None
    energy_mj: int | None = None
    reasons: tuple[str, ...] = ()


class Sensor(Protocol):
    """Reads a device's state. Reading never fails: what cannot be told is ``None``."""

    def read(self) -> Reading:
        """The state now."""

    def close(self) -> None:
        """Give back what reading needs."""


@runtime_checkable
class Observable(Protocol):
    """A device with a sensor."""

    def sensor(self) -> Sensor:
        """Open it. Raises ``DeviceError`` in one sentence if this machine has none."""


def reasons_of(bits: int) -> tuple[str, ...]:
    """The words for a set of clock-event bits; a bit without a name is given as a number."""
    named = [word for bit, word in CLOCK_REASONS.items() if bits & bit]
    unknown = bits & ~sum(CLOCK_REASONS)
    return (*named, *([f"0x{unknown:x}"] if unknown else []))
