"""Fitness of one candidate board, and searches guided by it: the subject of the fourth paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.plan import KernelPlan, Outputs, Plan
from nqbench.point import FactorLevels
from nqbench.workloads.base import Factor, Resolved, Variant, Workload
from nqbench.workloads.fitness import boards, counts, gpu
from nqbench.workloads.fitness.annealing import points
from nqbench.workloads.fitness.cpu.plans import check_packages, cpu_plan
from nqbench.workloads.fitness.factors import CPU_SYSTEMS, FACTORS, REMOVED, SCHEMES, SYSTEMS
from nqbench.workloads.fitness.levels import check_bytes, fill_levels


class Fitness(Workload):
    """The fitness workload; see ``workloads.base.Workload`` for what each member means."""

    name: str = "fitness"
    factors: Mapping[str, Factor] = FACTORS
    removed: Mapping[str, str] = REMOVED
    systems: Mapping[str, FactorLevels] = SYSTEMS
    cpu_systems: frozenset[str] = CPU_SYSTEMS
    parallel_systems: frozenset[str] = frozenset(
        f"fitness_schemes.cpu_{scheme}" for scheme in ("threads", "tbb", "forkjoin")
    )
    phases: Mapping[str, str] = {"evaluation": "evaluations of boards within a search"}
    core_work_per_s: float = 1.5e10
    """A core checks some 16 pairs of queens per ns (N = 20,000)."""
    counts: Mapping[str, Callable[[int], float]] = counts.COUNTS
    no_variants: str = ""
    variant_n: Mapping[DeviceKind, int] = {"cuda": 10_000, "sim": 256}

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        """Fill in and check a configuration; factors that mean nothing get the level ``-``.

        Raises ``InfeasibleError`` (``WrongDeviceError`` for a GPU scheme on a CPU), and
        ``StudyError`` for a factor, level or system that does not exist.
        """
        scheme, levels = fill_levels(given, system, device)
        if scheme.task == "anneal":
            return Resolved(levels, points.resolve(levels, device))
        if scheme.place == "cpu":
            check_packages(levels)
            check_bytes(levels, device, 0, counts.host_bytes(levels))
            return Resolved(levels, counts.traffic(levels))
        return Resolved(levels, gpu.resolve_scheme(levels, device))

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """Executable form of resolved factors; makes the boards (kept between points)."""
        scheme, levels = fill_levels(factors, system, device)
        if scheme.task == "anneal":
            return points.make_plan(levels, device)
        if scheme.place == "cpu":
            check_bytes(levels, device, 0, counts.host_bytes(levels))
            return cpu_plan(levels, boards.boards_of(levels))
        return gpu.program_plan(levels, boards.boards_of(levels), device)

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """Conflicts of the board (``boards.combined`` for a batch), or those of the board found."""
        if plan.about.get("task") == "anneal":
            return points.answer(outputs)
        if "conflicts" not in outputs:
            return int(outputs["answer"][0])
        return boards.combined([int(value) for value in np.atleast_1d(outputs["conflicts"])])

    def findings(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
        """What a search found, and after how many evaluations; empty for an evaluation."""
        return points.findings(outputs) if plan.about.get("task") == "anneal" else {}

    def expected(self, factors: FactorLevels) -> int | None:
        """Counted over the diagonals of the same board by ``boards.conflicts``; of a search the
        conflicts that the reference walk ends with."""
        searches = SCHEMES[str(factors["scheme"])].task == "anneal"
        return points.expected(factors) if searches else boards.expected(factors)

    def variant(self, plan: Plan, variant: Variant) -> KernelPlan:
        """The main kernel of a scheme that evaluates boards on a GPU."""
        return gpu.variant_of(plan, variant)

    def work(self, factors: FactorLevels) -> float:
        """Operations of one evaluation, as a measure of how its time grows with n; of a search, up
        to a factor of its scheme."""
        if SCHEMES[str(factors["scheme"])].task == "anneal":
            return points.work(factors)
        return float(max(1, counts.traffic(factors)["operations"]))


WORKLOAD: Final = Fitness()
