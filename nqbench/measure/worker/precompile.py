"""Compiling a study's kernels before any launch, so that no measurement waits for a compiler."""

from __future__ import annotations

from nqbench.errors import CompileError, InfeasibleError
from nqbench.measure.sampling.measurement import Measurement
from nqbench.measure.variants import workload_of
from nqbench.measure.worker.messages import CompileRequest


def compile_point(request: CompileRequest) -> Measurement:
    """Put a point's kernel for a GPU into the compiler's cache; opens no device.

    The status is ``compile_error`` with the compiler's message, or ``ok``.
    """
    from nqbench.compiler.compile import compile_kernel
    from nqbench.compiler.resources import check_arguments

    point, facts = request.point, request.facts
    try:
        plan = workload_of(point).plan(point.configuration, point.system, facts)
        for kernel in plan.kernels.values():
            check_arguments(kernel, compile_kernel(kernel, facts.arch))
    except CompileError as error:
        return Measurement(status="compile_error", reason=str(error))
    except InfeasibleError as error:
        return Measurement(status="launch_error", reason=str(error))
    return Measurement()
