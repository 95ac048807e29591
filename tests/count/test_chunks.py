"""A long count goes on where it was killed, on any device, and never mixes two counts."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from nqbench.count.choice import KernelChoice
from nqbench.count.chunks import ChunkedBoard, ChunkRange, ChunkSum, CountLog
from nqbench.count.counters import ChunkCounter, CpuCounter, KernelCounter
from nqbench.count.solutions import count_in_chunks, count_solutions
from nqbench.devices.simulator import SimDevice
from nqbench.errors import StudyError, WrongAnswer
from nqbench.workloads.counting import border
from nqbench.workloads.counting.known import SOLUTIONS

CHOICE = KernelChoice(
    "9.0", "frontier.predicated", 18, {18: 7}, {"block_size": 64, "jobs_made": "gpu"}
)


@pytest.fixture(scope="module")
def simulated() -> KernelCounter:
    """Short launches: several for a board of 10."""
    return KernelCounter(SimDevice("mini"), CHOICE, launch_s=1e-3)


def chunks_of(log: Path) -> list[str]:
    return log.read_text().splitlines()[1:] if log.exists() else []


@pytest.mark.timeout(120)
def test_a_killed_count_is_resumed(tmp_path: Path) -> None:
    log = tmp_path / "count.jsonl"
    command = [sys.executable, "-m", "nqbench", "count", "16", "--device", "cpu", "--log", str(log)]
    core = {min(os.sched_getaffinity(0))}  # a second of work, however many there are
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, core)
    )
    while len(chunks_of(log)) < 10 and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = chunks_of(log)
    whole = [line for line in kept if line.endswith("}")]
    with log.open("a") as file:
        file.write('{"chunk": 1')  # as if killed while writing
    found = count_in_chunks(16, CpuCounter(), log, checked=0)
    assert found.solutions == SOLUTIONS[16]
    assert len(whole) <= found.resumed < found.chunks
    assert chunks_of(log)[: len(whole)] == whole
    again = count_in_chunks(16, CpuCounter(), log)
    assert (again.solutions, again.resumed) == (SOLUTIONS[16], again.chunks)


@pytest.mark.parametrize("n", [7, 8, 9, 12, 13])
@pytest.mark.parametrize("threads", [1, 3])
def test_chunks_sum_up(n: int, threads: int) -> None:
    told: list[tuple[float, float, float]] = []
    found = count_in_chunks(n, CpuCounter(threads), progress=lambda *now: told.append(now))
    assert found.solutions == SOLUTIONS[n]
    shares = [share for share, _, _ in told]
    assert shares == sorted(shares)
    assert (shares[-1], told[-1][2]) == (1, 0)
    assert len(told) == found.chunks


@pytest.mark.parametrize("n", range(7, 13))
def test_a_search_of_whole_boards_agrees_chunk_by_chunk(n: int) -> None:
    board = ChunkedBoard.of(n)
    parts = [*CpuCounter(1).parts(board, range(0, board.chunks, 5), 1.0)]
    assert [part.again for part in parts] == [part.weights for part in parts]
    assert any(part.weights for part in parts)


def test_all_chunks_are_alike() -> None:
    board = ChunkedBoard.of(13)
    some = [board.jobs_of(ChunkRange(first, 64)) for first in range(0, board.chunks - 64, 64)]
    parts = [border.count_below(13, board.depth, jobs, 7) for jobs in some]
    assert max(parts) < 1.2 * min(parts)


def test_one_device_goes_on_where_another_one_stopped(
    tmp_path: Path, simulated: KernelCounter
) -> None:
    """The launches of the simulator, a part of them lost, then the CPU, then nothing is left."""
    log = tmp_path / "log"
    random.seed(1)
    found = count_in_chunks(10, simulated, log, checked=0.2)
    assert found.solutions == SOLUTIONS[10]
    lines = log.read_text().splitlines()
    parts = [json.loads(line) for line in lines[1:]]
    assert len(parts) == found.parts > 4
    assert found.checked == sum(p.get("count", 1) for p in parts if "again" in p)
    assert parts[0]["again"] == "zhang2011.pool_monolithic on sim:mini"
    lost = parts[1].get("count", 1) + parts[2].get("count", 1)
    log.write_text("\n".join([*lines[:2], *lines[4:]]) + "\n")
    again = count_in_chunks(10, CpuCounter(2), log)
    assert (again.solutions, again.resumed) == (SOLUTIONS[10], again.chunks - lost)
    whole = count_in_chunks(10, simulated, log)
    assert (whole.solutions, whole.parts) == (SOLUTIONS[10], 0)


@pytest.mark.parametrize("on", ["cpu", "sim"])
def test_a_wrong_chunk_stops_the_count(tmp_path: Path, on: str, simulated: KernelCounter) -> None:
    log = tmp_path / "log"
    counter: ChunkCounter = CpuCounter(1) if on == "cpu" else simulated
    right = counter.parts

    def wrong(board: ChunkedBoard, left: list[int], checked: float | None) -> Iterator[ChunkSum]:
        for number, part in enumerate(right(board, left, checked)):
            yield replace(part, weights=part.weights + 12) if number == 2 else part

    with (
        mock.patch.object(counter, "parts", wrong),
        pytest.raises(
            WrongAnswer, match=r"chunks \d+ to \d+ of 10 queens: the weights sum up"
        ) as stop,
    ):
        count_in_chunks(10, counter, log, checked=1)
    assert counter.name in str(stop.value)
    assert counter.check_name in str(stop.value)
    assert len(chunks_of(log)) == 2
    assert count_in_chunks(10, counter, log).solutions == SOLUTIONS[10]


def test_a_share_of_the_chunks_is_checked(tmp_path: Path) -> None:
    random.seed(7)
    found = count_in_chunks(12, CpuCounter(), tmp_path / "log", checked=0.05)
    assert 0.02 * found.chunks < found.checked < 0.09 * found.chunks
    assert count_in_chunks(12, CpuCounter()).checked == 0


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
    for line, said in [
        ({"chunk": 3, "weights": 1}, "holds chunk 3 twice"),
        ({"chunk": 10**6, "weights": 1}, "holds a chunk that the board does not have"),
        ({"chunk": 3}, "is no file of a count"),
    ]:
        log.write_text("\n".join([*lines, json.dumps(line)]) + "\n")
        with pytest.raises(StudyError, match=said):
            count_solutions(8, "cpu", log)
    with (
        closing(CountLog(tmp_path / "other", ChunkedBoard.of(8).head)),
        pytest.raises(StudyError, match="is in use by another count"),
    ):
        count_solutions(8, "cpu", tmp_path / "other")
    log.write_text("a letter\n")
    with pytest.raises(StudyError, match="is no file of a count"):
        count_solutions(8, "cpu", log)
    with pytest.raises(StudyError, match="cannot be written"):
        count_solutions(8, "cpu", tmp_path / "none" / "log")
    with pytest.raises(StudyError, match="for long counts, of 8 queens or more"):
        count_solutions(7, "cpu", log)
