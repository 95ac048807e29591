"""Local search for the Euclidean travelling salesman problem: the subject of the fifth paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.plan import KernelPlan, Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.base import Factor, Resolved, Variant, Workload
from nqbench.workloads.levels import number
from nqbench.workloads.local_search import plans, results
from nqbench.workloads.local_search.factors import CPU_SYSTEMS, FACTORS, SYSTEMS
from nqbench.workloads.local_search.levels import resolve_levels


class LocalSearch(Workload):
    """The local-search workload; see ``workloads.base.Workload`` for each member."""

    name: str = "local_search"
    factors: Mapping[str, Factor] = FACTORS
    systems: Mapping[str, Mapping[str, Level]] = SYSTEMS
    cpu_systems: frozenset[str] = CPU_SYSTEMS
    phases: Mapping[str, str] = {
        "evaluation": "evaluations of neighbours within a search",
        "apply": "carrying out the move that was chosen",
    }
    program: str = "search"
    no_variants: str = ""
    variant_n: Mapping[DeviceKind, int] = {"cuda": 2_000, "sim": 128}

    def resolve(
        self, given: Mapping[str, Level], system: str | None, device: DeviceFacts
    ) -> Resolved:
        """Fill in and check a configuration; factors that mean nothing get the level ``-``.

        Raises ``InfeasibleError`` (``WrongDeviceError`` for a kernel on a CPU), and ``StudyError``
        for a factor, level or system that does not exist and for an unreadable instance.
        """
        levels = resolve_levels(given, system, device)
        return Resolved(levels, plans.derived(levels, device))

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        """Executable form of resolved factors; makes the instance (kept between points)."""
        return plans.make_plan(factors, system, device)

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """A checksum of the final tour; negative: minus the moves the mapping got wrong."""
        return results.answer(plan, outputs)

    def findings(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
        """Iterations done, evaluations, lengths (see ``results.findings``)."""
        return results.findings(plan, outputs)

    def expected(self, factors: Mapping[str, Level]) -> int | None:
        """Checksum of the tour that ``searches.reference_search`` ends with."""
        return results.expected(factors)

    def variant(self, plan: Plan, variant: Variant) -> KernelPlan:
        """The evaluation kernel alone, at the tour that a search starts from."""
        return results.variant_of(plan, variant)

    def variant_answer(self, plan: KernelPlan, outputs: Outputs) -> int:
        """The best change found, as the bits of a single-precision number."""
        return results.variant_answer(outputs)

    def variant_expected(self, factors: Mapping[str, Level]) -> int | None:
        """The same of the first move of ``searches.reference_search``."""
        return results.variant_expected(factors)

    def work(self, factors: Mapping[str, Level]) -> float:
        """Moves evaluated, if the search does not stop before its last iteration."""
        n, iterations = number(factors, "n"), number(factors, "iterations")
        return iterations * (n - 1) * (n - 2) / 2


WORKLOAD: Final = LocalSearch()
