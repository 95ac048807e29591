"""Worker processes seen from the runner: they may hang, crash or be killed; the run continues.

A pool carries out jobs in the order given, each on the next free worker, and yields what comes
back. A worker that is lost costs the job in flight; a new one takes its place.
"""

from __future__ import annotations

import math
import selectors
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from nqbench.errors import DeviceLost, NqbenchError
from nqbench.measure.measurement import Measurement
from nqbench.measure.worker.messages import Accepted, Beat, Done, Hello, MeasureRequest, Request
from nqbench.measure.worker.process import WorkerDied, WorkerProcess
from nqbench.vocabulary import Status

PREPARE_LIMIT_S: Final = 300.0
"""Making a plan, compiling and copying it: it takes minutes only for absurdly large boards."""
GRACE_S: Final = 1.0
"""Added to a launch's limit: the last heartbeat may be half a second old, and a device that notices
the limit itself gives a better reason."""
START_TRIES: Final = 3
"""A worker that dies while it starts may have been killed from outside; three cannot be chance."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request to a worker.

    ``limit_s`` is the longest silence between launches, ``tag`` identifies it to the sender.
    At ``end`` (monotonic seconds) the job is given up: it is then ``skipped``, for the reason
    ``late``.
    """

    request: Request
    limit_s: float
    tag: Any = None
    end: float = math.inf
    late: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a job, and the process that did it."""

    measurement: Measurement
    worker: int


class Workers(Protocol):
    """Carries out jobs, in worker processes or in the runner's own process."""

    @property
    def hello(self) -> Hello:
        """What the device is. Workers that compile have none and must not be asked."""

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs; replies come as they are ready."""

    def close(self) -> None:
        """End the workers."""


@dataclass(eq=False)
class WorkerSlot:
    """A place for one worker, the job it has, and when it is overdue (monotonic seconds)."""

    worker: WorkerProcess | None = None
    job: Job | None = None
    deadline: float = 0.0
    accepted: bool = False
    launching: bool = False


@dataclass
class WorkerPool:
    """``size`` worker processes on one device. Opens the first at once, the others when needed.

    ``again``: the run has had this device open before. Raises ``DeviceUnavailable`` (or
    another ``NqbenchError``) if the device cannot be opened, ``DeviceLost`` if it could before.
    """

    spec: str | None
    size: int = 1
    again: bool = False

    def __post_init__(self) -> None:
        self._slots = [WorkerSlot() for _ in range(self.size)]
        first = self._replacement() if self.again else _start(self.spec)
        self._slots[0].worker = first
        self._hello = first.hello

    @property
    def hello(self) -> Hello:
        """What the device is. Workers that compile have none and must not be asked."""
        assert self._hello is not None
        return self._hello

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs, each given out only when a worker is free for it."""
        waiting = iter(jobs)
        more = True
        while True:
            while more and (slot := self._free()) is not None:
                job = next(waiting, None)
                more = job is not None
                if job is not None:
                    self._give(slot, job)
            if not any(slot.job for slot in self._slots):
                if not more:
                    return
                continue
            yield from self._collect()

    def close(self) -> None:
        """End every worker: an idle one may finish, a busy one is killed."""
        for slot in self._slots:
            if slot.worker is not None:
                if slot.job is None:
                    slot.worker.close()
                else:
                    slot.worker.kill()
            slot.worker, slot.job = None, None

    def pids(self) -> list[int]:
        """The process of each worker."""
        return [slot.worker.pid for slot in self._slots if slot.worker is not None]

    def _free(self) -> WorkerSlot | None:
        return next((slot for slot in self._slots if slot.job is None), None)

    def _give(self, slot: WorkerSlot, job: Job) -> None:
        if slot.worker is None or not slot.worker.send(job.request):
            if slot.worker is not None:
                slot.worker.kill()
            slot.worker = None  # nothing to end if the next one does not start
            slot.worker = self._replacement()
            slot.worker.send(job.request)
        slot.job, slot.accepted, slot.launching = job, False, False
        slot.deadline = min(time.monotonic() + PREPARE_LIMIT_S, job.end)

    def _replacement(self) -> WorkerProcess:
        """Another worker. Raises ``DeviceLost``: the device could be opened before."""
        try:
            return _start(self.spec)
        except NqbenchError as error:
            raise DeviceLost(
                f"{self.spec} can no longer be used: {error}; what was measured is kept,"
                " run again to resume"
            ) from error

    def _collect(self) -> Iterator[tuple[Job, Reply]]:
        """Wait for the busy workers once, and yield the jobs that ended."""
        busy = [slot for slot in self._slots if slot.job is not None]
        patience = max(0.0, min(slot.deadline for slot in busy) - time.monotonic())
        with selectors.DefaultSelector() as selector:
            for slot in busy:
                assert slot.worker is not None
                selector.register(slot.worker.output, selectors.EVENT_READ, slot)
            ready = [key.data for key, _ in selector.select(patience)]
        for slot in ready:
            yield from self._listen(slot)
        now = time.monotonic()
        for slot in busy:
            if slot.job is not None and slot not in ready and now >= slot.deadline:
                yield self._overdue(slot, slot.job)

    def _listen(self, slot: WorkerSlot) -> Iterator[tuple[Job, Reply]]:
        assert slot.worker is not None
        assert slot.job is not None
        for message in slot.worker.receive():
            if isinstance(message, Accepted):
                slot.accepted = True
            elif isinstance(message, Beat):
                slot.launching = True
                slot.deadline = min(time.monotonic() + slot.job.limit_s + GRACE_S, slot.job.end)
            elif isinstance(message, Done):
                job, slot.job = slot.job, None
                slot.worker.fresh = False
                pid = slot.worker.pid
                if message.measurement.fatal:
                    slot.worker.kill()
                    slot.worker = None
                yield job, Reply(message.measurement, pid)
                return
        if slot.worker.ended:
            if slot.accepted or slot.worker.fresh:
                yield self._lost(slot, slot.job, "crashed", "")
            else:
                # It died between two jobs, so this one is not the cause: a new worker gets it.
                slot.worker.kill()
                slot.worker = None
                self._give(slot, slot.job)

    def _overdue(self, slot: WorkerSlot, job: Job) -> tuple[Job, Reply]:
        if time.monotonic() >= job.end:
            return self._lost(slot, job, "skipped", job.late)
        what = (
            f"a launch took longer than {job.limit_s:g} s; raise measure.timeout or lower n"
            if slot.launching
            else f"plan, compilation and copies took longer than {PREPARE_LIMIT_S:g} s"
        )
        return self._lost(slot, job, "timeout", what)

    @staticmethod
    def _lost(slot: WorkerSlot, job: Job, status: Status, reason: str) -> tuple[Job, Reply]:
        assert slot.worker is not None
        pid = slot.worker.pid
        ended = slot.worker.kill()
        slot.worker, slot.job = None, None
        reason = reason or f"{ended}; run again to try this point once more"
        return job, Reply(Measurement(status=status, reason=reason), pid)


def _start(spec: str | None) -> WorkerProcess:
    """A worker with its device open; one that dies before is replaced, ``START_TRIES`` in all."""
    for _ in range(START_TRIES - 1):
        try:
            return WorkerProcess(spec)
        except WorkerDied:
            continue
    return WorkerProcess(spec)


class InProcess:
    """A device in this process. A crash or a hang of the device is one of the runner."""

    def __init__(self, spec: str) -> None:
        from nqbench.measure.worker.session import Session

        self._session = Session(spec)
        self.hello = self._session.hello()

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs one after the other."""
        for job in jobs:
            assert isinstance(job.request, MeasureRequest)
            yield job, Reply(self._session.measure(job.request), self.hello.pid)

    def close(self) -> None:
        """Release the device."""
        self._session.close()
