"""The state of a GPU through NVML (nvidia-ml-py). Reads only: no setting is ever changed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from nqbench.devices.base import Reading, Sensor
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
        """The state now; a question that this chip does not answer gives ``None``."""
        nvml, gpu = self._nvml, self._gpu
        bits = self._ask(self._reasons_question(), gpu)
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

    def _reasons_question(self) -> Callable[..., Any]:
        """NVML's question for clock-event reasons, which older bindings call throttle reasons."""
        new: Callable[..., Any] | None = getattr(
            self._nvml, "nvmlDeviceGetCurrentClocksEventReasons", None
        )
        old: Callable[..., Any] = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        return new or old

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> int | None:
        try:
            return int(question(*arguments))
        except self._nvml.NVMLError:  # not supported by this chip, or not permitted
            return None


def reasons_of(bits: int) -> tuple[str, ...]:
    """The names of a set of clock-event bits; a bit without a name is given as a number."""
    named = [word for bit, word in CLOCK_REASONS.items() if bits & bit]
    unknown = bits & ~sum(CLOCK_REASONS)
    return (*named, *([f"0x{unknown:x}"] if unknown else []))
