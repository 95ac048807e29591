"""Intervals: of a measurement's median, and of a point over its measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

CONFIDENCE: Final = 0.95


@lru_cache(maxsize=4096)
def median_rank(count: int, confidence: float = CONFIDENCE) -> int:
    """Rank r such that the r-th smallest and r-th largest of ``count`` samples hold the median.

    The number of samples below the true median is binomial(count, 1/2), whatever the
    distribution; r is the largest rank whose interval has at least the confidence asked for.
    0 if there is none: fewer than 6 samples say nothing at 95%.
    """
    from scipy.stats import binom

    # P(fewer than r samples lie below the median) must not exceed half of what may be missed.
    miss = (1.0 - confidence) / 2
    rank = int(binom.ppf(miss, count, 0.5))
    return rank if binom.cdf(rank - 1, count, 0.5) <= miss else rank - 1


def median_interval(
    ordered: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Interval of the median of ascending samples, free of assumptions on their distribution.

    ``None`` if there are too few samples for the confidence.
    """
    rank = median_rank(len(ordered), confidence)
    return (ordered[rank - 1], ordered[-rank]) if rank > 0 else None


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Interval of a point from its measurements' values: Student's t on their logarithms.

    The centre is the geometric mean. Two values at least, all positive; raises ``ValueError``.
    """
    if len(values) < 2:
        raise ValueError(f"an interval needs at least 2 measurement values, not {len(values)}")
    if min(values) <= 0:
        raise ValueError(f"measurement values must be positive, not {min(values)}")
    from scipy.stats import t

    logs = [math.log(value) for value in values]
    count = len(logs)
    mean = math.fsum(logs) / count
    variance = math.fsum((x - mean) ** 2 for x in logs) / (count - 1)
    half = float(t.ppf(0.5 + confidence / 2, count - 1)) * math.sqrt(variance / count)
    return math.exp(mean - half), math.exp(mean + half)
