"""Launching a prepared plan: until it is warm, then until there are enough samples.

The first launches of a kernel pay for what later ones find ready: loaded code, page tables, caches,
clocks that have risen from idle. How many launches this takes differs between kernels and GPUs, so
it is detected, within bounds; the count and the reason are recorded.

A measurement then samples until the 95% interval of its median is within the target, and records
which clause ended it: ``target``, ``budget`` (its share of the point's time is used up),
``long_launch`` (one sample is enough if a launch takes long) or ``samples`` (the maximum). Every
sample is kept: a disturbed one moves the median by at most one rank, and dropping it would hide the
disturbance.
"""

from __future__ import annotations

import math
import statistics
import time
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nqbench.device import Launch, Prepared
from nqbench.errors import DeviceError

BEAT_S: Final = 0.5
"""Shortest interval between a worker's heartbeats: too long to disturb timing."""
STEADY_LAUNCHES: Final = 3
"""Launches without a new lowest time that mean steady: one may be slow by chance, but not three in
a row while times still fall."""
STEADY_TOLERANCE: Final = 0.01
"""A launch counts as lower if it is 1% below the lowest so far. Less than that is noise (0.1 to 1%
between launches on an idle GPU), and it falls on samples of which the median is taken."""
MAX_LAUNCHES: Final = 30
"""Noise alone sets a new low by 1% ever more rarely; what still falls now is drift, not warm-up,
and drift is what rounds are for."""
TIME_SHARE: Final = 0.2
"""Largest share of a measurement's time, so that sampling keeps most of it."""
MISSED: Final = 0.05 / 2
"""Chance that the interval of a median, at the usual level, lies below it, or above it."""
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


class Timer:
    """Launches a prepared plan, with a heartbeat before a launch, at most every ``BEAT_S``."""

    def __init__(
        self, prepared: Prepared, timeout_s: float | None, beat: Callable[[], None]
    ) -> None:
        self._prepared, self._timeout_s, self._beat = prepared, timeout_s, beat
        self._next_beat = 0.0
        self.last = Launch(None)
        self.last_s = 0.0
        self.blocked = 0
        """Launches so far that were queued while the stream was blocked."""
        self.total_s = 0.0
        """Seconds of all launches so far."""

    def launch(self) -> float:
        """Launch once; its kernel time, or its wall time without one."""
        started = time.monotonic()
        if started >= self._next_beat:
            self._beat()
            self._next_beat = started + BEAT_S
        self.last = self._prepared.launch(self._timeout_s)
        wall_s = time.monotonic() - started
        self.last_s = wall_s if self.last.kernel_s is None else self.last.kernel_s
        if not 0 <= self.last_s < math.inf:  # also for NaN, which would spoil every median
            raise DeviceError(f"the device's clock says that a launch took {self.last_s} s")
        self.total_s += self.last_s
        self.blocked += self.last.blocked
        return self.last_s

    def kernel_s(self) -> float:
        """Launch once; the kernel's seconds."""
        launch_s = self.launch()
        if self.last.kernel_s is None:
            raise DeviceError("the device measured no time; it should not be timed")
        return launch_s


@dataclass(frozen=True, slots=True)
class WarmUp:
    """How a warm-up went.

    ``launches``  how many were made
    ``ended_by``  ``steady`` (times stopped falling), ``launches`` or ``time`` (its bounds),
                  ``off`` (none was asked for) or ``long_launch`` (such a launch warms itself up)
    ``wall_s``    seconds it took
    ``lowest_s``  the shortest launch, ``None`` without one
    """

    launches: int
    ended_by: str
    wall_s: float = 0.0
    lowest_s: float | None = None


def warm_up(
    launch: Callable[[], float],
    least: int,
    limit_s: float,
    *,
    ramp_s: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> WarmUp:
    """Launch until the times stop falling; at least ``least`` times, none at all if that is 0.

    ``limit_s`` bounds the wall time once ``least`` launches are made. ``ramp_s`` is the wall time
    that an idle device needs until its clocks have risen: launches continue for at least that long.
    """
    if least == 0:
        return WarmUp(0, "off")
    started = clock()
    lowest_s = float("inf")
    launches = steady = 0
    while True:
        value_s = launch()
        launches += 1
        steady = 0 if value_s < lowest_s * (1 - STEADY_TOLERANCE) else steady + 1
        lowest_s = min(lowest_s, value_s)
        wall_s = clock() - started
        clause = ""
        if wall_s >= ramp_s:
            if steady >= STEADY_LAUNCHES:
                clause = "steady"
            elif wall_s >= limit_s:
                clause = "time"
            elif launches >= MAX_LAUNCHES:
                clause = "launches"
        if clause and launches >= least:
            return WarmUp(launches, clause, wall_s, lowest_s)


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
class Sampled:
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
) -> Sampled:
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
        disturbed = known_s is not None and ordered[0] > OUTLIER_FACTOR * known_s
        clause = "long_launch" if ordered[0] > LONG_LAUNCH_S and not disturbed else ""
        if not clause and count >= look_at:
            look_at = int(count * CHECK_GROWTH)
            bounds = median_interval(ordered)
            within = 2 * policy.target * statistics.median(ordered)
            clause = "target" if bounds and bounds[1] - bounds[0] <= within else ""
        if not clause and clock() - started >= policy.share_s:
            clause = "budget"
        if not clause and count >= max(policy.max_samples, policy.samples):
            clause = "samples"
        if clause:
            return Sampled(tuple(values), clause)


@lru_cache(maxsize=4096)
def median_rank(count: int) -> int:
    """Rank r such that the r-th smallest and r-th largest of ``count`` samples hold the median.

    The number of samples below the true median is binomial(count, 1/2), whatever the
    distribution; r is the largest rank whose interval misses it no more often than ``MISSED``.
    0 if there is none: fewer than 6 samples give no interval at 95%.
    """
    # P(fewer than r samples lie below the median) must not exceed half of what may be missed.
    # Whole numbers, because scipy.stats takes most of a second to import, in every worker.
    rank, ways, fewer = 0, 1, 1
    while fewer / 2**count <= MISSED:
        rank += 1
        ways = ways * (count - rank + 1) // rank
        fewer += ways
    return rank


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """Interval of the median of ascending samples, for any distribution; ``None`` of too few."""
    rank = median_rank(len(ordered))
    return (ordered[rank - 1], ordered[-rank]) if rank > 0 else None
