"""Running a study: from its points to records.

Stages: compile every kernel; verify one untimed launch of each point, going up in N; then rounds,
each a fresh process that visits every point in a fresh random order. A deterministic device needs
one measurement per point and no rounds. A failure costs only its own measurement; finished ones are
kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nqbench.facts import DeviceFacts
from nqbench.measure.budget import Budget
from nqbench.measure.dispatch import Dispatch
from nqbench.measure.events import Listener, RunOutcome
from nqbench.measure.forecast import TimeBook, nominal_cores
from nqbench.measure.identity.keys import Keys
from nqbench.measure.identity.manifest import check_same_run, make_manifest, policy_of, protocol_of
from nqbench.measure.profiler import ncu
from nqbench.measure.run_state import RunState, StudyLike, Task
from nqbench.measure.sampling.telemetry import clock_warning
from nqbench.measure.stages import Stages
from nqbench.measure.worker.messages import Hello
from nqbench.measure.worker.pool import InProcess, WorkerPool, Workers
from nqbench.point import Point
from nqbench.record import Record
from nqbench.runs.folder import RunWriter, is_reference
from nqbench.runs.reading import MANIFEST, newest, read_manifest
from nqbench.system.machine import cpu_count
from nqbench.workloads import bring

Expand = Callable[[Any, DeviceFacts], list[Point]]
MAX_COMPILERS: Final = 16
"""Compiling processes: each takes some 300 MB with the compiled Python code of a workload."""


def run_study(
    study: StudyLike,
    device_spec: str,
    out: Path,
    *,
    fresh: bool = False,
    budget_s: float | None = None,
    listener: Listener | None = None,
    command: Sequence[str] = (),
    isolate: bool = True,
    expand: Expand,
) -> RunOutcome:
    """Measure ``study`` on a device into the run folder ``out``; resumes where a run stopped.

    ``fresh`` starts over (the old records are moved aside); ``budget_s`` limits the whole run;
    ``isolate=False`` works in this process, for tests of the overhead; ``expand`` makes the
    points, as ``nqbench.study.expand`` does. Ctrl-C ends the run, keeps what was measured and
    sets ``interrupted``. Raises ``StudyError``, ``DeviceUnavailable`` or ``StoreError`` before
    anything is run, and ``DeviceError`` if the device is lost for good.
    """
    started = time.monotonic()
    listener = listener or Listener()
    _look_first(out, fresh)
    if (outside := getattr(study, "outside", None)) is not None:
        bring(outside)  # its own workload: another study of that name may have come after it
    workers: Workers = WorkerPool(device_spec) if isolate else InProcess(device_spec)
    worker_start_s = time.monotonic() - started
    with closing(workers):
        hello = workers.hello
        facts = hello.facts
        keys = Keys(hello, protocol_of(study))
        keyed = [(point, keys.of(point)) for point in expand(study, facts)]
        with RunWriter(out) as writer:
            records = _open_folder(writer, study, facts.name, fresh, listener)
            old = read_manifest(out) if (out / MANIFEST).exists() else None
            manifest = make_manifest(study, hello, keyed, command, old)
            writer.write_manifest(manifest)
            tasks = [Task.of(point, key, hello) for point, key in keyed]
            state = RunState(writer, records, tasks, listener, keys.check)
            _report_resume(records, tasks, listener)
            if hello.no_telemetry:
                listener.message(f"clocks, heat and power are not recorded: {hello.no_telemetry}")
            book = TimeBook(nominal_cores(facts))
            budget = Budget(
                study.measure, budget_s, book=book, started=started, worker_start_s=worker_start_s
            )
            factory = _Factory(device_spec, isolate)
            dispatch = Dispatch(study.measure, policy_of(study), state, budget, listener, factory)
            interrupted = _measure_all(dispatch, manifest["seed"], study, tasks, workers)
            if warning := clock_warning(state.records(), hello.identity):
                listener.message(warning)
            outcome = state.outcome(out, time.monotonic() - started, interrupted)
            same_study = old is not None and old["study"] == read_manifest(out)["study"]
            outcome = replace(outcome, unchanged=same_study and not state.added)
            listener.finished(outcome)
            return outcome


def _measure_all(
    dispatch: Dispatch, seed: int, study: StudyLike, tasks: Sequence[Task], opened: Workers
) -> bool:
    """All stages, then the profiler; returns whether Ctrl-C ended them."""
    try:
        _measure(Stages(dispatch, seed), tasks, opened.hello, opened)
        if study.measure.counters == ncu.PROGRAM:
            ncu.collect(counted(tasks, study), dispatch.state, dispatch.listener)
    except KeyboardInterrupt:
        return True  # reported once, with the outcome
    return False


def _measure(stages: Stages, tasks: Sequence[Task], hello: Hello, opened: Workers) -> None:
    """All stages. ``opened`` has the device already and does the first."""
    ready = stages.leave_out_infeasible(tasks)
    facts = hello.facts if hello.spec.startswith("cuda") else None
    if facts is not None:
        ready = stages.compile(ready, facts)
    exact = [task for task in ready if task.exact]
    timed = [task for task in ready if not task.exact]
    if exact:
        opened.close()  # its one process makes room for as many as there are cores
        # Instrumented kernels on a GPU have it to themselves: clocks are among what they count.
        stages.count(exact, cpu_count() if hello.deterministic else 1)
        timed = stages.verify(timed, None)
    else:
        timed = stages.verify(timed, opened)
        opened.close()  # each round is a new process
    stages.rounds(timed)


def counted(tasks: Sequence[Task], study: StudyLike) -> Sequence[Task]:
    """The points for the profiler: those of the sweeps named, or all."""
    named = study.measure.counted
    return [task for task in tasks if not named or task.point.sweep in named]


def _look_first(out: Path, fresh: bool) -> None:
    """Refuse a folder in use or damaged before a device is opened, which could disturb another run.

    Creates nothing. Raises ``StoreError``.
    """
    if is_reference(out) or out.exists():
        with RunWriter(out):
            if not fresh and (out / MANIFEST).exists():
                read_manifest(out)


def _open_folder(
    writer: RunWriter, study: StudyLike, device: str, fresh: bool, listener: Listener
) -> tuple[Record, ...]:
    """Earlier records to resume from, after repairing what a killed run left."""
    if fresh:
        aside = writer.archive()
        if aside is not None:
            listener.message(f"starting over; the earlier run is kept in {aside}")
        return ()
    if (writer.path / MANIFEST).exists():
        check_same_run(writer.path, read_manifest(writer.path), study, device)
    found = writer.repair()
    if found.torn:
        listener.message(found.message())
    return found.records


def _report_resume(records: Sequence[Record], tasks: Sequence[Task], listener: Listener) -> None:
    keys = {task.key for task in tasks}
    kept = [record for record in records if record.key in keys]
    finished = sum(1 for record in newest(kept).values() if record.status == "ok")
    if finished:
        listener.message(f"resumed: {finished} measurements are already finished")
    if len(records) > len(kept):
        listener.message(
            f"{len(records) - len(kept)} earlier records do not apply (an earlier nqbench made"
            " them, or the study, the sources, the device or a version changed); what this study"
            " asks for is measured again"
        )


class _Factory:
    """Makes workers: processes, or this one."""

    def __init__(self, spec: str, isolate: bool) -> None:
        self._spec = spec
        self._isolate = isolate

    def __call__(self, size: int = 1) -> Workers:
        """Fresh workers on the run's device."""
        return WorkerPool(self._spec, size, again=True) if self._isolate else InProcess(self._spec)

    def compilers(self) -> Workers:
        """Processes that compile, without a device."""
        return WorkerPool(None, min(cpu_count(), MAX_COMPILERS))
