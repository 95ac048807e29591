"""Without a run: one configuration launched once, and kernels compiled without a device."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from nqbench.errors import CompileError, InfeasibleError, StudyError, WrongAnswer
from nqbench.measure.measurement import Measurement, outputs_of
from nqbench.measure.variants import workload_of
from nqbench.plan import apart
from nqbench.point import labels
from nqbench.workloads import launch_factors
from nqbench.workloads.base import FAULT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nqbench.compiler.static import Progress, StaticRow
    from nqbench.device import Device
    from nqbench.facts import DeviceFacts
    from nqbench.plan import Outputs
    from nqbench.point import FactorLevels, Point
    from nqbench.workloads.base import Workload
    from nqbench.workloads.own.launch import OwnCheck

SYSTEM: Final = "system"
"""Key of the named system among the factors, as in a study; the others override its levels."""


@dataclass(frozen=True, slots=True, eq=False)
class Launched:
    """The result of one launch.

    ``answer``     as the workload combines it; ``None`` if the plan has none
    ``expected``   the known answer, equal to ``answer``; ``None`` if it is unknown
    ``counters``   names of ``vocabulary.COUNTERS``, or of the workload's probe; empty on a GPU
    ``lines``      of the simulator: counters of each line of the source
    ``resources``  registers, shared bytes, occupancy, ... as the compiler and the device report
    ``kernel_s``   seconds of the kernel; ``None`` where time has no meaning (simulator)
    ``split_s``    seconds of the CPU for making the input; ``None`` of a CPU system
    ``wall_s``     seconds in all, including making the input and compiling
    ``factors``    every factor with its resolved level
    ``findings``   what the workload reports in addition to the answer
    ``outputs``    arrays after the launch by name: of an own kernel every buffer, in its shape
    """

    answer: int | None
    expected: int | None
    counters: Mapping[str, int | float]
    lines: Sequence[Mapping[str, Any]]
    resources: Mapping[str, int | float | str]
    kernel_s: float | None
    wall_s: float
    factors: FactorLevels
    findings: Mapping[str, int | float | str] = field(default_factory=dict)
    split_s: float | None = None
    outputs: Outputs = field(default_factory=dict)


def _is_own(check: Any) -> TypeGuard[OwnCheck]:  # 25 ms less for a count
    if check is None:
        return False
    from nqbench.workloads.own.launch import OwnCheck

    return isinstance(check, OwnCheck)


def launch(
    workload: str | Workload,
    factors: FactorLevels,
    device: str | Device = "auto",
    *,
    buffers: Mapping[str, NDArray[Any]] | None = None,
    check: bool = True,
    warm_up: bool = False,
) -> Launched:
    """Resolve, plan, prepare and launch one configuration, and check its answer.

    ``workload`` is one by name, ``package.module:object`` or the object itself. ``factors`` holds
    ``n`` and any factor; a ``system`` among them gives the rest. The other arguments are those of
    ``nqbench.launch``, and so are the errors.
    """
    from nqbench import workloads
    from nqbench.devices.cpu import CpuDevice
    from nqbench.devices.registry import open_device

    workload = workloads.named(workload) if isinstance(workload, str) else workload
    if buffers:
        from nqbench.workloads.own.kernel import OwnKernel

        if not isinstance(workload, OwnKernel):
            said = f"{workload.name} makes its own buffers; only a study's own kernel takes arrays"
            raise StudyError(said)
        workload = workload.with_contents(buffers)
    levels = {factor: level for factor, level in factors.items() if factor != SYSTEM}
    system = factors.get(SYSTEM)
    name = None if system is None else str(system)
    with ExitStack() as stack:
        if isinstance(device, str):
            device = stack.enter_context(closing(open_device(device)))
        started = time.perf_counter()
        resolved = workload.resolve(levels, name, device.facts).factors
        plan = workload.plan(resolved, name, device.facts)
        if not plan.on_cpu and _is_own(plan.check):
            # Every buffer comes back, and a launch may change it.
            fetched = (replace(b, output=True, restore=b.data is not None) for b in plan.buffers)
            plan = replace(plan, buffers=tuple(fetched))
        runs_on = CpuDevice() if plan.on_cpu and not device.cpu_plans else device
        prepared = stack.enter_context(runs_on.prepare(plan))
        if warm_up:  # on other contents, so that a kernel that keeps its results is wrong
            other = workload.again(resolved, name, device.facts) or plan
            there, here = apart(plan, other)
            prepared.refill(there)
            prepared.launch()
            prepared.refill(here, again=False)
        done = prepared.launch()
        outputs = prepared.fetch()
        resources = dict(prepared.resources)
        compared = None
        if check:
            of_right = workload.reference(resolved)
            right = None if of_right is None else outputs_of(workload, of_right, device)
            compared = workload.compared(plan, outputs, right)
            if compared and compared.again and not compared.fault and prepared.refill({}):
                prepared.launch()
                compared = workload.compared(plan, prepared.fetch(), right)
    answer, expected = workload.answer(plan, outputs), workload.expected(resolved)
    findings = dict(workload.findings(plan, outputs))
    fault = findings.pop(FAULT, "") or "do not trust this device; run the GPU tests"
    who = f"{name or workload.name} on {device.spec}"
    if check and expected is not None and answer != expected:
        said = f"{who} answered {answer} for n={resolved['n']}, but {expected} is right: {fault}"
        raise WrongAnswer(said)
    if compared is not None and compared.fault:
        raise WrongAnswer(
            f"{who}: {compared.fault}; {compared.right} of {compared.total} elements are right"
            " (`check=False` returns them)"
        )
    if _is_own(plan.check):
        outputs = {one: found.reshape(plan.check.shapes[one]) for one, found in outputs.items()}
    return Launched(
        answer=answer,
        expected=expected,
        counters=workload.counters(plan, outputs) or done.counters or {},
        lines=[row for _, rows in prepared.by_source() for row in rows],
        resources=resources,
        kernel_s=done.kernel_s,
        wall_s=time.perf_counter() - started,
        factors=resolved,
        findings=findings,
        split_s=plan.split_s,
        outputs=outputs,
    )


def compile_point(point: Point, facts: DeviceFacts) -> Measurement:
    """Put a point's kernels for a GPU into the compiler's cache, so that no measurement waits.

    The status is ``compile_error`` with the compiler's message, or ``ok``.
    """
    from nqbench.compiler.compile import compile_kernel
    from nqbench.compiler.compiled import check_arguments, parameter_sizes

    try:
        plan = workload_of(point).plan(point.configuration, point.system, facts)
        dtypes = {} if plan.on_cpu else {b.name: b.dtype for b in plan.buffers}
        for kernel in plan.kernels.values():
            compiled = compile_kernel(kernel, facts.arch)
            check_arguments(kernel, compiled.symbol, parameter_sizes(compiled), dtypes)
    except CompileError as error:
        return Measurement(status="compile_error", reason=str(error))
    except InfeasibleError as error:
        return Measurement(status="launch_error", reason=str(error))
    return Measurement()


def static_rows(
    points_on: Callable[[DeviceFacts], Iterable[Point]],
    archs: Sequence[str],
    listener: Progress | None = None,
) -> list[StaticRow]:
    """One row for each kernel and architecture; ``points_on`` expands the study for a device.

    Several kernels of one plan have a row each, called ``LABEL @KERNEL``. Raises ``StudyError`` for
    an architecture without a model, ``DeviceUnavailable`` without a compiler.
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
        rows += static_report(kernels, [facts], listener=listener)
    return rows
