"""What a GPU can do at most, from its maker's figures and the clock that a run recorded.

Measured ceilings are another matter: ``nqbench roofline``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from nqbench.analysis.claims.points import NotMeasured
from nqbench.analysis.data.dataset import Dataset
from nqbench.papers.formula import DEVICE_NUMBERS

FP32_PER_CLOCK: Final[Mapping[str, int]] = MappingProxyType(
    {"7.5": 64, "8.0": 64, **dict.fromkeys(("8.6", "8.9", "9.0"), 128)}
)
"""Single-precision instructions per clock and multiprocessor, by compute capability (CUDA C++
Programming Guide, throughput of native arithmetic instructions); a fused one is two operations."""
INT_PER_CLOCK: Final[Mapping[str, int]] = MappingProxyType(
    dict.fromkeys(("7.5", "8.0", "8.6", "8.9", "9.0"), 64)
)
"""32-bit integer additions, likewise."""
ROOTS_PER_CLOCK: Final = 16
"""Approximate reciprocal square roots per clock and multiprocessor, on all of them. A correctly
rounded root takes such a one and several instructions more."""
ISSUED_PER_CLOCK: Final = 4 * 32
"""Instructions of threads that a multiprocessor issues per clock: a warp from each of its four
schedulers, on all architectures above."""
BYTES_PER_S: Final[Mapping[str, float]] = MappingProxyType(
    {
        "H100 80GB HBM3": 3.35e12,
        "H100 PCIe": 2.0e12,
        "H200": 4.8e12,
        "A100-SXM4-80GB": 2.039e12,
    }
)
"""Bandwidth of the device's memory by a part of its name (NVIDIA's data sheets)."""


def bytes_per_s(data: Dataset) -> float | None:
    """Bandwidth of device memory, if the device is a known one."""
    name = str(_identity(data).get("name", ""))
    return next((value for part, value in BYTES_PER_S.items() if part in name), None)


def clocks_per_s(data: Dataset) -> float | None:
    """Clocks of all multiprocessors per second, at the highest clock that the driver allows."""
    clock, units = _identity(data).get("max_sm_mhz"), multiprocessors(data)
    return units * float(clock) * 1e6 if clock and units else None


def multiprocessors(data: Dataset) -> float | None:
    """How many the device has."""
    device = data.manifest.get("device", {})
    units = (device.get("facts") or {}).get("multiprocessors")
    return float(units) if units else None


def integers_per_s(data: Dataset) -> float | None:
    """32-bit integer additions per second."""
    return _rate(data, INT_PER_CLOCK)


def fp32_per_s(data: Dataset) -> float | None:
    """Single-precision instructions of threads per second."""
    return _rate(data, FP32_PER_CLOCK)


def roots_per_s(data: Dataset) -> float | None:
    """Square roots per second, if each took one instruction of the special function units."""
    clocks = clocks_per_s(data)
    return ROOTS_PER_CLOCK * clocks if clocks else None


def flops_per_s(data: Dataset) -> float | None:
    """Single-precision operations per second, a fused multiply-add counted as two."""
    instructions = fp32_per_s(data)
    return 2 * instructions if instructions else None


def ideal_instruction_byte_ratio(data: Dataset) -> float | None:
    """Instructions of threads issued per byte of device memory with both at their limits."""
    clocks, moved = clocks_per_s(data), bytes_per_s(data)
    return ISSUED_PER_CLOCK * clocks / moved if clocks and moved else None


def _peak_gflops(data: Dataset) -> float | None:
    found = flops_per_s(data)
    return found / 1e9 if found else None


_NUMBERS: Final[Mapping[str, Callable[[Dataset], float | None]]] = MappingProxyType(
    {
        "multiprocessors": multiprocessors,
        "peak_gflops_single": _peak_gflops,
        "ideal_instruction_byte_ratio": ideal_instruction_byte_ratio,
    }
)


def device_number(data: Dataset, name: str) -> float:
    """A number of ``formula.DEVICE_NUMBERS``. Raises ``NotMeasured`` where it is not known."""
    value = _NUMBERS[name](data)
    if value is None:
        raise NotMeasured(f"the {DEVICE_NUMBERS[name]} of {data.device_short} is not known")
    return value


def _rate(data: Dataset, per_clock: Mapping[str, int]) -> float | None:
    lanes = per_clock.get(str(_identity(data).get("compute_capability", "")))
    clocks = clocks_per_s(data)
    return lanes * clocks if lanes and clocks else None


def _identity(data: Dataset) -> Mapping[str, Any]:
    found: Mapping[str, Any] = data.manifest.get("device", {}).get("identity") or {}
    return found
