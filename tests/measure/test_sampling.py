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

DISTURBED = LONG_LAUNCH_S + 0.1


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
        ([0.001] * 10, Policy(samples=10, target=0.0), "target", 10),  # steady
        ([0.01], Policy(share_s=0.0), "budget", 1),  # even a share of nothing gives one
        ([DISTURBED], Policy(share_s=100.0), "long_launch", 1),
        (itertools.cycle([0.3, 0.2]), Policy(share_s=1.1), "budget", 5),
        (itertools.cycle([1e-6, 2e-6]), Policy(share_s=1e9), "samples", MAX_SAMPLES),
        (itertools.cycle([1e-6, 2e-6]), Policy(share_s=1e9, samples=MAX_SAMPLES + 100), "samples",
         MAX_SAMPLES + 100),
    ],
    ids=["steady", "no time", "long launches", "wall time", "no bound", "more than usual"],
)  # fmt: skip
def test_sampling_ends(times: Iterable[float], policy: Policy, ended_by: str, count: int) -> None:
    clock = Stopwatch()
    found = sample(launches(times, clock), policy, clock)
    assert (found.ended_by, len(found.values_s)) == (ended_by, count)
    if isinstance(times, list):
        assert list(found.values_s) == times
        assert found.median_s == times[0]


def width(times: list[float]) -> float:
    """Of the median's interval, relative to the median."""
    low, high = median_interval(sorted(times)) or (0.0, math.inf)
    return (high - low) / float(np.median(times))


def test_noise_is_sampled_until_the_target_is_met() -> None:
    random = np.random.default_rng(3)
    for noise in (0.01, 0.03):
        clock = Stopwatch()
        times = list(0.001 * np.exp(random.normal(0, noise, 3000)))
        found = sample(launches(times, clock), Policy(target=0.005, share_s=100.0), clock)
        assert found.ended_by == "target"
        assert list(found.values_s) == times[: len(found.values_s)]  # every sample, in order
        looked = [10]  # at the first, then after a tenth more, where that is narrow at last
        while width(times[: looked[-1]]) > 2 * 0.005:
            looked.append(max(looked[-1] + 1, looked[-1] * 11 // 10))
        assert len(found.values_s) == looked[-1]


@pytest.mark.parametrize(
    ("times", "known_s", "value_s"),
    [
        ((DISTURBED, *[0.001] * 20), 0.001, 0.001),
        ((0.001, DISTURBED, *[0.001] * 20), None, 0.001),  # kept all the same
    ],
)
def test_one_disturbed_launch_does_not_make_a_kernel_long(
    times: tuple[float, ...], known_s: float | None, value_s: float
) -> None:
    clock = Stopwatch()
    found = sample(launches(times, clock), Policy(share_s=100.0), clock, known_s=known_s)
    assert (found.ended_by, found.median_s) == ("target", value_s)
    assert DISTURBED in found.values_s


FALLING = [0.010, 0.007, 0.005, 0.004, 0.0039]
NOISE = 0.001 * np.exp(np.random.default_rng(2).normal(0, 0.002, 100))


@pytest.mark.parametrize(
    ("times", "least", "limit_s", "count", "ended_by"),
    [
        (itertools.repeat(0.001), 1, 1.0, 1 + STEADY_LAUNCHES, "steady"),
        ([*FALLING, *[FALLING[-1]] * 9], 1, 1.0, len(FALLING) + STEADY_LAUNCHES, "steady"),
        (NOISE, 1, 1.0, 1 + STEADY_LAUNCHES, "steady"),  # below a percent
        ((0.9**i for i in itertools.count()), 1, 1e9, MAX_LAUNCHES, "launches"),
        (itertools.repeat(0.3), 1, 0.2, 1, "time"),
        (itertools.repeat(0.3), 4, 0.2, 4, "steady"),
        ([], 0, 1.0, 0, "off"),
    ],
)
def test_warm_up_ends(
    times: Iterable[float], least: int, limit_s: float, count: int, ended_by: str
) -> None:
    found = warm_up(launches(times, clock := Stopwatch()), least, limit_s, clock=clock)
    assert (found.launches, found.ended_by) == (count, ended_by)
    assert found.wall_s == clock.now


def test_an_idle_device_is_worked_until_its_clocks_have_risen() -> None:
    clock = Stopwatch()
    # each launch is a thousandth faster than the one before, for half a second: too slow to see
    times = itertools.chain((0.001 * 0.999**i for i in range(700)), itertools.repeat(0.0005))
    found = warm_up(launches(times, clock), 1, 0.1, ramp_s=0.4, clock=clock)
    assert found.ended_by == "steady"
    assert 0.4 <= found.wall_s < 0.41


@pytest.mark.parametrize("count", [1, 5, 6, 7, 10, 17, 100, 501])
def test_the_rank_is_the_largest_that_keeps_the_promise(count: int) -> None:
    rank = median_rank(count)
    # P(fewer than so many of ``count`` fair coins show heads)
    assert binom.cdf(rank - 1, count, 0.5) <= 0.025 < binom.cdf(rank, count, 0.5)
    ordered = [float(i) for i in range(count)]
    bounds = (ordered[rank - 1], ordered[-rank]) if count > 5 else None  # no interval at 95%
    assert median_interval(ordered) == bounds
