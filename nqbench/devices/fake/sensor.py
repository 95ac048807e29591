"""The sensor of the test device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nqbench.devices.base import Reading, Sensor

if TYPE_CHECKING:
    from nqbench.devices.fake.device import FakeDevice

SM_MHZ: Final = 1500


class FakeSensor(Sensor):
    """The state of the test device: steady, but for what ``throttle`` does to it."""

    def __init__(self, device: FakeDevice) -> None:
        self._device = device

    def read(self) -> Reading:
        """Full clocks, or those of a chip too hot since the last reading."""
        device = self._device
        slowed, device.slowed = device.slowed, False
        return Reading(
            sm_mhz=round(SM_MHZ / device.model.throttle) if slowed else SM_MHZ,
            memory_mhz=2000,
            temperature_c=90 if slowed else 50,
            power_mw=300_000,
            energy_mj=30 * device.launches,
            reasons=("hw_thermal_slowdown",) if slowed else ("gpu_idle",),
        )
