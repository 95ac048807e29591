"""When a measurement has enough samples.

A measurement samples until the 95% interval of its median is within the target, and records which
clause ended it: ``target``, ``budget`` (its share of the point's time is used up), ``long_launch``
(one sample is enough if a launch takes long) or ``samples`` (the maximum). Every sample is kept: a
disturbed one moves the median by at most one rank, and dropping it would hide the disturbance.
"""

from __future__ import annotations

import statistics
import time
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

CONFIDENCE: Final = 0.95
"""Confidence of the interval of a median: the usual level."""
TARGET: Final = 0.005
"""Half-width of the median's interval: below the 0.4% that processes differ by anyway, so more
samples in a measurement would gain nothing; rounds average over the processes."""
MIN_SAMPLES: Final = 10
"""Below 6 samples the median has no 95% interval at all, and that of 9 is the whole range."""
SHARE_S: Final = 2.0
"""10 s per point in 5 rounds: a hundred points then take at most a quarter of an hour."""
MIN_WARM_UP: Final = 1
"""The first launch of a kernel in a process loads its code; how many more follow is detected."""
LONG_LAUNCH_S: Final = 0.5
"""A launch this long averages over its own jitter, so one sample is enough."""
OUTLIER_FACTOR: Final = 2.0
"""A launch that takes more than twice as long as it was known to take was disturbed: it is kept,
but it does not make the kernel a long one."""
MAX_SAMPLES: Final = 500
"""Keeps a measurement near 10 kB on disk; the median then lies within the middle 9% of the
samples."""
CHECK_GROWTH: Final = 1.1
"""The interval is checked again after 10% more samples, since the GPU is idle during a check."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How long to sample.

    ``target``   wanted half-width of the median's interval, relative to the median
    ``samples``  minimum, unless a launch is long or the share is used up
    ``share_s``  seconds of wall time for the measurement, launches and their preparation included
    ``warm_up``  minimum of untimed launches before; 0 switches warm-up off
    """

    target: float = TARGET
    samples: int = MIN_SAMPLES
    share_s: float = SHARE_S
    warm_up: int = MIN_WARM_UP
    max_samples: int = MAX_SAMPLES


@dataclass(frozen=True, slots=True)
class Samples:
    """Kernel times in seconds, in order, and the clause that ended the sampling."""

    values_s: tuple[float, ...]
    ended_by: str

    @property
    def median_s(self) -> float:
        """The measurement's value."""
        return statistics.median(self.values_s)


def sample(
    launch: Callable[[], float],
    policy: Policy,
    clock: Callable[[], float] = time.perf_counter,
    *,
    known_s: float | None = None,
) -> Samples:
    """Launch until a clause of ``policy`` is met; at least once.

    ``launch`` runs the kernel once and returns its seconds; ``clock`` gives the wall time;
    ``known_s`` is what a launch took before, so that a disturbed one is not taken for long.
    """
    started = clock()
    values: list[float] = []
    ordered: list[float] = []
    look_at = policy.samples
    while True:
        value = launch()
        values.append(value)
        insort(ordered, value)
        count = len(values)
        clause = ""
        if is_long(ordered[0], known_s):
            clause = "long_launch"
        elif count >= look_at:
            look_at = max(count + 1, int(count * CHECK_GROWTH))
            if within_target(ordered, policy.target):
                clause = "target"
        if not clause and clock() - started >= policy.share_s:
            clause = "budget"
        if not clause and count >= max(policy.max_samples, policy.samples):
            clause = "samples"
        if clause:
            return Samples(tuple(values), clause)


def is_long(lowest_s: float, known_s: float | None) -> bool:
    """Whether a kernel is long: its shortest launch is, and no earlier launch says otherwise."""
    hiccup = known_s is not None and lowest_s > OUTLIER_FACTOR * known_s
    return lowest_s > LONG_LAUNCH_S and not hiccup


def within_target(ordered: list[float], target: float) -> bool:
    """Whether the interval of the median of ascending samples is narrow enough."""
    bounds = median_interval(ordered)
    if bounds is None:
        return False
    low, high = bounds
    return (high - low) / 2 <= target * statistics.median(ordered)


@lru_cache(maxsize=4096)
def median_rank(count: int, confidence: float = CONFIDENCE) -> int:
    """Rank r such that the r-th smallest and r-th largest of ``count`` samples hold the median.

    The number of samples below the true median is binomial(count, 1/2), whatever the
    distribution; r is the largest rank whose interval has at least the confidence asked for.
    0 if there is none: fewer than 6 samples give no interval at 95%.
    """
    # P(fewer than r samples lie below the median) must not exceed half of what may be missed.
    # Whole numbers, because scipy.stats takes most of a second to import, in every worker.
    miss = (1.0 - confidence) / 2
    rank, ways, fewer = 0, 1, 1
    while fewer / 2**count <= miss:
        rank += 1
        ways = ways * (count - rank + 1) // rank
        fewer += ways
    return rank


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """Interval of the median of ascending samples, for any distribution; ``None`` of too few."""
    rank = median_rank(len(ordered))
    return (ordered[rank - 1], ordered[-rank]) if rank > 0 else None
