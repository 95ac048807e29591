"""What a run reports: its progress and its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nqbench.point import Point
from nqbench.record import Record


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run.

    ``path``         its folder
    ``counts``       number of points by status; a point that failed in any round counts as failed
    ``failures``     the record of each failed point, newest
    ``skipped``      reason by point label, for points that were not measured
    ``wall_s``       seconds it took
    ``interrupted``  ended by Ctrl-C; what was measured is kept
    ``unchanged``    no record was added, and the study is the one that was recorded before
    """

    path: Path
    counts: Mapping[str, int]
    failures: tuple[Record, ...]
    skipped: Mapping[str, str]
    wall_s: float
    interrupted: bool
    unchanged: bool = False


class Listener:
    """Receives the progress of a run; this one ignores it."""

    def points(self, points: Sequence[Point]) -> None:
        """The run is to measure these points."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def ahead(self, steps: int) -> None:
        """About so many steps follow after this stage."""

    def started(self, point: Point, *, timed: bool) -> None:
        """A point is given to the device when this returns; ``timed``: not only to verify it."""

    def advanced(self, record: Record | None = None) -> None:
        """One step is done; ``record`` is its result, if it has one."""

    def message(self, text: str) -> None:
        """One sentence for the user."""

    def device(self, name: str) -> Listener:  # noqa: ARG002 (this one ignores it)
        """The listener of one of several devices that measure at the same time."""
        return self

    def finished(self, outcome: RunOutcome) -> None:
        """The run is over."""
