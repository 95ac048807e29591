"""Points of a study looked at in the simulator: checked for mistakes, or explained line by line."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis import wording
from nqbench.analysis.answer import ANSWERING, MODELLED
from nqbench.analysis.data.quantities import metrics_of, quantity
from nqbench.analysis.factorial.effects import DECISIVE
from nqbench.devices.registry import open_simulator
from nqbench.errors import InfeasibleError, LaunchTimeout, NqbenchError
from nqbench.measure.run_state import Listener
from nqbench.measure.variants import workload_of
from nqbench.point import labels, varied
from nqbench.report.explain import Explained, SourceLine
from nqbench.simulator import mistakes
from nqbench.simulator.mistakes import Mistake, gather, run_checked, source_line
from nqbench.simulator.models import EXPAND
from nqbench.simulator.native import provide_watcher
from nqbench.simulator.ptx import Where
from nqbench.simulator.sanitizer import CHECKED_BYTES
from nqbench.study import Study, expand
from nqbench.study.asked import smallest
from nqbench.workloads import KERNEL, launch_factors
from nqbench.workloads.own.kernel import OwnKernel

if TYPE_CHECKING:
    from nqbench.analysis.data.quantities import Quantity
    from nqbench.compiler.static import Progress
    from nqbench.devices.registry import SimDevice
    from nqbench.facts import DeviceFacts
    from nqbench.measure.run_state import RunOutcome
    from nqbench.point import Point

TIMEOUT_S: Final = 300.0
"""Of an ordinary launch."""


@dataclass(slots=True)
class Checked:
    """What a check found. ``checked`` are the points that ran, ``skipped`` and ``failed`` the
    others with their reasons, ``late`` those that the time was too short for, or that Ctrl-C left
    out (``interrupted``). ``sizes`` are the N that were checked; it took ``wall_s`` seconds.
    """

    mistakes: list[Mistake] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    wall_s: float = 0.0
    interrupted: bool = False

    def as_json(self) -> dict[str, Any]:
        """Plain form."""
        findings = [mistake.as_json() for mistake in self.mistakes]
        names = ("checked", "skipped", "failed", "late", "wall_s")
        return {**{name: getattr(self, name) for name in names}, "findings": findings}


def points_that_ran(
    study: Study, facts: DeviceFacts, outcomes: Sequence[RunOutcome]
) -> list[Point]:
    """The points of a study at their smallest sizes, without those that no race explains the
    failure of."""
    failed = {
        (r.point["sweep"], r.point["system"], str(dict(r.point["factors"])))
        for outcome in outcomes
        for r in outcome.failures
        if r.status not in ("wrong", "check_error") and "a barrier missing?" not in r.reason
    }
    points = [p for p in expand(study, facts) if not (p.skip or p.program)]
    return smallest([p for p in points if (p.sweep, p.system, str(dict(p.factors))) not in failed])


def check_points(
    points: Sequence[Point], device: SimDevice, listener: Progress | None = None,
    limit_s: float | None = None, name: str = "",
) -> Checked:  # fmt: skip
    """Run every point once on a device in the checked mode. A single one may have a ``name``.

    In random order, where a limit of ``limit_s`` seconds leaves out the rest.
    """
    began = time.monotonic()
    launch = launch_factors(points[0].workload) if points else ()
    found, listener = Checked(), listener or Listener()
    listener.stage("loading the checks", 1)
    provide_watcher()  # in a new installation it compiles them, for many seconds
    listener.stage("checking every access in the simulator", len(points))
    start = time.monotonic()
    pairs = list(zip([name] if name else labels(points, launch), points, strict=True))
    if limit_s is not None:
        Random(0).shuffle(pairs)  # so that all levels come early
    for label, point in pairs:
        left_s = math.inf if limit_s is None else limit_s - (time.monotonic() - start)
        if point.skip or point.program is not None:
            found.skipped.append((label, point.skip or "it is a program of its own"))
        elif left_s <= 0 or found.interrupted:
            found.late.append(label)
        else:
            try:
                _check_point(found, label, point, device, left_s)
            except KeyboardInterrupt:
                found.interrupted = True
                found.late.append(label)
        listener.advanced()
    found.wall_s = time.monotonic() - began
    return found


def _check_point(
    found: Checked, label: str, point: Point, device: SimDevice, limit_s: float
) -> None:
    try:
        most = min(device.facts.memory_bytes or CHECKED_BYTES, CHECKED_BYTES)
        facts = replace(device.facts, memory_bytes=most, name="the checked mode")
        plan = workload_of(point).plan(point.configuration, point.system, facts)
        if plan.on_cpu:
            found.skipped.append((label, "it runs on the CPU"))
            return
        seen = list(run_checked(plan, device.simulation, min(limit_s, mistakes.TIMEOUT_S)))
    except NqbenchError as error:
        if isinstance(error, LaunchTimeout) and limit_s < mistakes.TIMEOUT_S:
            found.late.append(label)
        else:
            found.failed.append((label, str(error)))
        return
    found.checked.append(label)
    found.sizes = sorted({*found.sizes, point.n})
    for kernel, finding in seen:
        gather(found.mistakes, kernel, finding, label)


def explain_points(points: Sequence[Point], spec: str) -> list[list[Explained]]:
    """The kernels of each point, by source line.

    Raises ``InfeasibleError`` for a point without a kernel, and what a launch raises.
    """
    device = _counting(spec)
    names = labels(points, launch_factors(points[0].workload))
    return [_explained(*one, device) for one in zip(names, points, strict=True)]


def _explained(label: str, point: Point, device: SimDevice) -> list[Explained]:
    if point.skip:
        raise InfeasibleError(f"{label} cannot run: {point.skip}")
    plan = workload_of(point).plan(point.configuration, point.system, device.facts)
    if plan.on_cpu:
        raise InfeasibleError(f"{label} has no kernel: it runs on the CPU or is another program")
    with device.prepare(plan) as prepared:
        counters = prepared.launch(TIMEOUT_S).counters or {}
        counted = [(kernel, rows) for kernel, rows in prepared.by_source() if rows]
    found = []
    for kernel, rows in counted:
        name = kernel.entry if len(counted) > 1 else ""
        lines = []
        for row in rows:
            counts = {key: value for key, value in row.items() if key not in ("file", "line")}
            place = source_line(kernel, Where(0, row["file"], row["line"]))
            lines.append(SourceLine(place.path, row["line"], place.text, counts))
        found.append(Explained(label, name, lines, counters))
    return found


def _counting(spec: str) -> SimDevice:
    """The simulator, for which a division is not one instruction.

    Raises ``DeviceUnavailable``."""
    return open_simulator(f"{open_simulator(spec).spec}:{EXPAND}")


def side_by_side(
    sides: Sequence[Sequence[Point]], spec: str, listener: Progress | None = None
) -> tuple[list[Point], str]:
    """The two points to put side by side, the first to compare with, and why these; or the only
    one. Of one side of more than two points the worst and the best, of two sides the best of each:
    among the points of one sweep and size, by the first quantity in which they clearly differ.

    Raises what :func:`explain_points` raises if no point can be launched.
    """
    groups = [_alike(side) for side in sides]
    points = [point for group in groups for point in group]
    if len(points) == len(sides) <= 2 or len(points) == 2:
        return points, ""
    device, rows, refused = _counting(spec), {}, []
    listener = listener or Listener()
    listener.stage("count every candidate in the simulator", len(points))
    for point in points:
        try:
            first = _explained(point.label(), point, device)[0]
            rows[id(point)] = {**first.counters, **point.factors, **point.derived}
        except NqbenchError as error:
            refused.append(error)
        listener.advanced()
    groups = [[point for point in group if id(point) in rows] for group in groups]
    if not all(groups):
        raise refused[0]
    what = _telling(points[0], list(rows.values()), device.facts)
    worse = -1 if what.better == "higher" else 1
    for group in groups:
        group.sort(key=lambda point: worse * what.of(rows[id(point)]))
    chosen = [groups[0][-1], groups[-1][0]] if len(groups) == 1 else [g[0] for g in groups]
    values = [wording.amount(what.of(rows[id(point)]), what) for point in chosen]
    which = "A is the worst and B the best" if len(groups) == 1 else "A and B are the best"
    one, other = (point.factors for point in chosen)
    alike = [f"{f} {one[f]}" for f in varied(points)[1:] if one.get(f) == other.get(f)]
    both = f" Both have {', '.join(alike)}." if alike and chosen[0].system is None else ""
    return chosen, f"{which} of {len(rows)} by {what.plain}: {values[0]} and {values[1]}.{both}"


def _alike(points: Sequence[Point]) -> list[Point]:
    """Those of the sweep and size with the most points that can run; if none can, the first."""
    groups: dict[tuple[str, int], list[Point]] = {}
    for point in points:
        if not point.skip and point.program is None:
            groups.setdefault((point.sweep, point.n), []).append(point)
    return max(groups.values(), key=len, default=list(points[:1]))


def _telling(point: Point, rows: Sequence[dict[str, Any]], facts: DeviceFacts) -> Quantity:
    """The first of the quantities that answer for a run in which the rows clearly differ."""
    workload = workload_of(point)
    study = {KERNEL: workload.block.data} if isinstance(workload, OwnKernel) else {}
    metrics = metrics_of(study, facts.as_dict())
    differing = []
    for what in (quantity(MODELLED), *metrics.values(), *map(quantity, ANSWERING)):
        values = [what.of(row) for row in rows]
        if what.better and all(map(math.isfinite, values)) and min(values) < max(values):
            differing.append(what)
            if max(values) >= DECISIVE * min(values):
                return what
    return differing[0] if differing else quantity("issue_slots")
