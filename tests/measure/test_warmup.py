"""Warm-up goes on while launches get faster, ends within its bounds, and says why."""

from __future__ import annotations

import itertools

import numpy as np

from nqbench.measure.sampling.warmup import MAX_LAUNCHES, STEADY_LAUNCHES, warm_up
from tests.measure.test_sampling import Stopwatch, launches


def test_steady_times_end_it_as_soon_as_that_is_seen() -> None:
    clock = Stopwatch()
    found = warm_up(launches(itertools.repeat(0.001), clock), 1, 1.0, clock=clock)
    assert (found.launches, found.ended_by) == (1 + STEADY_LAUNCHES, "steady")
    assert found.lowest_s == 0.001


def test_falling_times_are_waited_for() -> None:
    clock = Stopwatch()
    falling = [0.010, 0.007, 0.005, 0.004, 0.0039]
    times = itertools.chain(falling, itertools.repeat(0.0039))
    found = warm_up(launches(times, clock), 1, 1.0, clock=clock)
    assert (found.launches, found.ended_by) == (len(falling) + STEADY_LAUNCHES, "steady")


def test_noise_below_a_percent_does_not_prolong_it() -> None:
    noise = np.random.default_rng(2)
    for _ in range(50):
        clock = Stopwatch()
        times = iter(0.001 * np.exp(noise.normal(0, 0.002, 100)))
        found = warm_up(launches(times, clock), 1, 1.0, clock=clock)
        assert found.ended_by == "steady"
        assert found.launches <= 3 * STEADY_LAUNCHES


def test_times_that_never_stop_falling_are_cut_off() -> None:
    clock = Stopwatch()
    times = (0.9**i for i in itertools.count())
    found = warm_up(launches(times, clock), 1, 1e9, clock=clock)
    assert (found.launches, found.ended_by) == (MAX_LAUNCHES, "launches")


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
