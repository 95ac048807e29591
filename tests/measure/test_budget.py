"""What cannot fit is left out with a reason, and a run with a budget ends in time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from nqbench.facts import DeviceFacts
from nqbench.measure.budget import Budget
from nqbench.measure.ledger import Task
from nqbench.measure.predict import TimeBook, estimate
from nqbench.store import load
from nqbench.study import Measure
from tests.measure.test_runner import QUICK, measure, sizes
from tests.measure.toy import Recorder, ToyStudy, point

FACTS = DeviceFacts("d", "cuda", (9, 0), 4)


def task(n: int) -> Task:
    """A timed task of the toy workload."""
    return Task(point(n), f"key{n}", "cuda:0", exact=False)


def test_predictions_scale_the_nearest_smaller_size_by_the_work() -> None:
    book = TimeBook()
    book.observe(point(5), 1.0)
    book.observe(point(7), 10.0)
    assert book.predict(point(8)) == (40.0, 7)  # the toy's work is 4**n
    assert book.predict(point(6)) == (4.0, 5)
    assert book.predict(point(4)) is None
    assert book.predict(point(8, flavour="salted")) is None


def test_a_launch_longer_than_the_share_cannot_be_timed(tmp_path: Path) -> None:
    # 0.1 ms x 4**(n - 8): 0.4 s at 14, 1.6 s at 15 where a round has 1 s
    outcome = measure(tmp_path / "r", sizes(14, 15), "fake")
    assert outcome.counts == {"ok": 1, "skipped": 1}
    [reason] = outcome.skipped.values()
    assert reason.startswith("one launch takes 1.6 s, so 3 rounds need 4.9 s")
    assert "measure.budget" in reason


def test_a_board_far_beyond_the_budget_is_not_even_tried(tmp_path: Path) -> None:
    outcome = measure(tmp_path / "r", sizes(14, 17), "fake")
    [reason] = outcome.skipped.values()
    assert reason.startswith("one launch is predicted to take 26 s (from N=14)")
    assert list(load(tmp_path / "r").query("n == 17")["status"]) == ["skipped"]


def test_a_larger_budget_takes_up_what_was_left_out(tmp_path: Path) -> None:
    points = sizes(6, 7)
    first = measure(tmp_path / "r", points, budget_s=1e-9)
    assert first.counts == {"skipped": 2}
    assert all("--budget" in reason for reason in first.skipped.values())
    assert measure(tmp_path / "r", points).counts == {"ok": 2}


def test_rounds_are_cut_before_points() -> None:
    budget = Budget(Measure(rounds=5, budget_s=50.0, samples=10), 14.0, clock=lambda: 0.0)
    tasks = [task(5), task(6)]
    for each in tasks:
        budget.book.observe(each.point, 0.05)
    # a round: 2 s to start, and 0.05 s + 30 launches of 0.05 s per point, so 5.1 s
    assert budget.plan_rounds(tasks) == (2, {})
    tasks.append(task(7))
    budget.book.observe(tasks[2].point, 0.9)
    rounds, dropped = budget.plan_rounds(tasks)
    assert rounds == 2
    assert list(dropped) == [tasks[2].key]
    assert "--budget 14 s" in dropped[tasks[2].key]


def test_without_a_budget_every_round_is_done() -> None:
    budget = Budget(Measure(rounds=5))
    assert budget.plan_rounds([task(5)]) == (5, {})
    assert budget.left_s() == float("inf")


def test_a_run_with_a_budget_ends_in_time_and_says_what_is_missing(tmp_path: Path) -> None:
    # launches that really take their time: 1.6 ms at 10, 0.1 s at 13; 30 rounds take minutes
    short = [point(10, jobs=i) for i in range(10)]
    long = [point(13, jobs=i) for i in range(3)]
    how = replace(QUICK, rounds=30, budget_s=30.0)
    listener = Recorder()
    started = time.monotonic()
    outcome = measure(
        tmp_path / "r", short + long, "fake:sleep=1", how, budget_s=7.0, listener=listener
    )
    assert time.monotonic() - started < 8
    assert outcome.counts == {"ok": 10, "skipped": 3}
    assert all("does not fit --budget 7 s" in reason for reason in outcome.skipped.values())
    assert "--budget leaves time for 2 of 30 rounds" in listener.messages
    assert load(tmp_path / "r").query("n == 10")["round"].max() == 2


def test_a_single_round_is_the_last_resort() -> None:
    budget = Budget(Measure(rounds=5, budget_s=50.0, samples=10), 4.0, clock=lambda: 0.0)
    budget.book.observe(point(5), 0.05)
    assert budget.plan_rounds([task(5)]) == (1, {})


@pytest.mark.parametrize(("device", "n"), [("sim:mini", 12), ("cpu", 10)])
def test_an_estimate_grows_with_the_work(device: str, n: int) -> None:
    system = "cpu.power" if device == "cpu" else None
    study = ToyStudy([])
    small = estimate([point(n, system=system)], study, device)
    large = estimate([point(n + 1, system=system), point(30, skip="no")], study, device)
    assert small is not None
    assert large is not None
    assert 0 < small < large < 100


def test_no_estimate_for_a_device_that_is_not_here() -> None:
    assert estimate([point(5)], ToyStudy([]), "fake:colour=1") is None
