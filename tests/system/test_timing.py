"""Short work is read several times, long work once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from nqbench.system import timing


def _clock(monkeypatch: pytest.MonkeyPatch, readings_s: list[float]) -> None:
    def ticks() -> Iterator[float]:
        now = 0.0
        for seconds in readings_s:
            yield now
            now += seconds
            yield now

    ticking = ticks()
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticking))


def test_a_disturbed_reading_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    _clock(monkeypatch, [0.009, 0.001, 0.002, 0.001, 0.008])
    results = iter("abcde")
    result, seconds = timing.timed(lambda: next(results))
    assert result == "e", "that of the last call"
    assert seconds == pytest.approx(0.002)


def test_long_work_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _clock(monkeypatch, [timing.SHORT_S])
    results = iter("ab")
    result, seconds = timing.timed(lambda: next(results))
    assert result == "a"
    assert seconds == pytest.approx(timing.SHORT_S)


def test_no_more_readings_once_the_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    _clock(monkeypatch, [0.02, 0.04])
    results = iter("abc")
    result, seconds = timing.timed(lambda: next(results))
    assert result == "b"
    assert seconds == pytest.approx(0.03)
