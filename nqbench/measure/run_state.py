"""The tasks of a run, its finished measurements, its outcome, and who listens to its progress."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nqbench.measure.measurement import PRINTED
from nqbench.measure.variants import runs_on_cpu
from nqbench.point import Point
from nqbench.record import Record
from nqbench.runs.reading import newest
from nqbench.vocabulary import MEASURED

if TYPE_CHECKING:
    from nqbench.measure.worker.messages import Hello
    from nqbench.measure.worker.pool import Reply
    from nqbench.runs.folder import RunWriter


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run.

    ``path``         its folder
    ``counts``       number of points by status; a point that failed in any round counts as failed
    ``failures``     the record of each failed point, newest
    ``skipped``      reason by point label, for points that were not measured
    ``wall_s``       seconds it took
    ``interrupted``  ended by Ctrl-C; what was measured is kept
    ``printed``      records of kernels that printed something, in the order of the points
    ``unchanged``    no record was added, and the study is the one that was recorded before
    """

    path: Path
    counts: Mapping[str, int]
    failures: tuple[Record, ...]
    skipped: Mapping[str, str]
    wall_s: float
    interrupted: bool
    unchanged: bool = False
    printed: tuple[Record, ...] = ()

    @property
    def measured(self) -> int:
        """Points that were measured, checked or not."""
        return sum(self.counts.get(status, 0) for status in MEASURED)


class Listener:
    """Receives the progress of a run; this one ignores it."""

    def points(self, points: Sequence[Point]) -> None:
        """The run is to measure these points."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def ahead(self, steps: int) -> None:
        """About so many steps follow after this stage."""

    def started(self, point: Point, *, timed: bool) -> None:
        """A point is given to the device when this returns; ``timed``: not only to verify it."""

    def advanced(self, record: Record | None = None) -> None:
        """One step is done; ``record`` is its result, if it has one."""

    def message(self, text: str) -> None:
        """One sentence for the user."""

    def device(self, name: str) -> Listener:  # noqa: ARG002 (this one ignores it)
        """The listener of one of several devices that measure at the same time."""
        return self


@dataclass(frozen=True, slots=True)
class Task:
    """A point of the run with its key, and where it runs (``exact``: counted once, not timed).

    Exact is everything on a deterministic device, and an instrumented kernel on any.
    """

    point: Point
    key: str
    device: str
    exact: bool

    @classmethod
    def of(cls, point: Point, key: str, hello: Hello) -> Task:
        """The task of a point on the device that said ``hello``."""
        on_cpu = runs_on_cpu(point)
        exact = hello.deterministic or point.probed
        return cls(point, key, "cpu" if on_cpu else hello.spec, exact=exact and not on_cpu)


class RunState:
    """The records of a run, in memory and on disk. ``add`` is the only way in.

    Several devices may share it, each with a thread. ``tasks`` has the current task of every point:
    its owner replaces one when another device takes over the point.
    """

    def __init__(
        self,
        writer: RunWriter,
        records: Iterable[Record],
        tasks: Sequence[Task],
        listener: Listener,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """``check`` raises if a measurement must no longer be stored under its key."""
        self._check, self._writer, self._listener, self._tasks = check, writer, listener, tasks
        self._latest = newest(records)
        self._lock = threading.Lock()
        self._added: list[str] = []

    @property
    def added(self) -> int:
        """Records added since the run began or was resumed."""
        return len(self._added)

    def reporting_to(self, listener: Listener) -> RunState:
        """The same state; what one device adds is reported to ``listener``."""
        seen = copy(self)
        seen._listener = listener
        return seen

    def latest(self, task: Task, round_: int) -> Record | None:
        """The newest record of a measurement."""
        return self._latest.get((task.key, round_))

    def has(self, key: str) -> bool:
        """Whether there is a record of this key."""
        return any(known == key for known, _ in self._latest)

    def records(self) -> list[Record]:
        """The newest record of every measurement of the tasks."""
        keys = {task.key for task in self._tasks}
        return [record for record in self._latest.values() if record.key in keys]

    def done(self, task: Task, round_: int) -> bool:
        """Whether a measurement is finished. Failed and wrong ones are repeated."""
        record = self.latest(task, round_)
        return record is not None and record.measured

    def add(self, task: Task, round_: int, order: int, reply: Reply) -> Record:
        """Store the result of a measurement; it is in the file when this returns."""
        with self._lock:
            self._check()
        found = {n: v for n, v in vars(reply.measurement).items() if n != "fatal"}
        record = _record(task, round_, order=order, worker=reply.worker, **found)
        self._store(record)
        return record

    def skip(self, task: Task, round_: int, reason: str) -> Record:
        """Record that a measurement is skipped, and why.

        A finished measurement stays as it is, and the same record is not written twice.
        """
        record = _record(task, round_, status="skipped", reason=reason)
        if self.done(task, round_) or self.latest(task, round_) == record:
            self._listener.advanced(record)
        else:
            self._store(record)
        return record

    def outcome(self, path: Path, wall_s: float, interrupted: bool) -> RunOutcome:
        """The points by outcome; unfinished points are left out."""
        counts: Counter[str] = Counter()
        failures: list[Record] = []
        skipped: dict[str, str] = {}
        by_key: dict[str, list[Record]] = {task.key: [] for task in self._tasks}
        for record in self.records():
            by_key[record.key].append(record)
        for task in self._tasks:
            measurements = sorted(by_key[task.key], key=lambda record: record.round)
            failed = [r for r in measurements if not r.measured and r.status != "skipped"]
            measured = [r for r in measurements if r.measured and r.round > 0]
            left_out = [r for r in measurements if r.status == "skipped"]
            if measured:  # a throttled measurement is a lost round, not a lost point
                failed = [r for r in failed if r.status != "throttled"]
            if failed:
                counts[failed[-1].status] += 1
                failures.append(failed[-1])
            elif measured:
                counts[measured[-1].status] += 1
            elif left_out:
                counts["skipped"] += 1
                name = f"{task.point.sweep}: {task.point.label()} ({task.key[:6]})"
                skipped[name] = left_out[-1].reason
        told = [r for task in self._tasks for r in by_key[task.key] if PRINTED in r.telemetry]
        return RunOutcome(
            *(path, dict(counts), tuple(failures), skipped, wall_s, interrupted),
            printed=tuple(told),
        )

    def _store(self, record: Record) -> None:
        with self._lock:
            self._writer.append(record)
            self._added.append(record.key)
            self._latest[record.key, record.round] = record
        self._listener.advanced(record)


def _record(task: Task, round_: int, **found: Any) -> Record:
    """The record of a measurement; device and derived numbers are the task's where it has none."""
    point = task.point
    fields = {name: getattr(point, name) for name in ("study", "sweep", "workload", "system")}
    described = {**fields, "label": point.label(), "factors": dict(point.factors)}
    found["device"] = found.get("device") or task.device
    found["about"] = found.get("about") or dict(point.derived)
    return Record(key=task.key, point=described, round=round_, **found)
