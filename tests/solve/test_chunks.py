"""A long count goes on where it was killed, and never mixes two counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nqbench.errors import StudyError, WrongAnswer
from nqbench.solve.chunks import count_in_chunks
from nqbench.solve.count import count_solutions
from nqbench.workloads.counting.known import SOLUTIONS


def chunks_of(log: Path) -> list[str]:
    return log.read_text().splitlines()[1:] if log.exists() else []


@pytest.mark.timeout(120)
def test_a_killed_count_is_resumed(tmp_path: Path) -> None:
    log = tmp_path / "count.jsonl"
    command = [sys.executable, "-m", "nqbench", "count", "17", "--device", "cpu", "--log", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while len(chunks_of(log)) < 10 and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = chunks_of(log)
    whole = [line for line in kept if line.endswith("}")]
    with log.open("a") as file:
        file.write('{"chunk": 1')  # as if killed while writing
    found = count_in_chunks(17, log)
    assert found.solutions == SOLUTIONS[17]
    assert len(whole) <= found.resumed < found.chunks
    assert chunks_of(log)[: len(whole)] == whole
    again = count_in_chunks(17, log)
    assert (again.solutions, again.resumed) == (SOLUTIONS[17], again.chunks)


@pytest.mark.parametrize("n", [8, 9, 12, 13])
@pytest.mark.parametrize("threads", [1, 3])
def test_chunks_sum_up(tmp_path: Path, n: int, threads: int) -> None:
    assert count_in_chunks(n, tmp_path / "log", threads).solutions == SOLUTIONS[n]


def test_files_of_something_else_are_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    count_solutions(8, "cpu", log)
    with pytest.raises(StudyError, match="is of another count"):
        count_solutions(9, "cpu", log)
    lines = log.read_text().splitlines()
    wrong = json.loads(lines[-1])
    lines[-1] = json.dumps(wrong | {"weights": wrong["weights"] + 3})
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(WrongAnswer, match="do not trust this file"):
        count_solutions(8, "cpu", log)
    log.write_text("a letter\n")
    with pytest.raises(StudyError, match="is no file of a count"):
        count_solutions(8, "cpu", log)
    with pytest.raises(StudyError, match="cannot be written"):
        count_solutions(8, "cpu", tmp_path / "none" / "log")
    with pytest.raises(StudyError, match="for long counts on the CPU"):
        count_solutions(8, "sim", log)
