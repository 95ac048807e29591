"""Short work is read several times, long work once."""

from __future__ import annotations

import itertools
import time

import pytest

from nqbench.system import machine


@pytest.mark.parametrize(
    ("readings_s", "calls", "seconds"),
    [
        ([0.009, 0.001, 0.002, 0.001, 0.008], 5, 0.002),  # a disturbed reading does not count
        ([machine.SHORT_S], 1, machine.SHORT_S),  # long work is done once
        ([0.02, 0.04], 2, 0.03),  # no more readings once the time is spent
    ],
)
def test_the_median_of_as_many_readings_as_there_is_time_for(
    readings_s: list[float], calls: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = [0.0, *itertools.accumulate(readings_s)]
    ticks = iter([tick for pair in itertools.pairwise(ends) for tick in pair])
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    results = iter(range(1, calls + 2))
    result, found_s = machine.timed(lambda: next(results))
    assert result == calls, "that of the last call"
    assert found_s == pytest.approx(seconds)
