"""Finds the tables and figures of a report that cannot be made, before anything is run.

Every table, and the data of every figure, is made once from synthetic values of the planned points.
What cannot be made from those cannot be made from measured values either. Nothing is drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.errors import AnalysisError
from nqbench.facts import DeviceFacts
from nqbench.point import Point, text
from nqbench.report.items import items_of
from nqbench.report.writer import prepare
from nqbench.vocabulary import COUNTERS, PROGRAM_COUNTERS
from nqbench.workloads import of_study, phases

ROUNDS: Final = 3
_RESOURCES: Final = {"registers": 32, "stack_bytes": 0, "occupancy": 0.5}


def report_problems(
    study: Mapping[str, Any], points: Sequence[Point], facts: DeviceFacts
) -> list[tuple[int, str]]:
    """Entries of a study's report list that cannot be made, by position, each with the reason.

    ``study`` is its plain form, ``points`` are what it expands to on the device. A study without a
    report list gets the default tables, which can always be made.
    """
    if not study.get("report"):
        return []
    data = _rehearsed(study, points, facts)
    found: list[tuple[int, str]] = []
    for index, item in enumerate(items_of(data)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of fits to synthetic values
                prepare(data, item)
        except AnalysisError as error:
            found.append((index, f"the {item.form} '{item.name}' cannot be made: {error}"))
    return found


def _rehearsed(study: Mapping[str, Any], points: Sequence[Point], facts: DeviceFacts) -> Dataset:
    """The run that measuring the points would give, with synthetic values."""
    on_cpu = of_study(study).cpu_systems
    timed = [p for p in points if not p.probed]
    results = tuple(_result(i, p, _on_cpu(p, on_cpu), facts) for i, p in enumerate(timed))
    manifest = {"study": study, "device": {"kind": facts.kind, "spec": facts.kind}}
    return Dataset(str(study["name"]), manifest, results, ROUNDS)


def _on_cpu(point: Point, systems: Collection[str]) -> bool:
    return point.program.device == "cpu" if point.program else point.system in systems


def _result(index: int, point: Point, cpu: bool, facts: DeviceFacts) -> PointResult:
    given = {**point.derived, **point.factors}
    rows = {r: {**given, **_row(index, r)} for r in range(1, ROUNDS + 1)} if not point.skip else {}
    return PointResult(
        point.sweep,
        point.system or "",
        n=point.n,
        levels=_levels(point),
        cpu=cpu,
        timed=cpu or facts.kind != "sim",
        status="skipped" if point.skip else "ok",
        reason=point.skip,
        measurements=rows,
    )


def _levels(point: Point) -> dict[str, Level]:
    return {
        name: text(level) if isinstance(level, Mapping) else level
        for name, level in point.factors.items()
        if name != "n" and level != INAPPLICABLE
    }


def _row(index: int, number: int) -> dict[str, float]:
    """A row of a run's frame: values that differ between points, and a little between rounds."""
    value = 1 + (37 * index % 101) / 100 + (53 * (index + number) % 7) / 1000
    times = {f"{name}_s": value for name in ("value", *phases())}
    return {**dict.fromkeys((*COUNTERS, *PROGRAM_COUNTERS), value), **times, **_RESOURCES}
