"""What the runner needs of a study: its name, its text, and how to measure."""

from __future__ import annotations

from typing import Any, Protocol


class MeasureLike(Protocol):
    """How to measure; see ``nqbench.study`` for the meaning of each."""

    @property
    def target(self) -> float: ...
    @property
    def rounds(self) -> int: ...
    @property
    def budget_s(self) -> float: ...
    @property
    def samples(self) -> int: ...
    @property
    def warmup(self) -> int: ...
    @property
    def timeout_s(self) -> float: ...


class StudyLike(Protocol):
    """A study, or anything that can be measured like one."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def measure(self) -> MeasureLike: ...
    def as_json(self) -> dict[str, Any]: ...
