"""Times cases with nqbench: its device, its warm-up, its sampling."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.crosscheck.cases import Case, make_job
from nqbench.compiler.compile import compile_cubin
from nqbench.devices.cuda.device import CudaDevice
from nqbench.errors import DeviceError
from nqbench.measure.sampling import LONG_LAUNCH_S, TIME_SHARE, Policy, sample, warm_up

POLICY: Final = Policy(samples=20)
LONG_SAMPLES: Final = 3
"""Of a kernel so long that nqbench would take one sample: a few more show how they scatter."""


def time_cases(cases: Sequence[Case], index: int, *, cold: bool) -> dict[str, dict[str, Any]]:
    """Samples in seconds of each case on GPU ``index``, with the digest of its cubin.

    Raises ``DeviceError`` for a wrong answer, or ``InfeasibleError`` for a cold
    cache that cannot be had.
    """
    device = CudaDevice(index)
    try:
        return {case.name: _time(device, case, cold=cold) for case in cases}
    finally:
        device.close()


def _time(device: CudaDevice, case: Case, *, cold: bool) -> dict[str, Any]:
    job = make_job(case, device.facts)
    plan = job.plan
    image = compile_cubin(plan.source, plan.entry, device.facts.arch, plan.options).image
    with device.prepare(plan) as prepared:
        if cold:
            prepared.flush_l2()

        def launch() -> float:
            kernel_s = prepared.launch().kernel_s
            assert kernel_s is not None  # a GPU measures time
            return kernel_s

        warm = warm_up(launch, POLICY.warm_up, POLICY.share_s * TIME_SHARE)
        if (warm.lowest_s or 0.0) > LONG_LAUNCH_S:
            samples, ended_by = tuple(launch() for _ in range(LONG_SAMPLES)), "long_launch"
        else:
            found = sample(launch, POLICY)
            samples, ended_by = found.values_s, found.ended_by
        if not job.right(prepared.fetch()):
            raise DeviceError(f"{case.name}: wrong answer; its times mean nothing")
    return {
        "samples_s": list(samples),
        "ended_by": ended_by,
        "cubin_sha256": hashlib.sha256(image).hexdigest(),
    }
