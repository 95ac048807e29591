"""Timing of short work on the CPU, where a single reading of a millisecond is mostly noise."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Final, TypeVar

REPEATS: Final = 5
"""Readings of short work: their median survives two disturbed ones."""
SHORT_S: Final = 0.05
"""No further reading after this time: long work is costly, and hardly disturbed."""

T = TypeVar("T")


def timed(action: Callable[[], T]) -> tuple[T, float]:
    """The result of ``action`` and the seconds it takes: the median of up to five calls.

    ``action`` must be repeatable; one that takes longer than ``SHORT_S`` is called once.
    """
    readings: list[float] = []
    while True:
        started = time.perf_counter()
        result = action()
        readings.append(time.perf_counter() - started)
        if len(readings) == REPEATS or sum(readings) >= SHORT_S:
            return result, median(readings)
