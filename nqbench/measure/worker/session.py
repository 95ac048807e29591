"""The device side of a run: what a worker does with one request.

A session holds one device, and the CPU for the CPU systems of a study.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from nqbench import errors
from nqbench.device import Device, Prepared
from nqbench.devices.cpu import CpuDevice
from nqbench.devices.cuda.driver import VISIBLE
from nqbench.devices.registry import open_device
from nqbench.measure import measurement, sampling, telemetry
from nqbench.measure.measurement import Measurement
from nqbench.measure.sampling import Timer
from nqbench.measure.variants import runs_on_cpu, workload_of
from nqbench.measure.worker import spot_check
from nqbench.measure.worker.messages import Hello, MeasureRequest
from nqbench.measure.worker.spot_check import SpotCheck
from nqbench.plan import Outputs, Plan
from nqbench.point import COLD, HOT, L2, Executable, Point
from nqbench.system.machine import timed
from nqbench.vocabulary import MEASURED
from nqbench.workloads.base import FAULT, Workload

FAILURES: Final = (
    *(errors.CompileError, errors.CheckError, errors.DeviceError),
    errors.InfeasibleError,
)
"""What ends a measurement with a status."""


UNCHECKED: Final = "nothing tells whether the results are right"

Left = tuple[Plan, Outputs, int | None]
"""What a launch left, after its plan: outputs and answer."""


def _output_bytes() -> int:
    """How much this process, a worker, has written to the file that is its standard output."""
    ctypes.CDLL(None).fflush(None)
    return os.fstat(1).st_size


class Session:
    """One open device. ``beat`` is called before launches, so that the runner can detect a hang."""

    def __init__(self, spec: str, beat: Callable[[], None] = lambda: None) -> None:
        """Open the device. Raises ``DeviceUnavailable`` if it cannot be used."""
        self.device: Device = open_device(spec)
        self.spec, self._beat = spec, beat
        self._cpu: CpuDevice | None = None
        self._sensor, self._no_sensor = None, ""
        try:
            self._sensor = self.device.sensor()
        except errors.DeviceError as absence:
            self._no_sensor = str(absence)
        self._idle = True
        self._references: dict[tuple[str, str], Outputs] = {}

    def hello(self) -> Hello:
        """The description of this device."""
        device = self.device
        return Hello(
            spec=self.spec,
            timed=device.timed,
            deterministic=device.deterministic,
            identity=measurement.plain(device.identity()),
            facts=device.facts,
            host=measurement.plain(CpuDevice().identity()),
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
        except FAILURES as error:
            late = isinstance(error, errors.LaunchTimeout)
            more = "; raise measure.timeout or lower n" if late else ""
            found.fail(getattr(error, "status", "launch_error"), f"{error}{more}")
            found.fatal = getattr(error, "fatal", False)
            if printed := getattr(error, "printed", ""):
                found.telemetry[measurement.PRINTED] = printed[: measurement.MAX_PRINTED]
        found.wall_s = time.perf_counter() - started
        numbers = {name: measurement.plain(value) for name, value in vars(found).items()}
        return Measurement(**{**numbers, "samples_s": tuple(numbers["samples_s"])})

    def close(self) -> None:
        """Release the device."""
        if self._sensor is not None:
            self._sensor.close()
        self.device.close()

    def _run(self, request: MeasureRequest, found: Measurement) -> None:
        point = request.point
        if runs_on_cpu(point):
            found.device = "cpu"
        elif point.program is not None:
            point = replace(point, program=self._on_this_gpu(point.program))
        workload = workload_of(point)
        with found.spending("plan"):
            plan = workload.plan(point.configuration, point.system, self.device.facts)
        device = self.device
        if plan.on_cpu and not device.cpu_plans:
            device = self._cpu = self._cpu or CpuDevice()  # it remembers what it has compiled
        device.begin_round(request.round)
        found.about = {**point.derived, **plan.about}
        cold = point.factors.get(L2) == COLD
        if device.timed and not plan.on_cpu:
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
            self._launch(plan, prepared, request, found)
            if prepared.profiled:
                found.about[measurement.PROFILED] = " ".join(prepared.profiled)

    def _launch(
        self, plan: Plan, prepared: Prepared, request: MeasureRequest, found: Measurement
    ) -> None:
        point, workload = request.point, workload_of(request.point)
        timer = Timer(prepared, request.timeout_s, self._beat)
        listens = found.device.startswith("cuda") and not request.timed
        before = _output_bytes() if listens else 0
        spot = None
        # A launch that takes long is the only one of its process: it has nothing to keep.
        long = (request.expected_s or 0.0) > sampling.LONG_LAUNCH_S
        if request.timed and request.round == spot_check.ROUND and not (plan.on_cpu or long):
            with found.spending("check"):
                other = workload.again(point.configuration, point.system, self.device.facts)
                spot = SpotCheck(plan, other, prepared, request.policy.samples)
        if request.timed:
            self._time(timer, request, found, spot)
        else:
            with found.spending("sample"):
                timer.launch()
            # Not a time of the point: the budget predicts further launches from it.
            whole_s, untimed = timer.last.wall_s or timer.last_s, timer.last.kernel_s is None
            found.about["simulation_s" if untimed else "first_launch_s"] = whole_s
            found.counters = dict(timer.last.counters or {})
            found.ended_by = "deterministic" if untimed else "verification"
        found.spent_s["kernels"] = timer.total_s
        found.telemetry = {**measurement.scalars(timer.last.detail), **found.telemetry}
        with found.spending("check"):
            reduce_s = self._check(plan, prepared, request, found)
            if spot and spot.outputs is not None and found.status in MEASURED:
                trial = Measurement()
                where = f"timed launch {spot.number}, the one on other contents: "
                answer = spot.answer
                if answer is None:
                    answer = workload.answer(spot.plan, spot.outputs)
                self._compare((spot.plan, spot.outputs, answer), request, trial, where)
                found.about["checked_launch"] = spot.number
                if trial.status == "wrong":
                    found.answer, found.expected = trial.answer, trial.expected
                    found.fail("wrong", trial.reason)
        if listens and _output_bytes() > before:  # a GPU's printf comes with the first wait
            printed = os.pread(1, measurement.MAX_PRINTED, before).decode(errors="replace")
            found.telemetry[measurement.PRINTED] = printed
        if found.value_s is not None:
            # Last: several launches run once more for it, and were checked as they were timed.
            with found.spending("phases"):
                self._beat()
                found.phases = measurement.phases_of(
                    plan, prepared, timer.last, found.value_s, reduce_s, request.timeout_s
                )

    def _check(
        self, plan: Plan, prepared: Prepared, request: MeasureRequest, found: Measurement
    ) -> float:
        """Fetch the answer and compare it with the known one; seconds of fetching and combining."""
        workload, reduce_s = workload_of(request.point), 0.0
        answer, outputs = prepared.known_answer(), Outputs()
        if answer is None:

            def reduce() -> tuple[Outputs, int | None]:
                outputs = prepared.fetch()
                return outputs, workload.answer(plan, outputs)

            if request.timed and plan.has_answer_buffers:
                (outputs, answer), reduce_s = timed(reduce)
            else:  # not a phase: once is enough
                outputs, answer = reduce()
            found.about |= workload.findings(plan, outputs)
            if request.point.probed:
                # Not the device's counters: those would count the instrumentation too.
                found.counters = dict(workload.counters(plan, outputs))
                found.ended_by = "probed"
        again = self._compare((plan, outputs, answer), request, found)
        if again and not request.timed and prepared.refill({}):
            prepared.launch(request.timeout_s)
            self._compare((plan, prepared.fetch(), None), request, found)
        return reduce_s

    def _compare(
        self, left: Left, request: MeasureRequest, found: Measurement, where: str = ""
    ) -> bool:
        """Compare what a launch left (in words: ``where``) with what is right. Whether a launch on
        another fill should say more, see ``Compared``."""
        (plan, outputs, answer), compared = left, None
        point, workload = request.point, workload_of(request.point)
        if outputs:
            other = None  # a profiler must see this kernel alone
            if not request.profiled:
                other = self._reference(workload, point, request.timeout_s)
            compared = workload.compared(plan, outputs, other)
        if compared is not None:
            found.answer, found.expected = str(compared.right), str(compared.total)
            found.about |= compared.errors
            said = compared.fault
            if wrong := compared.total - compared.right:
                are = "element is" if wrong == 1 else "elements are"
                said += f"; {wrong} of {compared.total} {are} wrong"
            if said:
                found.fail("wrong", f"{where}{said}; nothing was timed")
            return compared.again and found.status == "ok"
        expected = workload.expected(point.configuration)
        found.answer = None if answer is None else str(answer)
        found.expected = None if expected is None else str(expected)
        fault = found.about.pop(FAULT, "") or "the kernel or the device is at fault"
        if expected is None and found.status == "ok":
            found.status, found.reason = "unchecked", UNCHECKED
        if answer != expected and expected is not None:
            said = f"{where}the answer is {answer}, but the known one is {expected}"
            found.fail("wrong", f"{said}: {fault}, nothing was timed")
        return False

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
                found = measurement.outputs_of(workload, factors, self.device, timeout_s)
                self._references = {wanted: found}
            except errors.NqbenchError as error:
                said = f"the reference that it is checked against failed: {error}"
                failed = errors.LaunchError(said)
                failed.status, failed.fatal = "check_error", getattr(error, "fatal", False)
                raise failed from error
        return self._references[wanted]

    def _time(
        self, timer: Timer, request: MeasureRequest, found: Measurement, spot: SpotCheck | None
    ) -> None:
        """Warm up, then sample with the device's state watched."""
        policy, known_s = request.policy, request.expected_s
        on_device = found.device != "cpu" or self.device.spec == "cpu"
        with found.spending("warm_up"):
            warm = self._warm_up(timer, policy, known_s or 0.0, on_device)
        policy = replace(policy, share_s=policy.share_s - warm.wall_s)
        longest_s = policy.max_samples * (warm.lowest_s or known_s or policy.share_s)
        watch = telemetry.Watch(self._sensor if on_device else None, longest_s=longest_s)
        with found.spending("telemetry"):
            watch.start()
        try:
            blocked = timer.blocked
            with found.spending("sample"):
                launch = partial(spot.launch, timer) if spot else timer.kernel_s
                samples = sampling.sample(launch, policy, known_s=warm.lowest_s or known_s)
                blocked = timer.blocked - blocked
                if spot:
                    spot.finish(timer)
        finally:
            with found.spending("telemetry"):
                watch.stop()
        found.about["warm_up_launches"] = warm.launches
        found.about["warm_up_ended_by"] = warm.ended_by
        if on_device:
            found.about["blocked_samples"] = blocked
        found.value_s, found.samples_s = samples.median_s, samples.values_s
        found.ended_by = samples.ended_by
        found.telemetry = telemetry.summary(watch.readings)
        if reason := telemetry.throttled(found.telemetry):
            found.status, found.reason = "throttled", reason

    def _warm_up(
        self, timer: Timer, policy: sampling.Policy, known_s: float, on_device: bool
    ) -> sampling.WarmUp:
        if known_s > sampling.LONG_LAUNCH_S:
            # It warms itself up, and a second launch may not fit the share.
            return sampling.WarmUp(0, "long_launch")
        limit_s = sampling.TIME_SHARE * policy.share_s
        ramp_s = min(self.device.ramp_s, limit_s) if self._idle and on_device else 0.0
        self._idle = self._idle and not on_device
        return sampling.warm_up(timer.launch, policy.warm_up, limit_s, ramp_s=ramp_s)

    def _on_this_gpu(self, program: Executable) -> Executable:
        """The program on the GPU of this session; the first one is what CUDA takes by itself."""
        uuid = self.device.identity().get("uuid")
        if self.spec.partition(":")[2] in ("", "0") or not uuid:
            return program
        return replace(program, environment={VISIBLE: f"GPU-{uuid}", **program.environment})
