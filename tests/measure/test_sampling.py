"""When sampling stops, and that it says why."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from nqbench.measure.sampling.sampling import LONG_LAUNCH_S, MAX_SAMPLES, Policy, sample
from nqbench.measure.sampling.statistics import median_interval


class Stopwatch:
    """A clock that only launches move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def launches(times: Iterable[float], clock: Stopwatch, extra: float = 0.0) -> Callable[[], float]:
    """Launches that take the given times, plus ``extra`` seconds of wall time."""
    given = iter(times)

    def launch() -> float:
        value = next(given)
        clock.now += value + extra
        return value

    return launch


def test_steady_times_stop_at_the_fewest_samples() -> None:
    clock = Stopwatch()
    found = sample(launches(itertools.repeat(0.001), clock), Policy(samples=10), clock)
    assert (found.ended_by, len(found.values_s), found.median_s) == ("target", 10, 0.001)


def test_noise_is_sampled_until_the_target_is_met() -> None:
    random = np.random.default_rng(3)
    for noise in (0.01, 0.03):
        clock = Stopwatch()
        times = list(0.001 * np.exp(random.normal(0, noise, 3000)))
        found = sample(launches(times, clock), Policy(target=0.005, share_s=100.0), clock)
        assert found.ended_by == "target"
        assert list(found.values_s) == times[: len(found.values_s)]  # every sample, in order
        bounds = median_interval(sorted(found.values_s))
        assert bounds is not None
        assert (bounds[1] - bounds[0]) / 2 <= 0.005 * found.median_s
        assert len(found.values_s) > 10


def test_the_share_of_the_budget_is_a_limit_on_wall_time() -> None:
    clock = Stopwatch()
    times = itertools.cycle([0.001, 0.002])
    found = sample(launches(times, clock, extra=0.1), Policy(share_s=1.0), clock)
    assert found.ended_by == "budget"
    assert 1.0 <= clock.now <= 1.2


def test_even_a_share_of_nothing_gives_one_sample() -> None:
    clock = Stopwatch()
    found = sample(launches([0.01], clock), Policy(share_s=0.0), clock)
    assert (found.ended_by, found.values_s) == ("budget", (0.01,))


def test_one_sample_is_enough_where_a_launch_is_long() -> None:
    clock = Stopwatch()
    found = sample(launches([LONG_LAUNCH_S + 0.1], clock), Policy(share_s=100.0), clock)
    assert (found.ended_by, len(found.values_s)) == ("long_launch", 1)


def test_one_disturbed_launch_does_not_make_a_kernel_long() -> None:
    clock = Stopwatch()
    times = itertools.chain([LONG_LAUNCH_S + 0.1], itertools.repeat(0.001))
    found = sample(launches(times, clock), Policy(share_s=100.0), clock, known_s=0.001)
    assert (found.ended_by, len(found.values_s)) == ("target", 10)
    assert found.median_s == 0.001
    times = itertools.chain([0.001, LONG_LAUNCH_S + 0.1], itertools.repeat(0.001))
    found = sample(launches(times, clock), Policy(share_s=100.0), clock)
    assert (found.ended_by, found.median_s) == ("target", 0.001)
    assert LONG_LAUNCH_S + 0.1 in found.values_s  # kept all the same


def test_no_block_grows_without_bound() -> None:
    clock = Stopwatch()
    times = itertools.cycle([1e-6, 2e-6])
    found = sample(launches(times, clock), Policy(share_s=1e9), clock)
    assert (found.ended_by, len(found.values_s)) == ("samples", MAX_SAMPLES)


def test_more_samples_than_usual_can_be_asked_for() -> None:
    clock = Stopwatch()
    policy = Policy(share_s=1e9, samples=MAX_SAMPLES + 100)
    found = sample(launches(itertools.cycle([1e-6, 2e-6]), clock), policy, clock)
    assert len(found.values_s) == MAX_SAMPLES + 100
