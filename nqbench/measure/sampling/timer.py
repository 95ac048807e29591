"""Launching a prepared plan repeatedly, with heartbeats for the runner."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from nqbench.device import Launch, Prepared
from nqbench.errors import DeviceError

BEAT_S: Final = 0.5
"""Shortest interval between a worker's heartbeats: too long to disturb timing."""

Beat = Callable[[], None]


class Timer:
    """Launches a prepared plan, with a heartbeat before a launch, at most every ``BEAT_S``."""

    def __init__(self, prepared: Prepared, timeout_s: float | None, beat: Beat) -> None:
        self._prepared = prepared
        self._timeout_s = timeout_s
        self._beat = beat
        self._next_beat = 0.0
        self.last = Launch(None)
        self.last_s = 0.0
        self.blocked = 0
        """Launches so far that were queued while the stream was blocked."""
        self.total_s = 0.0
        """Seconds of all launches so far."""

    def launch(self) -> None:
        """Launch once; ``last_s`` is its kernel time, or its wall time without one."""
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

    def kernel_s(self) -> float:
        """Launch once and return the kernel's seconds."""
        self.launch()
        if self.last.kernel_s is None:
            raise DeviceError("the device measured no time; it should not be timed")
        return self.last.kernel_s
