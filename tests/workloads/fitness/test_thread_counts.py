"""The stored map from board size to the best thread count."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.errors import DeviceError
from nqbench.workloads.fitness.boards import Board, random_board
from nqbench.workloads.fitness.cpu import evaluators, plans
from nqbench.workloads.fitness.cpu.plans import lookup


class Measuring:
    """Stands for the measurement: counts its calls."""

    def __init__(self, best: int) -> None:
        self.best = best
        self.sizes: list[int] = []

    def __call__(self, size: int) -> dict[int, float]:
        self.sizes.append(size)
        return {count: 1.0 + abs(count - self.best) for count in range(1, 61)}


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file, which no process knows."""
    monkeypatch.setattr(plans, "_measured_here", {})
    monkeypatch.delenv("NQBENCH_MEASURE_THREADS", raising=False)
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path))
    return tmp_path / "threads.json"


def looked_up_anew(path: Path, size: int, measure: Measuring) -> int:
    """As if the process were a new one."""
    plans._measured_here.clear()
    return lookup(path, size, measure)


def test_a_class_is_measured_once_and_then_read(path: Path) -> None:
    path = path.parent / "deep" / path.name
    first, second = Measuring(7), Measuring(9)
    assert lookup(path, 1000, first) == 7
    assert looked_up_anew(path, 1000, second) == 7
    assert lookup(path, 3000, second) == 9
    assert (first.sizes, second.sizes) == ([1000], [3000])
    assert looked_up_anew(path, 1000, second) == 7  # the second class did not overwrite the first


COUNTS: list[Any] = [0, 61, -1, "7", None, 2.5, True]
DAMAGED = [
    *(b"", b"{", b"\xff\xfe\x00", b"[]", b'{"format": 1}', b'{"format": 99, "machines": {}}'),
    *(b'{"format": 1, "machines": {"x": 3}}', b'{"format": 1, "machines": []}'),
    *(
        json.dumps({"format": 1, "machines": {plans.machine_key(): {"100": count}}}).encode()
        for count in COUNTS
    ),
]


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_measured_again_and_replaced(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)
    assert lookup(path, 100, Measuring(3)) == 3
    assert looked_up_anew(path, 100, Measuring(4)) == 3


def test_another_machine_s_entry_is_kept_and_not_used(path: Path) -> None:
    other = {"format": 1, "machines": {"another processor": {"100": 40}}}
    path.write_text(json.dumps(other), encoding="utf-8")
    assert lookup(path, 100, Measuring(2)) == 2
    machines = json.loads(path.read_text(encoding="utf-8"))["machines"]
    assert machines == {"another processor": {"100": 40}, plans.machine_key(): {"100": 2}}


def test_it_can_be_measured_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lookup(path, 100, Measuring(5))
    monkeypatch.setenv("NQBENCH_MEASURE_THREADS", "1")
    again = Measuring(6)
    assert looked_up_anew(path, 100, again) == lookup(path, 100, again) == 6
    assert again.sizes == [100]  # once per process
    monkeypatch.delenv("NQBENCH_MEASURE_THREADS")
    assert looked_up_anew(path, 100, again) == 6


def test_a_folder_that_cannot_be_written_holds_for_this_process(path: Path) -> None:
    path.write_text("in the way", encoding="utf-8")
    measuring = Measuring(8)
    assert [lookup(path / "threads.json", 100, measuring) for _ in range(3)] == [8, 8, 8]
    assert measuring.sizes == [100]


def test_two_at_once_measure_once(path: Path) -> None:
    measuring = Measuring(4)
    found: list[int] = []

    def look() -> None:
        found.append(lookup(path, 100, measuring))

    both = [threading.Thread(target=look) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert found == [4, 4]
    assert measuring.sizes == [100]


def test_a_board_takes_the_count_of_the_nearest_class_by_ratio(path: Path) -> None:
    classes = {1: 100, 100: 100, 170: 100, 180: 300, 600: 1_000, 9_999: 10_000, 10**6: 30_000}
    plans._measured_here.update({(path, size): size // 100 for size in classes.values()})
    assert {n: 100 * plans.best_threads(n) for n in classes} == classes
    board = random_board(300, 1)[np.newaxis]
    plan = plans.cpu_plan({"scheme": "cpu_threads", "threads": "auto"}, board)
    assert plan.about["threads_used"] == plan.arguments[1] == 3


def test_the_fewest_threads_among_equals_are_taken() -> None:
    assert plans.choose({1: 2.0, 4: 1.01, 8: 1.0, 16: 1.5}) == 4
    assert plans.choose({1: 1.03, 2: 1.0}) == 2


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

    monkeypatch.setattr(evaluators, "threads", threads)
    assert list(plans.measure_class(100)) == [1, 2, 3, 4, 5]
