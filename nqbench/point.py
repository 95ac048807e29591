"""Points and reports: what a study becomes once it is expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Level = int | str | Mapping[str, int]
"""A factor's value: a number, a level's name, or ``{"per_sm": k}``."""


@dataclass(frozen=True, slots=True)
class Point:
    """One fully resolved configuration out of a study.

    ``factors``  every factor of the workload with its resolved level, ``n`` included
    ``derived``  numbers that follow from them (jobs, shared_bytes, ...)
    ``skip``     why the point cannot run on the device (``infeasible: skip``), else empty
    """

    study: str
    sweep: str
    workload: str
    system: str | None
    factors: Mapping[str, Level]
    derived: Mapping[str, int | float | str] = field(default_factory=dict)
    skip: str = ""

    @property
    def n(self) -> int:
        """Problem size."""
        value = self.factors["n"]
        assert isinstance(value, int)
        return value

    def label(self) -> str:
        """Short text for people: the system, or the sweep, with n."""
        return f"{self.system or self.sweep} N={self.n}"

    def as_json(self) -> dict[str, Any]:
        """Plain form, as stored in records and sent to workers."""
        return {
            "study": self.study,
            "sweep": self.sweep,
            "workload": self.workload,
            "system": self.system,
            "factors": dict(self.factors),
            "derived": dict(self.derived),
            "skip": self.skip,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Point:
        """Inverse of :meth:`as_json`."""
        return cls(**data)
