"""Kill the runner or its worker at random moments, resume, and compare with an undisturbed run.

Each time, the records that the runner had reported must be in the file, what was in the file before
must still be there, and once the run is complete its table must equal that of a run that nobody
disturbed. Linux only: the worker is found in ``/proc``.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nqbench.runs.frame import load
from nqbench.runs.reading import RECORDS, read_records
from tests.measure import clockwork

LONGEST_WAIT_S: Final = 2.5
"""From the first stage, or from the last kill, to the next: a run takes two to six seconds."""
KILLS_PER_LIFE: Final = 3
"""A runner whose workers die faster than they start makes no progress, and shows nothing."""
EARLY: Final = 0.1
"""Share of the lives that may be ended before the first stage, while the runner starts."""
POLL_S: Final = 0.005
LIFE_LIMIT_S: Final = 120.0
COLUMNS: Final = (
    *("n", "round", "status", "answer", "expected", "value_s", "samples", "ended_by"),
    *("split_s", "transfer_s", "kernel_s"),
)
"""What must not depend on interruptions (order, times of day and processes may)."""


class LostRecord(Exception):
    """A record that was promised is gone, or the final table differs."""


@dataclass
class Tally:
    """What was done: kills by victim, and what they left."""

    kills: Counter[str] = field(default_factory=Counter)
    lives: int = 0
    torn: int = 0
    crashed: int = 0
    runs: int = 0

    @property
    def total(self) -> int:
        """All kills."""
        return sum(self.kills.values())


def table(folder: Path) -> list[tuple[object, ...]]:
    """The measurements of a run by size and round, with every sample."""
    frame = load(folder).sort_values(["n", "round"])
    kept = frame[list(COLUMNS)].astype(object).where(frame[list(COLUMNS)].notna(), None)
    ok = [r for r in read_records(folder).records if r.status == "ok"]
    samples = {(r.point["factors"]["n"], r.round): r.samples_s for r in ok}
    return [(*row, samples.get((row[0], row[1]))) for row in kept.itertuples(index=False)]


def campaign(
    folder: Path,
    kills: int,
    seed: int = 0,
    progress: Callable[[Tally], None] = lambda _: None,
    longest_wait_s: float = LONGEST_WAIT_S,
) -> Tally:
    """Kill so many times, over as many runs as that takes. Raises ``LostRecord``.

    ``folder`` must be empty; the run folders stay in it for inspection.
    """
    chance = random.Random(seed)
    tally = Tally()
    clockwork_run(folder / "undisturbed")
    truth = table(folder / "undisturbed")
    if len(truth) != clockwork.MEASUREMENTS:
        raise LostRecord(f"the undisturbed run has {len(truth)} measurements: {truth}")
    victims = [("worker", "runner")[i % 2] for i in range(kills)]
    chance.shuffle(victims)
    while victims:
        run = folder / f"run-{tally.runs}"
        complete = False
        while not complete:
            complete = _life(run, chance, tally, victims, longest_wait_s)
            progress(tally)
        found = table(run)
        if found != truth:
            differing = [pair for pair in zip(found, truth, strict=False) if pair[0] != pair[1]]
            raise LostRecord(f"{run} differs from the undisturbed run: {differing or found}")
        tally.runs += 1
    return tally


def clockwork_run(folder: Path) -> None:
    """A run that nobody disturbs, in a process of its own."""
    subprocess.run(_command(folder, "isolate"), check=True, stdout=subprocess.DEVNULL)


def _command(folder: Path, how: str) -> list[str]:
    return [sys.executable, "-m", "tests.measure.clockwork", str(folder), how]


def _life(
    folder: Path, chance: random.Random, tally: Tally, victims: list[str], longest_wait_s: float
) -> bool:
    """One start of the runner, with the next kills; whether the run is complete now.

    ``victims`` loses those that were killed: on a slow machine it takes more starts, not fewer
    kills of one kind.
    """
    before = _content(folder)
    isolate = "worker" in victims[:1] or chance.random() < 0.5
    how = "isolate" if isolate else "inline"
    most = len(victims) - KILLS_PER_LIFE
    with subprocess.Popen(_command(folder, how), stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        announced = [] if chance.random() < EARLY else [runner.stdout.readline()]
        while len(victims) > max(0, most) and runner.poll() is None:
            time.sleep(chance.uniform(0, longest_wait_s))
            if victims[0] == "worker" and not isolate:
                break
            pid = _worker_of(runner) if victims[0] == "worker" else runner.pid
            if pid is None or runner.poll() is not None:
                continue
            os.kill(pid, signal.SIGKILL)
            victim = victims.pop(0)
            tally.kills[victim] += 1
            if victim == "runner":
                break
        rest, _ = runner.communicate(timeout=LIFE_LIMIT_S)
    tally.lives += 1
    _check(folder, before, [*announced, *rest.splitlines(keepends=True)], tally)
    return runner.returncode == 0


def _check(folder: Path, before: bytes, lines: Sequence[str], tally: Tally) -> None:
    """Compare the file with what it held before this life and with what the runner reported."""
    after = _content(folder)
    whole = before[: before.rfind(b"\n") + 1]
    if not after.startswith(whole):
        raise LostRecord(f"{folder}: records that were there before are gone")
    found = read_records(folder)
    tally.torn += bool(found.torn)
    held = {(r.point["factors"]["n"], r.round, r.status) for r in found.records}
    tally.crashed += sum(1 for r in found.records if r.status == "crashed")
    for line in lines:
        if line.endswith("\n") and line.strip() != clockwork.STARTED:
            n, round_, status = line.split()
            if (int(n), int(round_), status) not in held:
                raise LostRecord(f"{folder}: reported as stored, but not there: {line.strip()}")


def _content(folder: Path) -> bytes:
    file = folder / RECORDS
    return file.read_bytes() if file.exists() else b""


def _worker_of(runner: subprocess.Popen[str]) -> int | None:
    """A child process of the runner, waiting until it has one; none if the runner ends first."""
    children = Path(f"/proc/{runner.pid}/task/{runner.pid}/children")
    while runner.poll() is None:
        try:
            if found := children.read_text().split():
                return int(found[-1])
        except (FileNotFoundError, ProcessLookupError):
            break
        time.sleep(POLL_S)
    return None
