"""Rooflines: operations of kernels per second and per byte, under the ceilings of their GPU.

Times come from a run on a GPU, ceilings from a run of ``configs/ceilings.yaml`` on the same GPU.
Operations and bytes come from a profiler, or from a simulated run of the same points. A kernel
cannot take less time than its bytes at the bandwidth of a copy, nor than its floating-point or its
integer operations at their peak rates. The three overlap, so the longest of them is the limit.

A program (several launches in one sample) is represented by the kernel that takes most of its time,
with that kernel's phase and counts: no ceiling applies between the launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nqbench.analysis.data.dataset import Dataset, Level, PointResult, missing
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed, profile_value
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.analysis.limits.ceilings import STUDY, Ceilings, Kind
from nqbench.errors import AnalysisError
from nqbench.point import MEASURING, PART
from nqbench.vocabulary import of_kernel, plain_name

SIMULATED: Final = "simulated PTX"
PROFILED: Final = "ncu"
DEVICE_MEMORY: Final = "device memory"
SECTOR_BYTES: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class RoofPoint:
    """One kernel under the roof.

    ``kernel``  which one of a program's it is; empty where there is one only
    ``time``    seconds, of a program's kernel all its launches together
    ``work``    bytes and operations by kind; ``counted_by`` who counted them, ``bytes_of`` where
                the bytes went
    ``limits``  minimum seconds by kind; ``limit`` the largest of them, ``share`` it over the time
    """

    system: str
    n: int
    levels: Mapping[str, Level]
    time: Estimate
    work: Mapping[Kind, float]
    counted_by: str
    bytes_of: str
    limits: Mapping[Kind, float]
    kernel: str = ""

    @property
    def limit(self) -> Kind:
        """What bounds the kernel: the kind of work with the longest minimum time."""
        return max(self.limits, key=lambda kind: self.limits[kind])

    @property
    def sure(self) -> bool:
        """Whether the limit is certain: bytes that a cache may have served are only an upper
        bound."""
        return self.limit != "bytes" or self.bytes_of == DEVICE_MEMORY

    @property
    def share(self) -> float:
        """Minimum time over the time taken: 1 is at the roof."""
        return self.limits[self.limit] / self.time.value

    @property
    def operations(self) -> Kind:
        """The kind of operations that is closer to its ceiling."""
        return "float" if self.limits["float"] > self.limits["integer"] else "integer"

    @property
    def intensity(self) -> float:
        """Operations of that kind per byte; infinite without bytes."""
        nbytes = self.work["bytes"]
        return self.work[self.operations] / nbytes if nbytes else float("inf")

    def per_s(self, kind: Kind) -> float:
        """Bytes or operations per second."""
        return self.work[kind] / self.time.value


def roof_points(
    run: Observed, ceilings: Ceilings, simulated: Sequence[Dataset] = ()
) -> tuple[list[RoofPoint], list[str]]:
    """The timed kernels of a run whose work is known, and why others are left out.

    A point's work is the profiler's if the run has it, else that of the same system, size and
    levels in a simulated run. A configuration in several sweeps is one kernel: the first counts.
    Raises ``AnalysisError`` where no point is left, for a simulated run,
    and for ceilings of another device.
    """
    if run.data.simulated:
        raise AnalysisError(
            f"run {run.data.name!r} is simulated: it has counters and no times; name a run on a"
            " GPU, and this one with --counters"
        )
    if run.data.device != ceilings.device:
        raise AnalysisError(
            f"the ceilings are those of {ceilings.device}, the run is of {run.data.device}; run"
            f" `nqbench run {STUDY}` on the latter and name it with --ceilings"
        )
    found: list[RoofPoint] = []
    left_out: list[PointResult] = []
    seen: list[tuple[str, int, Mapping[str, Level]]] = []
    for point in run.data.points:
        whole = point.estimate(TIME)
        if not point.ok or point.cpu or whole is None or point.levels.get(PART, "full") != "full":
            continue
        same = (point.name, point.n, point.levels)
        if same in seen:
            continue
        seen.append(same)
        kernel, time = _main_kernel(point) if _is_program(point) else ("", whole)
        made = time and (
            _profiled(run, point, kernel, time, ceilings)
            or _counted(point, kernel, time, ceilings, simulated)
        )
        if not made:
            left_out.append(point)
        else:
            found.append(made)
    if not found:
        raise AnalysisError(
            f"no timed kernel of run {run.data.name!r} has known operations: measure with"
            " `counters: ncu`, or name a simulated run of the same points with --counters"
        )
    return found, _without_work(left_out, found)


def _without_work(left_out: Sequence[PointResult], found: Sequence[RoofPoint]) -> list[str]:
    """Systems and sizes without a kernel under the roof, each once, and how many others."""
    shown = {(point.system, point.n) for point in found}
    own = [(point.name, point.n) for point in left_out]
    systems = [f"{name} at N = {n}" for name, n in dict.fromkeys(own) if (name, n) not in shown]
    others = sum(one in shown for one in own)
    return [*systems, f"{others} other configurations of those above"] if others else systems


def _main_kernel(point: PointResult) -> tuple[str, Estimate | None]:
    """The kernel of a program that takes most of its time, and what it takes.

    ``None`` for the time where the program's phases were not recorded.
    """
    names = sorted({plain_name(column)[1] for column in _columns(point)} - {""})
    times = {name: point.estimate(_phase(name)) for name in names}
    known = {name: time.value for name, time in times.items() if time is not None}
    if not known:
        return names[0], None
    longest = max(known, key=lambda name: known[name])
    return longest, times[longest]


def _phase(kernel: str) -> Quantity:
    """A kernel's time within its program, whatever its name."""
    return Quantity(kernel, f"{kernel} time", (f"{kernel}_s",), "time", "s")


def _of(name: str, kernel: str) -> str:
    return of_kernel(name, kernel) if kernel else name


def _profiled(
    run: Observed, point: PointResult, kernel: str, time: Estimate, ceilings: Ceilings
) -> RoofPoint | None:
    """By a profiler; of a program's kernel the first launch, with the profiler's time."""
    names = ("dram_bytes", "fp32_operations", "integer_thread_instructions")
    values = [profile_value(run, point, _of(name, kernel)) for name in names]
    if any(value is None for value in values):
        return None
    nbytes, floats, integers = (float(value or 0) for value in values)
    if kernel:
        duration_ns = profile_value(run, point, of_kernel("duration_ns", kernel))
        if not duration_ns:
            return None
        time = Estimate(duration_ns * 1e-9)
    work: dict[Kind, float] = {"bytes": nbytes, "float": floats, "integer": integers}
    return _point(point, kernel, time, work, (PROFILED, DEVICE_MEMORY), ceilings)


def _counted(
    point: PointResult,
    kernel: str,
    time: Estimate,
    ceilings: Ceilings,
    simulated: Sequence[Dataset],
) -> RoofPoint | None:
    """By the simulator: off-chip sectors, as if there were no cache."""
    counted = next((t for data in simulated for t in data.points if _same(point, t)), None)
    if counted is None:
        return None
    names = ("global_sectors", "local_sectors", "float_operations", "integer_operations")
    values = [counted.detail(_of(name, kernel)) for name in names]
    if any(missing(value) for value in values):
        return None
    global_, local, floats, integers = map(float, values)
    work: dict[Kind, float] = {
        "bytes": SECTOR_BYTES * (global_ + local),
        "float": floats,
        "integer": integers,
    }
    by = (SIMULATED, "all off-chip accesses, cached or not")
    return _point(point, kernel, time, work, by, ceilings)


def _point(
    point: PointResult,
    kernel: str,
    time: Estimate,
    work: Mapping[Kind, float],
    by: tuple[str, str],
    ceilings: Ceilings,
) -> RoofPoint:
    limits = {kind: amount / ceilings.best(kind).per_s.value for kind, amount in work.items()}
    name = point.name
    return RoofPoint(name, point.n, point.levels, time, work, *by, limits, kernel)


def _is_program(point: PointResult) -> bool:
    """Whether several kernels, or launches, make one sample."""
    return any("@" in column for column in _columns(point))


def _columns(point: PointResult) -> set[str]:
    """What was recorded of a point."""
    rows = point.measurements.values()
    return {str(name) for row in rows for name, value in row.items() if not missing(value)}


def _same(one: PointResult, two: PointResult) -> bool:
    """Whether two points of different runs are the same configuration, simulated and ok."""
    return (
        two.ok
        and not two.timed
        and (one.system, one.n) == (two.system, two.n)
        and _compared(one.levels) == _compared(two.levels)
    )


def _compared(levels: Mapping[str, Any]) -> dict[str, str]:
    return {k: str(v) for k, v in levels.items() if k not in MEASURING}
