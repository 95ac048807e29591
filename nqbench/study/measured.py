"""Points times the ways to measure them: with a hot and a cold L2 cache, whole and in parts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.point import HOT, L2, PART, Point
from nqbench.study.check import NOT_APPLICABLE
from nqbench.study.model import Study
from nqbench.workloads.base import VARIANTS, Workload


def measured_points(
    points: Sequence[Point], states: Sequence[str], kind: DeviceKind, hosts: Collection[str]
) -> list[Point]:
    """One point per state of L2, with the state as its factor ``l2``.

    Only kernels on a GPU have the choice (``hosts``: systems that run on the processor). A study
    that asks for nothing but ``hot`` adds no factor: its points are those of any study that does
    not speak of L2.
    """
    if kind != "cuda" or tuple(states) == (HOT,):
        return list(points)
    return [
        replace(point, factors={**point.factors, L2: state})
        for point in points
        for state in (states if _on_gpu(point, hosts) else (NOT_APPLICABLE,))
    ]


def _on_gpu(point: Point, hosts: Collection[str]) -> bool:
    """Whether the point is timed on the GPU: no baseline, no instrumented kernel."""
    return point.system not in hosts and not point.probed


def apart(
    study: Study, points: Sequence[Point], workload: Workload, facts: DeviceFacts
) -> list[Point]:
    """Three points, by the factor ``part``, for each point of a sweep under ``measure.apart``.

    A point whose kernel cannot be taken apart is listed as skipped, with the reason. Raises
    ``StudyError`` where no kernel of the workload can be.
    """
    sweeps = study.measure.apart
    if not sweeps:
        return list(points)
    if workload.no_variants:
        raise study.source.error(
            f"no kernel of workload {workload.name} can be taken apart; leave 'apart' out",
            ("measure", "apart"),
        )
    hosts = workload.cpu_systems
    found: list[Point] = []
    for point in points:
        if point.sweep not in sweeps:
            found.append(point)
            continue
        skip = point.skip or _inseparable(point, workload, facts, hosts)
        found += [
            replace(point, factors={**point.factors, PART: part}, skip=skip) for part in VARIANTS
        ]
    return found


def _inseparable(
    point: Point,
    workload: Workload,
    facts: DeviceFacts,
    hosts: Collection[str],
) -> str:
    """Why a point has no parts; empty if it has."""
    if point.system in hosts:
        return "only kernels are taken apart, and it runs on the processor"
    try:
        workload.variant(workload.plan(point.factors, point.system, facts), "full")
    except InfeasibleError as error:
        return str(error)
    return ""
