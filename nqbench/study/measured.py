"""Points times the ways to measure them: with a hot and with a cold L2 cache."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from nqbench.facts import DeviceKind
from nqbench.point import HOT, L2, Point
from nqbench.study.check import NOT_APPLICABLE


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
