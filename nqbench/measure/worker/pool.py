"""Worker processes seen from the runner: they may hang, crash or be killed; the run continues.

A pool carries out jobs in the order given, each on the next free worker, and yields what comes
back. A worker that is lost costs the job in flight; a new one takes its place.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from nqbench import errors
from nqbench.devices.command import CALLER_PATH, CAUSES, signal_name
from nqbench.errors import DeviceError, DeviceLost, DeviceUnavailable, NqbenchError
from nqbench.measure.measurement import Measurement
from nqbench.measure.worker import messages
from nqbench.system.crash import UNEXPECTED
from nqbench.vocabulary import Status

PREPARE_LIMIT_S: Final = 300.0
"""Making a plan, compiling and copying it: it takes minutes only for absurdly large boards."""
GRACE_S: Final = 1.0
"""Added to a launch's limit: the last heartbeat may be half a second old, and a device that notices
the limit itself gives a better reason."""
START_TRIES: Final = 3
"""A worker that dies while it starts may have been killed from outside; three cannot be chance."""
CLOSE_S: Final = 10.0
"""Time for a worker to release its device when it is closed; then it is killed."""
OPEN_LIMIT_S: Final = 120.0
"""Imports and a driver's start take seconds; a driver that hangs takes forever."""
TAIL_BYTES: Final = 4096
REASON_LENGTH: Final = 300
SHORT: Final = "more memory is needed than there is: lower n or depth, or raise ulimit -v"
NO_MEMORY: Final = (
    "llocation failed",
    "llocation still failed",
    "bad_alloc",
    "failed to map segment",
    "Cannot allocate",
)
"""How LLVM, C++, OpenBLAS and the loader complain that memory is short."""
MISTAKE: Final = (
    "a mistake in the workload or in nqbench, or a setting that a library refuses; the device is"
    " not at fault"
)
"""What any other unexpected exception means."""


class WorkerDied(DeviceError):
    """A worker ended before it could say what its device is: the next one may do better."""


class WorkerProcess:
    """A running worker with an open device.

    ``hello`` is how it introduced its device, if it has one. Raises ``NqbenchError`` if the device
    cannot be opened, ``WorkerDied`` if the process ended before it answered.
    """

    def __init__(self, spec: str | None) -> None:
        self._errors, self._process, self.connection = _begin()
        self.pid = self._process.pid
        self.ended = False
        self.fresh = True
        """No job of it is done yet: if it dies now, another one would too."""
        try:
            self.hello = self._open(spec)
        except BaseException:
            self.kill()
            raise

    def send(self, message: messages.Message) -> bool:
        """Send one message; false if the worker is gone."""
        try:
            self.connection.send(message)
        except ConnectionError:
            return False
        return True

    def receive(self) -> messages.Message | None:
        """The next message; ``None`` if the worker is gone, which sets ``ended``."""
        try:
            message: messages.Message = self.connection.recv()
        except (EOFError, OSError):  # at the end of a message, or within one
            self.ended = True
            return None
        return message

    def close(self) -> None:
        """Let an idle worker release its device and end."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_S)
        self.kill()

    def kill(self) -> str:
        """End the worker at once; returns how it ended, with the last line it complained."""
        if self.ended:
            # It closed the connection by itself: its own exit status is on the way.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_S)
        self._process.kill()
        code = self._process.wait()
        for entry in Path("/proc").glob("[0-9]*"):  # external programs in its session (Linux)
            with contextlib.suppress(OSError):
                if os.getsid(int(entry.name)) == self.pid:
                    os.kill(int(entry.name), signal.SIGKILL)
        self.connection.close()
        complaint = self._complaint()
        self._errors.close()
        return _ending(code, complaint)

    def _open(self, spec: str | None) -> messages.Hello | None:
        self.send(messages.Open(spec))
        if not self.connection.poll(OPEN_LIMIT_S):
            complaint = self._complaint()[:REASON_LENGTH]
            said = f" It said: {complaint}" if complaint else ""
            raise DeviceError(f"{spec} did not open within {OPEN_LIMIT_S:g} s; is it in use?{said}")
        message = self.receive()
        if message is None:
            raise WorkerDied(f"a worker for {spec} could not start: {self.kill()}")
        if isinstance(message, messages.Refused):
            raise as_error(message)
        assert isinstance(message, messages.Ready)
        return message.hello

    def _complaint(self) -> str:
        if self._errors.closed:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - TAIL_BYTES))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


def _begin() -> tuple[IO[bytes], subprocess.Popen[bytes], Connection]:
    """A worker: the file of what it prints, its process, and the connection to it."""
    # Its import path is the runner's; external programs get the user's own.
    own = {CALLER_PATH: os.environ.get("PYTHONPATH", ""), "PYTHONPATH": import_path()}
    with contextlib.ExitStack() as stack:
        try:
            complaints = stack.enter_context(tempfile.TemporaryFile())
            mine, its = Pipe()
            with its:
                # -P: a file in the working directory must not stand in for a library's module.
                module = ("-P", "-m", "nqbench.measure.worker.main")
                process = subprocess.Popen(
                    [sys.executable, *module, str(its.fileno())],
                    env=os.environ | own,
                    stdin=subprocess.DEVNULL,
                    stdout=complaints,
                    stderr=complaints,
                    pass_fds=(its.fileno(),),
                    start_new_session=True,  # Ctrl-C reaches the runner, which ends workers
                )
        except OSError as error:
            raise DeviceUnavailable(
                f"no worker can be started: {error.strerror}; make room in the folder for temporary"
                " files or set TMPDIR to another, and see whether the limits on processes, open"
                " files or memory are too low (ulimit -a)"
            ) from error
        stack.pop_all()  # the worker keeps the file
    return complaints, process, mine


def import_path() -> str:
    """The runner's own import path, so that a worker finds the same workloads."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


def _ending(code: int, complaint: str) -> str:
    """How a worker ended, what it said last, and what that may mean where it is known."""
    by = signal_name(code)
    # numpy's own kind of MemoryError has a longer name
    short = "MemoryError" in complaint.partition(":")[0] or any(x in complaint for x in NO_MEMORY)
    advice = SHORT if short else CAUSES.get(by, "")
    said = complaint[:REASON_LENGTH]
    if said.startswith(UNEXPECTED):  # it ended by an exception: its exit code says nothing more
        return f"{said} ({advice or MISTAKE})"
    how = f"ended with exit code {code}" if code >= 0 else f"was ended by {by}"
    said = f"; it said: {said}" if said else ""
    return f"the worker process {how}{said}" + (f" ({advice})" if advice else "")


def as_error(refused: messages.Refused) -> NqbenchError:
    """The worker's error as the same class here."""
    kind = getattr(errors, refused.error, DeviceError)
    return kind(refused.reason) if issubclass(kind, NqbenchError) else DeviceError(refused.reason)


@dataclass(frozen=True, slots=True)
class Job:
    """One request to a worker.

    ``limit_s`` is the longest silence between launches, ``tag`` identifies it to the sender.
    At ``end`` (monotonic seconds) the job is given up: it is then ``skipped``, for the reason
    ``late``.
    """

    request: messages.WorkRequest
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
    """Carries out jobs, in processes of this computer or of others."""

    @property
    def hello(self) -> messages.Hello:
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
        self.hello = cast(messages.Hello, first.hello)
        """What the device is. Workers that compile have none and must not be asked."""

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs, each given out only when a worker is free for it."""
        waiting = iter(jobs)
        while True:
            while slot := next((s for s in self._slots if s.job is None), None):
                job = next(waiting, None)
                if job is None:
                    break
                self._give(slot, job)
            if not any(slot.job for slot in self._slots):
                return
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
        heard = wait([slot.worker.connection for slot in busy if slot.worker], patience)
        ready = [slot for slot in busy if slot.worker and slot.worker.connection in heard]
        for slot in ready:
            yield from self._listen(slot)
        now = time.monotonic()
        for slot in busy:
            if slot.job is not None and slot not in ready and now >= slot.deadline:
                yield self._overdue(slot, slot.job)

    def _listen(self, slot: WorkerSlot) -> Iterator[tuple[Job, Reply]]:
        assert slot.worker is not None
        assert slot.job is not None
        message = slot.worker.receive()
        if isinstance(message, messages.Accepted):
            slot.accepted = True
        elif isinstance(message, messages.Beat):
            slot.launching = True
            slot.deadline = min(time.monotonic() + slot.job.limit_s + GRACE_S, slot.job.end)
        elif isinstance(message, messages.Done):
            job, slot.job = slot.job, None
            slot.worker.fresh = False
            pid = slot.worker.pid
            if message.measurement.fatal:
                slot.worker.kill()
                slot.worker = None
            yield job, Reply(message.measurement, pid)
        elif message is None:
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
        with contextlib.suppress(WorkerDied):
            return WorkerProcess(spec)
    return WorkerProcess(spec)
