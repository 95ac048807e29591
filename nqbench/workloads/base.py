"""What a workload must offer, so that studies, runners and reports need not know which it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from nqbench.facts import DeviceFacts
from nqbench.plan import Outputs, Plan
from nqbench.point import Level


@dataclass(frozen=True, slots=True)
class Factor:
    """One axis of the ablation.

    ``levels``  names of the categorical levels (empty for a pure number)
    ``number``  inclusive range if a number is accepted, else ``None``
    ``per_sm``  whether ``{per_sm: k}`` is accepted
    ``auto``    whether the word ``auto`` is accepted (resolved per point)
    ``text``    whether any text is accepted (the name of a file)
    ``launch``  whether a system's name leaves it open: a factor of the launch, of its input, or of
                what is counted, which labels name beside the system
    """

    name: str
    meaning: str
    levels: tuple[str, ...] = ()
    number: tuple[int, int] | None = None
    per_sm: bool = False
    auto: bool = False
    text: bool = False
    launch: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration with every factor set, and the numbers that follow from it."""

    factors: Mapping[str, Level]
    derived: Mapping[str, int | float | str]


class Workload(Protocol):
    """One kind of computation: its factors, its named systems, its plans, its truth."""

    name: str
    factors: Mapping[str, Factor]
    systems: Mapping[str, Mapping[str, Level]]
    """Named points: the factor levels that make a paper's system (no ``n``)."""
    host_systems: frozenset[str]
    """Systems that are host plans on every device: their points run on the processor."""

    def resolve(
        self, given: Mapping[str, Level], system: str | None, device: DeviceFacts
    ) -> Resolved:
        """Fill in defaults and ``auto`` values, and check that the configuration can run.

        ``given`` holds ``n`` and any factor, and overrides the system's own levels. Raises
        ``InfeasibleError`` with the reason and the limit. Must be quick: no job is made here.
        """

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        """Make the resolved configuration executable. May take time (host split)."""

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """Combine the outputs of a launch into the answer (64-bit safe)."""

    def expected(self, factors: Mapping[str, Level]) -> int | None:
        """The known right answer, or ``None`` if nobody knows it."""

    def work(self, factors: Mapping[str, Level]) -> float:
        """Relative amount of work, for predictions: proportional to the time on one device.

        In nodes of a search tree, or in other units with ``work_per_node`` (see there).
        """


def host_systems(workload: Workload) -> frozenset[str]:
    """``Workload.host_systems``; none for somebody's workload that does not speak of them."""
    return getattr(workload, "host_systems", frozenset())


def parallel_systems(workload: Workload) -> frozenset[str]:
    """Which of the host systems use all cores: ``Workload.parallel_systems``, if it has that."""
    return getattr(workload, "parallel_systems", frozenset())


def work_per_node(workload: Workload) -> float:
    """``Workload.work_per_node``, if it has that: units of its work that take about as long as one
    node of counting's search tree, for times that are guessed before anything was launched."""
    return float(getattr(workload, "work_per_node", 1.0))


@runtime_checkable
class CountsItself(Protocol):
    """A workload some of whose plans count what they do (its factor ``probe``)."""

    def counters(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float]:
        """Counters out of the outputs of one launch; empty for a plan without a probe."""


FAULT: Final = "fault"
"""Key of a finding that says, in words, why an answer is wrong; empty words if it need not be."""


@runtime_checkable
class Explains(Protocol):
    """A workload whose runs tell more than the answer: whether a search found what it sought."""

    def findings(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
        """Facts out of the outputs of one launch, for ``Record.about``; empty if there are none."""
