"""What cannot fit is left out with a reason, and a run with a budget ends in time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from nqbench.facts import DeviceFacts
from nqbench.measure import budget as budgets
from nqbench.measure.budget import Budget
from nqbench.measure.measurement import Measurement
from nqbench.measure.run_state import RunState, Task
from nqbench.measure.sampling import Policy
from nqbench.measure.stages import Stages
from nqbench.measure.worker.messages import Hello, MeasureRequest
from nqbench.measure.worker.pool import Job, Reply, WorkerPool, Workers
from nqbench.point import Point
from nqbench.runs.folder import RunWriter
from nqbench.study import Measure
from tests.measure.test_runner import QUICK, measure, sizes
from tests.measure.toy import TOY, point, slow_point
from tests.toys import Recorder

FACTS = DeviceFacts("d", "cuda", (9, 0), 4)


def task(n: int) -> Task:
    """A timed task of the toy workload."""
    return Task(point(n), f"key{n}", "cuda:0", exact=False)


RATE = 1e10
"""Units of work per second of a pretended GPU."""
CORES = RATE / TOY.core_work_per_s


@pytest.mark.parametrize(
    ("cores", "seen", "n", "predicted"),
    [
        (None, {7: 10.0}, 8, (40.0, 7)),  # one size: by the work, 4**n
        (None, {7: 10.0}, 7, None),
        (None, {n: 0.002 + 1e-6 * 4**n for n in (3, 5, 6)}, 10, (0.002 + 1e-6 * 4**10, 6)),
        (None, {4: 1e-4, 6: 0.9e-4}, 8, (0.9e-4, 6)),  # no less than was seen
        # A short launch is mostly fixed cost: here 50 times too much per unit of work.
        (CORES, {6: 2e-5 + 4**6 / RATE}, 14, (2e-5 + 4**14 / RATE, 6)),
        (CORES, {6: 4**6 / RATE}, 14, (4**14 / RATE, 6)),
    ],
)
def test_a_time_is_predicted_from_smaller_sizes(
    cores: float | None, seen: dict[int, float], n: int, predicted: tuple[float, int] | None
) -> None:
    book = budgets.TimeBook(cores)
    for size, launch_s in seen.items():
        book.observe(point(size), launch_s)
    found = book.predict(point(n))
    assert found == (predicted and pytest.approx(predicted, rel=0.01))
    assert book.predict(point(n, flavour="salted")) is None


def test_a_short_launch_on_the_cpu_says_nothing_about_the_device() -> None:
    book = budgets.TimeBook(80)
    on_cpu = point(4, system="cpu.power")
    book.observe(on_cpu, 4**4 / TOY.core_work_per_s)
    predicted = book.predict(replace(on_cpu, factors={"n": 14}))
    assert predicted == pytest.approx((4**14 / TOY.core_work_per_s, 4))


def test_what_measurements_cost_beside_launches_is_learnt() -> None:
    book = budgets.TimeBook()
    assert book.overhead_s() == 0.05
    for wall_s in (3.0, 1.2, 1.1):  # the first one imports and compiles
        book.observe(point(5), 1.0, wall_s)
    assert book.overhead_s() == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("n", "said"),
    [
        # 0.1 ms x 4**(n - 8): 0.4 s at 14, 1.6 s at 15 where a round has 1 s
        (15, "one launch takes 1.6 s, so 3 rounds need 4.9 s, over the point's budget"),
        (17, "one launch is predicted to take 26 s (from N=14)"),  # not even tried
    ],
)
def test_a_launch_that_does_not_fit_is_left_out(tmp_path: Path, n: int, said: str) -> None:
    outcome = measure(tmp_path / "r", sizes(14, n), "fake")
    assert outcome.counts == {"ok": 1, "skipped": 1}
    [reason] = outcome.skipped.values()
    assert reason.startswith(said)
    assert "measure.budget" in reason


def test_sweeps_that_may_be_long_are_timed_whatever_a_launch_takes() -> None:
    how = Measure(rounds=3, budget_s=3.0, timeout_s=60.0)
    for sweeps, left_out in (((), True), (("sizes",), False), (("others",), True)):
        budget = Budget(replace(how, long=sweeps))
        budget.book.observe(point(7), 10.0)
        assert bool(budget.too_long_to_time(task(7))) is left_out
        assert bool(budget.too_long_to_try(task(8))) is left_out  # 40 s, by the toy's work
        assert budget.too_long_to_try(task(11))  # 2,560 s: far over the timeout, named or not
    for total_s, refused in ((40.5, False), (39.5, True)):  # of a simulated point one launch
        exact = Budget(replace(how, long=("sizes",)), total_s, clock=lambda: 0.0)
        exact.book.observe(point(7), 10.0)
        assert bool(exact.too_long_to_try(replace(task(8), exact=True))) is refused
    for seen_s, refused in ((0.7, False), (0.8, True)):  # 2.8 s and 3.2 s, where 1 s is meant
        budget = Budget(how)
        budget.book.observe(point(7), seen_s)
        assert bool(budget.too_long_to_try(task(8))) is refused


@pytest.mark.parametrize(
    ("asked", "total_s", "launches_s", "rounds", "dropped"),
    [
        (5, None, {5: 1.0}, 5, {}),
        # A round: 2 s to start a worker, and 0.05 s + 30 launches of 0.05 s per point, so 5.1 s.
        (5, 14.0, {5: 0.05, 6: 0.05}, 2, {}),  # rounds are cut before points
        (5, 14.0, {5: 0.05, 6: 0.05, 7: 0.9}, 2, {"key7": "not fit --budget 14 s with the short"}),
        (1, 8.0, {5: 0.05, 6: 0.05, 7: 0.05, 8: 0.06}, 1, {"key8": "1 rounds of this point"}),
        (5, 4.0, {5: 0.05}, 1, {}),  # the last resort
        (5, 1.5, {5: 1e-6}, None, {"key5": "was used up before this point"}),  # no worker can start
    ],
)
def test_rounds_and_points_are_cut_to_the_budget(
    asked: int, total_s: Any, launches_s: Any, rounds: int | None, dropped: dict[str, str]
) -> None:
    how = Measure(rounds=asked, budget_s=10.0 * asked, samples=10)
    budget = Budget(how, total_s, clock=lambda: 0.0)
    for n, launch_s in launches_s.items():
        budget.book.observe(point(n), launch_s)
    planned, found = budget.plan_rounds([task(n) for n in launches_s])
    assert planned == rounds or rounds is None
    assert found.keys() == dropped.keys()
    assert all(words in found[key] for key, words in dropped.items())


class Scripted:
    """A device whose worker starts in 2 s and launches a size in so many seconds, on a clock of its
    own; it makes 30 launches of a timed measurement."""

    def __init__(self, launch_s: Mapping[int, float]) -> None:
        self.launch_s, self.now = launch_s, 0.0

    def __call__(self, size: int = 1) -> Scripted:
        self.now += budgets.WORKER_START_S
        return self

    def clock(self) -> float:
        return self.now

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        for job in jobs:
            assert isinstance(job.request, MeasureRequest)
            launch_s = self.launch_s[job.request.point.n]
            took_s = budgets.OVERHEAD_S + launch_s * (
                budgets.TYPICAL_SAMPLES if job.request.timed else 1
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
