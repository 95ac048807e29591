"""Asking the questions, all at once, each in its own process and within a time limit."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

LIMIT_S: Final = 10.0
"""A driver that has not answered by then hangs: starting many GPUs takes about 3 s."""
_OWN_ERROR: Final = re.compile(r"nqbench\.errors\.\w+: ")
"""How Python names our own errors in a traceback's last line; their text is a whole sentence."""
_NAMED: Final = re.compile(
    r"^[\w.]*(?:Error|Exception|Exit|Unavailable|NotFound)\w*(?:: .*)?$", re.MULTILINE
)
_ABSENT: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: ``value`` (JSON), or a ``failure`` in words, one of them empty."""

    value: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""

    @property
    def ok(self) -> bool:
        """Whether the question was answered."""
        return not self.failure


Answers = Mapping[str, Answer]


def command(name: str) -> list[str]:
    """The command that asks one question."""
    return [sys.executable, "-m", "nqbench.doctor.questions", name]


def ask(commands: Mapping[str, Sequence[str]], limit_s: float = LIMIT_S) -> dict[str, Answer]:
    """Run all commands together; each name with its answer. ``limit_s`` is for all of them."""
    # A package's warning is no answer, and neither is one that a variable turns into an error.
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    started = {
        name: subprocess.Popen(
            words,
            env=quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for name, words in commands.items()
    }
    deadline = time.monotonic() + limit_s
    return {name: _collect(process, deadline, limit_s) for name, process in started.items()}


def _collect(process: subprocess.Popen[bytes], deadline: float, limit_s: float) -> Answer:
    try:
        raw, complaints = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Answer(failure=f"no answer within {limit_s:g} s")
    out, err = raw.decode(errors="replace"), complaints.decode(errors="replace")
    if process.returncode < 0:
        return Answer(failure=f"killed by {signal.Signals(-process.returncode).name}")
    if process.returncode:
        return Answer(failure=_reason(err) or f"exit code {process.returncode}")
    try:
        # A package may print while it is imported; the answer is the last thing written.
        value = json.loads(out.strip().rpartition("\n")[2])
    except ValueError:
        return Answer(failure=f"an answer that cannot be read: {out.strip()[-80:]!r}")
    return Answer(value=value)


def _reason(text: str) -> str:
    """What a traceback says, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    # A message may go on for several lines; the one that names the exception says most.
    named = _NAMED.findall(text)
    last = named[-1] if named else lines[-1]
    absent = _ABSENT.match(last)
    return f"{absent[1]} is not installed" if absent else _OWN_ERROR.sub("", last, count=1)
