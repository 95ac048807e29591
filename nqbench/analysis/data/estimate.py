"""Estimates, and the statistics that compare them: contrasts, their tests, their correction.

The unit of replication is the round. Values of rounds are combined on a logarithmic scale, because
times and ratios of times are positive and their noise is multiplicative. Within one run both sides
of a comparison were measured in the same rounds, so the differences of their logarithms are tested
(paired t). Between runs the rounds are independent and the variances need not be equal (Welch).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

CONFIDENCE: Final = 0.95
"""Coverage of every interval shown: the customary level, and the one of the measuring rules."""
ALPHA: Final = 1 - CONFIDENCE
"""False-discovery rate: the share of wrong calls among the calls made."""
DEFAULT_MARGIN: Final = 0.01
"""Differences below 1% are below what changes of clock and placement do between sessions."""
NOTEWORTHY: Final = 1.02
"""Smallest ratio worth reporting: exact counts may differ by a few parts per million."""
EVENT_STEP_S: Final = 5e-7
"""Resolution of CUDA events (CUDA runtime documentation, ``cudaEventElapsedTime``). Rounds that
agree to the last tick are not known better than to a tick."""
METHOD: Final = "bh"
"""Benjamini-Hochberg. It holds for independent and for positively dependent tests, which is how
points with the same between-round variation depend on each other; Benjamini-Yekutieli would guard
against any dependence, with thresholds five times smaller at 100 points."""

RoundValues = Mapping[int, float]
"""Value of each round."""


def _exp(logarithm: float) -> float:
    """Its exponential, kept finite and above 0: an interval may be as wide as it likes."""
    return math.exp(min(max(logarithm, -700.0), 700.0))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the bounds of its interval.

    ``low`` and ``high`` are ``None`` where there is no interval: the value is ``exact`` (a
    deterministic count), or only one round was measured.
    """

    value: float
    low: float | None = None
    high: float | None = None
    rounds: int = 1
    exact: bool = False

    @property
    def distance(self) -> float:
        """Distance from 1 on a logarithmic scale, of a value from 0 to infinity."""
        return math.inf if self.value <= 0 else abs(math.log(self.value))

    @property
    def noteworthy(self) -> bool:
        """Whether a ratio is far enough from 1 to be reported."""
        return self.distance >= math.log(NOTEWORTHY)

    @property
    def bounded(self) -> bool:
        """Whether an interval exists."""
        return self.low is not None

    def differs_from(self, other: float, comparisons: int = 1) -> bool:
        """Whether ``other`` lies outside the interval.

        ``comparisons`` widens the interval as Bonferroni does, for an estimate that was picked as
        the most extreme of several. Without an interval only an exact value can differ.
        """
        if math.isnan(self.value):
            return False
        if self.exact:
            return self.value != other
        if self.low is None or self.high is None:
            return False
        half = (math.log(self.high) - math.log(self.low)) / 2
        if comparisons > 1:
            wide = quantile(self.rounds, 1 - (1 - CONFIDENCE) / comparisons)
            half *= wide / quantile(self.rounds, CONFIDENCE)
        return abs(math.log(self.value) - math.log(other)) > half

    def inverse(self) -> Estimate:
        """The estimate of one over the value."""
        low = None if self.high is None else 1 / self.high
        high = None if self.low is None else 1 / self.low
        value = math.inf if self.value == 0 else 1 / self.value
        return Estimate(value, low, high, self.rounds, self.exact)


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
    design: Literal["paired", "welch", "none"]

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.error)

    def estimate(self) -> Estimate:
        """The ratio with its interval."""
        value = _exp(self.log_ratio)
        if not self.known:
            return Estimate(value, rounds=self.rounds)
        from scipy.special import stdtrit

        half = float(stdtrit(self.freedom, 0.5 + CONFIDENCE / 2)) * self.error
        low, high = _exp(self.log_ratio - half), _exp(self.log_ratio + half)
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


def quantile(rounds: int, confidence: float) -> float:
    """Two-sided Student quantile for ``rounds`` values (``rounds - 1`` degrees of freedom)."""
    from scipy.special import stdtrit

    return float(stdtrit(rounds - 1, 0.5 + confidence / 2))


def combine(values: Sequence[float], *, exact: bool = False) -> Estimate:
    """Combine one positive value per round: geometric mean, Student's t interval on logarithms.

    A deterministic value is repeated, not replicated: with ``exact`` the first value is taken and
    gets no interval. One round gives a value without an interval.
    """
    if exact:
        return Estimate(float(values[0]), rounds=len(values), exact=True)
    logs = np.log(np.asarray(values, dtype=float))
    count = len(logs)
    center = float(logs.mean())
    if count < 2:
        return Estimate(_exp(center), rounds=count)
    half = quantile(count, CONFIDENCE) * float(logs.std(ddof=1)) / math.sqrt(count)
    return Estimate(_exp(center), _exp(center - half), _exp(center + half), count)


def paired(first: RoundValues, second: RoundValues, *, step_s: float = 0.0) -> Contrast:
    """Contrast of two points of one run, over the rounds that both have.

    ``step_s`` is the resolution of the clock, 0 for a perfect one.
    """
    shared = sorted(set(first) & set(second))
    count = len(shared)
    if count == 0:
        return Contrast(welch(first, second).log_ratio, math.nan, math.nan, 0, "none")
    logs = np.log([second[r] for r in shared]) - np.log([first[r] for r in shared])
    center = float(logs.mean())
    if count < 2:
        return Contrast(center, math.nan, math.nan, count, "none")
    error = float(logs.std(ddof=1)) / math.sqrt(count)
    floor = _tick([first[r] for r in shared], [second[r] for r in shared], step_s)
    return Contrast(center, max(error, floor), count - 1, count, "paired")


def welch(first: RoundValues, second: RoundValues, *, step_s: float = 0.0) -> Contrast:
    """Contrast of two runs; the degrees of freedom are Welch and Satterthwaite's.

    Where one run has more rounds they are too many, and the interval too short, if the fewer rounds
    vary more. There each side has a part in ``1 / freedom`` as in the variance, not by its square.
    """
    logs = [np.log(list(side.values())) for side in (first, second)]
    counts = [len(x) for x in logs]
    center, fewest = float(logs[1].mean() - logs[0].mean()), min(counts)
    if fewest < 2:
        return Contrast(center, math.nan, math.nan, fewest, "none")
    squares = [float(x.var(ddof=1)) / len(x) for x in logs]
    total, freedom = sum(squares), float(fewest - 1)
    if total > 0:
        power = 2 if counts[0] == counts[1] else 1
        parts = (s**power / (n - 1) for s, n in zip(squares, counts, strict=True))
        freedom = total**power / sum(parts)
    floor = _tick(list(first.values()), list(second.values()), step_s)
    return Contrast(center, max(math.sqrt(total), floor), freedom, fewest, "welch")


def overall(
    firsts: Sequence[RoundValues], seconds: Sequence[RoundValues], test: Callable[..., Contrast]
) -> Contrast | None:
    """Contrast (``paired`` or ``welch``) of the geometric means over all points, ``None`` without a
    shared round.

    Each round gives one geometric mean over the points; the rounds give the error. The points are
    taken as they are: another choice of points would give another mean.
    """
    sides = []
    for points in (firsts, seconds):
        rounds = sorted(set.intersection(*(set(p) for p in points)))
        if not rounds:
            return None
        means = np.exp(np.log([[p[r] for r in rounds] for p in points]).mean(axis=0))
        sides.append(dict(zip(rounds, means.tolist(), strict=True)))
    return test(*sides)


def p_different(estimate: Estimate) -> float:
    """p of the hypothesis that the value is 1, from its t interval over rounds; NaN without one."""
    if estimate.low is None or estimate.high is None or estimate.rounds < 2:
        return math.nan
    half = (math.log(estimate.high) - math.log(estimate.low)) / 2
    error = half / quantile(estimate.rounds, CONFIDENCE)
    freedom = estimate.rounds - 1
    one = Contrast(math.log(estimate.value), error, freedom, estimate.rounds, "paired")
    return one.p_different()


def adjusted(p_values: Sequence[float]) -> list[float]:
    """p values corrected for their number by ``METHOD``; NaN stays NaN and does not count."""
    from scipy.stats import false_discovery_control

    values = np.asarray(p_values, dtype=float)
    known = ~np.isnan(values)
    if known.any():
        values[known] = false_discovery_control(values[known], method=METHOD)
    return [float(v) for v in values]


def _tick(first: Sequence[float], second: Sequence[float], step_s: float) -> float:
    """Standard error that the clock's resolution alone causes.

    A time rounded to a step is off by a uniform error of deviation step / sqrt(12). Rounding the
    same time again and again errs the same way, so more rounds do not lessen it.
    """
    if step_s == 0:
        return 0.0
    parts = (step_s / float(np.median(side)) for side in (first, second))
    return math.hypot(*parts) / math.sqrt(12)
