"""The runner itself is killed or interrupted; what was measured stays, and the rest follows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from nqbench.runs.folder import RunWriter
from nqbench.runs.frame import load
from nqbench.runs.reading import RECORDS, read_records
from tests.measure.test_pool import wait_gone
from tests.measure.test_runner import QUICK, measure, sizes

# sleep=1: launches of 0.4 ms to 6.4 ms really take place, so that there is time to interrupt.
DEVICE = "fake:noise=0.003,round=0.004,seed=7,sleep=1"
SIZES = (8, 9, 10, 11)
HOW = replace(QUICK, budget_s=60.0)
"""Time enough that noise alone decides how many samples are taken, on a busy machine too."""

RUNNER = """
import sys
from pathlib import Path
from tests.measure.test_interrupted import DEVICE, HOW, SIZES
from tests.measure.test_runner import measure, sizes
outcome = measure(Path(sys.argv[1]), sizes(*SIZES), DEVICE, HOW, isolate=sys.argv[2] == "isolate")
sys.stdout.write(f"interrupted={outcome.interrupted} {dict(outcome.counts)}")
"""


def start(path: Path, how: str) -> subprocess.Popen[str]:
    """A runner in a process of its own."""
    command = [sys.executable, "-c", RUNNER, str(path), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for_lines(path: Path, count: int) -> None:
    """Wait until so many records are on disk."""
    deadline = time.monotonic() + 30
    file = path / RECORDS
    while not file.exists() or file.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline, "the runner writes nothing"
        time.sleep(0.002)


def test_a_killed_runner_takes_its_worker_along_and_frees_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with start(path, "isolate") as runner:
        wait_for_lines(path, 5)
        worker = read_records(path).records[-1].worker
        runner.kill()
    assert wait_gone(worker)
    RunWriter(path).close()


def test_ctrl_c_keeps_what_was_measured_and_ends_the_workers(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with start(path, "isolate") as runner:
        wait_for_lines(path, 6)
        os.kill(runner.pid, signal.SIGINT)
        assert runner.stdout is not None
        said = runner.stdout.read()
        assert runner.wait(10) == 0
    assert said.startswith("interrupted=True")
    records = read_records(path)
    assert len(records.records) >= 6
    assert not records.torn
    assert all(wait_gone(pid) for pid in {r.worker for r in records.records})
    assert measure(path, sizes(*SIZES), DEVICE, HOW).counts == {"ok": 4}
    assert len(load(path)) == 16
