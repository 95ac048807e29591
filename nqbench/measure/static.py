"""Compiler resources of a study's kernels, for chips that this machine need not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from nqbench.compiler.static import static_report
from nqbench.point import labels
from nqbench.simulator.models import chips
from nqbench.workloads import get, launch_factors

if TYPE_CHECKING:
    from nqbench.compiler.static import Progress, StaticRow
    from nqbench.facts import DeviceFacts
    from nqbench.plan import Plan
    from nqbench.point import Point


def static_rows(
    points_on: Callable[[DeviceFacts], Iterable[Point]],
    archs: Sequence[str],
    listener: Progress | None = None,
    *,
    sass: bool = False,
) -> list[StaticRow]:
    """One row for each kernel and architecture; ``points_on`` expands the study for a device.

    The kernels of a program have a row each, called ``LABEL @KERNEL``; so has one that makes
    another's input. Raises ``StudyError`` for
    an architecture without a model, ``DeviceUnavailable`` without a compiler, or without a
    disassembler if ``sass`` asks for counts of the machine code.
    """
    rows: list[StaticRow] = []
    for facts in chips(archs):
        points = [p for p in points_on(facts) if not p.skip and p.program is None]
        launch = launch_factors(points[0].workload) if points else ()
        plans = [
            (label if name == "kernel" else f"{label} @{name}", kernel)
            for label, point in zip(labels(points, launch), points, strict=True)
            for plan in (_plan(point, facts),)
            for name, kernel in plan.kernels.items()
        ]
        rows += static_report(plans, [facts], listener=listener, sass=sass)
    return rows


def _plan(point: Point, facts: DeviceFacts) -> Plan:
    return get(point.workload).plan(point.configuration, point.system, facts)
