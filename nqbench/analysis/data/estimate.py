"""Estimates: a positive value and what is known about its uncertainty.

The unit of replication is the round. Values of rounds are combined on a logarithmic scale, because
times and ratios of times are positive and their noise is multiplicative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

CONFIDENCE: Final = 0.95
"""Coverage of every interval shown: the customary level, and the one of the measuring rules."""


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
    def bounded(self) -> bool:
        """Whether an interval exists."""
        return self.low is not None and self.high is not None

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

    def scaled(self, by: float) -> Estimate:
        """The estimate of a positive multiple of the value: another unit, or a share of it."""
        low = None if self.low is None else by * self.low
        high = None if self.high is None else by * self.high
        return Estimate(by * self.value, low, high, self.rounds, self.exact)


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
        return Estimate(math.exp(center), rounds=count)
    half = quantile(count, CONFIDENCE) * float(logs.std(ddof=1)) / math.sqrt(count)
    return Estimate(math.exp(center), math.exp(center - half), math.exp(center + half), count)
