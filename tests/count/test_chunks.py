"""A long count continues where it was killed, on any device, and never mixes two counts."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from nqbench.count import counters, solutions
from nqbench.count.choice import KernelChoice
from nqbench.count.chunks import ChunkedBoard, ChunkSum, CountLog
from nqbench.count.solutions import Counted, count_in_chunks, count_solutions
from nqbench.errors import StudyError, WrongAnswer
from nqbench.workloads.counting import border
from nqbench.workloads.counting.known import SOLUTIONS

CHOICE = KernelChoice(
    "9.0", "frontier.predicated", 18, {18: 7}, {"block_size": 64, "jobs_made": "gpu"}
)
STUCK = """
import sys, threading
from pathlib import Path
from nqbench.count.chunks import CountLog
from nqbench.count.solutions import count_solutions

append, added = CountLog.append, []

def stuck(*words):
    append(*words)
    added.append(words)
    if len(added) == 10:
        print("ten", flush=True)
        threading.Event().wait()

CountLog.append = stuck
count_solutions(13, "cpu", Path(sys.argv[1]))
"""


class FourLaunches(counters.KernelCounter):
    """Launches of 20 of the 78 chunks of 8 queens."""

    def _size(self, slot: counters.ChunkSlot) -> int:
        return 20


@pytest.fixture(scope="module")
def simulated() -> counters.KernelCounter:
    return FourLaunches(counters.KernelLauncher("sim:mini", CHOICE), 8)


def chunks_of(log: Path) -> list[str]:
    return log.read_text().splitlines()[1:] if log.exists() else []


def test_a_killed_count_is_resumed(tmp_path: Path) -> None:
    log = tmp_path / "count.jsonl"
    words = [sys.executable, "-c", STUCK, str(log)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ten\n"
        process.kill()
    kept = chunks_of(log)
    assert len(kept) == 10
    assert not any("count" in json.loads(line) for line in kept), "one chunk each"
    with log.open("a") as file:
        file.write('{"chunk": 1')  # as if killed while writing
    found = count_in_chunks(13, counters.CpuCounter(), log, checked=0)
    assert (found.solutions, found.resumed) == (SOLUTIONS[13], 10)
    assert chunks_of(log)[:10] == kept
    again = count_in_chunks(13, counters.CpuCounter(), log)
    assert (again.solutions, again.resumed) == (SOLUTIONS[13], again.chunks)


@pytest.mark.parametrize(("n", "threads", "held"), [(7, 1, 0), (9, 3, 40), (12, 2, 0)])
def test_chunks_sum_up(
    n: int, threads: int, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk a second, by its clock: as many seconds are left as chunks. What a file ``held`` took
    no time."""
    log, before = tmp_path / "log" if held else None, 0.0
    if log:
        count_in_chunks(n, counters.CpuCounter(1), log)
        log.write_text("".join(log.read_text().splitlines(keepends=True)[: 1 + held]))
        before = sum(json.loads(line)["weights"] for line in chunks_of(log)) * 2 / 3
    clock = mock.Mock(perf_counter=itertools.count().__next__)
    monkeypatch.setattr("nqbench.count.solutions.time", clock)
    told: list[tuple[float, ...]] = []
    found = count_in_chunks(
        n, counters.CpuCounter(threads), log, progress=lambda *what: told.append(what)
    )
    assert found.solutions == SOLUTIONS[n]
    whole = found.chunks
    assert [(share, left_s) for share, _, left_s in told] == [
        pytest.approx((done / whole, whole - done)) for done in range(held + 1, whole + 1)
    ]
    assert told[-1][1] * (whole - held) == pytest.approx(SOLUTIONS[n] - before)


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("n", [7, 8, 11])
def test_a_search_of_whole_boards_agrees_chunk_by_chunk(n: int, halves: bool) -> None:
    board = ChunkedBoard.of(n, halves)
    every = 1 if halves else 5
    parts = [*counters.CpuCounter(1).parts(board, range(0, board.chunks, every), 1.0)]
    assert [part.again for part in parts] == [part.weights for part in parts]
    assert any(part.weights for part in parts)


@pytest.mark.parametrize(
    ("chunk_s", "sizes"),
    [(0.02, [6, 6, *20 * [50], 12]), (0.001, [6, 6, 1012]), (2.0, [6, 6, *1012 * [1]])],
)
def test_launches_of_a_second_after_short_ones(
    chunk_s: float, sizes: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 chunks per second are predicted."""

    def counted(_: object, __: object, chunks: range, again: bool) -> ChunkSum:
        assert not again
        return ChunkSum(chunks.start, len(chunks), 0, len(chunks) * chunk_s)

    board = ChunkedBoard.of(13)
    monkeypatch.setattr(KernelChoice, "seconds", lambda *_: board.chunks / 50)
    monkeypatch.setattr(counters.KernelLauncher, "count", counted)
    counter = counters.KernelCounter(counters.KernelLauncher("sim:mini", CHOICE), 13)
    parts = sorted(counter.parts(board, range(board.chunks), None), key=lambda part: part.first)
    assert [part.count for part in parts] == sizes


def test_all_chunks_are_alike() -> None:
    board = ChunkedBoard.of(13)
    some = [board.jobs_of(range(first, first + 64)) for first in range(0, board.chunks - 64, 64)]
    parts = [border.count_jobs(13, 7, above=jobs) for jobs in some]
    assert max(parts) < 1.2 * min(parts)
    larger = [ChunkedBoard.of(n) for n in (22, 23)]  # one row more: eight times as many
    assert [(board.depth, board.chunks) for board in larger] == [(4, 1024), (5, 8192)]


def test_one_device_continues_where_another_one_stopped(
    tmp_path: Path, simulated: counters.KernelCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launches of the simulator, two of them lost, then the CPU, then nothing is left."""
    log = tmp_path / "log"
    drawn = iter([0.9, 0.1, 0.9])  # of the second launch on; the first is always checked
    monkeypatch.setattr("random.random", lambda: next(drawn))
    found = count_in_chunks(8, simulated, log, checked=0.2)
    monkeypatch.undo()
    assert (found.solutions, found.parts, found.checked) == (SOLUTIONS[8], 4, 40)
    head, *lines = log.read_text().splitlines()
    lines.sort(key=lambda line: json.loads(line)["chunk"])  # two launches are under way at a time
    again = [json.loads(line).get("again") for line in lines]
    assert again == ["zhang2011.pool_monolithic on sim:mini", None] * 2
    log.write_text("\n".join([head, lines[0], lines[3]]) + "\n")
    resumed = count_in_chunks(8, counters.CpuCounter(2), log)
    assert (resumed.solutions, resumed.resumed) == (SOLUTIONS[8], 38)
    whole = count_in_chunks(8, simulated, log)
    assert (whole.solutions, whole.parts) == (SOLUTIONS[8], 0)


@pytest.mark.parametrize("n", [8, 11])
def test_a_file_of_half_boards_goes_on_as_it_was_begun(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setattr("nqbench.count.counters.HALVES_N", [n])
    assert "cpu.middle_multicore on cpu" in count_solutions(n, "cpu", log).how
    monkeypatch.undo()
    lines = log.read_text().splitlines()
    log.write_text("\n".join(lines[:4]) + "\n")
    found = count_in_chunks(n, counters.CpuCounter(2), log)
    assert (found.solutions, found.resumed, found.checked > 0) == (SOLUTIONS[n], 3, True)
    assert all("pairs of half boards" in line for line in log.read_text().splitlines()[1:])
    if n == 8:  # which the simulator takes whole
        log.write_text("\n".join(lines[:4]) + "\n")
        chosen = KernelChoice("9.0", "middle", 18)
        found = count_in_chunks(
            n, FourLaunches(counters.KernelLauncher("sim:mini", chosen), n), log
        )
        assert (found.solutions, found.resumed, found.checked > 0) == (SOLUTIONS[n], 3, True)
        assert '"again": "a test pair by pair on sim:mini"' in log.read_text()


@pytest.mark.parametrize("by", [12, -12])
@pytest.mark.parametrize("on", ["cpu", "sim"])
def test_a_wrong_chunk_stops_the_count(
    tmp_path: Path, on: str, by: int, simulated: counters.KernelCounter
) -> None:
    log = tmp_path / "log"
    counter: counters.ChunkCounter = counters.CpuCounter(1) if on == "cpu" else simulated
    right = counter.parts

    def wrong(board: ChunkedBoard, left: list[int], checked: float | None) -> Iterator[ChunkSum]:
        for number, part in enumerate(right(board, left, checked)):
            yield replace(part, weights=part.weights + by) if number == 2 else part

    said = r"chunks \d+ to \d+ of 8 queens: the weights sum up"
    with mock.patch.object(counter, "parts", wrong), pytest.raises(WrongAnswer, match=said) as stop:
        count_in_chunks(8, counter, log, checked=1)
    assert counter.name in str(stop.value)
    assert counter.check_name in str(stop.value)
    assert len(chunks_of(log)) == 2


def test_a_share_of_the_chunks_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", itertools.cycle([0.04, *[0.06] * 19]).__next__)
    found = count_in_chunks(12, counters.CpuCounter(), tmp_path / "log", checked=0.05)
    assert found.checked == 1 + -(-(found.chunks - 1) // 20)
    assert count_in_chunks(12, counters.CpuCounter()).checked == 0
    sums = [ChunkSum(0, 40, 100, 1.5, 100), ChunkSum(40, 38, 38, 2.5)]
    for halves, name, share in (([8], "a", 0.002), ([], "b", 0.01), ([], "", None)):
        counter: Any = mock.Mock(halves_n=halves, check_name="another")
        counter.configure_mock(name="one")
        counter.parts.side_effect = lambda *_: (part for part in sums)
        chunks = ChunkedBoard.of(8, bool(halves)).chunks
        whole, file = 138 if halves else 92, tmp_path / name if name else None
        assert count_in_chunks(8, counter, file) == Counted(whole, chunks, 0, 40, 2, 4.0)
        assert counter.parts.call_args.args[2] == share


def test_files_of_something_else_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solutions, "MIDDLE_N", 7)
    CountLog(tmp_path / "halves", ChunkedBoard.of(8, halves=True).head).close()
    with pytest.raises(StudyError, match="which a CPU counts up to N = 7; continue on a GPU"):
        count_solutions(8, "cpu", tmp_path / "halves")
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
        ({"chunk": 3}, r"log:\d+ is not a line of a count; delete it"),
    ]:
        log.write_text("\n".join([*lines, json.dumps(line)]) + "\n")
        with pytest.raises(StudyError, match=said):
            count_solutions(8, "cpu", log)
    with (
        closing(CountLog(tmp_path / "other", ChunkedBoard.of(8).head)),
        pytest.raises(StudyError, match="is in use by another count"),
    ):
        count_solutions(8, "cpu", tmp_path / "other")
    log.write_bytes(b"a letter\xff\n")
    with pytest.raises(StudyError, match="log:1 is not a line of a count"):
        count_solutions(8, "cpu", log)
    with pytest.raises(StudyError, match="cannot be written"):
        count_solutions(8, "cpu", tmp_path / "none" / "log")
    with pytest.raises(StudyError, match="for 8 queens or more"):
        count_solutions(7, "cpu", log)
