"""Statistics of made-up rounds: how often an interval holds the truth, and how often `compare` is
wrong. The limits are those of the binomial distribution, at one in a thousand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from nqbench.analysis.compare.runs import judge
from nqbench.analysis.data import estimate
from nqbench.analysis.data.estimate import Contrast, Estimate

TRIALS = 1500
TRUTH = 1.03
MARGIN = 0.01
Random = np.random.Generator
Rounds = dict[int, float]


def made(random: Random, truth: float, spread: float, rounds: int = 5) -> Rounds:
    return dict(enumerate((truth * np.exp(random.normal(0, spread, rounds))).tolist()))


def in_one_run(random: Random, truth: float, spread: float = 0.004) -> Contrast:
    """What a round does to both sides is ten times what the ratio varies by."""
    shared = made(random, 1.0, 10 * spread)
    sides = [made(random, true, spread) for true in (1.0, truth)]
    first, second = ({r: v * shared[r] for r, v in side.items()} for side in sides)
    return estimate.paired(first, second)


def in_two_runs(random: Random, truth: float, spread: float = 0.004) -> Contrast:
    """One varies more."""
    return estimate.welch(made(random, 1.0, 2 * spread), made(random, truth, spread))


def uneven(random: Random, rounds: int = 3, spread: float = 0.01) -> Contrast:
    """Beside a longer run."""
    return estimate.welch(made(random, 1.0, spread, rounds), made(random, TRUTH, 0.005, 8))


def of_all_points(random: Random) -> Estimate:
    shared = made(random, 1.0, 0.05)
    sides = [[made(random, true, 0.01) for _ in range(4)] for true in (1.0, TRUTH)]
    first, second = ([{r: v * shared[r] for r, v in p.items()} for p in side] for side in sides)
    found = estimate.overall(first, second, estimate.paired)
    assert found is not None
    return found.estimate()


INTERVALS: dict[str, tuple[Callable[[Random], Estimate], float]] = {
    "a point": (lambda random: estimate.combine([*made(random, TRUTH, 0.02).values()]), 0.95),
    "two points of a run": (lambda random: in_one_run(random, TRUTH).estimate(), 0.95),
    "two runs": (lambda random: in_two_runs(random, TRUTH).estimate(), 0.95),
    "all points": (of_all_points, 0.95),
    "a short run that varies four times as much": (lambda r: uneven(r, 3, 0.02).estimate(), 0.95),
    "a short run that varies more": (lambda random: uneven(random).estimate(), 0.953),
    # Careful where the variances are equal; two rounds are too few to know theirs.
    "a short run that varies as much": (lambda r: uneven(r, 3, 0.005).estimate(), 0.966),
    "two rounds": (lambda random: uneven(random, 2).estimate(), 0.925),
}


@pytest.mark.parametrize("name", INTERVALS)
def test_an_interval_holds_the_truth_as_often_as_it_says(name: str) -> None:
    random, (find, coverage) = np.random.default_rng(1), INTERVALS[name]
    found = [find(random) for _ in range(TRIALS)]
    held = sum(not one.differs_from(TRUTH) for one in found)
    fewest, most = binom.interval(0.998, TRIALS, coverage)
    assert fewest <= held <= most
    mean = np.mean([math.log(one.value) for one in found])
    assert mean == pytest.approx(math.log(TRUTH), rel=0.03)


@pytest.mark.parametrize("contrast", [in_one_run, in_two_runs])
def test_compare_errs_at_most_once_in_20(contrast: Callable[[Random, float], Contrast]) -> None:
    """However many points are compared: 20 equal ones, a quarter that differ, all at the margin."""
    random, cases = np.random.default_rng(2), 60
    truths = {"equal": [1.0] * 20, "some": [1.03] * 5 + [1.0] * 15, "margin": [1 + MARGIN] * 20}
    called = {
        name: np.array(
            [
                [word for word, _ in judge([contrast(random, true) for true in family], MARGIN)]
                for _ in range(cases)
            ]
        )
        for name, family in truths.items()
    }
    most = binom.ppf(0.999, cases, estimate.ALPHA)
    alarms = np.isin(called["equal"], ["faster", "slower"])
    assert alarms.any(axis=1).sum() <= most
    calls = np.isin(called["some"], ["faster", "slower"])
    wrong = calls[:, 5:].sum(axis=1) / np.maximum(1, calls.sum(axis=1))
    assert wrong.mean() <= estimate.ALPHA
    assert (called["some"][:, :5] == "slower").mean() > 0.9
    assert (called["margin"] == "same").any(axis=1).sum() <= most
    assert alarms.any(), "corrected no more than needed"
