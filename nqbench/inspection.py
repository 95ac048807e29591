"""Points of a study looked at in the simulator: checked for mistakes, or explained line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nqbench.devices.registry import open_simulator
from nqbench.errors import InfeasibleError, NqbenchError
from nqbench.measure.variants import workload_of
from nqbench.plan import Kernel
from nqbench.point import labels
from nqbench.report.explain import Explained, SourceLine
from nqbench.simulator.mistakes import Mistake, gather, run_checked, source_line
from nqbench.simulator.sanitizer import CodePlace
from nqbench.workloads import launch_factors

if TYPE_CHECKING:
    from nqbench.compiler.static import Progress
    from nqbench.devices.simulator import SimDevice
    from nqbench.facts import DeviceFacts
    from nqbench.plan import Plan
    from nqbench.point import Point
    from nqbench.simulator.sanitizer import LaunchWatch

TIMEOUT_S: Final = 300.0


@dataclass(slots=True)
class Checked:
    """What a check found. ``checked`` are the points that ran, ``skipped`` and ``failed`` the
    others with their reasons."""

    mistakes: list[Mistake] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


def check_points(
    points: Sequence[Point], device: SimDevice, listener: Progress | None = None
) -> Checked:
    """Run every point once on a device in the checked mode."""
    launch = launch_factors(points[0].workload) if points else ()
    found = Checked()
    if listener is not None:
        listener.stage("checking every access in the simulator", len(points))
    for label, point in zip(labels(points, launch), points, strict=True):
        if point.skip or point.program is not None:
            found.skipped.append((label, point.skip or "it is a program of its own"))
        else:
            _check_point(found, label, point, device)
        if listener is not None:
            listener.advanced()
    return found


def _check_point(found: Checked, label: str, point: Point, device: SimDevice) -> None:
    try:
        plan = workload_of(point).plan(point.configuration, point.system, device.facts)
        if plan.on_cpu:
            found.skipped.append((label, "it runs on the CPU"))
            return
        seen = list(run_checked(plan, device.simulation))
    except NqbenchError as error:
        found.failed.append((label, str(error)))
        return
    found.checked.append(label)
    for kernel, finding in seen:
        gather(found.mistakes, kernel, finding, label)


def explain_points(points: Sequence[Point], spec: str, *, trace: bool = False) -> list[Explained]:
    """The kernels of each point, by source line. ``trace`` runs them once more, in the checked
    mode, and follows the first warp.

    Raises ``InfeasibleError`` for a point without a kernel, and what a launch raises.
    """
    device = open_simulator(spec)
    tracer = open_simulator(spec, checked=True) if trace else None
    launch = launch_factors(points[0].workload)
    found = []
    for label, point in zip(labels(points, launch), points, strict=True):
        plan = _plan(label, point, device.facts)
        with device.prepare(plan) as prepared:
            prepared.launch(TIMEOUT_S)
            counted = [(kernel, rows) for kernel, rows in prepared.by_source() if rows]
        watches: dict[Kernel, LaunchWatch] = {}
        if tracer is not None:
            with tracer.prepare(plan) as prepared:
                prepared.launch(TIMEOUT_S)
                watches = dict(prepared.watches())
        for kernel, rows in counted:
            name = kernel.entry if len(counted) > 1 else ""
            lines = _lines(kernel, rows)
            watch = watches.get(kernel)
            steps = watch.steps() if watch else ()
            found.append(Explained(label, name, lines, steps))
    return found


def _plan(label: str, point: Point, facts: DeviceFacts) -> Plan:
    if point.skip:
        raise InfeasibleError(f"{label} cannot run: {point.skip}")
    plan = workload_of(point).plan(point.configuration, point.system, facts)
    if plan.on_cpu:
        raise InfeasibleError(f"{label} has no kernel: it runs on the CPU or is another program")
    return plan


def _lines(kernel: Kernel, rows: Sequence[dict[str, Any]]) -> list[SourceLine]:
    lines = []
    for row in rows:
        counts = {key: value for key, value in row.items() if key not in ("file", "line")}
        place = source_line(kernel, CodePlace(row["file"], row["line"], 0))
        lines.append(SourceLine(place.path, row["line"], place.text, counts))
    return lines
