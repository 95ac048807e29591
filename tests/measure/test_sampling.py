"""When warm-up and sampling stop, that they say why, and the interval that decides it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from scipy.stats import binom

from nqbench.measure.sampling import (
    LONG_LAUNCH_S,
    MAX_LAUNCHES,
    MAX_SAMPLES,
    STEADY_LAUNCHES,
    Policy,
    median_interval,
    median_rank,
    sample,
    warm_up,
)


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


@pytest.mark.parametrize(
    ("times", "policy", "ended_by", "count"),
    [
        ([0.001] * 10, Policy(samples=10), "target", 10),  # steady
        ([0.01], Policy(share_s=0.0), "budget", 1),  # even a share of nothing gives one
        ([LONG_LAUNCH_S + 0.1], Policy(share_s=100.0), "long_launch", 1),
        (itertools.cycle([1e-6, 2e-6]), Policy(share_s=1e9), "samples", MAX_SAMPLES),
        (
            itertools.cycle([1e-6, 2e-6]),
            Policy(share_s=1e9, samples=MAX_SAMPLES + 100),
            "samples",
            MAX_SAMPLES + 100,
        ),
    ],
    ids=["steady", "no time", "long launches", "no bound", "more than usual"],
)
def test_sampling_ends(times: Iterable[float], policy: Policy, ended_by: str, count: int) -> None:
    clock = Stopwatch()
    found = sample(launches(times, clock), policy, clock)
    assert (found.ended_by, len(found.values_s)) == (ended_by, count)
    if isinstance(times, list):
        assert list(found.values_s) == times
        assert found.median_s == times[0]


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


FALLING = [0.010, 0.007, 0.005, 0.004, 0.0039]


@pytest.mark.parametrize(
    ("times", "limit_s", "count", "ended_by"),
    [
        (itertools.repeat(0.001), 1.0, 1 + STEADY_LAUNCHES, "steady"),
        (
            itertools.chain(FALLING, itertools.repeat(FALLING[-1])),
            1.0,
            len(FALLING) + STEADY_LAUNCHES,
            "steady",
        ),
        ((0.9**i for i in itertools.count()), 1e9, MAX_LAUNCHES, "launches"),
    ],
    ids=["as soon as steady times are seen", "falling times are waited for", "not for ever"],
)
def test_warm_up_ends(times: Iterable[float], limit_s: float, count: int, ended_by: str) -> None:
    found = warm_up(launches(times, clock := Stopwatch()), 1, limit_s, clock=clock)
    assert (found.launches, found.ended_by) == (count, ended_by)
    if limit_s == 1.0:
        assert found.lowest_s in (0.001, FALLING[-1])


def test_noise_below_a_percent_does_not_prolong_it() -> None:
    noise = np.random.default_rng(2)
    for _ in range(50):
        clock = Stopwatch()
        times = iter(0.001 * np.exp(noise.normal(0, 0.002, 100)))
        found = warm_up(launches(times, clock), 1, 1.0, clock=clock)
        assert found.ended_by == "steady"
        assert found.launches <= 3 * STEADY_LAUNCHES


def test_it_takes_no_more_than_its_time_beyond_the_least_launches() -> None:
    clock = Stopwatch()
    found = warm_up(launches(itertools.repeat(0.3), clock), 1, 0.2, clock=clock)
    assert (found.launches, found.ended_by, found.wall_s) == (1, "time", 0.3)
    clock = Stopwatch()
    found = warm_up(launches(itertools.repeat(0.3), clock), 4, 0.2, clock=clock)
    assert found.launches == 4


def test_none_is_made_where_none_is_wanted() -> None:
    clock = Stopwatch()
    found = warm_up(launches([], clock), 0, 1.0, ramp_s=1.0, clock=clock)
    assert (found.launches, found.ended_by, found.wall_s) == (0, "off", 0.0)


def test_an_idle_device_is_worked_until_its_clocks_have_risen() -> None:
    clock = Stopwatch()
    # each launch is a thousandth faster than the one before, for half a second: too slow to see
    times = itertools.chain((0.001 * 0.999**i for i in range(700)), itertools.repeat(0.0005))
    found = warm_up(launches(times, clock), 1, 0.1, ramp_s=0.4, clock=clock)
    assert found.ended_by == "steady"
    assert 0.4 <= found.wall_s < 0.41


def below(count: int, rank: int) -> float:
    """P(fewer than ``rank`` of ``count`` fair coins show heads)."""
    return float(binom.cdf(rank - 1, count, 0.5))


@pytest.mark.parametrize("count", [1, 5, 6, 7, 10, 17, 100, 501])
def test_the_rank_is_the_largest_that_keeps_the_promise(count: int) -> None:
    rank = median_rank(count)
    assert below(count, rank) <= 0.025
    assert below(count, rank + 1) > 0.025


def test_five_samples_say_nothing_at_95_percent() -> None:
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (1.0, 6.0)


@pytest.mark.parametrize("count", [10, 25])
def test_the_median_of_a_skewed_distribution_is_covered(count: int) -> None:
    random = np.random.default_rng(1)
    truth = math.log(2)
    covered = 0
    for _ in range(2000):
        bounds = median_interval(sorted(random.exponential(size=count)))
        assert bounds is not None
        covered += bounds[0] <= truth <= bounds[1]
    assert covered / 2000 + 0.01 >= 0.95  # conservative by construction; 0.01 is 2 errors
