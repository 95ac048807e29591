"""Short work is read several times, long work once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from nqbench.system import machine


def _clock(monkeypatch: pytest.MonkeyPatch, readings_s: list[float]) -> None:
    def ticks() -> Iterator[float]:
        now = 0.0
        for seconds in readings_s:
            yield now
            now += seconds
            yield now

    ticking = ticks()
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticking))


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
    _clock(monkeypatch, readings_s)
    results = iter(range(1, calls + 2))
    result, found_s = machine.timed(lambda: next(results))
    assert result == calls, "that of the last call"
    assert found_s == pytest.approx(seconds)
