"""From an empty folder to a verdict with the README's commands alone, timed.

    python -m benchmarks.first_walk [--source REPOSITORY]

Runs the commands under README's heading "First verdict" in an empty folder with an empty home (so
no cache), and prints them with their output and times. Exit code 1 if one fails, no claim got a
verdict, or it took longer than the README may promise.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
REPOSITORY: Final = "REPOSITORY"
"""Stands in the README for where the repository is."""
MAX_S: Final = 360.0
MAX_COMMANDS: Final = 2
KEPT: Final = ("PATH", "LANG", "PYENV_VERSION", "PYENV_ROOT")
"""What a new user has too; and settings of pip, which say where packages come from."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command, what it printed, its seconds of wall and CPU time, and its exit code."""

    command: str
    said: str
    wall_s: float
    cpu_s: float
    code: int


def commands(readme: str) -> list[str]:
    """The commands under the heading, without their comments."""
    section = readme.partition("\n## First verdict\n")[2].partition("\n## ")[0]
    return [line.partition("  #")[0].strip() for line in re.findall(r"^ {4}(.+)$", section, re.M)]


def step(command: str, source: str, folder: Path, home: Path) -> Step:
    """Run one command as a new user would."""
    environment = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith("PIP_")}
    before, started = _cpu_s(), time.monotonic()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command.replace(REPOSITORY, source),
        shell=True,
        cwd=folder,
        env={**environment, "HOME": str(home), "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = _shown(_read(ours)).replace(str(folder), "~")
    code = process.wait()
    return Step(command, said, time.monotonic() - started, _cpu_s() - before, code)


def _read(terminal: int) -> str:
    """What is written to a terminal until nobody can write to it any more."""
    parts = []
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while part := os.read(terminal, 1 << 16):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode(errors="replace")


def _shown(text: str) -> str:
    """What is left on the screen: of lines written over one another the last."""
    lines = (line.rstrip("\r ").rpartition("\r")[2].rstrip() for line in text.split("\n"))
    return "".join(f"{line}\n" for line in lines if line)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Walk, and print the transcript."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", default=str(ROOT), help="repository to clone (this one)")
    source = parser.parse_args().source
    steps = []
    with tempfile.TemporaryDirectory(prefix="first-walk-") as name:
        folder, home = Path(name) / "empty", Path(name) / "home"
        folder.mkdir()
        home.mkdir()
        for command in commands((ROOT / "README.md").read_text(encoding="utf-8")):
            steps.append(step(command, source, folder, home))
            if steps[-1].code:
                break
    for one in steps:
        sys.stdout.write(f"$ {one.command}\n{one.said}")
        sys.stdout.write(f"[{one.wall_s:.0f} s, {one.cpu_s:.0f} s of CPU time]\n")
    wall = sum(one.wall_s for one in steps)
    sys.stdout.write(
        f"[{wall:.0f} s in all, {sum(one.cpu_s for one in steps):.0f} s of CPU time]\n"
    )
    judged = bool(steps) and re.search(r"\d+ holds", steps[-1].said) is not None
    fine = all(not one.code for one in steps) and judged
    return 0 if fine and wall <= MAX_S and len(steps) <= MAX_COMMANDS else 1


if __name__ == "__main__":
    sys.exit(main())
