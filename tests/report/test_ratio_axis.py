"""Ticks of the ratio axis: always enough of them to read a dot's value from."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from nqbench.report.figures import ratio

LOW = st.floats(-9, -0.05).map(lambda exponent: 10.0**exponent)
HIGH = st.floats(0.05, 9).map(lambda exponent: 10.0**exponent)


@given(LOW, HIGH)
def test_every_axis_can_be_read(low: float, high: float) -> None:
    ticks = ratio._ratio_ticks(low, high)
    assert 1.0 in ticks
    assert ticks == sorted(set(ticks))
    assert 2 <= len(ticks) <= ratio.MOST_TICKS
    assert low <= ticks[0] <= ticks[-1] <= high
    # A dot lies between two labels, or not far outside them.
    assert math.log(ticks[-1] / ticks[0]) >= 0.3 * math.log(high / low)


@given(LOW, HIGH)
def test_labels_are_short_and_say_where_the_tick_is(low: float, high: float) -> None:
    ticks = ratio._ratio_ticks(low, high)
    labels = [ratio._plain(t) for t in ticks]
    assert all(math.isclose(float(label), t) for label, t in zip(labels, ticks, strict=True))
    assert max(map(len, labels)) <= 5


def test_an_axis_of_three_decades_has_more_than_two_labels() -> None:
    labels = [ratio._plain(t) for t in ratio._ratio_ticks(0.11, 54)]
    assert labels == ["0.3", "1", "3", "10", "30"]


def test_one_way_to_write_a_power() -> None:
    shown = [ratio._plain(v) for v in (1e-6, 0.02, 0.95, 1.0, 1000.0, 1e6)]
    assert shown == ["1e-6", "0.02", "0.95", "1", "1000", "1e6"]
