"""What the commands do, without printing: the seam between the command line and the rooms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.errors import StudyError
from nqbench.point import labels
from nqbench.system.suggest import nearest

if TYPE_CHECKING:
    from nqbench.compiler.static import StaticRow
    from nqbench.devices.registry import Choice
    from nqbench.facts import DeviceFacts
    from nqbench.measure.events import RunOutcome
    from nqbench.measure.study import StudyLike
    from nqbench.plan import Plan
    from nqbench.point import Point
    from nqbench.study import Study
    from nqbench.workloads.base import Workload

LOCAL_RESULTS: Final = Path("results") / "local"


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a report and the findings that matter, in words."""

    paths: tuple[Path, ...]
    findings: tuple[str, ...]


def choose(device: str) -> Choice:
    """Turn ``auto`` into a device, and say why."""
    from nqbench.devices.registry import choose_device

    return choose_device(device)


def plan_points(study: Study, spec: str) -> list[Point]:
    """The points of a study on a device."""
    from nqbench.devices.registry import facts_for
    from nqbench.study import expand

    facts, _ = facts_for(spec)
    return expand(study, facts)


def estimate(points: Sequence[Point], study: Study, spec: str) -> float | None:
    """Seconds that measuring the points may take, or ``None`` if that cannot be told."""
    from nqbench.measure.forecast import estimate as predict

    return predict(points, study, spec)


def budget_seconds(text: str | None) -> float | None:
    """``--budget`` in seconds: the durations that a study takes, such as ``10m`` or ``1m30s``."""
    from nqbench.study import duration_s

    if text is None:
        return None
    try:
        return duration_s(text)
    except StudyError as error:
        raise StudyError(f"--budget: {error.message}") from error


def run_folder(study: StudyLike, spec: str) -> Path:
    """Where a user's own run goes: ``results/local/DEVICE/STUDY``."""
    return LOCAL_RESULTS / re.sub(r"[^\w.-]+", "-", spec) / study.name


def measure(
    study: Study,
    spec: str,
    *,
    out: Path | None,
    fresh: bool,
    budget_s: float | None,
    listener: Any,
    command: Sequence[str],
) -> RunOutcome:
    """Measure a study on a device into its run folder."""
    from nqbench.measure.runner import run_study

    return run_study(
        study,
        spec,
        out or run_folder(study, spec),
        fresh=fresh,
        budget_s=budget_s,
        listener=listener,
        command=command,
    )


def report(runs: Sequence[Path], out: Path | None, formats: tuple[str, ...]) -> Written:
    """Write the tables and figures of runs."""
    from nqbench.report import default_out, findings_of, write_report

    target = out or default_out(runs[0])
    chosen = formats or ("md", "csv", "tex")
    paths = write_report(runs, target, chosen)
    return Written(tuple(paths), tuple(findings_of(runs)))


def static_rows(study: Study, archs: Sequence[str], listener: Any) -> list[StaticRow]:
    """Compiler resources of every kernel of a study, per architecture.

    The kernels of a program have a row each, called ``LABEL @KERNEL``.
    """
    from nqbench.compiler.static import check_archs, static_report
    from nqbench.devices.models import load_model
    from nqbench.plan import ProgramPlan, kernels_of
    from nqbench.study import expand
    from nqbench.workloads import launch_factors

    rows: list[StaticRow] = []
    launch = launch_factors(study.workload)
    for arch in check_archs(archs):
        # A chip's model file describes a simulated device; here it stands for the chip itself.
        facts = replace(load_model(arch).facts, kind="cuda")
        points = [point for point in expand(study, facts) if not point.skip]
        plans = [
            (f"{label} @{name}" if isinstance(plan, ProgramPlan) else label, kernel)
            for label, point in zip(labels(points, launch), points, strict=True)
            for plan in (_plan(study, point, facts),)
            for name, kernel in kernels_of(plan).items()
        ]
        rows += static_report(plans, [arch], listener=listener)
    return rows


def _plan(study: Study, point: Point, facts: DeviceFacts) -> Plan:
    from nqbench.workloads import get

    return get(study.workload).plan(point.configuration, point.system, facts)


def workloads_with_systems() -> list[Workload]:
    """The workloads that have named systems."""
    from nqbench.workloads import get, names

    return [workload for name in names() if (workload := get(name)).systems]


def find_system(name: str) -> tuple[Workload, str]:
    """The workload that has the system ``name``. Raises ``StudyError`` with the nearest one."""
    workloads = workloads_with_systems()
    for workload in workloads:
        if name in workload.systems:
            return workload, name
    known = [system for workload in workloads for system in workload.systems]
    close = nearest(name, known)
    hint = f"did you mean {close!r}? " if close else ""
    raise StudyError(f"no system {name!r}: {hint}`nqbench kernels` lists them")
