"""Counting all solutions of the N-Queens problem: the subject of three of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nqbench.facts import DeviceFacts
from nqbench.plan import KernelPlan, Outputs, Plan
from nqbench.point import FactorLevels, Level
from nqbench.workloads.base import Factor, Resolved, Workload
from nqbench.workloads.counting.factors import FACTORS, MIDDLE
from nqbench.workloads.counting.known import SOLUTIONS, nodes
from nqbench.workloads.counting.probe import COUNTERS, summarise
from nqbench.workloads.counting.systems import SYSTEMS, is_cpu
from nqbench.workloads.levels import number


class Counting(Workload):
    """The counting workload; see ``workloads.base.Workload`` for what each member means."""

    name: str = "counting"
    factors: Mapping[str, Factor] = FACTORS
    systems: Mapping[str, FactorLevels] = SYSTEMS
    cpu_systems: frozenset[str] = frozenset(filter(is_cpu, SYSTEMS))
    parallel_systems: frozenset[str] = frozenset(s for s in cpu_systems if s.endswith("multicore"))
    probe_counters: Mapping[str, str] = COUNTERS
    phases: Mapping[str, str] = {
        "list": "listing half boards",
        "order": "ordering the lists of half boards",
        "join": "counting the pairs of half boards",
    }
    no_variants: str = (
        "has no variants without arithmetic or memory: its control flow depends on the words that"
        " it loads and stores, so that without them it would search another tree"
    )

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        """Fill in and check a configuration; inapplicable factors get the level ``-``.

        Raises ``InfeasibleError`` (``WrongDeviceError`` for a kernel on a CPU), and ``StudyError``
        for a factor, level or system that does not exist.
        """
        from nqbench.workloads.counting.configuration import derived
        from nqbench.workloads.counting.resolve import resolve_cpu, resolve_kernel

        if system is not None and is_cpu(system):
            return Resolved(resolve_cpu(given, system), {})
        if system == MIDDLE:
            from nqbench.workloads.counting.middle import plans as of_halves

            levels = of_halves.resolve(given, device)
            return Resolved(levels, of_halves.derived(levels, device))
        levels, config, grid = resolve_kernel(given, system, device)
        return Resolved(levels, derived(config, grid))

    def auto_level(self, name: str, factors: FactorLevels, system: str | None) -> Level | None:
        """The paper's own ``depth``, or one that gives enough jobs; see ``resolve.auto_depth``."""
        if name != "depth" or system == MIDDLE:
            return None
        from nqbench.workloads.counting.resolve import auto_depth

        return auto_depth(factors, system)

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """Executable form of resolved factors; makes the jobs (cached between points)."""
        from nqbench.workloads.counting import plans

        if system is not None and is_cpu(system):
            return plans.cpu_plan(factors, system)
        if system == MIDDLE:
            from nqbench.workloads.counting.middle import plans as of_halves

            return of_halves.make_plan(factors, device)
        return plans.kernel_plan(factors, system, device)

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """Solutions found: the sum of the results, which carry their weights already."""
        if not isinstance(plan, KernelPlan):
            return int(outputs["answer"][0])
        results = int(np.sum(outputs["results"], dtype=np.uint64))
        if plan.about["symmetry"] != "full":
            return results
        from nqbench.workloads.counting import border

        return border.total(results)

    def counters(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float]:
        """What the plan's probe counted, by ``probe_counters``; empty without one."""
        return summarise(plan, outputs) if isinstance(plan, KernelPlan) else {}

    def count(self, name: str, **parameters: Any) -> Any:
        """A deterministic count by name; see ``counts.count``."""
        from nqbench.workloads.counting import counts

        return counts.count(name, **parameters)

    def expected(self, factors: FactorLevels) -> int | None:
        """A000170(n), or ``None`` beyond the known sizes."""
        return SOLUTIONS.get(number(factors, "n"))

    def work(self, factors: FactorLevels) -> float:
        """Nodes of the part of the search tree that is walked."""
        # Of the tree; 0.171 at n = 16 (tests count it). Of half boards as measured at n = 20.
        part = {"none": 1.0, "full": 1 / 6, "quarter": 1 / 12, "middle": 1 / 12}
        return nodes(number(factors, "n")) * part.get(str(factors.get("symmetry")), 0.5)


WORKLOAD: Final = Counting()
