"""Runs as claims and papers' pages see them: the points, what instrumented kernels and profilers
counted, which paper's device it is, and which time the paper reports."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import Dataset, PointResult, collect, instrumented, missing
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.errors import StudyError
from nqbench.papers.load import load_paper, paper_names
from nqbench.record import Record
from nqbench.runs.frame import recorded
from nqbench.runs.reading import current, read_manifest, read_records
from nqbench.system.suggest import listing
from nqbench.workloads import get

if TYPE_CHECKING:
    from nqbench.papers.schema import Paper
    from nqbench.point import Level


@dataclass(frozen=True, eq=False)
class Observed:
    """One run. ``probes`` (instrumented kernels) and ``profiles`` (a profiler's launches) are rows
    of the run's frame that have counters only, never times; ``baseline`` is the run whose CPU
    programs stand in the place of its own. ``modelled``: its times are those of a model
    (:func:`modelled`).
    """

    path: Path
    data: Dataset
    probes: tuple[Mapping[str, Any], ...] = ()
    profiles: tuple[Mapping[str, Any], ...] = ()
    baseline: Observed | None = None
    modelled: bool = False

    @property
    def cpu(self) -> str:
        """The CPU that its CPU programs were timed on, for people."""
        return (self.baseline or self).data.cpu

    @cached_property
    def device_id(self) -> str:
        """The device as one word, for ``hw``."""
        return _word(self.data.device_short)

    @property
    def name(self) -> str:
        """The device's name alone, for a legend."""
        return self.data.device.removesuffix(f" ({self.data.spec})")

    @property
    def compute_capability(self) -> str:
        """Compute capability of the GPU or of the simulator's model, ``9.0``."""
        return ".".join(
            map(str, self.data.about_device("facts").get("compute_capability") or ("unknown",))
        )

    @cached_property
    def sizes(self) -> list[int]:
        """Problem sizes of the run's kernels; of its CPU programs where it has no kernel."""
        kernels = {p.n for p in self.data.points if not p.cpu}
        return sorted(kernels or {p.n for p in self.data.points})

    def hardware(self, paper: Paper) -> str:
        """The paper's id of the device if it is one of the paper's, else a word for it."""
        own = _word(self.data.device)
        for device in paper.hardware:
            if device.kind == "gpu" and _word(device.name) in own:
                return device.id
        kind, *model = self.data.spec.split(":")  # behind the model are the modes
        known = kind == "sim" and model[0] in {d.id for d in paper.hardware}
        return model[0] if known else self.device_id

    @property
    def logical_cores(self) -> int:
        """Logical CPU cores of the machine, 0 where the run does not say."""
        host = self.data.about_device("host")
        return int(host.get("cores") or host.get("logical_cores") or 0)


def observe(run: Path | str) -> Observed:
    """Load a run folder. Raises ``StoreError`` where it cannot be read."""
    manifest, found = read_manifest(Path(run)), read_records(Path(run))
    return observed(manifest, found.records, Path(run))


def observed(manifest: Mapping[str, Any], records: Iterable[Record], path: Path) -> Observed:
    """A run from its manifest and its records."""
    probes: list[Mapping[str, Any]] = []
    profiles: list[Mapping[str, Any]] = []
    records = current(manifest, records)
    for record in records:
        counted = instrumented(record.point["factors"])
        if not record.measured or not (counted or record.round < 0):
            continue
        point = record.point
        row = recorded(record) | {"system": point["system"] or "", "workload": point["workload"]}
        (probes if counted else profiles).append(row)
    return Observed(path, collect(manifest, records), tuple(probes), tuple(profiles))


def with_baseline(run: Observed, baseline: Observed | None) -> Observed:
    """The run with the CPU programs of another one in the place of its own.

    The sequential program takes most of an hour at the papers' largest boards, so it is measured
    once, on one computer, and all GPUs are compared with that. Every size comes from the baseline:
    speed-ups over two different CPUs would not be comparable from size to size.
    """
    if baseline is None:
        return run
    theirs = [replace(p, borrowed=True) for p in baseline.data.points if p.cpu and p.ok]
    systems = {p.system for p in theirs}
    if not systems & {p.system for p in run.data.points}:
        return run
    own = [p for p in run.data.points if not (p.cpu and p.system in systems)]
    first = next(p.sweep for p in run.data.points if p.system in systems)
    points = (*own, *(replace(p, sweep=first) for p in theirs))
    return replace(run, data=replace(run.data, points=points), baseline=baseline)


def observe_all(runs: Sequence[Path], cpu: Path | None) -> list[Observed]:
    """Runs, with the CPU programs of the run ``cpu``.

    Raises ``StudyError`` if that has none, or where a run is given twice.
    """
    for i, run in enumerate(runs):
        if run.resolve() in {other.resolve() for other in runs[:i]}:
            raise StudyError(f"{run} is given twice; name each run once")
    return with_programs([observe(run) for run in runs], cpu)


def with_programs(runs: Sequence[Observed], cpu: Path | None) -> list[Observed]:
    """Runs with the CPU programs of the run ``cpu`` in the place of their own.

    Raises ``StudyError`` if that has none.
    """
    baseline = observe(cpu) if cpu is not None else None
    if baseline and not any(p.cpu and p.ok for p in baseline.data.points):
        raise StudyError(
            f"--cpu {cpu}: the run has no CPU program; `nqbench run cpu_baseline --device cpu`"
            " measures one"
        )
    return [with_baseline(run, baseline) for run in runs]


def device_names(runs: Sequence[Observed]) -> list[str]:
    """The device of each run, for people; with the run's folder where two runs have the same."""
    devices = [run.data.device for run in runs]
    return [
        f"{device}, {run.path.as_posix()}" if devices.count(device) > 1 else device
        for device, run in zip(devices, runs, strict=True)
    ]


def papers_of(runs: Sequence[Observed], asked: str | None) -> list[Paper]:
    """The papers that runs are about: the one asked for, else those of their studies.

    Raises ``StudyError`` for an unknown paper, or a run of no paper's study.
    """
    if asked is not None:
        return [load_paper(asked)]
    known = paper_names()
    for run in runs:
        if run.data.name not in known:
            raise StudyError(
                f"{run.path} is a run of study '{run.data.name}', which belongs to no paper; say"
                f" whose claims to judge with --paper {listing(known)}"
            )
    return [load_paper(name) for name in known if any(r.data.name == name for r in runs)]


def probe_value(
    run: Observed, system: str, n: int, name: str, depth: int | str | None = None, probe: str = ""
) -> float | None:
    """A counter of an instrumented kernel, or ``None`` if no such point was run.

    ``depth`` is a number, ``"own"`` for the paper's own split (what a job does depends on it), or
    ``None`` for any; ``probe`` the kind of instrument, where several count the same name.
    """
    for row in run.probes:
        if row.get("system") != system or int(row.get("n", 0)) != n or missing(row.get(name)):
            continue
        if probe and name.startswith("warp_utilization") and row.get("probe") != probe:
            continue
        wanted: Level | None = depth
        if depth == "own":
            wanted = get(row["workload"]).auto_level("depth", row, row["system"])
        if wanted is None or int(row["depth"]) == wanted:
            return float(row[name])
    return None


def profile_value(run: Observed, point: PointResult, name: str) -> float | None:
    """A counter of a point as a profiler counted it, in any sweep; ``None`` if it did not."""
    same = {
        str(p.detail("key"))
        for p in run.data.points
        if (p.system, p.n, p.levels) == (point.system, point.n, point.levels)
    }
    for row in run.profiles:
        if row.get("key") in same and not missing(row.get(name)):
            return float(row[name])
    return None


@lru_cache(maxsize=1024)
def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower().replace("nvidia", "").replace("geforce", ""))


TOTAL: Final = Quantity(TIME.name, "total time", TIME.columns, TIME.kind, TIME.unit)
"""``TIME`` of a run that :func:`in_times_of` has changed to totals."""
TOTALS: Final = (
    "times are totals here as they are in the paper: split, transfers, kernel and reduction"
)
"""For the notes of tables."""


def modelled(run: Observed) -> Observed:
    """The simulated run with its modelled times in the place of times. Its counters stay, as those
    of a profiler do; what was timed on the CPU is left out: a modelled time is set against no
    measured one."""
    points, rows = [], list[Mapping[str, Any]]()
    for point in (p for p in run.data.points if not p.cpu):
        times = {
            number: {"value_s": row["modelled_ms"] / 1e3, "kernel_s": row["modelled_ms"] / 1e3}
            for number, row in point.measurements.items()
            if not missing(row.get("modelled_ms"))
        }
        plain = {
            number: {k: v for k, v in row.items() if not k.endswith("_s")} | times.get(number, {})
            for number, row in point.measurements.items()
        }
        rows += plain.values()
        points.append(replace(point, measurements=plain, timed=bool(times)))
    data = replace(run.data, points=tuple(points))
    return replace(run, data=data, profiles=(*run.profiles, *rows), modelled=True)


def of_own_gpu(paper: Paper, run: Observed) -> bool:
    """Whether a run is of a model of one of the paper's own GPUs."""
    own = {device.id for device in paper.hardware if device.kind == "gpu"}
    return run.data.simulated and run.hardware(paper) in own


def in_times_of(paper: Paper, run: Observed) -> Observed:
    """The run with the times that are comparable with the paper's own.

    A paper that times the whole computation pays for its CPU part too: six rows of jobs instead of
    five speed up its kernel and slow down its split, so that kernel times alone would reverse that
    verdict. For such a paper the time of a point is the ``total`` of each measurement; a
    measurement without one has no time. Phases stay what they are, and so do CPU programs and
    programs of several kernels, whose time is whole anyway.
    """
    return in_phase(run, "total") if paper.timed == "total" and not run.modelled else run


def in_phase(run: Observed, phase: str) -> Observed:
    """The run with a phase of each measurement of a kernel in the place of its time."""
    points = []
    for point in run.data.points:
        if point.timed and not point.cpu:
            changed = {
                number: {**row, "value_s": row.get(f"{phase}_s", math.nan)}
                for number, row in point.measurements.items()
            }
            point = replace(point, measurements=changed)
        points.append(point)
    return replace(run, data=replace(run.data, points=tuple(points)))


def time_of(paper: Paper) -> Quantity:
    """The quantity behind the times on a paper's page."""
    return TOTAL if paper.timed == "total" else TIME
