"""Estimates: Student's t on logarithms, exact counts, one round."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from nqbench.analysis.data.estimate import Estimate, combine


def test_interval_is_students_t_on_logarithms() -> None:
    values = [1.0, 1.1, 0.95, 1.02, 1.05]
    estimate = combine(values)
    logs = np.log(values)
    low, high = scipy.stats.t.interval(0.95, df=4, loc=logs.mean(), scale=scipy.stats.sem(logs))
    assert estimate.value == pytest.approx(scipy.stats.gmean(values))
    assert (estimate.low, estimate.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert estimate.rounds == 5
    assert not estimate.exact


def test_one_round_has_no_interval_and_claims_nothing() -> None:
    estimate = combine([2.0])
    assert not estimate.bounded
    assert not estimate.differs_from(1)


def test_exact_counts_have_no_interval_but_differ() -> None:
    estimate = combine([3.0, 3.0], exact=True)
    assert not estimate.bounded
    assert estimate.differs_from(1)
    assert not estimate.differs_from(3)


def test_undefined_ratio_differs_from_nothing() -> None:
    assert not Estimate(math.nan, exact=True).differs_from(1)


def test_more_comparisons_need_a_wider_gap() -> None:
    estimate = combine([1.01, 1.03, 1.02, 1.05, 1.02])
    assert estimate.differs_from(1)
    assert not estimate.differs_from(1, comparisons=100)


def test_bonferroni_uses_the_exact_quantile() -> None:
    """Just inside and just outside of the widened interval."""
    logs = np.array([-0.01, 0.0, 0.01])
    estimate = combine(list(np.exp(logs)))
    half = scipy.stats.t.ppf(1 - 0.05 / 4 / 2, 2) * scipy.stats.sem(logs)
    assert not estimate.differs_from(math.exp(half * 0.999), comparisons=4)
    assert estimate.differs_from(math.exp(half * 1.001), comparisons=4)


def test_inverse_swaps_the_bounds() -> None:
    estimate = Estimate(2.0, 1.6, 2.5, 5)
    assert estimate.inverse() == Estimate(0.5, 0.4, 0.625, 5)


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(1000):
        estimate = combine(list(np.exp(random.normal(0.3, 0.02, 5))))
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= math.exp(0.3) <= estimate.high
    assert 930 <= covered <= 970  # binomial(1000, 0.95): three standard deviations
