"""Contrasts against scipy's own tests; corrections against a calculation by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from nqbench.analysis.compare.runs import judge
from nqbench.analysis.compare.statistics import (
    EVENT_STEP_S,
    Contrast,
    adjusted,
    overall,
    paired,
    welch,
)
from nqbench.errors import StudyError

A = {1: 1.00, 2: 1.02, 3: 0.99, 4: 1.01, 5: 1.03}
B = {1: 1.03, 2: 1.04, 3: 1.03, 4: 1.02, 5: 1.06}


def test_paired_is_the_t_test_of_related_samples_on_logarithms() -> None:
    found = paired(A, B)
    truth = scipy.stats.ttest_rel(np.log(list(B.values())), np.log(list(A.values())))
    interval = truth.confidence_interval(0.95)
    estimate = found.estimate()
    assert found.p_different() == pytest.approx(truth.pvalue)
    assert estimate.low == pytest.approx(math.exp(interval.low))
    assert estimate.high == pytest.approx(math.exp(interval.high))
    assert estimate.value == pytest.approx(
        scipy.stats.gmean(list(B.values())) / scipy.stats.gmean(list(A.values()))
    )


def test_pairing_goes_by_round_and_not_by_order() -> None:
    shuffled = {r: B[r] for r in (4, 2, 5, 1, 3)}
    assert paired(A, shuffled) == paired(A, B)
    partial = {r: v for r, v in B.items() if r != 3}
    assert paired(A, partial).rounds == 4


def test_welch_is_the_unequal_variance_test_on_logarithms() -> None:
    wide = {1: 1.0, 2: 1.3, 3: 0.8}
    found = welch(A, wide)
    truth = scipy.stats.ttest_ind(
        np.log(list(wide.values())), np.log(list(A.values())), equal_var=False
    )
    assert found.p_different() == pytest.approx(truth.pvalue)
    assert found.freedom == pytest.approx(truth.df)
    interval = truth.confidence_interval(0.95)
    assert found.estimate().low == pytest.approx(math.exp(interval.low))
    assert found.estimate().high == pytest.approx(math.exp(interval.high))


def test_one_round_gives_a_ratio_and_no_interval() -> None:
    for found in (paired({1: 2.0}, {1: 3.0}), welch({1: 2.0}, {1: 3.0})):
        assert found.estimate().value == pytest.approx(1.5)
        assert not found.estimate().bounded
        assert math.isnan(found.p_different())
        ((verdict, p),) = judge([found], 0.01)
        assert verdict == "unclear"
        assert math.isnan(p)


def test_p_apart_is_5_percent_exactly_where_the_interval_touches_the_margin() -> None:
    contrast = paired(A, {r: v * 1.001 for r, v in B.items()})
    high = contrast.estimate().high
    assert high is not None
    assert contrast.p_apart(high - 1) == pytest.approx(0.05)
    assert contrast.p_apart(high - 1 + 1e-3) < 0.05 < contrast.p_apart(high - 1 - 1e-3)


def test_a_clock_cannot_tell_less_than_its_step() -> None:
    """Every round one tick apart: without the clock's resolution that would be certain."""
    one = dict.fromkeys(range(1, 6), 100 * EVENT_STEP_S)
    two = dict.fromkeys(range(1, 6), 101 * EVENT_STEP_S)
    for test in (paired, welch):
        assert test(one, two).p_different() == 0.0
        assert test(one, two, step_s=EVENT_STEP_S).p_different() > 0.05


def test_adjusted_is_benjamini_hochberg_and_leaves_gaps_alone() -> None:
    # Sorted p times m / rank, made monotone from the largest down.
    p = [0.01, math.nan, 0.04, 0.03, 0.20]
    assert adjusted(p) == pytest.approx([0.04, math.nan, 0.16 / 3, 0.16 / 3, 0.20], nan_ok=True)
    assert adjusted([]) == []


def _sure(log_ratio: float, error: float = 1e-4) -> Contrast:
    return Contrast(log_ratio, error, 4, 5, "paired")


def test_verdicts() -> None:
    contrasts = [
        _sure(math.log(1.05)),
        _sure(math.log(0.95)),
        _sure(math.log(1.004)),
        _sure(math.log(1.02), 0.05),
    ]
    assert [v for v, _ in judge(contrasts, 0.01)] == ["slower", "faster", "same", "unclear"]
    assert [v for v, _ in judge(contrasts, 0.0)] == ["slower", "faster", "slower", "unclear"]


def test_many_points_need_more_evidence_than_one() -> None:
    weak = _sure(0.02, 0.02 / 3.2)  # p = 0.033 with 4 degrees of freedom
    nothing = [_sure(0.0001, 0.02)] * 20
    assert judge([weak], 0.001)[0][0] == "slower"
    assert judge([weak, *nothing], 0.001)[0][0] == "unclear"


def test_a_margin_of_100_percent_is_refused() -> None:
    with pytest.raises(StudyError, match="--margin 1 is not a margin"):
        judge([_sure(0.1)], 1.0)


def test_overall_is_the_test_on_geometric_means_of_the_rounds() -> None:
    second = [{r: v * (1.02 + 0.001 * r) for r, v in A.items()}, dict(B)]
    found = overall([A, B], second, same_run=True)
    assert found is not None
    logs = [
        np.mean([math.log(s[r] / f[r]) for f, s in zip([A, B], second, strict=True)]) for r in A
    ]
    truth = scipy.stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert found.estimate().low == pytest.approx(math.exp(truth.low))
    assert overall([A, {9: 1.0}], [A, B], same_run=True) is None
