"""What some devices can do beyond the protocol; a session asks for each by its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, runtime_checkable

PROFILED: Final = "profiled"
"""In a request: a profiler watches. In what a record is about: which kernels it saw, in order."""


@runtime_checkable
class RoundAware(Protocol):
    """A device whose answers depend on the round: a replay, or the test device."""

    def begin_round(self, round_: int) -> None:
        """A block of this round follows."""


@runtime_checkable
class Expectant(Protocol):
    """A device that computes nothing and has to be told the answer: the test device."""

    def expect(self, answer: int | None) -> None:
        """The known answer of the plan that is prepared next, if there is one."""


@runtime_checkable
class KnowsAnswer(Protocol):
    """A prepared plan that has an answer but no output buffers: a replay, or the test device."""

    def recorded_answer(self) -> int | None:
        """The answer of the last launch."""


@runtime_checkable
class Chillable(Protocol):
    """A prepared plan whose launches can start with a cold L2 cache."""

    def use_cold_l2(self) -> None:
        """From now on, displace what L2 holds before every launch, outside the timed interval."""


@runtime_checkable
class Phased(Protocol):
    """A prepared program that can say where the time of a run goes."""

    def split_run(self, timeout_s: float | None = None) -> Mapping[str, float]:
        """Run once more, waiting after every operation; seconds by the name of the phase.

        The names are those of the plan's kernels, ``allocate``, ``transfer``, ``reduce``, ``free``
        and the program's own (``machine.phase``, ``machine.group``), each only where it occurred,
        ``kernel``, the sum over the kernels, and ``total``, the length of this run with its waits.
        Outputs are those of this run. Raises what ``launch`` raises.
        """


@runtime_checkable
class TellsPhases(Protocol):
    """A prepared host function that may have said where the time of its last call went."""

    def last_phases(self) -> Mapping[str, float]:
        """Seconds by the name of the phase; empty if it did not say."""


@runtime_checkable
class Profilable(Protocol):
    """A prepared program of which a profiler shall see the first launch of each kernel."""

    profiled: tuple[str, ...]
    """Kernels in the order in which the profiler saw them, in the last run."""

    def profile_first_launches(self) -> None:
        """From now on, switch the profiler on during the first launch of each kernel."""
