"""The GPUs of this machine: facts from the driver, identity from PyCUDA and NVML."""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nqbench.device import Reading, Sensor
from nqbench.devices.cuda import driver as cuda_driver
from nqbench.errors import DeviceError, DeviceUnavailable
from nqbench.facts import DeviceFacts
from nqbench.simulator.models import capability_facts
from nqbench.system.versions import installed

FIRST_CARVEOUT_CAPABILITY: Final = (7, 0)  # Volta joined L1 cache and shared memory
_NAMES: Final = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))


def load_pycuda() -> Any:
    """``pycuda.driver``, initialised. Raises ``DeviceUnavailable`` with how to fix it.

    ``pycuda.autoinit`` is never used: importing it would create a context.
    """
    cuda_driver.require_driver()
    try:
        cuda = importlib.import_module("pycuda.driver")
    except ImportError as error:
        raise DeviceUnavailable(
            f"PyCUDA cannot be imported ({_first_line(error)}); run 'make ablation' or"
            f" '{sys.executable} scripts/setup.py' to build it (needs g++ and the Python headers)"
        ) from error
    try:
        cuda.init()
    except cuda.Error as error:
        raise DeviceUnavailable(
            f"the NVIDIA driver does not start ({_first_line(error)}); 'nvidia-smi' shows its"
            f" state{_hidden()}"
        ) from error
    return cuda


def find_gpus() -> dict[str, DeviceFacts]:
    """All usable GPUs by spec, at least one, without creating a context.

    Raises ``DeviceUnavailable`` naming what is missing: driver, PyCUDA or GPU.
    """
    count = load_pycuda().Device.count()
    if count == 0:
        said = "the NVIDIA driver sees no GPU; check CUDA_VISIBLE_DEVICES and 'nvidia-smi'"
        raise DeviceUnavailable(said)
    return {f"cuda:{index}": gpu_facts(index) for index in range(count)}


def _hidden() -> str:
    """A remark if the environment may hide GPUs, which the driver does not report."""
    value = os.environ.get(cuda_driver.VISIBLE)
    if value is None:
        return ""
    return f"; {cuda_driver.VISIBLE} is {value!r} here, and GPUs that it does not name are hidden"


def find_device(cuda: Any, index: int) -> Any:
    """PyCUDA's device object, or ``DeviceUnavailable`` naming those that exist."""
    count = cuda.Device.count()
    if index >= count:
        there = ", ".join(f"cuda:{i}" for i in range(count)) or "none"
        raise DeviceUnavailable(f"there is no GPU cuda:{index}; GPUs here: {there}{_hidden()}")
    return cuda.Device(index)


def gpu_facts(index: int) -> DeviceFacts:
    """Limits of a GPU, from the driver's attributes. Makes no context."""
    cuda = load_pycuda()
    device = find_device(cuda, index)

    def ask(name: str) -> int:
        return int(device.get_attribute(getattr(cuda.device_attribute, name)))

    capability = device.compute_capability()
    asked: dict[str, Any] = {
        fact: ask(attribute) for fact, attribute in _NAMES["attributes"].items()
    }
    threads, warp = ask("MAX_THREADS_PER_MULTIPROCESSOR"), ask("WARP_SIZE")
    return replace(
        capability_facts(*capability),  # what no attribute gives
        name=device.name(),
        compute_capability=capability,
        warp_size=warp,
        max_threads_per_multiprocessor=threads,
        max_warps_per_multiprocessor=threads // warp,
        memory_bytes=int(device.total_memory()),
        **asked,
    )


def gpu_identity(index: int) -> dict[str, object]:
    """Everything that distinguishes this GPU and its software from another, as JSON data.

    Only settings are read, nothing that varies from minute to minute: this is part of the key of
    every measurement. What NVML does not report (no library, no permission) is ``None``.
    """
    cuda = load_pycuda()
    device = find_device(cuda, index)
    major, minor = device.compute_capability()
    bus_id = device.pci_bus_id()
    from nqbench.compiler.nvrtc import compiler_version

    uuid = None
    with suppress(DeviceError):
        uuid = cuda_driver.device_uuid(index)
    built = ".".join(str(part) for part in cuda.get_version()[:2])
    version = cuda.get_driver_version()
    return {
        "name": device.name(),
        "uuid": uuid,
        "pci_bus_id": bus_id,
        "compute_capability": f"{major}.{minor}",
        "cuda_driver": f"{version // 1000}.{version % 1000 // 10}",
        "cuda_headers": built,
        "nvrtc": compiler_version(),
        "pycuda": installed("pycuda"),
        "cuda_bindings": installed("cuda-bindings"),
        **nvml_settings(bus_id),
    }


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


CLOCK_REASONS: Final = {int(bit, 16): name for bit, name in _NAMES["clock_reasons"].items()}
"""The driver's clock-event reasons by bit, after nvml.h (``nvmlClocksEventReason...``). The bits
are part of NVML's binary interface; their Python names have changed between versions."""


SETTINGS: Final[Mapping[str, Sequence[str]]] = _NAMES["settings"]
"""The part of a GPU's identity that NVML reports and CUDA does not: its question, and of which
clock."""


class NvmlSensor(Sensor):
    """Clocks, temperature, power, energy and clock-event reasons of one GPU.

    ``bus_id`` is its PCI bus id, which CUDA and NVML agree on (their numbering may differ). Raises
    ``DeviceError`` where NVML cannot be used.
    """

    def __init__(self, bus_id: str) -> None:
        try:
            self._nvml = importlib.import_module("pynvml")
        except ImportError as error:
            said = "NVML's Python package is not installed; 'pip install nvidia-ml-py' fixes it"
            raise DeviceError(said) from error
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            said = f"NVML does not start ({error}); 'nvidia-smi' shows the driver's state"
            raise DeviceError(said) from error
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
        found: dict[str, object] = {}
        for name, (question, clock) in SETTINGS.items():
            of = () if name == "driver" else (self._gpu,)
            which = (getattr(self._nvml, clock),) if clock else ()
            found[name] = _plain(name, self._ask(getattr(self._nvml, question), *of, *which))
        return found

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


def _plain(name: str, value: Any) -> Any:
    """A setting as JSON data: watts of milliwatts, a mode (``current`` or ``[current, pending]``)
    as on or off."""
    if value is None or name.endswith("_mhz"):
        return value
    if name == "driver":
        return value.decode() if isinstance(value, bytes) else value
    if name == "power_limit_w":
        return value / 1000
    return bool(value[0] if isinstance(value, list | tuple) else value)


def reasons_of(bits: int) -> tuple[str, ...]:
    """The names of a set of clock-event bits; a bit without a name is given as a number."""
    named = [word for bit, word in CLOCK_REASONS.items() if bits & bit]
    unknown = bits & ~sum(CLOCK_REASONS)
    return (*named, *([f"0x{unknown:x}"] if unknown else []))
