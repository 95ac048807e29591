"""What cannot fit is left out with a reason, and a run with a budget ends in time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from nqbench.facts import DeviceFacts
from nqbench.measure import forecast
from nqbench.measure.budget import Budget
from nqbench.measure.measurement import Measurement
from nqbench.measure.run_state import RunState, Task
from nqbench.measure.sampling import Policy
from nqbench.measure.stages import Stages
from nqbench.measure.worker.messages import Hello, MeasureRequest
from nqbench.measure.worker.pool import Job, Reply, WorkerPool, Workers
from nqbench.point import Point
from nqbench.runs.folder import RunWriter
from nqbench.runs.frame import load
from nqbench.study import Measure
from nqbench.system.machine import cpu_count
from tests.measure.test_runner import QUICK, measure, sizes
from tests.measure.toy import TOY, Recorder, ToyStudy, point, slow_point

FACTS = DeviceFacts("d", "cuda", (9, 0), 4)


def task(n: int) -> Task:
    """A timed task of the toy workload."""
    return Task(point(n), f"key{n}", "cuda:0", exact=False)


def test_one_earlier_size_is_scaled_by_the_work() -> None:
    book = forecast.TimeBook()
    book.observe(point(7), 10.0)
    assert book.predict(point(8)) == (40.0, 7)  # the toy's work is 4**n
    assert book.predict(point(7)) is None
    assert book.predict(point(8, flavour="salted")) is None


def test_two_earlier_sizes_tell_the_fixed_cost_from_the_work() -> None:
    book = forecast.TimeBook()
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
    book = forecast.TimeBook(rate / TOY.core_work_per_s)
    book.observe(point(6), fixed_s + 4**6 / rate)
    predicted = book.predict(point(14))
    assert predicted is not None
    assert predicted[0] == pytest.approx(fixed_s + 4**14 / rate, rel=0.01)


def test_a_short_launch_on_the_cpu_says_nothing_about_the_device() -> None:
    book = forecast.TimeBook(80)
    on_cpu = point(4, system="cpu.power")
    book.observe(on_cpu, 4**4 / TOY.core_work_per_s)
    predicted = book.predict(replace(on_cpu, factors={"n": 14}))
    assert predicted is not None
    assert predicted[0] == pytest.approx(4**14 / TOY.core_work_per_s)


def test_times_that_do_not_grow_predict_no_less_than_was_seen() -> None:
    book = forecast.TimeBook()
    book.observe(point(4), 1e-4)
    book.observe(point(6), 0.9e-4)
    assert book.predict(point(8)) == (0.9e-4, 6)


def test_what_measurements_cost_beside_launches_is_learnt() -> None:
    book = forecast.TimeBook()
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


class Scripted:
    """A device whose worker starts in 2 s and launches a size in so many seconds, on a clock of its
    own; it makes 30 launches of a timed measurement."""

    def __init__(self, launch_s: Mapping[int, float]) -> None:
        self.launch_s, self.now = launch_s, 0.0

    def __call__(self, size: int = 1) -> Scripted:
        self.now += forecast.WORKER_START_S
        return self

    def clock(self) -> float:
        return self.now

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        for job in jobs:
            assert isinstance(job.request, MeasureRequest)
            launch_s = self.launch_s[job.request.point.n]
            took_s = forecast.OVERHEAD_S + launch_s * (
                forecast.TYPICAL_SAMPLES if job.request.timed else 1
            )
            late = self.now + took_s > job.end
            self.now = job.end if late else self.now + took_s
            found = Measurement(status="skipped", reason=job.late) if late else Measurement()
            found.wall_s, found.about = took_s, {"first_launch_s": launch_s}
            yield job, Reply(found, 1)

    def compilers(self) -> Workers:
        raise AssertionError("nothing is to be compiled")

    def close(self) -> None: ...

    hello: Hello


def staged(
    folder: Path,
    points: Sequence[Point],
    launch_s: Mapping[int, float],
    total_s: float,
    rounds: int,
) -> tuple[Scripted, RunState, Recorder]:
    """Verify and time points within a budget."""
    device, listener = Scripted(launch_s), Recorder()
    how = Measure(rounds=rounds, budget_s=float(rounds), samples=5)
    tasks = [Task(p, f"key {p.n} {i}", "cuda:0", exact=False) for i, p in enumerate(points)]
    with RunWriter(folder) as writer:
        state = RunState(writer, (), tasks, listener)
        budget = Budget(how, total_s, device.clock)
        stages = Stages(how, Policy(), state, budget, listener, device)
        stages.rounds(stages.verify(tasks, None))
    return device, state, listener


def test_a_run_with_a_budget_ends_in_time_and_says_what_is_missing(tmp_path: Path) -> None:
    short = [point(10, jobs=i) for i in range(10)]
    long = [point(13, jobs=i) for i in range(3)]
    device, state, listener = staged(tmp_path, short + long, {10: 0.002, 13: 0.1}, 12.0, 30)
    assert device.now <= 12.0
    outcome = state.outcome(tmp_path, device.now, interrupted=False)
    assert outcome.counts == {"ok": 11, "skipped": 2}
    assert all("--budget 12 s" in reason for reason in outcome.skipped.values())
    assert not any("N=10" in name for name in outcome.skipped)
    rounds = [r.round for r in listener.records if r and r.point["factors"]["n"] == 10]
    assert listener.messages == [f"--budget left time for {max(rounds)} of 30 rounds"]
    assert 2 <= max(rounds) < 30
    assert rounds.count(2) == 10


def test_a_kernel_that_hangs_leaves_time_for_the_points_before_it(tmp_path: Path) -> None:
    device, state, listener = staged(tmp_path, sizes(8, 9), {8: 0.01, 9: math.inf}, 20.0, 2)
    outcome = state.outcome(tmp_path, device.now, interrupted=False)
    assert outcome.counts == {"ok": 1, "skipped": 1}
    [reason] = outcome.skipped.values()
    assert "--budget 20 s was used up while this point was measured" in reason
    assert [(r.round, r.status) for r in listener.records if r.point["factors"]["n"] == 8] == [
        *((0, "ok"), (1, "ok"))
    ]


def test_a_launch_that_was_not_foreseen_does_not_outlast_the_budget(tmp_path: Path) -> None:
    """A worker that hangs is ended with the run; it would hang for ten minutes."""
    how = replace(QUICK, budget_s=600.0, timeout_s=600.0)
    outcome = measure(tmp_path / "r", sizes(9), "fake:hang=9", how, isolate=True, budget_s=2.0)
    assert outcome.counts == {"skipped": 1}
    assert "--budget 2 s was used up" in next(iter(outcome.skipped.values()))


def test_compiling_takes_at_most_half_of_it(tmp_path: Path) -> None:
    """Making these plans would take ten minutes."""
    tasks = [Task(slow_point(n), f"key{n}", "cuda:0", exact=False) for n in (13, 14)]
    listener = Recorder()
    with RunWriter(tmp_path) as writer:
        state, budget = RunState(writer, (), tasks, listener), Budget(QUICK, 1.0)
        compilers = mock.Mock(compilers=lambda: WorkerPool(None, 1))
        stages = Stages(QUICK, Policy(), state, budget, listener, compilers)
        assert stages.compile(tasks, FACTS) == []
    assert [r.status for r in listener.records] == ["skipped"] * 2
    assert "half of --budget 1 s went into compiling" in listener.records[0].reason


def test_a_single_round_is_the_last_resort() -> None:
    budget = Budget(Measure(rounds=5, budget_s=50.0, samples=10), 4.0, clock=lambda: 0.0)
    budget.book.observe(point(5), 0.05)
    assert budget.plan_rounds([task(5)]) == (1, {})


@pytest.mark.parametrize(("device", "n"), [("sim:mini", 12), ("cpu", 10)])
def test_an_estimate_grows_with_the_work(device: str, n: int) -> None:
    system = "cpu.power" if device == "cpu" else None
    study = ToyStudy([])
    small = forecast.estimate([point(n, system=system)], study, device)
    large = forecast.estimate([point(n + 1, system=system), point(30, skip="no")], study, device)
    assert small is not None
    assert large is not None
    assert 0 < small < large < 100


def test_an_estimate_knows_the_workload_s_units_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds() -> float:
        found = forecast.estimate([point(10, system="cpu.power")], ToyStudy([]), "cpu")
        assert found is not None
        return found

    monkeypatch.setattr("nqbench.measure.forecast.cpu_count", lambda: 4)
    plain = seconds()
    monkeypatch.setattr(type(TOY), "parallel_systems", frozenset({"cpu.power"}))
    parallel = seconds()
    monkeypatch.setattr(type(TOY), "core_work_per_s", 5e13)
    assert seconds() < parallel < plain


def test_no_estimate_for_a_device_that_is_not_here() -> None:
    assert forecast.estimate([point(5)], ToyStudy([]), "fake:colour=1") is None


def test_where_no_worker_can_start_any_more_no_point_is_called_too_long() -> None:
    budget = Budget(Measure(rounds=5), 1.5, clock=lambda: 0.0)
    budget.book.observe(point(5), 1e-6)
    _, dropped = budget.plan_rounds([task(5)])  # a worker starts in 2 s
    assert "was used up before this point" in dropped["key5"]


def test_an_estimate_counts_what_has_to_be_compiled_and_translated() -> None:
    kernels = [point(6, jobs=i) for i in range(100)]
    seconds = forecast.estimate(kernels, ToyStudy([]), "sim:mini")
    assert seconds is not None
    assert seconds > 100 * forecast.TRANSLATE_S / cpu_count()
