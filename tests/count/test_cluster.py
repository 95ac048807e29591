"""Counts whose chunks many devices share: every chunk once, whoever leaves, joins or lies."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from nqbench.cluster.places import Cluster, Member
from nqbench.count.chunks import Board, CpuCounter, Part, Waiting, count_in_chunks
from nqbench.count.cluster import ClusterCounter, Slot, Work
from nqbench.errors import DeviceLost, WrongAnswer
from nqbench.workloads.counting.known import SOLUTIONS

BOARD = Board.of(9)
WEIGHTS = {p.first: p.weights for p in CpuCounter(1).parts(BOARD, range(BOARD.chunks), bool)}


class Task(Future[Part]):
    """A task that a worker has finished."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = str(key)


class Workers:
    """Stands in for a cluster: its workers answer at once; some lie, some leave."""

    run = "run"

    def __init__(self, names: Sequence[str], liars: Sequence[str] = ()) -> None:
        self.members = {name: Member(name, {"host": name, "cores": 1}) for name in names}
        self.liars = liars
        self.out: dict[str, str] = {}
        self.done: list[tuple[str, Work]] = []
        self.before: Callable[[Work], None] = lambda _: None
        self._keys = itertools.count()

    def look(self) -> dict[str, Member]:
        return self.members

    def submit(self, task: object, work: Work, needs: object, at: Sequence[str]) -> Task:
        self.before(work)
        found = Task(next(self._keys))
        if at[0] in self.members:
            found.set_result(self.ask(task, work, needs, at))
        return found

    def ask(self, task: object, work: Work, needs: object, at: Sequence[str]) -> Part:
        right = sum(WEIGHTS[chunk] for chunk in range(work.first, work.first + work.count))
        self.done.append((at[0], work))
        said = right + (at[0] in self.liars)
        return Part(work.first, work.count, said, float(work.count), right if work.again else None)

    def when_done(self, future: Task, put: Callable[[tuple[str, Part]], None]) -> None:
        future.add_done_callback(lambda done: put((future.key, done.result())))

    def take_out(self, address: str, reason: str) -> None:
        del self.members[address]
        self.out[address] = reason


def count(workers: Workers, log: Path | None = None, checked: float = 0.0) -> Any:
    """Count nine queens on these workers."""
    counter = ClusterCounter(cast(Cluster, workers), "cpu")
    return count_in_chunks(9, counter, log, checked=checked)


def test_chunks_are_shared_and_resumed(tmp_path: Path) -> None:
    log, workers = tmp_path / "log", Workers("abc")
    assert count(workers, log).solutions == SOLUTIONS[9]
    assert {name for name, _ in workers.done} == {*"abc"}
    lines = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    assert sum(line.get("count", 1) for line in lines) == BOARD.chunks
    assert count(Workers("d"), log).resumed == BOARD.chunks
    kept = log.read_text().splitlines(keepends=True)
    log.write_text("".join(kept[: len(kept) // 2]))
    again = Workers("ab")
    assert count(again, log).solutions == SOLUTIONS[9]
    assert len(again.done) < len(workers.done)


def test_a_worker_that_leaves_or_joins(tmp_path: Path) -> None:
    workers = Workers("ab")

    def change(work: Work) -> None:
        if len(workers.done) == 5:
            workers.members.pop("b", None)  # with what it was given
            workers.members["c"] = replace(workers.members["a"], address="c")
            workers.members["c"].described["host"] = "c"

    workers.before = change
    assert count(workers).solutions == SOLUTIONS[9]
    assert {name for name, _ in workers.done} == {*"abc"}


def test_a_worker_whose_sums_differ_is_taken_out_with_the_reason(tmp_path: Path) -> None:
    workers = Workers("abc", liars="b")
    assert count(workers, tmp_path / "log").solutions == SOLUTIONS[9]
    assert [*workers.out] == ["b"]
    assert "another device has" in workers.out["b"]


def test_the_last_device_is_believed_no_more_than_without_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(WrongAnswer, match="one of them is wrong"):
        count(Workers("a", liars="a"), tmp_path / "log")
    workers = Workers("a")
    workers.before = lambda _: workers.members.clear()
    with pytest.raises(DeviceLost, match="no device of the cluster is left"):
        count(workers)


@pytest.mark.parametrize(
    ("speeds", "checks", "expected"),
    [
        ((1640, 1640), False, [("a", 512), ("b", 512)]),  # N = 20 on two H200
        ((1640,), False, [("a", 1024)]),
        ((1640, 820), False, [("a", 683), ("b", 341)]),
        ((150, 150), False, [("a", 150), ("b", 150), ("a", 150), ("b", 150)]),  # N = 21
        ((150, 150), True, [("a", 19), ("b", 19), ("a", 150), ("b", 150)]),
    ],
)
def test_devices_get_runs_that_end_together(
    speeds: Sequence[int], checks: bool, expected: Sequence[tuple[str, int]]
) -> None:
    workers = Workers("ab"[: len(speeds)])
    workers.before = lambda _: workers.members.clear()  # nobody answers
    counter = ClusterCounter(cast(Cluster, workers), "cpu")
    counter._slots = {
        name: Slot(name, "cpu", {}, 1, speed, (name,))
        for name, speed in zip("ab", speeds, strict=False)
    }
    counter._waiting = Waiting(range(1024))
    counter._checks = checks
    counter._hand_out(20, lambda: False)
    flights = [(f.slot.name, f.work.count) for f in counter._flights.values()]
    assert flights == expected
