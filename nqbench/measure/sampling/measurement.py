"""One measurement in a worker: the fields of a record, and where its time went."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from nqbench.vocabulary import Status

PROFILED: Final = "profiled"
"""In a request: a profiler is attached. In ``about``: the kernels it saw, in order."""
SPENT: Final = {
    "plan": "making the plan, the jobs included",
    "prepare": "compiling or loading, allocating, copying to the device",
    "warm_up": "untimed launches, from the first to the last",
    "sample": "timed launches and everything between them",
    "telemetry": "opening and reading the device's sensors",
    "check": "fetching the answer and comparing it",
    "phases": "one more run of a program, split into its phases",
    "kernels": "inside kernels, warm-up included: a part of warm_up and sample",
}
"""What a measurement spends its time on (``Record.spent_s``)."""


@dataclass
class Measurement:
    """The fields of a record that a worker fills in; ``device`` is empty where none was used.

    ``fatal``: the worker can launch nothing more and must be replaced.
    """

    device: str = ""
    status: Status = "ok"
    reason: str = ""
    answer: str | None = None
    expected: str | None = None
    value_s: float | None = None
    samples_s: tuple[float, ...] = ()
    phases: dict[str, float] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    telemetry: dict[str, Any] = field(default_factory=dict)
    spent_s: dict[str, float] = field(default_factory=dict)
    ended_by: str = ""
    started: str = ""
    wall_s: float = 0.0
    fatal: bool = False

    def fail(self, status: Status, reason: str) -> None:
        """End without a time: a failed measurement keeps no samples, which would be misleading."""
        self.status, self.reason = status, reason
        self.value_s, self.samples_s, self.phases, self.counters = None, (), {}, {}

    def as_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {name: plain(value) for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measurement:
        """Inverse of :meth:`as_json`."""
        return cls(**{**data, "samples_s": tuple(data["samples_s"])})

    @contextmanager
    def spending(self, on: str) -> Iterator[None]:
        """Count the seconds of a ``with`` statement as spent on one of :data:`SPENT`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            passed_s = time.perf_counter() - started
            self.spent_s[on] = self.spent_s.get(on, 0.0) + passed_s


def scalars(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The short part of a launch's details; breakdowns per line are too long for a record."""
    return {k: v for k, v in detail.items() if isinstance(v, (int, float, str, bool, np.generic))}


def plain(value: Any) -> Any:
    """A value as JSON data: numpy scalars become numbers, tuples lists."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
