"""Runs as claims and papers' pages see them: with the CPU programs of another run, with the time
that the paper reports, with what instrumented kernels and profilers counted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import Dataset, PointResult, load_dataset, missing
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.analysis.data.select import APART
from nqbench.errors import StudyError
from nqbench.papers.load import load_paper, paper_names
from nqbench.system.suggest import listing
from nqbench.workloads import get

if TYPE_CHECKING:
    from nqbench.papers.schema import Paper
    from nqbench.point import Level


def with_baseline(run: Dataset, baseline: Dataset | None) -> Dataset:
    """The run with the CPU programs of another one in the place of its own.

    The sequential program takes most of an hour at the papers' largest boards, so it is measured
    once, on one computer, and all GPUs are compared with that. Every size comes from the baseline:
    speed-ups over two different CPUs would not be comparable from size to size. The run's own times
    stay where a formula asks for their sweep.
    """
    if baseline is None:
        return run
    theirs = [replace(p, borrowed=True) for p in baseline.points if p.cpu and p.ok]
    systems = {p.system for p in theirs}
    if not systems & {p.system for p in run.points}:
        return run
    own = [p for p in run.points if p.cpu and p.system in systems]
    others = (p for p in run.points if not (p.cpu and p.system in systems))
    return replace(run, points=(*others, *theirs, *own), baseline=baseline)


def with_others(run: Dataset, others: Iterable[Dataset]) -> Dataset:
    """The run with those of other GPUs of its model. Of these, systems stay at the sizes at which
    they have the run's first sweep: another launch would stand in its place, if it has no name."""
    first = {(p.system, p.n): p.sweep for p in reversed(run.points)}
    again = []
    for other in others:
        there = {(p.system, p.n) for p in other.points if first.get((p.system, p.n)) == p.sweep}
        own = (p for p in other.points if (p.system, p.n) in there or p.sweep.startswith(APART))
        again.append(replace(other, points=tuple(own)))
    return replace(run, again=tuple(again))


def load_all(runs: Sequence[Path], cpu: Path | None) -> list[Dataset]:
    """Runs, with the CPU programs of the run ``cpu``.

    Raises ``StudyError`` if that has none, or where a run is given twice.
    """
    for i, run in enumerate(runs):
        if run.resolve() in {other.resolve() for other in runs[:i]}:
            raise StudyError(f"{run} is given twice; name each run once")
    return with_programs([load_dataset(run) for run in runs], cpu)


def with_programs(runs: Sequence[Dataset], cpu: Path | None) -> list[Dataset]:
    """Runs with the CPU programs of the run ``cpu`` in the place of their own.

    Raises ``StudyError`` if that has none.
    """
    baseline = load_dataset(cpu) if cpu is not None else None
    if baseline and not any(p.cpu and p.ok for p in baseline.points):
        raise StudyError(
            f"--cpu {cpu}: the run has no CPU program; `nqbench run cpu_baseline --device cpu`"
            " measures one"
        )
    return [with_baseline(run, baseline) for run in runs]


def device_names(runs: Sequence[Dataset]) -> list[str]:
    """The device of each run, for people; with the run's folder where two runs have the same."""
    devices = [run.device for run in runs]
    return [
        f"{device}, {run.path.as_posix()}" if devices.count(device) > 1 else device
        for device, run in zip(devices, runs, strict=True)
    ]


def papers_of(runs: Sequence[Dataset], asked: str | None) -> list[Paper]:
    """The papers that runs are about: the one asked for, else those of their studies.

    Raises ``StudyError`` for an unknown paper, or a run of no paper's study.
    """
    if asked is not None:
        return [load_paper(asked)]
    known = paper_names()
    for run in runs:
        if run.name not in known:
            raise StudyError(
                f"{run.path} is a run of study '{run.name}', which belongs to no paper; say"
                f" whose claims to judge with --paper {listing(known)}"
            )
    return [load_paper(name) for name in known if any(r.name == name for r in runs)]


def probe_value(
    run: Dataset, system: str, n: int, name: str, depth: int | str | None = None, probe: str = ""
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


def profile_value(run: Dataset, point: PointResult, name: str) -> float | None:
    """A counter of a point as a profiler counted it, in any sweep; ``None`` if it did not."""
    same = {
        str(p.detail("key"))
        for p in run.points
        if (p.system, p.n, p.levels) == (point.system, point.n, point.levels)
    }
    for row in run.profiles:
        if row.get("key") in same and not missing(row.get(name)):
            return float(row[name])
    return None


TOTAL: Final = Quantity(TIME.name, "total time", TIME.columns, TIME.kind, TIME.unit)
"""``TIME`` of a run that :func:`in_times_of` has changed to totals."""
TOTALS: Final = (
    "times are totals here as they are in the paper: split, transfers, kernel and reduction"
)
"""For the notes of tables."""


def modelled(run: Dataset) -> Dataset:
    """The simulated run with its modelled times in the place of times. Its counters stay, as those
    of a profiler do; what was timed on the CPU is left out: a modelled time is set against no
    measured one. A program is more than its kernels, whose times stay counters."""
    points, rows = [], list[Mapping[str, Any]]()
    for point in (p for p in run.points if not p.cpu):
        times = {
            number: {"value_s": row["modelled_ms"] / 1e3, "kernel_s": row["modelled_ms"] / 1e3}
            for number, row in point.measurements.items()
            if not missing(row.get("modelled_ms")) and missing(row.get("launches"))
        }
        plain = {
            number: {k: v for k, v in row.items() if not k.endswith("_s")} | times.get(number, {})
            for number, row in point.measurements.items()
        }
        rows += plain.values()
        points.append(replace(point, measurements=plain, timed=bool(times)))
    return replace(run, points=tuple(points), profiles=(*run.profiles, *rows), modelled=True)


def of_own_gpu(paper: Paper, run: Dataset) -> bool:
    """Whether a run is of a model of one of the paper's own GPUs."""
    own = {device.id for device in paper.hardware if device.kind == "gpu"}
    return run.simulated and run.hardware(paper) in own


def in_times_of(paper: Paper, run: Dataset) -> Dataset:
    """The run with the times that are comparable with the paper's own.

    A paper that times the whole computation pays for its CPU part too: six rows of jobs instead of
    five speed up its kernel and slow down its split, so that kernel times alone would reverse that
    verdict. For such a paper the time of a point is the ``total`` of each measurement; a
    measurement without one has no time. Phases stay what they are, and so do CPU programs and
    programs of several kernels, whose time is whole anyway.
    """
    return in_phase(run, "total") if paper.timed == "total" and not run.modelled else run


def in_phase(run: Dataset, phase: str) -> Dataset:
    """The run with a phase of each measurement of a kernel in the place of its time."""
    points = []
    for point in run.points:
        if point.timed and not point.cpu:
            changed = {
                number: {**row, "value_s": row.get(f"{phase}_s", math.nan)}
                for number, row in point.measurements.items()
            }
            point = replace(point, measurements=changed)
        points.append(point)
    again = tuple(in_phase(other, phase) for other in run.again)
    return replace(run, points=tuple(points), again=again)


def time_of(paper: Paper) -> Quantity:
    """The quantity behind the times on a paper's page."""
    return TOTAL if paper.timed == "total" else TIME
