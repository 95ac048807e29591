"""Rooflines: what kernels do per second and per byte, under what their GPU can do at most.

Times come from a run on a GPU, ceilings from a run of ``configs/ceilings.yaml`` on the same GPU.
Operations and bytes come from a profiler, or from a simulated run of the same points. A kernel
cannot take less than its bytes at the copy's bandwidth, nor than its floating-point or its integer
operations at theirs, which overlap: the longest of the three is the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from nqbench.analysis.claims_runs import Observed, profile_value
from nqbench.analysis.dataset import Dataset, Level, PointResult, missing
from nqbench.analysis.estimate import Estimate
from nqbench.analysis.quantities import TIME
from nqbench.errors import AnalysisError
from nqbench.point import L2, PART

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
STUDY: Final = "configs/ceilings.yaml"
SIMULATED: Final = "simulated PTX"
PROFILED: Final = "ncu"
SECTOR_BYTES: Final = 32
_NOT_COMPARED: Final = (L2, PART)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most of something per second: bytes or operations. A fused multiply-add is two."""

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
        """The bound of a kind: of bytes that of the copy. Raises ``AnalysisError`` without one."""
        known = [c for c in self.found.values() if c.kind == kind and c.operation != "read"]
        if not known:
            raise AnalysisError(
                f"the ceilings of {self.device} lack one for {kind}; run `nqbench run {STUDY}`"
            )
        return max(known, key=lambda c: c.per_s.value)


@dataclass(frozen=True, slots=True, eq=False)
class RoofPoint:
    """One kernel under the roof.

    ``time``    seconds; ``work`` bytes and operations by kind; ``counted_by`` who counted them,
                ``bytes_of`` where the bytes went
    ``limits``  least seconds by kind; ``limit`` the largest of them, ``share`` it over the time
    """

    system: str
    n: int
    levels: Mapping[str, Level]
    time: Estimate
    work: Mapping[Kind, float]
    counted_by: str
    bytes_of: str
    limits: Mapping[Kind, float]

    @property
    def limit(self) -> Kind:
        """What bounds it at its work: the largest of the least times."""
        return max(self.limits, key=lambda kind: self.limits[kind])

    @property
    def share(self) -> float:
        """Least time over the time taken: 1 is at the roof."""
        return self.limits[self.limit] / self.time.value

    @property
    def operations(self) -> Kind:
        """Which operations weigh more against their ceiling."""
        return "float" if self.limits["float"] > self.limits["integer"] else "integer"

    @property
    def intensity(self) -> float:
        """The weightier operations per byte; infinite without any byte."""
        nbytes = self.work["bytes"]
        return self.work[self.operations] / nbytes if nbytes else float("inf")

    def per_s(self, kind: Kind) -> float:
        """Bytes or operations per second."""
        return self.work[kind] / self.time.value


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
        found = Ceiling(operation, name, kind, _rate(amount, time))
        if operation not in best or found.per_s.value > best[operation].per_s.value:
            best[operation] = found
    if not best:
        raise AnalysisError(
            f"run {data.name!r} holds no measured ceiling; run `nqbench run {STUDY}` on the GPU"
        )
    return Ceilings(data.device, {o: best[o] for o in CEILINGS if o in best})


def roof_points(
    run: Observed, ceilings: Ceilings, simulated: Sequence[Dataset] = ()
) -> tuple[list[RoofPoint], list[str]]:
    """The timed kernels of a run whose work is known, and why others are left out.

    A point's work is the profiler's if the run has it, else that of the same system, size and
    levels in a simulated run. Raises ``AnalysisError`` where no point is left, and for ceilings
    of another device.
    """
    if run.data.device != ceilings.device:
        raise AnalysisError(
            f"the ceilings are those of {ceilings.device}, the run is of {run.data.device}; run"
            f" `nqbench run {STUDY}` on the latter and name it with --ceilings"
        )
    found, left_out = [], []
    for point in run.data.points:
        time = point.estimate(TIME)
        if not point.ok or point.host or time is None or point.levels.get(PART, "full") != "full":
            continue
        made = _profiled(run, point, time, ceilings) or _counted(point, time, ceilings, simulated)
        if made is None:
            left_out.append(f"{point.system or point.sweep} at N = {point.n}")
        else:
            found.append(made)
    if not found:
        raise AnalysisError(
            f"no timed kernel of run {run.data.name!r} has known operations: measure with"
            " `counters: ncu`, or name a simulated run of the same points with --counters"
        )
    return found, left_out


def _rate(amount: float, time: Estimate) -> Estimate:
    inverse = time.inverse()
    low = None if inverse.low is None else amount * inverse.low
    high = None if inverse.high is None else amount * inverse.high
    return Estimate(amount * inverse.value, low, high, time.rounds)


def _profiled(
    run: Observed, point: PointResult, time: Estimate, ceilings: Ceilings
) -> RoofPoint | None:
    """By a profiler; of a program its main kernel's first launch, with the profiler's time."""
    names = ("dram_bytes", "fp32_operations", "integer_thread_instructions")
    values = [profile_value(run, point, name) for name in names]
    if any(value is None for value in values):
        return None
    nbytes, floats, integers = (float(value or 0) for value in values)
    if _is_program(point):
        duration_ns = profile_value(run, point, "duration_ns")
        if not duration_ns:
            return None
        time = Estimate(duration_ns * 1e-9)
    work: dict[Kind, float] = {"bytes": nbytes, "float": floats, "integer": integers}
    return _point(point, time, work, PROFILED, "device memory", ceilings)


def _counted(
    point: PointResult, time: Estimate, ceilings: Ceilings, simulated: Sequence[Dataset]
) -> RoofPoint | None:
    """By the simulator: off-chip sectors, as if there were no cache."""
    twin = next((t for data in simulated for t in data.points if _same(point, t)), None)
    if twin is None:
        return None
    names = ("global_sectors", "local_sectors", "float_operations", "integer_operations")
    values = [twin.detail(name) for name in names]
    if any(missing(value) for value in values):
        return None
    global_, local, floats, integers = map(float, values)
    work: dict[Kind, float] = {
        "bytes": SECTOR_BYTES * (global_ + local),
        "float": floats,
        "integer": integers,
    }
    return _point(point, time, work, SIMULATED, "all off-chip accesses, cached or not", ceilings)


def _point(
    point: PointResult,
    time: Estimate,
    work: Mapping[Kind, float],
    counted_by: str,
    bytes_of: str,
    ceilings: Ceilings,
) -> RoofPoint:
    limits = {kind: amount / ceilings.best(kind).per_s.value for kind, amount in work.items()}
    return RoofPoint(
        *(point.system or point.sweep, point.n, point.levels, time, work, counted_by, bytes_of),
        limits,
    )


def _is_program(point: PointResult) -> bool:
    """Whether several kernels, or launches, make one sample."""
    return any("@" in str(column) for row in point.blocks.values() for column, value in row.items()
               if not missing(value))  # fmt: skip


def _same(one: PointResult, two: PointResult) -> bool:
    """Whether two points of different runs are the same configuration, simulated and ok."""
    return (
        two.ok
        and not two.timed
        and (one.system, one.n) == (two.system, two.n)
        and _compared(one.levels) == _compared(two.levels)
    )


def _compared(levels: Mapping[str, Any]) -> dict[str, str]:
    return {k: str(v) for k, v in levels.items() if k not in _NOT_COMPARED}
