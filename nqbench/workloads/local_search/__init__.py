"""Local search for the Euclidean travelling salesman problem: the subject of the fifth paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.plan import KernelPlan, Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.base import Factor, Resolved, Variant, Workload
from nqbench.workloads.levels import number
from nqbench.workloads.local_search.factors import CPU_SYSTEMS, FACTORS, SYSTEMS


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
        from nqbench.workloads.local_search.levels import resolve_levels
        from nqbench.workloads.local_search.plans import derived

        levels = resolve_levels(given, system, device)
        return Resolved(levels, derived(levels, device))

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        """Executable form of resolved factors; makes the instance (kept between points)."""
        from nqbench.workloads.local_search import plans

        return plans.make_plan(factors, system, device)

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """A checksum of the final tour; negative: minus the moves the mapping got wrong."""
        from nqbench.workloads.local_search import results

        return results.answer(plan, outputs)

    def findings(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
        """Iterations done, evaluations, lengths (see ``results.findings``)."""
        from nqbench.workloads.local_search import results

        return results.findings(plan, outputs)

    def expected(self, factors: Mapping[str, Level]) -> int | None:
        """Checksum of the tour that ``reference.reference_search`` ends with."""
        from nqbench.workloads.local_search import results

        return results.expected(factors)

    def variant(self, plan: Plan, variant: Variant) -> KernelPlan:
        """The evaluation kernel alone, at the tour that a search starts from."""
        from nqbench.workloads.local_search import variants

        return variants.variant_of(plan, variant)

    def variant_answer(self, plan: KernelPlan, outputs: Outputs) -> int:  # noqa: ARG002 (the signature)
        """The best change found, as the bits of a single-precision number."""
        from nqbench.workloads.local_search import variants

        return variants.answer(outputs)

    def variant_expected(self, factors: Mapping[str, Level]) -> int | None:
        """The same of the first move of ``reference.reference_search``."""
        from nqbench.workloads.local_search import variants

        n, seed = number(factors, "n"), number(factors, "seed")
        return variants.expected(str(factors["instance"]), n, seed, "quadratic")

    def work(self, factors: Mapping[str, Level]) -> float:
        """Moves evaluated, if the search does not stop before its last iteration."""
        n, iterations = number(factors, "n"), number(factors, "iterations")
        return iterations * (n - 1) * (n - 2) / 2


WORKLOAD: Final = LocalSearch()
