"""What cannot fit is left out with a reason, and a run with a budget ends in time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from nqbench.facts import DeviceFacts
from nqbench.measure.budget import END_SLACK_S, Budget
from nqbench.measure.forecast import TRANSLATE_S, TimeBook, estimate
from nqbench.measure.run_state import RunState, Task
from nqbench.measure.sampling import Policy
from nqbench.measure.stages import Stages
from nqbench.measure.worker.pool import WorkerPool, Workers
from nqbench.point import Point
from nqbench.runs.folder import RunWriter
from nqbench.runs.frame import load
from nqbench.simulator.models import load_model
from nqbench.study import Measure
from nqbench.system.machine import cpu_count
from nqbench.workloads import get
from tests.measure.test_runner import QUICK, measure, sizes
from tests.measure.toy import TOY, Recorder, ToyStudy, point, slow_point

FACTS = DeviceFacts("d", "cuda", (9, 0), 4)


def task(n: int) -> Task:
    """A timed task of the toy workload."""
    return Task(point(n), f"key{n}", "cuda:0", exact=False)


def test_one_earlier_size_is_scaled_by_the_work() -> None:
    book = TimeBook()
    book.observe(point(7), 10.0)
    assert book.predict(point(8)) == (40.0, 7)  # the toy's work is 4**n
    assert book.predict(point(7)) is None
    assert book.predict(point(8, flavour="salted")) is None


def test_two_earlier_sizes_tell_the_fixed_cost_from_the_work() -> None:
    book = TimeBook()
    for n in (3, 5, 6):
        book.observe(point(n), 0.002 + 1e-6 * 4**n)
    predicted = book.predict(point(10))
    assert predicted is not None
    assert predicted[0] == pytest.approx(0.002 + 1e-6 * 4**10)
    assert predicted[1] == 6


@pytest.mark.parametrize("fixed_s", [0.0, 2e-5])
def test_a_very_short_launch_does_not_make_large_boards_look_endless(fixed_s: float) -> None:
    # 20 us to start a kernel that works for 0.4 us: 50 times too much per unit of work
    rate = 1e10
    book = TimeBook(rate / TOY.core_work_per_s)
    book.observe(point(6), fixed_s + 4**6 / rate)
    predicted = book.predict(point(14))
    assert predicted is not None
    assert predicted[0] == pytest.approx(fixed_s + 4**14 / rate, rel=0.01)


def test_a_short_launch_on_the_cpu_says_nothing_about_the_device() -> None:
    book = TimeBook(80)
    on_cpu = point(4, system="cpu.power")
    book.observe(on_cpu, 4**4 / TOY.core_work_per_s)
    predicted = book.predict(replace(on_cpu, factors={"n": 14}))
    assert predicted is not None
    assert predicted[0] == pytest.approx(4**14 / TOY.core_work_per_s)


def test_times_that_do_not_grow_predict_no_less_than_was_seen() -> None:
    book = TimeBook()
    book.observe(point(4), 1e-4)
    book.observe(point(6), 0.9e-4)
    assert book.predict(point(8)) == (0.9e-4, 6)


def test_what_measurements_cost_beside_launches_is_learnt() -> None:
    book = TimeBook()
    assert book.overhead_s() == 0.05
    for wall_s in (3.0, 1.2, 1.1):  # the first one imports and compiles
        book.observe(point(5), 1.0, wall_s)
    assert book.overhead_s() == pytest.approx(0.2)


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


def test_sweeps_that_may_be_long_are_timed_whatever_a_launch_takes() -> None:
    how = Measure(rounds=3, budget_s=3.0, timeout_s=60.0)
    for sweeps, left_out in (((), True), (("sizes",), False), (("others",), True)):
        budget = Budget(replace(how, long=sweeps))
        budget.book.observe(point(7), 10.0)
        assert bool(budget.too_long_to_time(task(7))) is left_out
        assert bool(budget.too_long_to_try(task(8))) is left_out  # 40 s, by the toy's work
        assert budget.too_long_to_try(task(11))  # 2,560 s: far over the timeout, named or not


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
    assert time.monotonic() - started < 7.0 + END_SLACK_S
    assert outcome.counts["skipped"] >= 1
    assert sum(outcome.counts.values()) == 13
    assert all("--budget 7 s" in reason for reason in outcome.skipped.values())
    assert not any("N=10" in name for name in outcome.skipped)
    [said] = [m for m in listener.messages if m.startswith("--budget left time for")]
    rounds = load(tmp_path / "r").query("n == 10")["round"]
    assert f" {rounds.max()} of 30 rounds" in said
    assert rounds.value_counts()[2] == 10


def test_a_kernel_that_hangs_does_not_outlast_the_budget(tmp_path: Path) -> None:
    started = time.monotonic()
    how = replace(QUICK, budget_s=0.3)
    outcome = measure(tmp_path / "r", sizes(8, 9), "fake:hang=9", how, isolate=True, budget_s=10.0)
    assert time.monotonic() - started < 10.0 + END_SLACK_S
    assert outcome.counts == {"ok": 1, "skipped": 1}  # time was kept for the one before it
    [reason] = outcome.skipped.values()
    assert "--budget 10 s was used up while this point was measured" in reason
    assert list(load(tmp_path / "r").query("n == 9")["status"]) == ["skipped"]


def test_a_simulation_that_was_not_foreseen_does_not_outlast_it(tmp_path: Path) -> None:
    workload = get("counting")
    facts = load_model("mini").facts
    system = "zhang2011.low_divergence"
    points = []
    for n in (9, 17):  # a second and an hour
        found = workload.resolve({"n": n, "block_size": 32 + n}, system, facts)
        points.append(Point("toy", "sizes", "counting", system, found.factors, found.derived))
    started = time.monotonic()
    how = replace(QUICK, budget_s=3600.0, timeout_s=3600.0)
    # The small board would rule the large one out; without it nothing is known.
    outcome = measure(tmp_path / "r", points[1:], "sim:mini", how, isolate=True, budget_s=5.0)
    assert time.monotonic() - started < 5.0 + END_SLACK_S
    assert outcome.counts == {"skipped": 1}
    assert "was used up while this point was measured" in next(iter(outcome.skipped.values()))


def test_compiling_takes_at_most_half_of_it(tmp_path: Path) -> None:
    points = [slow_point(13), slow_point(14)]
    listener = Recorder()
    with RunWriter(tmp_path) as writer:
        tasks = [Task(p, f"key{p.n}", "cuda:0", exact=False) for p in points]
        state = RunState(writer, (), tasks, listener)
        budget = Budget(QUICK, 5.0)
        stages = Stages(QUICK, Policy(), state, budget, listener, Compilers())
        started = time.monotonic()
        assert stages.compile(tasks, FACTS) == []
        assert 2 < time.monotonic() - started < 2.5 + END_SLACK_S
        assert budget.left_s() > 1
    assert [r.status for r in listener.records] == ["skipped"] * 2
    assert "half of --budget 5 s went into compiling" in listener.records[0].reason


class Compilers:
    """One worker that compiles."""

    def __call__(self, size: int = 1) -> Workers:
        raise AssertionError("nothing is to be launched")

    def compilers(self) -> Workers:
        return WorkerPool(None, 1)


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


def test_an_estimate_knows_the_workload_s_units_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds() -> float:
        found = estimate([point(10, system="cpu.power")], ToyStudy([]), "cpu")
        assert found is not None
        return found

    monkeypatch.setattr("nqbench.measure.forecast.cpu_count", lambda: 4)
    plain = seconds()
    monkeypatch.setattr(type(TOY), "parallel_systems", frozenset({"cpu.power"}))
    parallel = seconds()
    monkeypatch.setattr(type(TOY), "core_work_per_s", 5e13)
    assert seconds() < parallel < plain


def test_no_estimate_for_a_device_that_is_not_here() -> None:
    assert estimate([point(5)], ToyStudy([]), "fake:colour=1") is None


def test_where_no_worker_can_start_any_more_no_point_is_called_too_long() -> None:
    budget = Budget(Measure(rounds=5), 1.5, clock=lambda: 0.0)
    budget.book.observe(point(5), 1e-6)
    _, dropped = budget.plan_rounds([task(5)])  # a worker starts in 2 s
    assert "was used up before this point" in dropped["key5"]


def test_an_estimate_counts_what_has_to_be_compiled_and_translated() -> None:
    kernels = [point(6, jobs=i) for i in range(100)]
    seconds = estimate(kernels, ToyStudy([]), "sim:mini")
    assert seconds is not None
    assert seconds > 100 * TRANSLATE_S / cpu_count()
