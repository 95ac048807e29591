"""External programs: one process is one launch, timed by its own clock or by the wall clock.

A program runs without a shell, in the study's folder, with its own group of processes, no input,
and the environment of ``nqbench``. Its output is read while it runs, so that it never blocks.
"""

from __future__ import annotations

import math
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.device import Launch, Prepared, Resources
from nqbench.errors import LaunchTimeout, ProgramFault
from nqbench.plan import CommandPlan, Outputs
from nqbench.point import Executable
from nqbench.system.suggest import shown

CALLER_PATH: Final = "NQBENCH_CALLER_PYTHONPATH"
"""The PYTHONPATH that ``nqbench`` was started with: its workers have another one."""
MAX_OUTPUT: Final = 1 << 24
"""Bytes of output that are kept and searched; a program that prints more is stopped."""
CHUNK: Final = 1 << 16
TAIL_LINES: Final = 3
TAIL_LENGTH: Final = 300
"""What a reason repeats of the output."""
EARLY: Final = 0.01
"""Seconds by which a printed time may exceed the wall time: a clock that ticks every 10 ms."""
UNITS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_SPELT: Final = {
    "ns": "ns|nsecs?|nanoseconds?",
    "us": "us|\u00b5s|\u03bcs|usecs?|microseconds?",
    "ms": "ms|msecs?|milliseconds?",
    "s": "s|secs?|seconds?",
}
_AFTER: Final = re.compile(
    r"[ \t]*[\[(]?(?:" + "|".join(f"(?P<{u}>{words})" for u, words in _SPELT.items()) + r")\b"
)
_SIGNALS: Final = {
    "SIGSEGV": "it used memory that is not its own",
    "SIGABRT": "it gave up by itself",
    "SIGFPE": "it divided by zero",
    "SIGILL": "it holds instructions that this CPU does not have: compile it on this machine",
    "SIGKILL": "perhaps by the system for lack of memory: lower n",
    "SIGBUS": "a file it had mapped was cut short",
}


@dataclass(frozen=True, slots=True)
class Ran:
    """One process: what it printed, and how long it took from its start to its end."""

    out: str
    err: str
    wall_s: float


class CommandPrepared(Prepared):
    """A program that can be started. Raises ``ProgramFault`` if a file that it needs is missing."""

    transfer_s = 0.0

    def __init__(self, plan: CommandPlan) -> None:
        self.resources: Resources = {}
        self._name = plan.name
        self._program = plan.program
        self._answer: int | None = None
        where, word = plan.program.path(), plan.program.command[0]
        if where is None or not where.is_file():
            folder = "below the study's folder" if "/" in word else "on the PATH"
            hint = "" if "/" in word else f"; write ./{word} for a program in the study's folder"
            raise ProgramFault(
                f"{plan.name} cannot start: there is no program {word} {folder}; build or install"
                f" it{hint}"
            )
        for file in plan.program.depends:
            if not (Path(plan.program.folder) / file).exists():
                raise ProgramFault(
                    f"{plan.name} depends on {file}, which is not in the study's folder; build it"
                    " first, or correct `depends`"
                )

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Start it, wait for its end, and read what it printed.

        Raises ``LaunchTimeout``, and ``ProgramFault`` for any other end than the right one.
        """
        ran = run(self._name, self._program, timeout_s)
        if self._program.answer:
            answer = _answer(self._name, self._program, ran)
            if self._answer is not None and answer != self._answer:
                raise ProgramFault(
                    f"{self._name} answered {self._answer} in one run and {answer} in another;"
                    " nothing was timed",
                    "wrong",
                )
            self._answer = answer
        wall_s = ran.wall_s if self._program.time else None
        return Launch(_seconds(self._name, self._program, ran), wall_s=wall_s)

    def fetch(self) -> Outputs:
        """``{"answer": array([value])}``; empty where no pattern reads an answer."""
        return {} if self._answer is None else {"answer": np.array([self._answer], dtype=object)}


def run(name: str, program: Executable, timeout_s: float | None) -> Ran:
    """One process from start to end. Its whole group is ended with it, or after ``timeout_s``."""
    # That of ``nqbench``, without the import path that it gives to its workers.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    own = inherited.pop(CALLER_PATH, "")
    environment = inherited | ({"PYTHONPATH": own} if own else {})
    started = time.perf_counter()
    try:
        process = subprocess.Popen(
            program.command,
            cwd=program.folder,
            env=environment | dict(program.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,
        )
    except OSError as error:
        raise ProgramFault(_cannot_start(name, program, error)) from error
    try:
        out, err = _read(name, process, started, timeout_s)
        wall_s = time.perf_counter() - started
    finally:
        with suppress(ProcessLookupError):  # what it left running would disturb what comes next
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
    ran = Ran(out, err, wall_s)
    if process.returncode < 0:
        raise ProgramFault(_killed(name, program, process.returncode, ran), "crashed")
    if process.returncode > 0:
        said = _tail(program, ran.err or ran.out)
        raise ProgramFault(f"{name} ended with exit code {process.returncode}{said}")
    return ran


def _read(
    name: str, process: subprocess.Popen[bytes], started: float, timeout_s: float | None
) -> tuple[str, str]:
    """Standard output and standard error, once the process has ended."""
    assert process.stdout is not None
    assert process.stderr is not None
    kept: dict[int, bytearray] = {}
    over = False
    with _end(process) as end, selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            kept[pipe.fileno()] = bytearray()
            selector.register(pipe, selectors.EVENT_READ)
        if end is not None:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(0 if over else _left(started, timeout_s))
            if not ready and over:
                break  # a process that it left running holds its output open
            if not ready:
                raise _timeout(name, timeout_s)
            for key, _ in ready:
                if key.fd == end:
                    selector.unregister(end)
                    over = True
                    continue
                chunk = os.read(key.fd, CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                kept[key.fd] += chunk
            if sum(map(len, kept.values())) > MAX_OUTPUT:
                raise ProgramFault(
                    f"{name} printed more than {MAX_OUTPUT >> 20} MiB and was stopped; let it print"
                    " its answer and its time only"
                )
    try:
        process.wait(_left(started, timeout_s))
    except subprocess.TimeoutExpired as error:
        raise _timeout(name, timeout_s) from error
    out, err = (bytes(data).decode(errors="replace") for data in kept.values())
    return out, err


@contextmanager
def _end(process: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """A file that can be read once the process has ended; ``None`` where the system has none."""
    try:
        end = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield end
    finally:
        os.close(end)


def _left(started: float, timeout_s: float | None) -> float | None:
    return None if timeout_s is None else max(0.0, started + timeout_s - time.perf_counter())


def _timeout(name: str, timeout_s: float | None) -> LaunchTimeout:
    return LaunchTimeout(f"{name} did not end within {timeout_s:g} s and was stopped")


def _cannot_start(name: str, program: Executable, error: OSError) -> str:
    word = program.command[0]
    if isinstance(error, FileNotFoundError):  # it exists, so what its first line names does not
        return f"{name} cannot start: the interpreter that {word} names in its first line is absent"
    if isinstance(error, PermissionError):
        return f"{name} cannot start: {word} is not executable; run `chmod +x {word}`"
    if error.strerror == "Exec format error":
        return (
            f"{name} cannot start: {word} is neither a program for this machine nor a script whose"
            " first line names its interpreter (#!/bin/sh); put the interpreter first in the"
            f" command: [sh, {word}]"
        )
    return f"{name} cannot start: {error.strerror}"


def _killed(name: str, program: Executable, code: int, ran: Ran) -> str:
    try:
        word = signal.Signals(-code).name
    except ValueError:
        word = f"signal {-code}"
    cause = f" ({_SIGNALS[word]})" if word in _SIGNALS else ""
    return f"{name} was ended by {word}{cause}{_tail(program, ran.err or ran.out)}"


def _tail(program: Executable, text: str) -> str:
    """The last lines of an output, as the end of a sentence; without the user's folders."""
    text = text.replace(str(Path(program.folder).absolute()), ".").replace(str(Path.home()), "~")
    lines = [line.strip() for line in text.splitlines() if line.strip()][-TAIL_LINES:]
    said = " | ".join("".join(c if c.isprintable() else " " for c in line) for line in lines)
    return f"; it said: {said[-TAIL_LENGTH:]}" if said else "; it printed nothing"


def _search(pattern: str, ran: Ran) -> re.Match[str] | None:
    """The first match, in standard output or else in standard error."""
    found = re.compile(pattern, re.MULTILINE)
    return found.search(ran.out) or found.search(ran.err)


def _answer(name: str, program: Executable, ran: Ran) -> int:
    found = _search(program.answer, ran)
    if found is None:
        raise ProgramFault(
            f"the answer is missing: nothing that {name} printed matches answer:"
            f" '{program.answer}'{_tail(program, ran.out or ran.err)}",
            "wrong",
        )
    try:
        return int(re.sub(r"[,_']", "", found[1] or ""))
    except ValueError as error:
        raise ProgramFault(
            f"the answer of {name} is {shown(found[1])}, not a whole number; let the parentheses of"
            f" answer: '{program.answer}' hold its digits alone",
            "wrong",
        ) from error


def _seconds(name: str, program: Executable, ran: Ran) -> float:
    """The time of one run: the printed one, or that of the process."""
    if not program.time:
        return ran.wall_s
    found = _search(program.time, ran)
    if found is None:
        raise ProgramFault(
            f"the time is missing: nothing that {name} printed matches time:"
            f" '{program.time}'{_tail(program, ran.out or ran.err)}"
        )
    try:
        number = float(found[1] or "")
    except ValueError as error:
        raise ProgramFault(
            f"the time of {name} is {shown(found[1])}, not a number such as 12.5; let the"
            f" parentheses of time: '{program.time}' hold the number alone"
        ) from error
    seconds = number * UNITS[_unit(name, program, found)]
    if not 0 < seconds < math.inf:
        raise ProgramFault(
            f"{name} says that it took {shown(found[1])}, which is no time: print more digits, or"
            " lengthen what is timed"
        )
    if seconds > ran.wall_s + EARLY:
        raise ProgramFault(
            f"{name} says that it took {seconds:g} s, but it ran for {ran.wall_s:.3g} s: correct"
            " `unit`, or print the time that passed and not that of all cores together"
        )
    return seconds


def _unit(name: str, program: Executable, found: re.Match[str]) -> str:
    """The unit that the study gives, or the word after the number; they must not differ."""
    after = _AFTER.match(found.string, found.end(1))
    printed = after.lastgroup if after else None
    if printed and program.unit and printed != program.unit:
        raise ProgramFault(
            f"the study says `unit: {program.unit}`, but {name} prints '{found[1]}"
            f"{after[0] if after else ''}'; leave `unit` out or correct it"
        )
    unit = program.unit or printed
    if not unit:
        raise ProgramFault(
            f"the time of {name}, '{found[1]}', has no unit after it; add `unit: ms` (or ns, us, s)"
        )
    return unit
