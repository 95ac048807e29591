"""When a kernel is warm: untimed launches continue until the launch times stop falling.

The first launches of a kernel pay for what later ones find ready: loaded code, page tables, caches,
clocks that have risen from idle. How many launches this takes differs between kernels and GPUs, so
it is detected, within bounds; the count and the reason are recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

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
