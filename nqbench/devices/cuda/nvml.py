"""The state and the settings of a GPU through NVML (nvidia-ml-py). No setting is ever changed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from nqbench.device import Reading, Sensor
from nqbench.errors import DeviceError

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


SETTINGS: Final = (
    "driver",
    "max_sm_mhz",
    "max_memory_mhz",
    "application_sm_mhz",
    "application_memory_mhz",
    "power_limit_w",
    "ecc",
    "mig",
    "persistence",
)
"""The part of a GPU's identity that NVML reports and CUDA does not."""


class NvmlSensor(Sensor):
    """Clocks, temperature, power, energy and clock-event reasons of one GPU.

    ``bus_id`` is its PCI bus id, which CUDA and NVML agree on (their numbering may differ). Raises
    ``DeviceError`` where NVML cannot be used.
    """

    def __init__(self, bus_id: str) -> None:
        try:
            self._nvml = importlib.import_module("pynvml")
        except ImportError as error:
            raise DeviceError(
                "NVML's Python package is not installed; 'pip install nvidia-ml-py' fixes it"
            ) from error
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise DeviceError(
                f"NVML does not start ({error}); 'nvidia-smi' shows the driver's state"
            ) from error
        self._open = True
        try:
            self._gpu = self._nvml.nvmlDeviceGetHandleByPciBusId(bus_id)
        except self._nvml.NVMLError as error:
            self.close()
            raise DeviceError(
                f"NVML does not show the GPU {bus_id} ({error}); in a container, give it the"
                " 'utility' capability of the driver"
            ) from error

    def read(self) -> Reading:
        """The state now; ``None`` for what this chip does not report."""
        nvml, gpu = self._nvml, self._gpu
        # Bindings of before driver 535 call them throttle reasons.
        new = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        bits = self._ask(new or nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu)
        return Reading(
            sm_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
            memory_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
            temperature_c=self._ask(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
            power_mw=self._ask(nvml.nvmlDeviceGetPowerUsage, gpu),
            energy_mj=self._ask(nvml.nvmlDeviceGetTotalEnergyConsumption, gpu),
            reasons=reasons_of(bits or 0),
        )

    def close(self) -> None:
        """Shut NVML down."""
        if self._open:
            self._open = False
            self._nvml.nvmlShutdown()

    def settings(self) -> dict[str, object]:
        """The settings by the names of :data:`SETTINGS`; ``None`` for what is not reported."""
        nvml, gpu = self._nvml, self._gpu
        driver = self._ask(nvml.nvmlSystemGetDriverVersion)
        limit = self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, gpu)
        clocks = (nvml.nvmlDeviceGetMaxClockInfo, nvml.nvmlDeviceGetApplicationsClock)
        modes = ("EccMode", "MigMode", "PersistenceMode")
        values = (
            driver.decode() if isinstance(driver, bytes) else driver,
            *(
                self._ask(q, gpu, c)
                for q in clocks
                for c in (nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM)
            ),
            None if limit is None else limit / 1000,
            *(_switch(self._ask(getattr(nvml, f"nvmlDeviceGet{mode}"), gpu)) for mode in modes),
        )
        return dict(zip(SETTINGS, values, strict=True))

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """The answer; ``None`` if this chip does not support the question, or it is not
        permitted."""
        try:
            return question(*arguments)
        except self._nvml.NVMLError:
            return None


def nvml_settings(bus_id: str) -> dict[str, object]:
    """Driver version, clocks, power limit, ECC, MIG and persistence mode of one GPU (JSON).

    What NVML does not report (no library, no permission) is ``None``.
    """
    try:
        with closing(NvmlSensor(bus_id)) as sensor:
            return sensor.settings()
    except DeviceError:
        return dict.fromkeys(SETTINGS)


def _switch(value: Any) -> bool | None:
    """A mode as on or off; NVML gives ``current`` or ``[current, pending]``."""
    if value is None:
        return None
    return bool(value[0] if isinstance(value, (list, tuple)) else value)


def reasons_of(bits: int) -> tuple[str, ...]:
    """The names of a set of clock-event bits; a bit without a name is given as a number."""
    named = [word for bit, word in CLOCK_REASONS.items() if bits & bit]
    unknown = bits & ~sum(CLOCK_REASONS)
    return (*named, *([f"0x{unknown:x}"] if unknown else []))
