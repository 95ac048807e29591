"""The device side of a run: what a worker does with one request.

A request is plain data and so is its answer, since they travel between processes. A session holds
one device, and the processor for the host baselines of a study.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from nqbench.devices.cpu import CpuDevice
from nqbench.devices.protocol import Device, Prepared
from nqbench.devices.registry import open_device
from nqbench.devices.replay import FINGERPRINT, fingerprint
from nqbench.errors import (
    CompileError,
    DeviceError,
    InfeasibleError,
    LaunchError,
    LaunchTimeout,
)
from nqbench.measure.sampling import LONG_LAUNCH_S, Policy, sample
from nqbench.measure.timer import Beat, Timer
from nqbench.measure.workload import find_workload
from nqbench.plan import HostPlan, Plan
from nqbench.point import Point
from nqbench.vocabulary import Status
from nqbench.workloads.protocol import CountsItself, Workload


@runtime_checkable
class RoundAware(Protocol):
    """A device whose answers depend on the round: a replay, or the test device."""

    def begin_round(self, round_: int) -> None:
        """A block of this round follows."""


@runtime_checkable
class KnowsAnswer(Protocol):
    """A prepared plan that has an answer but no output buffers: a replay, or the test device."""

    def recorded_answer(self) -> int | None:
        """The answer of the last launch."""


@dataclass
class Block:
    """The fields of a record that the device side fills in."""

    device: str
    status: Status = "ok"
    reason: str = ""
    answer: str | None = None
    expected: str | None = None
    value_s: float | None = None
    samples_s: tuple[float, ...] = ()
    phases: dict[str, float] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    telemetry: dict[str, Any] = field(default_factory=dict)
    ended_by: str = ""
    started: str = ""
    wall_s: float = 0.0
    fatal: bool = False

    def fail(self, status: Status, reason: str) -> None:
        """End without a time: a block that failed has no samples to mislead anybody."""
        self.status, self.reason = status, reason
        self.value_s, self.samples_s, self.phases, self.counters = None, (), {}, {}


class Session:
    """One open device. ``beat`` is called before launches, so that a parent can tell a hang."""

    def __init__(self, spec: str, beat: Beat = lambda: None) -> None:
        """Open the device. Raises ``DeviceUnavailable`` if it is not here."""
        self.device: Device = open_device(spec)
        self.spec = spec
        self._beat = beat
        self._host: CpuDevice | None = None

    def hello(self) -> dict[str, Any]:
        """What this device is."""
        device = self.device
        return {
            "spec": self.spec,
            "kind": device.facts.kind,
            "timed": device.timed,
            "deterministic": device.deterministic,
            "identity": plain(device.identity()),
            "facts": device.facts.as_dict(),
            "host": plain(CpuDevice().identity()),
            "pid": os.getpid(),
        }

    def block(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Verify or measure one point; failures of plan and device become statuses.

        ``request`` holds ``point``, ``round``, ``timed``, ``policy``, ``timeout_s`` and
        ``expected_s`` (seconds of one launch, or ``None``).
        """
        point = Point.from_json(request["point"])
        block = Block(
            device=self.spec, started=datetime.now(UTC).isoformat(timespec="milliseconds")
        )
        started = time.perf_counter()
        try:
            self._run(point, request, block)
        except CompileError as error:
            block.fail("compile_error", str(error))
        except LaunchTimeout as error:
            block.fail("timeout", str(error))
            block.fatal = error.fatal
        except LaunchError as error:
            block.fail("launch_error", str(error))
            block.fatal = error.fatal
        except (DeviceError, InfeasibleError) as error:
            block.fail("launch_error", str(error))
        block.wall_s = time.perf_counter() - started
        return cast(dict[str, Any], plain(vars(block)))

    def close(self) -> None:
        """Release the device."""
        self.device.close()

    def _run(self, point: Point, request: Mapping[str, Any], block: Block) -> None:
        workload = find_workload(point.workload)
        plan = workload.plan(point.factors, point.system, self.device.facts)
        device = self._device_of(plan)
        if isinstance(plan, HostPlan):
            block.device = "cpu"
        if isinstance(device, RoundAware):
            device.begin_round(request["round"])
        block.about = {**point.derived, **plan.about, FINGERPRINT: fingerprint(plan)}
        # The test device picks its victims by size; a real one ignores what a plan is about.
        plan = replace(plan, about={"n": point.n, **plan.about})
        with device.prepare(plan) as prepared:
            block.resources = dict(prepared.resources)
            self._launch(workload, point, plan, prepared, request, block)

    def _launch(
        self,
        workload: Workload,
        point: Point,
        plan: Plan,
        prepared: Prepared,
        request: Mapping[str, Any],
        block: Block,
    ) -> None:
        timer = Timer(prepared, request["timeout_s"], self._beat)
        if request["timed"]:
            self._sample(timer, request, block)
        else:
            timer.launch()
            # Not a time of the point: it tells the budget what further launches may take.
            untimed = timer.last.kernel_s is None
            block.about["simulation_s" if untimed else "first_launch_s"] = timer.last_s
            block.counters = dict(timer.last.counters or {})
            block.ended_by = "deterministic" if untimed else "verification"
        block.telemetry = scalars(timer.last.detail)
        started = time.perf_counter()
        if isinstance(prepared, KnowsAnswer):
            answer = prepared.recorded_answer()
        else:
            outputs = prepared.fetch()
            answer = workload.answer(plan, outputs)
            if point.probed and isinstance(workload, CountsItself):
                # Not the device's counters: those would count the instrumentation too.
                block.counters = dict(workload.counters(plan, outputs))
                block.ended_by = "probed"
        reduce_s = time.perf_counter() - started
        self._check(answer, workload.expected(point.factors), block)
        if block.value_s is not None:
            split_s = 0.0 if isinstance(plan, HostPlan) else plan.split_s
            transfer_s = prepared.transfer_s or 0.0
            block.phases = {
                "split": split_s,
                "transfer": transfer_s,
                "kernel": block.value_s,
                "reduce": reduce_s,
                "total": split_s + transfer_s + block.value_s + reduce_s,
            }

    def _sample(self, timer: Timer, request: Mapping[str, Any], block: Block) -> None:
        policy = Policy(**request["policy"])
        expected_s = request["expected_s"] or 0.0
        # A launch of this length warms itself up, and a second one may not fit the share.
        warm_up = 0 if expected_s > LONG_LAUNCH_S else policy.warm_up
        for _ in range(warm_up):
            timer.launch()
        samples = sample(timer.kernel_s, policy)
        block.about["warm_up_launches"] = warm_up
        block.value_s, block.samples_s = samples.median_s, samples.values_s
        block.ended_by = samples.ended_by

    @staticmethod
    def _check(answer: int | None, expected: int | None, block: Block) -> None:
        block.answer = None if answer is None else str(answer)
        block.expected = None if expected is None else str(expected)
        if answer != expected and expected is not None:
            block.fail(
                "wrong",
                f"the answer is {answer}, but the known one is {expected}:"
                " the kernel or the device is at fault, nothing was timed",
            )

    def _device_of(self, plan: Plan) -> Device:
        """The session's device, or the processor for host plans that the device does not take."""
        if isinstance(plan, HostPlan) and not getattr(self.device, "host_plans", False):
            if self._host is None:
                self._host = CpuDevice()
            return self._host
        return self.device


def scalars(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The short part of a launch's details; breakdowns per line are too long for a record."""
    return {k: v for k, v in detail.items() if isinstance(v, (int, float, str, bool, np.generic))}


def plain(value: Any) -> Any:
    """The same as JSON data: numpy scalars become numbers, tuples lists."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
