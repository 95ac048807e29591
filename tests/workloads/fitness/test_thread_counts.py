"""The stored map from board size to the best thread count."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from nqbench.errors import DeviceError
from nqbench.workloads.fitness.boards import Board, random_board
from nqbench.workloads.fitness.cpu import plans
from nqbench.workloads.fitness.cpu.plans import CLASSES, choose, lookup, size_class


class Measuring:
    """Stands for the measurement: counts its calls."""

    def __init__(self, best: int) -> None:
        self.best = best
        self.sizes: list[int] = []

    def __call__(self, size: int) -> dict[int, float]:
        self.sizes.append(size)
        return {count: 1.0 + abs(count - self.best) for count in range(1, 61)}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plans, "_measured_here", {})
    monkeypatch.delenv("NQBENCH_MEASURE_THREADS", raising=False)
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path / "cache"))


def forget() -> None:
    """As if the process were a new one."""
    plans._measured_here.clear()


def test_a_class_is_measured_once_and_then_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "threads.json"
    first, second = Measuring(7), Measuring(9)
    assert lookup(path, 1000, first) == 7
    forget()
    assert lookup(path, 1000, second) == 7
    assert lookup(path, 3000, second) == 9
    assert (first.sizes, second.sizes) == ([1000], [3000])
    forget()
    assert lookup(path, 1000, second) == 7  # the second class did not overwrite the first


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b'{"format": 1}',
        b'{"format": 99, "machines": {}}',
        b'{"format": 1, "machines": {"x": 3}}',
    ],
)
def test_a_damaged_file_is_measured_again_and_mended(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "threads.json"
    path.write_bytes(damage)
    assert lookup(path, 100, Measuring(3)) == 3
    forget()
    assert lookup(path, 100, Measuring(4)) == 3


@pytest.mark.parametrize("count", [0, 61, -1, "7", None, 2.5, True])
def test_a_count_that_makes_no_sense_is_measured_again(tmp_path: Path, count: object) -> None:
    path = tmp_path / "threads.json"
    machines = {plans.machine_key(): {"100": count}}
    path.write_text(json.dumps({"format": 1, "machines": machines}), encoding="utf-8")
    assert lookup(path, 100, Measuring(3)) == 3


def test_another_machine_s_entry_is_kept_and_not_used(tmp_path: Path) -> None:
    path = tmp_path / "threads.json"
    other = {"format": 1, "machines": {"another processor": {"100": 40}}}
    path.write_text(json.dumps(other), encoding="utf-8")
    assert lookup(path, 100, Measuring(2)) == 2
    machines = json.loads(path.read_text(encoding="utf-8"))["machines"]
    assert machines == {"another processor": {"100": 40}, plans.machine_key(): {"100": 2}}


def test_it_can_be_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "threads.json"
    lookup(path, 100, Measuring(5))
    forget()
    monkeypatch.setenv("NQBENCH_MEASURE_THREADS", "1")
    again = Measuring(6)
    assert [lookup(path, 100, again) for _ in range(2)] == [6, 6]
    assert again.sizes == [100]  # once per process
    forget()
    monkeypatch.delenv("NQBENCH_MEASURE_THREADS")
    assert lookup(path, 100, again) == 6


def test_a_folder_that_cannot_be_written_holds_for_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    measuring = Measuring(8)
    path = tmp_path / "file" / "threads.json"
    assert [lookup(path, 100, measuring) for _ in range(3)] == [8, 8, 8]
    assert measuring.sizes == [100]


def test_two_at_once_measure_once(tmp_path: Path) -> None:
    path, measuring = tmp_path / "threads.json", Measuring(4)
    found: list[int] = []
    both = [
        threading.Thread(target=lambda: found.append(lookup(path, 100, measuring)))
        for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert found == [4, 4]
    assert measuring.sizes == [100]


def test_the_nearest_class_by_ratio() -> None:
    assert [size_class(n) for n in (1, 100, 170, 180, 600, 9_999, 10**6)] == [
        *(100, 100, 100, 300, 1_000, 10_000, 30_000)
    ]
    assert all(size_class(n) == n for n in CLASSES)


def test_the_fewest_threads_among_equals_are_taken() -> None:
    assert choose({1: 2.0, 4: 1.01, 8: 1.0, 16: 1.5}) == 4
    assert choose({1: 1.03, 2: 1.0}) == 2


def test_a_plan_records_the_number_that_it_uses() -> None:
    plans._measured_here[plans.store_path(), 300] = 11
    board = random_board(300, 1)[np.newaxis]
    plan = plans.cpu_plan({"scheme": "cpu_threads", "threads": "auto"}, board)
    assert plan.about["threads_used"] == 11
    assert plan.arguments[1] == 11


def test_the_real_measurement_covers_the_paper_s_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "ROUNDS", 1)
    seconds = plans.measure_class(100)
    assert list(seconds) == list(range(1, 61))
    assert all(taken > 0 for taken in seconds.values())


def test_counts_that_cannot_be_started_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads(board: Board, count: int) -> int:
        if count > 5:
            raise DeviceError("the system gave this process only 5 threads")
        return 0

    monkeypatch.setattr(plans, "threads", threads)
    assert list(plans.measure_class(100)) == [1, 2, 3, 4, 5]
