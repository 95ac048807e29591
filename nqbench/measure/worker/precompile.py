"""Compiling a study's kernels before any launch, so that no block waits for a compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nqbench.errors import CompileError, InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.measure.variants import workload_of
from nqbench.plan import kernels_of
from nqbench.point import Point


def compile_point(request: Mapping[str, Any]) -> dict[str, str]:
    """Put a point's kernel for a GPU into the compiler's cache; opens no device.

    ``request`` holds ``point`` and the GPU's ``facts``. Returns the ``status`` and ``reason`` of a
    record: ``compile_error`` with the compiler's message, or ``ok``.
    """
    from nqbench.compiler.compile import compile_cubin

    point = Point.from_json(request["point"])
    facts = DeviceFacts.from_dict(request["facts"])
    try:
        plan = workload_of(point).plan(point.configuration, point.system, facts)
        for kernel in kernels_of(plan).values():
            compile_cubin(
                kernel.source,
                kernel.entry,
                facts.arch,
                kernel.options,
                device_launch=kernel.device_launch,
            )
    except CompileError as error:
        return {"status": "compile_error", "reason": str(error)}
    except InfeasibleError as error:
        return {"status": "launch_error", "reason": str(error)}
    return {"status": "ok", "reason": ""}
