"""Intervals against brute force and against their own promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nqbench.measure.sampling.statistics import interval, median_interval, median_rank


def below(count: int, rank: int) -> float:
    """P(fewer than ``rank`` of ``count`` fair coins show heads), by exact counting."""
    return float(sum(math.comb(count, k) for k in range(rank)) / 2**count)


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


def test_the_interval_of_blocks_covers_their_true_ratio_scale_centre() -> None:
    random = np.random.default_rng(2)
    covered = 0
    for _ in range(2000):
        low, high = interval(list(3.0 * np.exp(random.normal(0, 0.05, 5))))
        covered += low <= 3.0 <= high
    assert 0.935 <= covered / 2000 <= 0.965


def test_the_interval_is_symmetric_in_logarithms() -> None:
    low, high = interval([1.0, 2.0, 4.0])
    assert math.isclose(math.sqrt(low * high), 2.0)
    assert math.isclose(math.log(high / 2), 4.302652730 * math.log(2) / math.sqrt(3), rel_tol=1e-8)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 0.0], [1.0, -1.0]])
def test_what_has_no_interval_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="measurement values"):
        interval(values)
