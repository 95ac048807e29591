"""External programs: one process is one launch, timed by its own clock or by the wall clock.

A program runs without a shell, in the study's folder, with its own group of processes, no input,
and the environment of ``nqbench``. Its output goes to files, so that it never blocks.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np

from nqbench.device import Launch, Prepared, Resources
from nqbench.errors import LaunchStatus, LaunchTimeout, ProgramFault
from nqbench.plan import CommandPlan, Outputs
from nqbench.point import Executable
from nqbench.system.suggest import shown

CALLER_PATH: Final = "NQBENCH_CALLER_PYTHONPATH"
"""The PYTHONPATH that ``nqbench`` was started with: its workers have another one."""
MAX_OUTPUT: Final = 1 << 24
"""Bytes of output that are kept and searched; a program that prints more is stopped."""
LOOK_S: Final = 0.05
"""Between looks at how much a program has printed."""
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
CAUSES: Final = {
    "SIGSEGV": "native code used memory that is not its own",
    "SIGABRT": "native code gave up by itself",
    "SIGFPE": "it divided by zero",
    "SIGILL": "it holds instructions that this CPU does not have: compile it on this machine",
    "SIGKILL": "perhaps by the system for lack of memory (see dmesg): lower n or close programs",
    "SIGBUS": "a file it had mapped was cut short, perhaps for lack of disk space",
    "SIGXCPU": "the limit on CPU time (ulimit -t) is too low",
}
"""What the end of a process by a signal may mean."""


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
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        try:
            process = subprocess.Popen(
                program.command,
                cwd=program.folder,
                env=environment | dict(program.environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                process_group=0,
            )
        except OSError as error:
            raise ProgramFault(_cannot_start(name, program, error)) from error
        try:
            wall_s = _wait(name, process, started, timeout_s, (out, err))
        finally:
            with suppress(ProcessLookupError):  # what it left running would disturb what comes next
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        ran = Ran(_text(out), _text(err), wall_s)
    if not process.returncode:
        return ran
    said = _tail(program, ran.err or ran.out)
    if process.returncode > 0:
        raise ProgramFault(f"{name} ended with exit code {process.returncode}{said}")
    by = signal_name(process.returncode)
    cause = f" ({CAUSES[by]})" if by in CAUSES else ""
    raise ProgramFault(f"{name} was ended by {by}{cause}{said}", "crashed")


def _wait(
    name: str,
    process: subprocess.Popen[bytes],
    started: float,
    timeout_s: float | None,
    outputs: Sequence[IO[bytes]],
) -> float:
    """Wait for the end of the process, in a thread that the system wakes at once; its seconds."""
    ended = threading.Event()

    def wait() -> None:
        process.wait()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    over = False
    while not over:
        passed_s = time.perf_counter() - started
        if timeout_s is not None and passed_s >= timeout_s:
            raise LaunchTimeout(f"{name} did not end within {timeout_s:g} s and was stopped")
        over = ended.wait(min(LOOK_S, (timeout_s or math.inf) - passed_s))
        wall_s = time.perf_counter() - started
        if sum(os.fstat(file.fileno()).st_size for file in outputs) > MAX_OUTPUT:
            raise ProgramFault(
                f"{name} printed more than {MAX_OUTPUT >> 20} MiB and was stopped; let it print"
                " its answer and its time only"
            )
    return wall_s


def _text(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read().decode(errors="replace")


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


def signal_name(code: int) -> str:
    """The signal that ended a process with a negative exit code."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _tail(program: Executable, text: str) -> str:
    """The last lines of an output, as the end of a sentence; without the user's folders."""
    text = text.replace(str(Path(program.folder).absolute()), ".").replace(str(Path.home()), "~")
    lines = [line.strip() for line in text.splitlines() if line.strip()][-3:]
    said = " | ".join("".join(c if c.isprintable() else " " for c in line) for line in lines)
    return f"; it said: {said[-300:]}" if said else "; it printed nothing"


def _search(
    what: str, status: LaunchStatus, name: str, program: Executable, ran: Ran
) -> re.Match[str]:
    """The first match of the pattern of ``what``, in standard output or else in standard error."""
    pattern = getattr(program, what)
    compiled = re.compile(pattern, re.MULTILINE)
    if (found := compiled.search(ran.out) or compiled.search(ran.err)) is None:
        raise ProgramFault(
            f"the {what} is missing: nothing that {name} printed matches {what}:"
            f" '{pattern}'{_tail(program, ran.out or ran.err)}",
            status,
        )
    return found


def _answer(name: str, program: Executable, ran: Ran) -> int:
    found = _search("answer", "wrong", name, program, ran)
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
    found = _search("time", "launch_error", name, program, ran)
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
    if seconds > ran.wall_s + 0.01:  # a clock may tick every 10 ms
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
