"""Counts whose chunks many devices share: every chunk once, whoever leaves, joins or lies."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from nqbench.cluster.members import Cluster, Member
from nqbench.count.chunks import ChunkedBoard, ChunkSum
from nqbench.count.cluster import ChunkRequest, ClusterCounter
from nqbench.count.counters import ChunkSlot, count_on_core
from nqbench.count.solutions import Counted, count_in_chunks
from nqbench.errors import DeviceLost, WrongAnswer
from nqbench.workloads.counting.known import SOLUTIONS

BOARD = ChunkedBoard.of(9)
WEIGHTS = [count_on_core(BOARD, range(i, i + 1), False).weights for i in range(BOARD.chunks)]


@dataclass(eq=False)
class Task:
    """A task that a worker has finished, or that is pending because its worker has left."""

    key: str
    status: str = "pending"
    result: ChunkSum | None = None

    def cancel(self) -> None:
        """Nobody does it any more."""


class Completed:
    """Stands in for Dask's ``as_completed``: tasks are done when they are added."""

    def __init__(self, **_: object) -> None:
        self.ready: list[Task] = []
        self.thread_condition = threading.Condition()

    def add(self, task: Task) -> None:
        if task.status == "finished":
            self.ready.append(task)

    def has_ready(self) -> bool:
        return bool(self.ready)

    def next_batch(self, block: bool) -> list[tuple[Task, ChunkSum | None]]:
        assert not block
        ready, self.ready = self.ready, []
        return [(task, task.result) for task in ready]


class Workers:
    """Stands in for a cluster and its client: workers answer at once; some lie, some leave."""

    run, stopped, loop = "run", False, None

    def __init__(self, names: Sequence[str], liars: Sequence[str] = ()) -> None:
        self.client = self
        self.members = {name: Member(name, name, 1) for name in names}
        self.liars = liars
        self.out: dict[str, str] = {}
        self.done: list[tuple[str, ChunkRequest]] = []
        self.before: Callable[[ChunkRequest], None] = lambda _: None
        self._keys = itertools.count()

    def look(self) -> dict[str, Member]:
        return self.members

    def submit(self, task: object, asked: ChunkRequest, workers: list[str], **_: object) -> Task:
        self.before(asked)
        key, (name,) = str(next(self._keys)), workers
        if name not in self.members:
            return Task(key)
        right = sum(WEIGHTS[asked.chunks.start : asked.chunks.stop])
        self.done.append((name, asked))
        said, again = right + (name in self.liars), right if asked.again else None
        count = len(asked.chunks)
        return Task(key, "finished", ChunkSum(asked.chunks.start, count, said, count, again))

    def evict(self, address: str, reason: str) -> None:
        del self.members[address]
        self.out[address] = reason


@pytest.fixture(autouse=True)
def without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed.as_completed", Completed)
    monkeypatch.setattr("nqbench.cluster.members.WAIT_S", 0.0)


def count(workers: Workers, log: Path | None = None, checked: float = 0.0) -> Counted:
    """Count nine queens on these workers."""
    counter = ClusterCounter(cast(Cluster, workers), "cpu")
    return count_in_chunks(9, counter, log, checked=checked)


def test_a_worker_that_leaves_or_joins() -> None:
    workers = Workers("ab")

    def change(_: ChunkRequest) -> None:
        if len(workers.done) == 5:
            workers.members.pop("b", None)  # with what it was given
            workers.members["c"] = Member("c", "c", 1)

    workers.before = change
    assert count(workers).solutions == SOLUTIONS[9]
    assert {name for name, _ in workers.done} == {*"abc"}


def test_a_worker_whose_sums_differ_is_evicted_with_the_reason(tmp_path: Path) -> None:
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
    ("speeds", "checked", "expected"),
    [
        ((1640, 1640), None, [("a", 512), ("b", 512)]),  # N = 20 on two H200
        ((1640,), None, [("a", 1024)]),
        ((1640, 820), None, [("a", 683), ("b", 341)]),
        ((150, 150), None, [("a", 150), ("b", 150), ("a", 150), ("b", 150)]),  # N = 21
        ((150, 150), 0.0, [("a", 19), ("b", 19), ("a", 150), ("b", 150)]),
    ],
)
def test_devices_get_ranges_that_end_together(
    speeds: Sequence[int], checked: float | None, expected: Sequence[tuple[str, int]]
) -> None:
    given: list[tuple[str, int]] = []

    class Enough(Exception):
        """Everybody has what they may have."""

    class Speeds(ClusterCounter):
        def _look(self) -> None:
            self._slots = self._slots or {
                name: ChunkSlot(name, 1, 2, speed, spec="sim", who=({}, [name]))
                for name, speed in zip("ab", speeds, strict=False)
            }

        def _begin(self, slot: Any, chunks: range, again: bool) -> None:
            given.append((slot.name, len(chunks)))

        def _next(self) -> ChunkSum | None:
            raise Enough

    board = replace(BOARD, edges=BOARD.edges[[0]].repeat(1025))
    counter = Speeds(cast(Cluster, Workers("ab")), "sim")
    with pytest.raises(Enough):
        next(counter.parts(board, range(1024), checked))
    assert given == expected
