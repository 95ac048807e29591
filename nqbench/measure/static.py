"""Kernels of points compiled without a device: before a run, and for the compiler's resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from nqbench.errors import CompileError, InfeasibleError
from nqbench.measure.measurement import Measurement
from nqbench.measure.variants import workload_of
from nqbench.point import labels
from nqbench.workloads import launch_factors

if TYPE_CHECKING:
    from nqbench.compiler.static import Progress, StaticRow
    from nqbench.facts import DeviceFacts
    from nqbench.point import Point


def compile_point(point: Point, facts: DeviceFacts) -> Measurement:
    """Put a point's kernels for a GPU into the compiler's cache, so that no measurement waits.

    The status is ``compile_error`` with the compiler's message, or ``ok``.
    """
    from nqbench.compiler.compile import compile_kernel
    from nqbench.compiler.resources import check_arguments

    try:
        plan = workload_of(point).plan(point.configuration, point.system, facts)
        for kernel in plan.kernels.values():
            check_arguments(kernel, compile_kernel(kernel, facts.arch))
    except CompileError as error:
        return Measurement(status="compile_error", reason=str(error))
    except InfeasibleError as error:
        return Measurement(status="launch_error", reason=str(error))
    return Measurement()


def static_rows(
    points_on: Callable[[DeviceFacts], Iterable[Point]],
    archs: Sequence[str],
    listener: Progress | None = None,
    *,
    sass: bool = False,
) -> list[StaticRow]:
    """One row for each kernel and architecture; ``points_on`` expands the study for a device.

    Several kernels of one plan have a row each, called ``LABEL @KERNEL``. Raises ``StudyError`` for
    an architecture without a model, ``DeviceUnavailable`` without a compiler, or without a
    disassembler if ``sass`` asks for counts of the machine code.
    """
    from nqbench.compiler.static import static_report
    from nqbench.simulator.models import chips

    rows: list[StaticRow] = []
    for facts in chips(archs):
        points = [p for p in points_on(facts) if not p.skip and p.program is None]
        launch = launch_factors(points[0].workload) if points else ()
        kernels = []
        for label, point in zip(labels(points, launch), points, strict=True):
            plan = workload_of(point).plan(point.configuration, point.system, facts)
            for name, kernel in plan.kernels.items():
                kernels.append((label if name == "kernel" else f"{label} @{name}", kernel))
        rows += static_report(kernels, [facts], listener=listener, sass=sass)
    return rows
