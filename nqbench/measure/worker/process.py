"""One worker process: starting it, its messages, ending it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from nqbench import errors
from nqbench.devices.command import CALLER_PATH
from nqbench.errors import DeviceError, DeviceUnavailable, NqbenchError
from nqbench.measure.worker.messages import Hello, Message, Open, Ready, Refused, decode, encode
from nqbench.system.crash import UNEXPECTED

CLOSE_S: Final = 10.0
"""Time for a worker to release its device when it is closed; then it is killed."""
OPEN_LIMIT_S: Final = 120.0
"""Imports and a driver's start take seconds; a driver that hangs takes forever."""
TAIL_BYTES: Final = 4096
REASON_LENGTH: Final = 300
CHUNK: Final = 1 << 16


ADVICE: Final = {
    "SIGKILL": "perhaps by the system for lack of memory (see dmesg): lower n or close programs",
    "SIGSEGV": "a fault in native code: the driver, a compiler or a function of a CPU system",
    "SIGABRT": "native code gave up: the driver, a compiler or a function of a CPU system",
    "SIGBUS": "a file it had mapped was cut short, perhaps for lack of disk space",
    "SIGXCPU": "the limit on CPU time (ulimit -t) is too low",
    "MemoryError": "more memory is needed than there is: lower n or depth, or raise ulimit -v",
}
"""What the end of a worker may mean, by the signal's name or the last complaint's first word."""
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
        self._errors = _complaints()
        self._process = _begin(self._errors)
        assert self._process.stdout is not None
        self.output = self._process.stdout
        self.pid = self._process.pid
        self.ended = False
        self.fresh = True
        """No job of it is done yet: if it dies now, another one would too."""
        self._rest = b""
        try:
            self.hello = self._open(spec)
        except BaseException:
            self.kill()
            raise

    def send(self, message: Message) -> bool:
        """Send one message; false if the worker is gone."""
        assert self._process.stdin is not None
        if self._process.poll() is not None:
            return False
        data = encode(message)
        try:
            while data:
                data = data[self._process.stdin.write(data) or 0 :]
        except BrokenPipeError:
            return False
        return True

    def receive(self) -> Iterator[Message]:
        """The messages that one read brings; sets ``ended`` at the end of the output."""
        chunk = os.read(self.output.fileno(), CHUNK)
        self.ended = not chunk
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            yield decode(line)

    def close(self) -> None:
        """Let an idle worker release its device and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_S)
        self.kill()

    def kill(self) -> str:
        """End the worker at once; returns how it ended, with the last line it complained."""
        if self.ended:
            # It closed its output by itself: its own exit status is on the way.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_S)
        self._process.kill()
        code = self._process.wait()
        _end_programs(self.pid)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        complaint = self._complaint()
        self._errors.close()
        said = complaint[:REASON_LENGTH]
        if said.startswith(UNEXPECTED):  # it ended by an exception: its exit code says nothing more
            return said + (_advice(code, complaint) or f" ({MISTAKE})")
        return _ending(code) + (f"; it said: {said}" if said else "") + _advice(code, complaint)

    def _open(self, spec: str | None) -> Hello | None:
        self.send(Open(spec))
        deadline = time.monotonic() + OPEN_LIMIT_S
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([self.output], [], [], left_s)[0]:
                raise DeviceError(
                    f"{spec} did not open within {OPEN_LIMIT_S:g} s; is it in use?{self._said()}"
                )
            for message in self.receive():
                if isinstance(message, Ready):
                    return message.hello
                assert isinstance(message, Refused)
                raise as_error(message)
            if self.ended:
                raise WorkerDied(f"a worker for {spec} could not start: {self.kill()}")

    def _said(self) -> str:
        complaint = self._complaint()[:REASON_LENGTH]
        return f" It said: {complaint}" if complaint else ""

    def _complaint(self) -> str:
        if self._errors.closed:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - TAIL_BYTES))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


def _complaints() -> IO[bytes]:
    """A file for what a worker writes to standard error."""
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise DeviceUnavailable(
            f"no worker can be started: {error.strerror}; make room there, or set TMPDIR to a"
            " folder that can be written"
        ) from error


def _begin(complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            # -P: a file in the working directory must not stand in for a library's module.
            [sys.executable, "-P", "-m", "nqbench.measure.worker.main"],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            bufsize=0,
            start_new_session=True,  # Ctrl-C in a terminal reaches the runner, which ends workers
        )
    except OSError as error:
        complaints.close()
        raise DeviceUnavailable(
            f"no worker can be started: {error.strerror}; the limits on processes, open files or"
            " memory may be too low (ulimit -a)"
        ) from error


def _environment() -> dict[str, str]:
    """A worker's: its import path is the runner's, external programs get the user's own."""
    own = {CALLER_PATH: os.environ.get("PYTHONPATH", "")}
    return os.environ | own | {"PYTHONPATH": import_path()}


def _end_programs(worker: int) -> None:
    """Kill the external programs that a killed worker has left: they are in its session (Linux)."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(entry.name)) == worker:
                os.kill(int(entry.name), signal.SIGKILL)


def import_path() -> str:
    """The runner's own import path, so that a worker finds the same workloads."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


def _ending(code: int) -> str:
    if code >= 0:
        return f"the worker process ended with exit code {code}"
    return f"the worker process was ended by {_signal(code)}"


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _advice(code: int, complaint: str) -> str:
    """What that may mean, where it is known."""
    # numpy's own kind of MemoryError has a longer name
    short = "MemoryError" in complaint.partition(":")[0] or any(x in complaint for x in NO_MEMORY)
    cause = "MemoryError" if short else _signal(code)
    return f" ({ADVICE[cause]})" if cause in ADVICE else ""


def as_error(refused: Refused) -> NqbenchError:
    """The worker's error as the same class here."""
    kind = getattr(errors, refused.error, DeviceError)
    return kind(refused.reason) if issubclass(kind, NqbenchError) else DeviceError(refused.reason)
