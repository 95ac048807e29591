"""Rooflines: operations of kernels per second and per byte, under the ceilings of their GPU.

Times come from a run on a GPU, ceilings from a run of ``configs/ceilings.yaml`` on the same GPU.
Operations and bytes of device memory come from a profiler. A kernel cannot take less time than its
bytes at the bandwidth of a copy, nor than its floating-point or its integer operations at their
peak rates. The three overlap, so the longest of them is the limit.

A program (several launches in one sample) is represented by the kernel whose first launch takes
longest, with the counts and the time of that: no ceiling applies between the launches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nqbench.analysis.data.dataset import Dataset, Level, PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.for_papers import profile_value
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.limits.ceilings import STUDY, GpuCeilings, WorkKind
from nqbench.errors import AnalysisError
from nqbench.point import PART
from nqbench.system.suggest import many
from nqbench.vocabulary import of_kernel, plain_name

KINDS: Final[tuple[WorkKind, ...]] = ("bytes", "float", "integer")


@dataclass(frozen=True, slots=True, eq=False)
class RoofPoint:
    """One kernel under the roof.

    ``kernel``  which one of a program's it is; empty where there is one only
    ``time``    seconds, of a program's kernel those of its first launch
    ``work``    bytes and operations by kind
    ``limits``  minimum seconds by kind; ``limit`` the largest of them, ``share`` it over the time
    """

    system: str
    n: int
    levels: Mapping[str, Level]
    time: Estimate
    work: Mapping[WorkKind, float]
    limits: Mapping[WorkKind, float]
    kernel: str = ""

    @property
    def limit(self) -> WorkKind:
        """What bounds the kernel: the kind of work with the longest minimum time."""
        return max(self.limits, key=lambda kind: self.limits[kind])

    @property
    def share(self) -> float:
        """Minimum time over the time taken: 1 is at the roof."""
        return self.limits[self.limit] / self.time.value

    @property
    def operations(self) -> WorkKind:
        """The kind of operations that is closer to its ceiling."""
        return "float" if self.limits["float"] > self.limits["integer"] else "integer"

    @property
    def intensity(self) -> float:
        """Operations of that kind per byte; infinite without bytes."""
        nbytes = self.work["bytes"]
        return self.work[self.operations] / nbytes if nbytes else float("inf")

    def per_s(self, kind: WorkKind) -> float:
        """Bytes or operations per second."""
        return self.work[kind] / self.time.value


def roof_points(run: Dataset, ceilings: GpuCeilings) -> tuple[list[RoofPoint], list[str]]:
    """The timed kernels of a run whose work a profiler counted, and which others are left out.

    A configuration in several sweeps is one kernel: the first counts. Raises ``AnalysisError``
    where no point is left, for a simulated run, and for ceilings of another device.
    """
    if run.simulated:
        said = f"run {run.name!r} is simulated: it has counters and no times; name a run on a GPU"
        raise AnalysisError(said)
    if run.device != ceilings.device:
        raise AnalysisError(
            f"the ceilings are those of {ceilings.device}, the run is of {run.device}; run"
            f" `nqbench run {STUDY}` on the latter and name it with --ceilings"
        )
    found: list[RoofPoint] = []
    left_out: list[tuple[str, int]] = []
    seen: list[tuple[str, int, Mapping[str, Level]]] = []
    for point in run.select(cpu=False):
        whole, same = point.estimate(TIME), (point.name, point.n, point.levels)
        if whole is None or point.levels.get(PART, "full") != "full" or same in seen:
            continue
        seen.append(same)
        counts = _profiled(run, point, whole)
        if not counts:
            left_out.append((point.name, point.n))
            continue
        time, work, kernel = counts
        limits = {kind: amount / ceilings.best(kind).per_s.value for kind, amount in work.items()}
        found.append(RoofPoint(*same, time, work, limits, kernel))
    if not found:
        raise AnalysisError(
            f"no timed kernel of run {run.name!r} has known operations: measure with"
            " `counters: ncu`"
        )
    unknown = Counter(left_out)
    return found, [f"{name} at N = {n} ({many(k, 'point')})" for (name, n), k in unknown.items()]


def _profiled(
    run: Dataset, point: PointResult, whole: Estimate
) -> tuple[Estimate, Mapping[WorkKind, float], str] | None:
    """What a point's kernel took, moved and did, and its name; ``None`` where it was not profiled.

    A point of one launch has one kernel without a name, which takes the ``whole`` time. Of a
    program's kernels it is the one whose first launch takes longest, by the profiler's time.
    """
    recorded = (name for row in point.measurements.values() for name in row)
    kernels = sorted({plain_name(name)[1] for name in recorded if "@" in name}) or [""]
    took_ns = {k: profile_value(run, point, of_kernel("duration_ns", k)) or 0.0 for k in kernels}
    kernel = max(kernels, key=lambda name: took_ns[name])
    names = ("dram_bytes", "fp32_operations", "integer_thread_instructions")
    values = (profile_value(run, point, of_kernel(name, kernel)) for name in names)
    counted = [value for value in values if value is not None]
    if len(counted) < len(names) or (kernel and not took_ns[kernel]):
        return None
    time = Estimate(took_ns[kernel] * 1e-9) if kernel else whole
    return time, dict(zip(KINDS, counted, strict=True)), kernel
