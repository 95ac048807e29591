"""Running a study: from its points to records.

Stages: compile every kernel; verify one untimed launch of each point, going up in N; then rounds,
each a fresh process that visits every point in a fresh random order. A deterministic device needs
one measurement per point and no rounds. A failure costs only its own measurement; finished ones are
kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.measure import manifest, ncu
from nqbench.measure.budget import Budget, TimeBook, nominal_cores
from nqbench.measure.keys import Keys, own_sources
from nqbench.measure.run_state import Listener, RunOutcome, RunState, Task
from nqbench.measure.stages import Stages, WorkerFactory
from nqbench.measure.telemetry import clock_warning
from nqbench.measure.worker.messages import Hello
from nqbench.measure.worker.pool import WorkerPool, Workers
from nqbench.point import Point
from nqbench.record import Record
from nqbench.runs.folder import RunWriter, is_reference
from nqbench.runs.reading import MANIFEST, newest, read_manifest
from nqbench.system.machine import cpu_count
from nqbench.system.suggest import many
from nqbench.workloads import register

if TYPE_CHECKING:
    from nqbench.study.model import Study


MAX_COMPILERS: Final = 16
"""Compiling processes: each takes some 300 MB with the compiled Python code of a workload."""


def run_study(
    study: Study,
    points: Sequence[Point],
    device_spec: str,
    out: Path,
    *,
    fresh: bool = False,
    budget_s: float | None = None,
    listener: Listener | None = None,
    command: Sequence[str] = (),
) -> RunOutcome:
    """Measure the points of a study on a device into the run folder ``out``, or resume its run.

    ``points`` are those of this device (``nqbench.study.expand``); ``fresh`` starts over (the old
    records are moved aside); ``budget_s`` limits the whole run. Ctrl-C ends the run, keeps what was
    measured and sets ``interrupted``. Raises ``StudyError``, ``DeviceUnavailable`` or
    ``StoreError`` before anything is run, and ``DeviceError`` if the device is lost for good.
    """
    started = time.monotonic()
    listener = listener or Listener()
    look_first(study, out, fresh)
    workers = WorkerPool(device_spec)
    start_s = time.monotonic() - started
    with closing(workers), RunWriter(out) as writer:
        hello = workers.hello
        recording = Recording(writer, study, points, hello, fresh, command, listener, started)
        if hello.no_telemetry:
            listener.message(f"clocks, heat and power are not recorded: {hello.no_telemetry}")
        book = TimeBook(nominal_cores(hello.facts))
        budget = Budget(study.measure, budget_s, book=book, started=started, worker_start_s=start_s)
        stages = recording.stages(budget, listener, _Factory(device_spec))
        interrupted = False
        try:
            measure(stages, recording.tasks, hello, workers)
            if study.measure.counters == ncu.PROGRAM:
                counted = study.measure.counted
                ncu.collect(recording.tasks, recording.state, listener, sweeps=counted)
        except KeyboardInterrupt:
            interrupted = True  # reported once, with the outcome
        return recording.finish(interrupted)


class Recording:
    """The run folder of a study while it is written: its points, their keys and their state.

    ``hello`` is the first device; others of its model may measure some of the points instead
    (:meth:`assign`). Raises ``StudyError`` or ``StoreError`` before anything is measured.
    """

    def __init__(
        self,
        writer: RunWriter,
        study: Study,
        points: Sequence[Point],
        hello: Hello,
        fresh: bool,
        command: Sequence[str],
        listener: Listener,
        started: float,
    ) -> None:
        self.study, self.points, self.hello = study, points, hello
        self._writer, self._listener, self._started = writer, listener, started
        listener.points(points)
        self._devices: dict[str, tuple[Hello, Keys]] = {}
        records = _open_folder(writer, study, hello.facts.name, fresh, listener)
        self._old = read_manifest(writer.path) if (writer.path / MANIFEST).exists() else None
        self._order = manifest.argument_order(study, self._old)
        keyed = [(point, self.key(point, hello)) for point in self.points]
        sources = own_sources(points, study.path.parent)
        self._manifest = manifest.make_manifest(study, hello, keyed, command, self._old, sources)
        writer.write_manifest(self._manifest)
        self.tasks = [Task.of(point, key, hello) for point, key in keyed]
        self._owners = [_name_of(hello)] * len(keyed)
        self.state = RunState(writer, records, self.tasks, listener, self._check)
        known = {task.key for task in self.tasks}
        for other in self.earlier_devices() if self._old and "devices" in self._old else ():
            known |= {self.key(point, other) for point in self.points}
        _report_resume(records, points, known, listener)

    def key(self, point: Point, hello: Hello) -> str:
        """The key of a point on a device."""
        name = _name_of(hello)
        if name not in self._devices:
            self._devices[name] = hello, Keys(hello, manifest.protocol_of(self.study), self._order)
        return self._devices[name][1].of(point)

    def earlier_devices(self) -> list[Hello]:
        """Those of an earlier run in this folder."""
        described = self._old.get("devices", [self._old["device"]]) if self._old else ()
        return [manifest.hello_of(device) for device in described]

    def assign(self, indices: Iterable[int], hello: Hello) -> list[Task]:
        """The tasks of some points on a device, whose points they are from now on."""
        keys = {index: self.key(self.points[index], hello) for index in indices}
        changed = False
        for index, key in keys.items():
            changed |= self.tasks[index].key != key
            self.tasks[index] = Task.of(self.points[index], key, hello)
            self._manifest["points"][index]["key"] = key
            self._owners[index] = _name_of(hello)
        if changed:
            used = list(dict.fromkeys(self._owners))
            described = [manifest.device_json(self._devices[name][0]) for name in used]
            self._manifest["devices"] = described
            for point, owner in zip(self._manifest["points"], self._owners, strict=True):
                point["on"] = used.index(owner)
            self._writer.write_manifest(self._manifest)
        return [self.tasks[index] for index in keys]

    def stages(self, budget: Budget, listener: Listener, workers: WorkerFactory) -> Stages:
        """The stages on one device, whose progress goes to ``listener``."""
        state, policy = self.state.reporting_to(listener), manifest.policy_of(self.study)
        seed = int(self._manifest["seed"])
        return Stages(self.study.measure, policy, state, budget, listener, workers, seed)

    def finish(self, interrupted: bool) -> RunOutcome:
        """The outcome of the run, reported."""
        if warning := clock_warning(self.state.records(), self.hello.identity):
            self._listener.message(warning)
        path, old = self._writer.path, self._old
        outcome = self.state.outcome(path, time.monotonic() - self._started, interrupted)
        same_study = old is not None and old["study"] == read_manifest(path)["study"]
        return replace(outcome, unchanged=same_study and not self.state.added)

    def _check(self) -> None:
        for _, keys in [*self._devices.values()]:  # another thread may add a device
            keys.check()


def measure(
    stages: Stages,
    tasks: Sequence[Task],
    hello: Hello,
    opened: Workers | None,
    cores: int = 0,
    turn: AbstractContextManager[None] | None = None,
) -> None:
    """All stages. ``opened`` has the device already and does the first; ``cores`` (0: those of this
    computer) simulate at the same time; ``turn`` is held while points are verified."""
    for task in tasks:
        if task.point.skip:
            stages.state.skip(task, 0, task.point.skip)
    ready = [task for task in tasks if not task.point.skip]
    facts = hello.facts if hello.spec.startswith("cuda") else None
    if facts is not None:
        ready = stages.compile(ready, facts)
    exact = [task for task in ready if task.exact]
    timed = [task for task in ready if not task.exact]
    if exact:
        if opened is not None:
            opened.close()  # its one process makes room for as many as there are cores
        # Instrumented kernels on a GPU have it to themselves: clocks are among what they count.
        where = "in the simulator" if hello.kind == "sim" else "without timing them"
        stages.count(exact, (cores or cpu_count()) if hello.deterministic else 1, where)
        opened = None
    with turn or nullcontext():
        timed = stages.verify(timed, opened)
    if opened is not None:
        opened.close()  # each round is a new process
    stages.rounds(timed)


def look_first(study: Study, out: Path, fresh: bool) -> None:
    """Refuse a folder in use or damaged before a device is opened, which could disturb another run.

    Creates nothing. Makes a workload that the study brings along known. Raises ``StoreError``.
    """
    register(study.external)  # its own workload: another study of that name may have come after it
    if is_reference(out) or out.exists():
        with RunWriter(out):
            if not fresh and (out / MANIFEST).exists():
                read_manifest(out)


def foreseen(study: Study, out: Path, fresh: bool, device: str) -> str:
    """What a run would do with its folder. Raises ``StoreError`` where it would be refused."""
    look_first(study, out, fresh)
    if not (out / MANIFEST).exists():
        return f"it would start in {out}"
    if fresh:
        return f"it would start over in {out}; the run there would be kept aside"
    manifest.check_same_run(out, read_manifest(out), study, device)
    return f"it would resume the run in {out}"


def _open_folder(
    writer: RunWriter, study: Study, device: str, fresh: bool, listener: Listener
) -> tuple[Record, ...]:
    """Earlier records to resume from, after repairing what a killed run left."""
    if fresh:
        aside = writer.archive()
        if aside is not None:
            listener.message(f"starting over; the earlier run is kept in {aside}")
        return ()
    if (writer.path / MANIFEST).exists():
        manifest.check_same_run(writer.path, read_manifest(writer.path), study, device)
    found = writer.repair()
    for sentence in filter(None, (found.damage, found.message())):
        listener.message(sentence)
    return found.records


def _report_resume(
    records: Sequence[Record], points: Sequence[Point], keys: Set[str], listener: Listener
) -> None:
    kept = [record for record in records if record.key in keys]
    finished = sum(1 for record in newest(kept).values() if record.measured)
    if finished:
        listener.message(f"resumed: {finished} measurements are already finished")
    asked = {_what_it_is(point.as_json()) for point in points}
    others = [_what_it_is(record.point) for record in records if record.key not in keys]
    if left_out := sum(one not in asked for one in others):
        said = f"{many(left_out, 'earlier record')} of points that this command leaves out"
        listener.message(f"kept: {said}")
    if stale := len(others) - left_out:
        listener.message(
            f"{stale} earlier records do not apply (an earlier nqbench made"
            " them, or the study, the sources, the device or a version changed); what this study"
            " asks for is measured again"
        )


def _what_it_is(point: Mapping[str, Any]) -> str:
    """What tells a point from the others of its study."""
    parts = [point.get(name) for name in ("sweep", "system", "factors")]
    return json.dumps(parts, sort_keys=True, default=str)


def _name_of(hello: Hello) -> str:
    """What distinguishes a device from others: equal ones have equal keys."""
    return json.dumps([hello.identity, hello.host], sort_keys=True, default=str)


@dataclass(frozen=True)
class _Factory:
    """Makes worker processes."""

    spec: str

    def __call__(self, size: int = 1) -> Workers:
        """Fresh workers on the run's device."""
        return WorkerPool(self.spec, size, again=True)

    def compilers(self) -> Workers:
        """Processes that compile, without a device."""
        return WorkerPool(None, min(cpu_count(), MAX_COMPILERS))
