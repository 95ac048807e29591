"""Worker processes seen from the runner: they may hang, crash or be killed; the run goes on.

A crew carries out jobs in the order given, each on the next free worker, and yields what comes
back. A worker that is lost costs the job in flight; a new one takes its place.
"""

from __future__ import annotations

import math
import selectors
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from nqbench.errors import DeviceLost, NqbenchError
from nqbench.measure.worker.process import WorkerDied, WorkerProcess
from nqbench.vocabulary import Status

PREPARE_LIMIT_S: Final = 300.0
"""Making a plan, compiling and copying it: minutes only for boards that nobody would study."""
GRACE_S: Final = 1.0
"""On top of a launch's limit: the last sign of life may be half a second old, and a device that
notices the time limit itself gives the better reason."""
START_TRIES: Final = 3
"""A worker that dies while it starts may have been killed from outside; three are no accident."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request to a worker.

    ``limit_s`` is the longest silence between launches, ``tag`` whatever the sender knows it by.
    At ``end`` (monotonic seconds) the job is given up: it is then ``skipped``, for the reason
    ``late``.
    """

    request: Mapping[str, Any]
    limit_s: float
    tag: Any = None
    end: float = math.inf
    late: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a job: the device side's fields, or only a status and a reason."""

    fields: Mapping[str, Any]
    worker: int


class Workers(Protocol):
    """Whoever carries out jobs: processes, or the runner's own process."""

    hello: Mapping[str, Any]

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs; replies come as they are ready."""

    def close(self) -> None:
        """End the workers."""


@dataclass(eq=False)
class _Seat:
    """A place for one worker, the job it has, and when it is overdue (monotonic seconds)."""

    worker: WorkerProcess | None = None
    job: Job | None = None
    deadline: float = 0.0
    accepted: bool = False
    launching: bool = False


@dataclass
class Crew:
    """``size`` worker processes on one device. Opens the first at once, the others when needed.

    ``again`` says that the run has had this device open before. Raises ``DeviceUnavailable`` (or
    another ``NqbenchError``) if the device cannot be opened, ``DeviceLost`` if it could before.
    """

    spec: str | None
    size: int = 1
    again: bool = False
    hello: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seats = [_Seat() for _ in range(self.size)]
        first = self._replacement() if self.again else _start(self.spec)
        self._seats[0].worker = first
        self.hello = first.hello

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs, each given out only when a worker is free for it."""
        waiting = iter(jobs)
        more = True
        while True:
            while more and (seat := self._free()) is not None:
                job = next(waiting, None)
                more = job is not None
                if job is not None:
                    self._give(seat, job)
            if not any(seat.job for seat in self._seats):
                if not more:
                    return
                continue
            yield from self._collect()

    def close(self) -> None:
        """End every worker: kindly if it is idle, at once if it is not."""
        for seat in self._seats:
            if seat.worker is not None:
                if seat.job is None:
                    seat.worker.close()
                else:
                    seat.worker.kill()
            seat.worker, seat.job = None, None

    def _free(self) -> _Seat | None:
        return next((seat for seat in self._seats if seat.job is None), None)

    def _give(self, seat: _Seat, job: Job) -> None:
        if seat.worker is None or not seat.worker.send(job.request):
            if seat.worker is not None:
                seat.worker.kill()
            seat.worker = None  # nothing to end, should the next one not start
            seat.worker = self._replacement()
            seat.worker.send(job.request)
        seat.job, seat.accepted, seat.launching = job, False, False
        seat.deadline = min(time.monotonic() + PREPARE_LIMIT_S, job.end)

    def _replacement(self) -> WorkerProcess:
        """Another worker. Raises ``DeviceLost``: the device could be opened before."""
        try:
            return _start(self.spec)
        except NqbenchError as error:
            raise DeviceLost(
                f"{self.spec} could be used no more: {error}; what was measured is kept,"
                " run again to go on"
            ) from error

    def _collect(self) -> Iterator[tuple[Job, Reply]]:
        """Wait for the busy workers once, and yield the jobs that ended."""
        busy = [seat for seat in self._seats if seat.job is not None]
        patience = max(0.0, min(seat.deadline for seat in busy) - time.monotonic())
        with selectors.DefaultSelector() as selector:
            for seat in busy:
                assert seat.worker is not None
                selector.register(seat.worker.output, selectors.EVENT_READ, seat)
            ready = [key.data for key, _ in selector.select(patience)]
        for seat in ready:
            yield from self._listen(seat)
        now = time.monotonic()
        for seat in busy:
            if seat.job is not None and seat not in ready and now >= seat.deadline:
                yield self._overdue(seat, seat.job)

    def _listen(self, seat: _Seat) -> Iterator[tuple[Job, Reply]]:
        assert seat.worker is not None
        assert seat.job is not None
        for message in seat.worker.receive():
            if "accepted" in message:
                seat.accepted = True
            elif "beat" in message:
                seat.launching = True
                seat.deadline = min(time.monotonic() + seat.job.limit_s + GRACE_S, seat.job.end)
            elif "done" in message:
                job, seat.job = seat.job, None
                seat.worker.fresh = False
                fields = dict(message["done"])
                pid = seat.worker.pid
                if fields.pop("fatal", False):
                    seat.worker.kill()
                    seat.worker = None
                yield job, Reply(fields, pid)
                return
        if seat.worker.ended:
            if seat.accepted or seat.worker.fresh:
                yield self._lost(seat, seat.job, "crashed", "")
            else:
                # It died between two jobs: not this one's doing, so a new worker gets it.
                seat.worker.kill()
                seat.worker = None
                self._give(seat, seat.job)

    def _overdue(self, seat: _Seat, job: Job) -> tuple[Job, Reply]:
        if time.monotonic() >= job.end:
            return self._lost(seat, job, "skipped", job.late)
        what = (
            f"a launch took longer than {job.limit_s:g} s; raise measure.timeout or lower n"
            if seat.launching
            else f"plan, compilation and copies took longer than {PREPARE_LIMIT_S:g} s"
        )
        return self._lost(seat, job, "timeout", what)

    @staticmethod
    def _lost(seat: _Seat, job: Job, status: Status, reason: str) -> tuple[Job, Reply]:
        assert seat.worker is not None
        pid = seat.worker.pid
        ended = seat.worker.kill()
        seat.worker, seat.job = None, None
        reason = reason or f"{ended}; run again to try this point once more"
        return job, Reply({"status": status, "reason": reason}, pid)


def _start(spec: str | None) -> WorkerProcess:
    """A worker with its device open; one that dies before is replaced, ``START_TRIES`` in all."""
    for _ in range(START_TRIES - 1):
        try:
            return WorkerProcess(spec)
        except WorkerDied:
            continue
    return WorkerProcess(spec)
