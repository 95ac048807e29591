"""The points of a dry run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nqbench.cli.show.console import console, duration, say
from nqbench.cli.show.tables import plain_table, print_fitting
from nqbench.point import distinguishing, text, varied
from nqbench.system.suggest import many
from nqbench.workloads import launch_factors

if TYPE_CHECKING:
    from nqbench.point import Point


def show_points(points: Sequence[Point], estimate_s: float | None) -> None:
    """A table per sweep, and how long the points may take."""
    for sweep in dict.fromkeys(p.sweep for p in points):
        _show_sweep(sweep, [p for p in points if p.sweep == sweep])
    skipped = sum(1 for p in points if p.skip)
    measured = len(points) - skipped
    summary = f"{many(measured, 'point')} to measure, {skipped} skipped"
    if estimate_s is not None:
        summary += f"; estimated time {duration(estimate_s)}"
    say(summary)


def _show_sweep(sweep: str, points: Sequence[Point]) -> None:
    first = points[0].factors
    same = {k for k in first if len({text(p.factors.get(k, "-")) for p in points}) == 1}
    fixed = ", ".join(f"{k}={text(v)}" for k, v in first.items() if k in same and v != "-")
    columns = {"system": [p.system or "" for p in points]}
    columns |= {name: [text(p.factors.get(name, "-")) for p in points] for name in _shown(points)}
    if "jobs" not in first:  # a workload may have a factor of that name
        columns["jobs"] = [str(p.derived.get("jobs", "")) for p in points]
    columns["command"] = [shlex.join(p.program.command) if p.program else "" for p in points]
    columns["skipped because"] = [p.skip for p in points]
    used = {name: cells for name, cells in columns.items() if any(cells)}
    title = f"{sweep}: {many(len(points), 'point')}"
    rows = list(zip(*used.values(), strict=True))
    say(title)
    print_fitting(console(), plain_table(), list(used), rows, fixed)


def _shown(points: Sequence[Point]) -> list[str]:
    """The factors that distinguish the points, without those that the system's name implies."""
    if not all(point.system for point in points):
        return varied(points)
    return ["n", *distinguishing(points, launch_factors(points[0].workload))]
