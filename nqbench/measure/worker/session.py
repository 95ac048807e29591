"""The device side of a run: what a worker does with one request.

A session holds one device, and the CPU for the CPU systems of a study.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime

from nqbench.device import Device, Prepared
from nqbench.devices.cpu import CpuDevice
from nqbench.devices.cuda.driver import VISIBLE
from nqbench.devices.registry import open_device
from nqbench.errors import (
    CompileError,
    DeviceError,
    InfeasibleError,
    LaunchError,
    LaunchTimeout,
    NqbenchError,
)
from nqbench.measure.sampling.measurement import PROFILED, Measurement, plain, scalars
from nqbench.measure.sampling.phases import phases_of
from nqbench.measure.sampling.sampling import LONG_LAUNCH_S, Policy, sample
from nqbench.measure.sampling.telemetry import Watch, sensor_of, summary, throttled
from nqbench.measure.sampling.timer import Beat, Timer
from nqbench.measure.sampling.warmup import TIME_SHARE, WarmUp, warm_up
from nqbench.measure.variants import runs_on_cpu, workload_of
from nqbench.measure.worker.messages import Hello, MeasureRequest
from nqbench.plan import CommandPlan, CpuPlan, KernelPlan, MultiLaunchPlan, Outputs, Plan
from nqbench.point import COLD, HOT, L2, Point
from nqbench.system.timing import timed
from nqbench.workloads.base import FAULT, Compared, Workload


class Session:
    """One open device. ``beat`` is called before launches, so that the runner can detect a hang."""

    def __init__(self, spec: str, beat: Beat = lambda: None) -> None:
        """Open the device. Raises ``DeviceUnavailable`` if it cannot be used."""
        self.device: Device = open_device(spec)
        self.spec = spec
        self._beat = beat
        self._cpu: CpuDevice | None = None
        self._sensor, self._no_sensor = sensor_of(self.device)
        self._idle = True
        self._references: dict[tuple[str, str], Outputs] = {}

    def hello(self) -> Hello:
        """The description of this device."""
        device = self.device
        return Hello(
            spec=self.spec,
            timed=device.timed,
            deterministic=device.deterministic,
            identity=plain(device.identity()),
            facts=device.facts,
            host=plain(CpuDevice().identity()),
            no_telemetry=self._no_sensor,
            pid=os.getpid(),
        )

    def measure(self, request: MeasureRequest) -> Measurement:
        """Verify or measure one point; failures of plan and device become statuses."""
        found = Measurement(
            device=self.spec, started=datetime.now(UTC).isoformat(timespec="milliseconds")
        )
        started = time.perf_counter()
        try:
            self._run(request, found)
        except CompileError as error:
            found.fail("compile_error", str(error))
        except LaunchTimeout as error:
            found.fail("timeout", f"{error}; raise measure.timeout or lower n")
            found.fatal = error.fatal
        except LaunchError as error:
            found.fail(error.status, str(error))
            found.fatal = error.fatal
        except (DeviceError, InfeasibleError) as error:
            found.fail("launch_error", str(error))
        found.wall_s = time.perf_counter() - started
        return Measurement.from_json(found.as_json())  # plain numbers

    def close(self) -> None:
        """Release the device."""
        if self._sensor is not None:
            self._sensor.close()
        self.device.close()

    def _run(self, request: MeasureRequest, found: Measurement) -> None:
        point = request.point
        workload = workload_of(point)
        with found.spending("plan"):
            plan = workload.plan(point.configuration, point.system, self.device.facts)
        device = self._device_of(plan)
        if runs_on_cpu(point):
            found.device = "cpu"
        elif isinstance(plan, CommandPlan):
            plan = self._on_this_gpu(plan)
        device.begin_round(request.round)
        found.about = {**point.derived, **plan.about}
        cold = point.factors.get(L2) == COLD
        if device.timed and not isinstance(plan, CpuPlan | CommandPlan):
            found.about[L2] = COLD if cold else HOT
        # The test device picks faults by size; a real one ignores ``about``.
        plan = replace(plan, about={"n": point.n, **plan.about})
        device.expect(workload.expected(point.configuration))
        with found.spending("prepare"):
            prepared = device.prepare(plan)
        with prepared:
            if cold:
                prepared.flush_l2()
            if request.profiled:
                prepared.profile_first_launches()
            found.resources = dict(prepared.resources)
            self._launch(workload, plan, prepared, request, found)
            if prepared.profiled:
                found.about[PROFILED] = " ".join(prepared.profiled)

    def _launch(
        self,
        workload: Workload,
        plan: Plan,
        prepared: Prepared,
        request: MeasureRequest,
        found: Measurement,
    ) -> None:
        point = request.point
        timer = Timer(prepared, request.timeout_s, self._beat)
        if request.timed:
            self._time(timer, request, found)
        else:
            with found.spending("sample"):
                timer.launch()
            # Not a time of the point: the budget predicts further launches from it.
            untimed = timer.last.kernel_s is None
            # A program's own time may leave out most of what a launch of it takes.
            whole_s = prepared.phases()["total"] if isinstance(plan, CommandPlan) else timer.last_s
            found.about["simulation_s" if untimed else "first_launch_s"] = whole_s
            found.counters = dict(timer.last.counters or {})
            found.ended_by = "deterministic" if untimed else "verification"
        found.spent_s["kernels"] = timer.total_s
        found.telemetry = {**scalars(timer.last.detail), **found.telemetry}
        with found.spending("check"):
            reduce_s = 0.0
            answer, compared = prepared.known_answer(), None
            if answer is None:
                if request.timed and isinstance(plan, KernelPlan):
                    (outputs, answer), reduce_s = timed(lambda: _reduce(workload, plan, prepared))
                else:  # not a phase: once is enough
                    outputs, answer = _reduce(workload, plan, prepared)
                found.about |= workload.findings(plan, outputs)
                if point.probed:
                    # Not the device's counters: those would count the instrumentation too.
                    found.counters = dict(workload.counters(plan, outputs))
                    found.ended_by = "probed"
                other = None  # a profiler must see this kernel alone
                if not request.profiled:
                    other = self._reference(workload, point, request.timeout_s)
                compared = workload.compared(plan, outputs, other)
            if compared is not None:
                _judge(compared, found)
            else:
                self._check(answer, workload.expected(point.configuration), found)
        if found.value_s is not None:
            # Last: a program runs once more for it, and its answer was checked as it was timed.
            with found.spending("phases"):
                if isinstance(plan, MultiLaunchPlan):
                    self._beat()
                found.phases = phases_of(plan, prepared, found, reduce_s, request.timeout_s)

    def _reference(self, workload: Workload, point: Point, timeout_s: float) -> Outputs | None:
        """The outputs of the point whose outputs are this one's right ones, launched once.

        Raises ``LaunchError`` if it did not run.
        """
        factors = workload.reference(point.configuration)
        if factors is None:
            return None
        wanted = (point.workload, repr(sorted(factors.items())))
        if wanted not in self._references:
            self._beat()
            try:
                plan = workload.plan(factors, None, self.device.facts)
                with self.device.prepare(plan) as prepared:
                    prepared.launch(timeout_s)
                    self._references = {wanted: prepared.fetch()}
            except NqbenchError as error:
                failed = LaunchError(f"the reference that it is checked against failed: {error}")
                failed.fatal = getattr(error, "fatal", False)
                raise failed from error
        return self._references[wanted]

    def _time(self, timer: Timer, request: MeasureRequest, found: Measurement) -> None:
        """Warm up, then sample with the device's state watched."""
        policy = request.policy
        known_s = request.expected_s
        on_device = found.device != "cpu" or self.device.spec == "cpu"
        with found.spending("warm_up"):
            warm = self._warm_up(timer, policy, known_s or 0.0, on_device)
        policy = replace(policy, share_s=policy.share_s - warm.wall_s)
        longest_s = policy.max_samples * (warm.lowest_s or known_s or policy.share_s)
        watch = Watch(self._sensor if on_device else None, longest_s=longest_s)
        with found.spending("telemetry"):
            watch.__enter__()
        try:
            blocked = timer.blocked
            with found.spending("sample"):
                samples = sample(timer.kernel_s, policy, known_s=warm.lowest_s or known_s)
        finally:
            with found.spending("telemetry"):
                watch.__exit__(None, None, None)
        found.about["warm_up_launches"] = warm.launches
        found.about["warm_up_ended_by"] = warm.ended_by
        if on_device:
            found.about["blocked_samples"] = timer.blocked - blocked
        found.value_s, found.samples_s = samples.median_s, samples.values_s
        found.ended_by = samples.ended_by
        found.telemetry = summary(watch.readings)
        if reason := throttled(found.telemetry):
            found.status, found.reason = "throttled", reason

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
    def _check(answer: int | None, expected: int | None, found: Measurement) -> None:
        found.answer = None if answer is None else str(answer)
        found.expected = None if expected is None else str(expected)
        fault = found.about.pop(FAULT, "") or "the kernel or the device is at fault"
        if answer != expected and expected is not None:
            found.fail(
                "wrong",
                f"the answer is {answer}, but the known one is {expected}:"
                f" {fault}, nothing was timed",
            )

    def _device_of(self, plan: Plan) -> Device:
        """The session's device, or the CPU for plans that the device does not take."""
        if isinstance(plan, CpuPlan | CommandPlan) and not self.device.cpu_plans:
            if self._cpu is None:
                self._cpu = CpuDevice()
            return self._cpu
        return self.device

    def _on_this_gpu(self, plan: CommandPlan) -> CommandPlan:
        """The program on the GPU of this session; the first one is what CUDA takes by itself."""
        uuid = self.device.identity().get("uuid")
        if self.spec.partition(":")[2] in ("", "0") or not uuid:
            return plan
        chosen = {VISIBLE: f"GPU-{uuid}", **plan.program.environment}
        return replace(plan, program=replace(plan.program, environment=chosen))


def _judge(compared: Compared, found: Measurement) -> None:
    """Store how many elements are right, of how many; a wrong one is a wrong answer."""
    found.answer, found.expected = str(compared.right), str(compared.total)
    if compared.right == compared.total and not compared.fault:
        return
    wrong = compared.total - compared.right
    are = "element is" if wrong == 1 else "elements are"
    said = f"; {wrong} of {compared.total} {are} wrong" if wrong else ""
    found.fail("wrong", f"{compared.fault}{said}; nothing was timed")


def _reduce(workload: Workload, plan: Plan, prepared: Prepared) -> tuple[Outputs, int | None]:
    """Copy the results back and combine them."""
    outputs = prepared.fetch()
    return outputs, workload.answer(plan, outputs)
