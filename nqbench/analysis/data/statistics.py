"""The statistics of a comparison: contrasts of logarithms, their tests, their correction.

A value of a round is the unit of replication. Within one run both sides were measured in the same
rounds, so the differences of their logarithms are tested (paired t). Between runs the rounds are
independent and the variances need not be equal (Welch). ``selftest`` holds this code to its word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from nqbench.analysis.data.estimate import CONFIDENCE, Estimate, quantile
from nqbench.errors import StudyError

ALPHA: Final = 1 - CONFIDENCE
"""False-discovery rate: the share of wrong calls among the calls made."""
DEFAULT_MARGIN: Final = 0.01
"""Differences below 1% are below what changes of clock and placement do between sessions."""
EVENT_STEP_S: Final = 5e-7
"""Resolution of CUDA events (CUDA runtime documentation, ``cudaEventElapsedTime``). Rounds that
agree to the last tick are not known better than to a tick."""
METHOD: Final = "bh"
"""Benjamini-Hochberg. It holds for independent and for positively dependent tests, which is how
points with the same between-round variation depend on each other; Benjamini-Yekutieli would guard
against any dependence, with thresholds five times smaller at 100 points."""

Design = Literal["paired", "welch", "none"]
RoundValues = Mapping[int, float]
"""Value of each round."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The logarithm of a ratio (second over first).

    ``error``    its standard error; NaN where too few rounds were measured
    ``freedom``  degrees of freedom of the t distribution
    ``rounds``   rounds behind it (the smaller side, between runs)
    """

    log_ratio: float
    error: float
    freedom: float
    rounds: int
    design: Design

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.error)

    def estimate(self) -> Estimate:
        """The ratio with its interval."""
        value = math.exp(self.log_ratio)
        if not self.known:
            return Estimate(value, rounds=self.rounds)
        from scipy.special import stdtrit

        half = float(stdtrit(self.freedom, 0.5 + CONFIDENCE / 2)) * self.error
        low, high = math.exp(self.log_ratio - half), math.exp(self.log_ratio + half)
        return Estimate(value, low, high, self.rounds)

    def p_different(self) -> float:
        """p of the hypothesis that the ratio is 1 (two-sided); NaN where nothing is known."""
        return self._twice_beyond(abs(self.log_ratio))

    def p_outside(self, margin: float) -> float:
        """p of the hypothesis that the ratio lies outside of the margin.

        The larger of two one-sided tests, doubled: at most 0.05 exactly where the 95% interval
        lies within ``[1 / (1 + margin), 1 + margin]``, so that the verdict agrees with the
        interval that is shown.
        """
        return self._twice_beyond(math.log1p(margin) - abs(self.log_ratio))

    def _twice_beyond(self, distance: float) -> float:
        """Twice the probability that a centred estimate exceeds ``distance``; 1 at most."""
        if not self.known:
            return math.nan
        if self.error == 0:
            return 0.0 if distance > 0 else 1.0
        from scipy.special import stdtr

        return min(1.0, 2 * float(stdtr(self.freedom, -distance / self.error)))


def paired(first: RoundValues, second: RoundValues, *, step_s: float = 0.0) -> Contrast:
    """Contrast of two points of one run, over the rounds that both have.

    ``step_s`` is the resolution of the clock, 0 for a perfect one.
    """
    shared = sorted(set(first) & set(second))
    logs = np.log([second[r] for r in shared]) - np.log([first[r] for r in shared])
    count = len(shared)
    if count < 2:
        center = float(logs.mean()) if count else _log_ratio(first, second)
        return Contrast(center, math.nan, math.nan, count, "none")
    error = float(logs.std(ddof=1)) / math.sqrt(count)
    floor = _tick([first[r] for r in shared], [second[r] for r in shared], step_s)
    return Contrast(float(logs.mean()), max(error, floor), count - 1, count, "paired")


def welch(first: RoundValues, second: RoundValues, *, step_s: float = 0.0) -> Contrast:
    """Contrast of two runs; the degrees of freedom are Welch and Satterthwaite's."""
    one, two = np.log(list(first.values())), np.log(list(second.values()))
    fewest = min(len(one), len(two))
    center = float(two.mean() - one.mean())
    if fewest < 2:
        return Contrast(center, math.nan, math.nan, fewest, "none")
    parts = [float(x.var(ddof=1)) / len(x) for x in (one, two)]
    total = sum(parts)
    floor = _tick(list(first.values()), list(second.values()), step_s)
    if total == 0:
        return Contrast(center, floor, fewest - 1, fewest, "welch")
    freedom = total**2 / sum(p**2 / (len(x) - 1) for p, x in zip(parts, (one, two), strict=True))
    return Contrast(center, max(math.sqrt(total), floor), freedom, fewest, "welch")


def contrast(
    first: RoundValues, second: RoundValues, *, same_run: bool, step_s: float = 0.0
) -> Contrast:
    """The contrast that suits the two sides."""
    return (paired if same_run else welch)(first, second, step_s=step_s)


def between(first: Estimate, second: Estimate) -> Contrast:
    """Contrast of two estimates from independent rounds, such as one effect on two devices."""
    log_ratio = math.log(second.value) - math.log(first.value)
    errors = [_error(e) for e in (first, second)]
    rounds = min(first.rounds, second.rounds)
    total = sum(e**2 for e in errors)
    if math.isnan(total):
        return Contrast(log_ratio, math.nan, math.nan, rounds, "none")
    parts = [e**4 / (s.rounds - 1) for e, s in zip(errors, (first, second), strict=True) if e]
    return Contrast(
        log_ratio, math.sqrt(total), total**2 / sum(parts) if parts else rounds - 1, rounds, "welch"
    )


def p_different(estimate: Estimate) -> float:
    """p of the hypothesis that the value is 1, from its t interval over rounds; NaN without one."""
    error = _error(estimate)
    if math.isnan(error):
        return error
    freedom = estimate.rounds - 1
    one = Contrast(math.log(estimate.value), error, freedom, estimate.rounds, "paired")
    return one.p_different()


def _error(estimate: Estimate) -> float:
    """Standard error of the logarithm behind a t interval over rounds; NaN without one."""
    if estimate.low is None or estimate.high is None or estimate.rounds < 2:
        return math.nan
    half = (math.log(estimate.high) - math.log(estimate.low)) / 2
    return half / quantile(estimate.rounds, CONFIDENCE)


def overall(
    firsts: Sequence[RoundValues],
    seconds: Sequence[RoundValues],
    *,
    same_run: bool,
    step_s: float = 0.0,
) -> Contrast | None:
    """Contrast of the geometric means over all points, ``None`` without a shared round.

    Each round gives one geometric mean over the points; the rounds give the error. The points are
    taken as they are: another choice of points would give another mean.
    """
    sides = [_means(side) for side in (firsts, seconds)]
    if not all(sides):
        return None
    return contrast(sides[0], sides[1], same_run=same_run, step_s=step_s)


def adjusted(p_values: Sequence[float]) -> list[float]:
    """p values corrected for their number by ``METHOD``; NaN stays NaN and does not count."""
    from scipy.stats import false_discovery_control

    values = np.asarray(p_values, dtype=float)
    known = ~np.isnan(values)
    if known.any():
        values[known] = false_discovery_control(values[known], method=METHOD)
    return [float(v) for v in values]


def check_margin(margin: float) -> float:
    """The margin if it makes sense. Raises ``StudyError``."""
    if not 0 <= margin < 1:
        raise StudyError(
            f"a margin of {100 * margin:g}% makes no sense; it is at least 0% and below 100%"
        )
    return margin


def _means(points: Sequence[RoundValues]) -> dict[int, float]:
    """Geometric mean over the points in each round that all of them have."""
    if not points:
        return {}
    rounds = sorted(set.intersection(*(set(p) for p in points)))
    table: NDArray[np.float64] = np.asarray([[p[r] for r in rounds] for p in points], dtype=float)
    return dict(zip(rounds, np.exp(np.log(table).mean(axis=0)).tolist(), strict=True))


def _log_ratio(first: RoundValues, second: RoundValues) -> float:
    means = [float(np.log(list(v.values())).mean()) for v in (first, second)]
    return means[1] - means[0]


def _tick(first: Sequence[float], second: Sequence[float], step_s: float) -> float:
    """Standard error that the clock's resolution alone causes.

    A time rounded to a step is off by a uniform error of deviation step / sqrt(12). Rounding the
    same time again and again errs the same way, so more rounds do not lessen it.
    """
    if step_s == 0:
        return 0.0
    parts = (step_s / float(np.median(side)) for side in (first, second))
    return math.hypot(*parts) / math.sqrt(12)
