"""Fitness of one candidate board, and searches guided by it: the subject of the fourth paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.plan import KernelPlan, Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.base import Factor, Resolved, Variant, Workload
from nqbench.workloads.fitness.factors import FACTORS
from nqbench.workloads.fitness.schemes import CPU_SYSTEMS, SCHEMES, SYSTEMS, Scheme


class Fitness(Workload):
    """The fitness workload; see ``workloads.base.Workload`` for what each member means."""

    name: str = "fitness"
    factors: Mapping[str, Factor] = FACTORS
    systems: Mapping[str, Mapping[str, Level]] = SYSTEMS
    cpu_systems: frozenset[str] = CPU_SYSTEMS
    parallel_systems: frozenset[str] = frozenset(
        f"fitness_schemes.cpu_{scheme}" for scheme in ("threads", "tbb", "forkjoin")
    )
    phases: Mapping[str, str] = {"evaluation": "evaluations of boards within a search"}
    program: str = "call"
    core_work_per_s: float = 1.5e10
    """A core checks some 16 pairs of queens per ns (N = 20,000)."""
    no_variants: str = ""
    variant_n: Mapping[DeviceKind, int] = {"cuda": 10_000, "sim": 256}

    def resolve(
        self, given: Mapping[str, Level], system: str | None, device: DeviceFacts
    ) -> Resolved:
        """Fill in and check a configuration; factors that mean nothing get the level ``-``.

        Raises ``InfeasibleError`` (``WrongDeviceError`` for a GPU scheme on a CPU), and
        ``StudyError`` for a factor, level or system that does not exist.
        """
        from nqbench.workloads.fitness import plans

        return plans.resolve(given, system, device)

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        """Executable form of resolved factors; makes the boards (kept between points)."""
        from nqbench.workloads.fitness import plans

        return plans.make_plan(factors, system, device)

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """Conflicts of the board (``boards.combined`` for a batch), or those of the board found."""
        if plan.about.get("task") == "anneal":
            from nqbench.workloads.fitness.annealing import points

            return points.answer(outputs)
        if "conflicts" not in outputs:
            return int(outputs["answer"][0])
        from nqbench.workloads.fitness.boards import combined

        return combined([int(value) for value in np.atleast_1d(outputs["conflicts"])])

    def findings(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
        """What a search found, and after how many evaluations; empty for an evaluation."""
        if plan.about.get("task") != "anneal":
            return {}
        from nqbench.workloads.fitness.annealing import points

        return points.findings(outputs)

    def count(self, name: str, *, full: bool = False, **parameters: Any) -> Any:
        """A deterministic count by name; see ``counts.count``."""
        from nqbench.workloads.fitness import counts

        return counts.count(name, full=full, **parameters)

    def expected(self, factors: Mapping[str, Level]) -> int | None:
        """Counted over the diagonals of the same board by ``boards.conflicts``."""
        if _scheme(factors).task == "anneal":
            from nqbench.workloads.fitness.annealing import points

            return points.expected(factors)
        from nqbench.workloads.fitness import plans

        return plans.expected(factors)

    def variant(self, plan: Plan, variant: Variant) -> KernelPlan:
        """The main kernel of a scheme that evaluates boards on a GPU."""
        from nqbench.workloads.fitness import gpu

        return gpu.variant_of(plan, variant)

    def work(self, factors: Mapping[str, Level]) -> float:
        """Operations of one evaluation, up to a factor of the scheme."""
        if _scheme(factors).task == "anneal":
            from nqbench.workloads.fitness.annealing import points

            return points.work(factors)
        from nqbench.workloads.fitness.counts import work

        return work(factors)


def _scheme(factors: Mapping[str, Level]) -> Scheme:
    return SCHEMES[str(factors["scheme"])]


WORKLOAD: Final = Fitness()
