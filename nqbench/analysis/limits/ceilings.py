"""Peak rates of a GPU: measured by a run of ``configs/ceilings.yaml``, or from data sheets with the
clock that a run recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured
from nqbench.errors import AnalysisError
from nqbench.papers.formula import DEVICE_NUMBERS
from nqbench.runs.reading import MANIFEST

Kind = Literal["bytes", "float", "integer"]

CEILINGS: Final[Mapping[str, tuple[str, Kind, str]]] = {
    "copy": ("copy in device memory", "bytes", "bytes_moved"),
    "read": ("reads from L2", "bytes", "bytes_moved"),
    "fma": ("FP32 multiply-add", "float", "float_operations"),
    "float_add": ("FP32 add", "float", "float_operations"),
    "int_add": ("INT32 add", "integer", "integer_operations"),
    "logic": ("32-bit logic", "integer", "integer_operations"),
}
"""By operation of the workload ``ceilings``: name, what it bounds, what of its work counts."""
STUDY: Final = "ceilings"
FOLDER: Final = "ceilings"
"""Name of that study, and of the folder of its run next to other runs."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A peak rate: bytes or operations per second. A fused multiply-add is two operations."""

    operation: str
    name: str
    kind: Kind
    per_s: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class Ceilings:
    """The ceilings of one GPU, as far as they were measured."""

    device: str
    found: Mapping[str, Ceiling]

    def best(self, kind: Kind) -> Ceiling:
        """The highest of a kind; for bytes the copy's. Raises ``AnalysisError`` without one."""
        known = [c for c in self.found.values() if c.kind == kind and c.operation != "read"]
        if not known:
            raise AnalysisError(
                f"the ceilings of {self.device} lack one for {kind}; run `nqbench run {STUDY}`"
            )
        return max(known, key=lambda c: c.per_s.value)


def ceilings_of(data: Dataset) -> Ceilings:
    """The best of each operation in a run of the workload ``ceilings``.

    Raises ``AnalysisError`` for a run without times of it.
    """
    from nqbench.workloads.ceilings import amounts

    best: dict[str, Ceiling] = {}
    for point in data.points:
        operation = str(point.levels.get("operation"))
        time = point.estimate(TIME) if point.ok else None
        if operation not in CEILINGS or "steps" not in point.levels or time is None:
            continue
        name, kind, counted = CEILINGS[operation]
        amount = amounts({**point.levels, "n": point.n})[counted]
        found = Ceiling(operation, name, kind, time.inverse().scaled(amount))
        if operation not in best or found.per_s.value > best[operation].per_s.value:
            best[operation] = found
    if not best:
        raise AnalysisError(
            f"run {data.name!r} has no measured ceiling; run `nqbench run {STUDY}` on the GPU"
        )
    return Ceilings(data.device, {o: best[o] for o in CEILINGS if o in best})


def ceilings_beside(run: Path, device: str) -> Ceilings | None:
    """The ceilings of ``device`` from the run next to ``run``; ``None`` without one."""
    folder = run.resolve().parent / FOLDER
    if not (folder / MANIFEST).exists():
        return None
    found = load_dataset(folder)
    return ceilings_of(found) if found.device == device else None


FP32_PER_CLOCK: Final[Mapping[str, int]] = MappingProxyType(
    {"7.5": 64, "8.0": 64, **dict.fromkeys(("8.6", "8.9", "9.0"), 128)}
)
"""Single-precision instructions per clock and multiprocessor, by compute capability (CUDA C++
Programming Guide, throughput of native arithmetic instructions); a fused one is two operations."""
INT_PER_CLOCK: Final[Mapping[str, int]] = MappingProxyType(
    dict.fromkeys(("7.5", "8.0", "8.6", "8.9", "9.0"), 64)
)
"""32-bit integer additions per clock and multiprocessor."""
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


def ideal_instruction_byte_ratio(data: Dataset) -> float | None:
    """Instructions of threads issued per byte of device memory with both at their limits."""
    clocks, moved = clocks_per_s(data), bytes_per_s(data)
    return ISSUED_PER_CLOCK * clocks / moved if clocks and moved else None


def flops_per_s(data: Dataset) -> float | None:
    """Single-precision operations per second; a fused multiply-add counts as two."""
    instructions = fp32_per_s(data)
    return 2 * instructions if instructions else None


def data_sheet(data: Dataset) -> Ceilings | None:
    """The ceilings of a known GPU by its data sheet; ``None`` where one of them is not known."""
    rates: dict[str, tuple[str, Kind, float | None]] = {
        "copy": ("device memory", "bytes", bytes_per_s(data)),
        "fma": ("FP32 multiply-add", "float", flops_per_s(data)),
        "int_add": ("INT32 add", "integer", integers_per_s(data)),
    }
    found = {
        operation: Ceiling(operation, name, kind, Estimate(rate))
        for operation, (name, kind, rate) in rates.items()
        if rate
    }
    return Ceilings(data.device, found) if len(found) == len(rates) else None


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
