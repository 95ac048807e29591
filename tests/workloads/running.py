"""Devices, and points run on them, for the tests of every workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nqbench.device import Device, Launch
from nqbench.devices.registry import open_device
from nqbench.facts import DeviceFacts
from nqbench.plan import Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.base import Workload

GPU = DeviceFacts(
    name="test GPU",
    kind="sim",
    compute_capability=(9, 0),
    multiprocessors=4,
    shared_per_block_optin=232_448,
    shared_per_multiprocessor=233_472,
    memory_bytes=2**32,
)
CUDA = replace(GPU, kind="cuda", memory_bytes=80 * 2**30)
CPU = DeviceFacts(name="test CPU", kind="cpu", compute_capability=(0, 0), multiprocessors=0)


SIM = open_device("sim:mini")


def counted(plan: Plan) -> dict[str, int | float]:
    """What the simulator counts of one launch."""
    with SIM.prepare(plan) as prepared:
        return dict(prepared.launch().counters or {})


@dataclass
class Ran:
    """A point that ran with the right answer; ``launch`` and ``outputs`` are of the last launch."""

    plan: Plan
    outputs: Outputs
    launch: Launch
    factors: Mapping[str, Level]
    numbers: Mapping[str, Any]
    answer: int | None

    @property
    def counters(self) -> dict[str, int | float]:
        """What the device counted."""
        assert self.launch.counters is not None
        return dict(self.launch.counters)


def run(
    workload: Workload,
    device: Device,
    given: Mapping[str, Level],
    system: str | None = None,
    times: int = 2,
    timeout_s: float | None = None,
) -> Ran:
    """Launch a point: every launch must find everything as the first one did, and be right."""
    resolved = workload.resolve(given, system, device.facts)
    factors = resolved.factors
    plan = workload.plan(factors, system, device.facts)
    with device.prepare(plan) as prepared:
        for _ in range(times):
            launch = prepared.launch(timeout_s)
            outputs = prepared.fetch()
            answer = workload.answer(plan, outputs)
            assert answer == workload.expected(factors)
    return Ran(plan, outputs, launch, factors, {**factors, **resolved.derived}, answer)
