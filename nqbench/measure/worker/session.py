"""The device side of a run: what a worker does with one request.

A request is plain data and so is its answer, since they travel between processes. A session holds
one device, and the processor for the host baselines of a study.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from nqbench.devices.base import Device, Prepared
from nqbench.devices.cpu import CpuDevice
from nqbench.devices.registry import open_device
from nqbench.errors import (
    CompileError,
    DeviceError,
    InfeasibleError,
    LaunchError,
    LaunchTimeout,
)
from nqbench.measure.sampling.measurement import PROFILED, Block, plain, scalars
from nqbench.measure.sampling.phases import phases_of
from nqbench.measure.sampling.sampling import LONG_LAUNCH_S, Policy, sample
from nqbench.measure.sampling.statistics import median_rank
from nqbench.measure.sampling.telemetry import Watch, sensor_of, summary, throttled
from nqbench.measure.sampling.timer import Beat, Timer
from nqbench.measure.sampling.warmup import TIME_SHARE, WarmUp, warm_up
from nqbench.measure.variants import workload_of
from nqbench.plan import CpuPlan, KernelPlan, Outputs, Plan, ProgramPlan
from nqbench.point import COLD, HOT, L2, Point
from nqbench.system.timing import timed
from nqbench.workloads.base import FAULT, Workload

__all__ = ["Block", "Session", "plain", "scalars"]


class Session:
    """One open device. ``beat`` is called before launches, so that a parent can tell a hang."""

    def __init__(self, spec: str, beat: Beat = lambda: None) -> None:
        """Open the device. Raises ``DeviceUnavailable`` if it is not here."""
        self.device: Device = open_device(spec)
        self.spec = spec
        self._beat = beat
        self._host: CpuDevice | None = None
        self._sensor, self._no_sensor = sensor_of(self.device)
        self._idle = True
        if self.device.timed:
            median_rank(1)  # imports scipy: a second that is known of now, and surprises later

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
            "no_telemetry": self._no_sensor,
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
            block.fail("timeout", f"{error}; raise measure.timeout or lower n")
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
        if self._sensor is not None:
            self._sensor.close()
        self.device.close()

    def _run(self, point: Point, request: Mapping[str, Any], block: Block) -> None:
        workload = workload_of(point)
        with block.spending("plan"):
            plan = workload.plan(point.configuration, point.system, self.device.facts)
        device = self._device_of(plan)
        if isinstance(plan, CpuPlan):
            block.device = "cpu"
        device.begin_round(request["round"])
        block.about = {**point.derived, **plan.about}
        cold = point.factors.get(L2) == COLD
        if device.timed and not isinstance(plan, CpuPlan):
            block.about[L2] = COLD if cold else HOT
        # The test device picks its victims by size; a real one ignores what a plan is about.
        plan = replace(plan, about={"n": point.n, **plan.about})
        device.expect(workload.expected(point.configuration))
        with block.spending("prepare"):
            prepared = device.prepare(plan)
        with prepared:
            if cold:
                prepared.flush_l2()
            if request.get(PROFILED):
                prepared.profile_first_launches()
            block.resources = dict(prepared.resources)
            self._launch(workload, point, plan, prepared, request, block)
            if prepared.profiled:
                block.about[PROFILED] = " ".join(prepared.profiled)

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
            self._time(timer, request, block)
        else:
            with block.spending("sample"):
                timer.launch()
            # Not a time of the point: it tells the budget what further launches may take.
            untimed = timer.last.kernel_s is None
            block.about["simulation_s" if untimed else "first_launch_s"] = timer.last_s
            block.counters = dict(timer.last.counters or {})
            block.ended_by = "deterministic" if untimed else "verification"
        block.spent_s["kernels"] = timer.total_s
        block.telemetry = {**scalars(timer.last.detail), **block.telemetry}
        with block.spending("check"):
            reduce_s = 0.0
            answer = prepared.known_answer()
            if answer is None:
                if request["timed"] and isinstance(plan, KernelPlan):
                    (outputs, answer), reduce_s = timed(lambda: _reduce(workload, plan, prepared))
                else:  # no phase of its own: once is enough
                    outputs, answer = _reduce(workload, plan, prepared)
                block.about |= workload.findings(plan, outputs)
                if point.probed:
                    # Not the device's counters: those would count the instrumentation too.
                    block.counters = dict(workload.counters(plan, outputs))
                    block.ended_by = "probed"
            self._check(answer, workload.expected(point.configuration), block)
        if block.value_s is not None:
            # Last: a program runs once more for it, and its answer was checked as it was timed.
            with block.spending("phases"):
                if isinstance(plan, ProgramPlan):
                    self._beat()
                block.phases = phases_of(plan, prepared, block, reduce_s, request["timeout_s"])

    def _time(self, timer: Timer, request: Mapping[str, Any], block: Block) -> None:
        """Warm up, then sample with the device's state watched."""
        policy = Policy(**request["policy"])
        known_s = request["expected_s"]
        on_device = block.device != "cpu" or self.device.spec == "cpu"
        with block.spending("warm_up"):
            warm = self._warm_up(timer, policy, known_s or 0.0, on_device)
        policy = replace(policy, share_s=policy.share_s - warm.wall_s)
        longest_s = policy.max_samples * (warm.lowest_s or known_s or policy.share_s)
        watch = Watch(self._sensor if on_device else None, longest_s=longest_s)
        with block.spending("telemetry"):
            watch.__enter__()
        try:
            blocked = timer.blocked
            with block.spending("sample"):
                samples = sample(timer.kernel_s, policy, known_s=warm.lowest_s or known_s)
        finally:
            with block.spending("telemetry"):
                watch.__exit__(None, None, None)
        block.about["warm_up_launches"] = warm.launches
        block.about["warm_up_ended_by"] = warm.ended_by
        if on_device:
            block.about["blocked_samples"] = timer.blocked - blocked
        block.value_s, block.samples_s = samples.median_s, samples.values_s
        block.ended_by = samples.ended_by
        block.telemetry = summary(watch.readings)
        if reason := throttled(block.telemetry):
            block.status, block.reason = "throttled", reason

    def _warm_up(self, timer: Timer, policy: Policy, known_s: float, on_device: bool) -> WarmUp:
        if known_s > LONG_LAUNCH_S:
            # It warms itself up, and a second launch may not fit the share.
            return WarmUp(0, "long_launch")
        ramp_s = self.device.ramp_s if self._idle and on_device else 0.0
        self._idle = self._idle and not on_device
        limit_s = TIME_SHARE * policy.share_s

        def launch() -> float:
            timer.launch()
            return timer.last_s

        return warm_up(launch, policy.warm_up, limit_s, ramp_s=min(ramp_s, limit_s))

    @staticmethod
    def _check(answer: int | None, expected: int | None, block: Block) -> None:
        block.answer = None if answer is None else str(answer)
        block.expected = None if expected is None else str(expected)
        fault = block.about.pop(FAULT, "") or "the kernel or the device is at fault"
        if answer != expected and expected is not None:
            block.fail(
                "wrong",
                f"the answer is {answer}, but the known one is {expected}:"
                f" {fault}, nothing was timed",
            )

    def _device_of(self, plan: Plan) -> Device:
        """The session's device, or the processor for host plans that the device does not take."""
        if isinstance(plan, CpuPlan) and not self.device.cpu_plans:
            if self._host is None:
                self._host = CpuDevice()
            return self._host
        return self.device


def _reduce(workload: Workload, plan: Plan, prepared: Prepared) -> tuple[Outputs, int | None]:
    """Copy the results back and combine them."""
    outputs = prepared.fetch()
    return outputs, workload.answer(plan, outputs)
