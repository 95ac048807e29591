"""Local search for the Euclidean travelling salesman problem: the subject of the fifth paper.

A variant of a kernel (``nqbench bottleneck``) does the first evaluation of a search, that of the
start tour. Our kernels begin it with a best known change, as in every later evaluation: just above
that of the best move, so that they still have to find it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.plan import KernelPlan, MultiLaunchPlan, Outputs, Plan
from nqbench.point import FactorLevels
from nqbench.workloads.base import FAULT, Factor, Resolved, Variant, Workload
from nqbench.workloads.levels import number
from nqbench.workloads.local_search import plans
from nqbench.workloads.local_search.factors import CPU_SYSTEMS, FACTORS, SYSTEMS, THRESHOLD
from nqbench.workloads.local_search.instance import Instance, load_instance
from nqbench.workloads.variants import alone, built_as

EVALUATION, DELTAS, BEST, INVALID, HINTS = "evaluation", "deltas", "best", "invalid", "hints"
_SIGN: Final = np.uint32(0xFFFFFFFF)

NO_TOUR: Final = 0
"""The answer of a search whose result is not a permutation with the first city in its place."""
_BYTES: Final = 7  # of the digest: exact in any reader of JSON, and positive
LEXICOGRAPHIC: Final = "quadratic"
"""A mapping with the order in which all kernels but those with the rectangle break ties."""


class LocalSearch(Workload):
    """The local-search workload; see ``workloads.base.Workload`` for each member."""

    name: str = "local_search"
    factors: Mapping[str, Factor] = FACTORS
    removed: Mapping[str, str] = {"instance": "files of TSPLIB are no longer read; give seed"}
    systems: Mapping[str, FactorLevels] = SYSTEMS
    cpu_systems: frozenset[str] = CPU_SYSTEMS
    phases: Mapping[str, str] = {
        "evaluation": "evaluations of neighbours within a search",
        "apply": "carrying out the move that was chosen",
    }
    no_variants: str = ""
    variant_n: Mapping[DeviceKind, int] = {"cuda": 2_000, "sim": 128}

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        """Fill in and check a configuration; factors that mean nothing get the level ``-``.

        Raises ``InfeasibleError`` (``WrongDeviceError`` for a kernel on a CPU), and ``StudyError``
        for a factor, level or system that does not exist.
        """
        levels = plans.resolve_levels(given, system, device)
        return Resolved(levels, plans.derived(levels, device))

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """Executable form of resolved factors; makes the instance (kept between points)."""
        return plans.make_plan(factors, system, device)

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """A checksum of the final tour, sensitive to its order; ``NO_TOUR`` if it is not one.

        Negative: minus the number of moves that the mapping sent outside the neighbourhood in one
        evaluation, for any tour. Such a search skipped moves.
        """
        invalid = invalid_moves(outputs)
        if invalid:
            return -invalid
        tour = outputs["tour"]
        return checksum(tour) if is_tour(tour, _instance(plan)) else NO_TOUR

    def findings(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
        """``iterations`` (moves applied), ``evaluations`` (of the neighbourhood),
        ``moves_evaluated``, ``start_length`` and ``final_length`` (double precision, of the tour
        itself), its ``final_solution_hash``, and ``invalid_moves`` per evaluation if there are any.
        Empty for a variant of a kernel, which ends no search."""
        if "evaluations" not in outputs:
            return {}
        instance, moves = _instance(plan), int(plan.about["moves_per_iteration"])
        evaluations = int(outputs["evaluations"][0])
        found: dict[str, int | float | str] = {
            "iterations": int(outputs["applied"][0]),
            "evaluations": evaluations,
            "moves_evaluated": evaluations * moves,
            "start_length": tour_length(instance, instance.start),
        }
        if is_tour(outputs["tour"], instance):
            found["final_length"] = tour_length(instance, outputs["tour"])
            found["final_solution_hash"] = checksum(outputs["tour"])
        if invalid := invalid_moves(outputs):
            found["invalid_moves"] = invalid
            found[FAULT] = (
                f"the mapping sent {invalid} numbers of moves outside the neighbourhood, where the"
                " paper's program reads out of bounds (mapping: rectangle does not)"
            )
        return found

    def expected(self, factors: FactorLevels) -> int:
        """Checksum of the tour that ``searches.reference_search`` ends with, with the same order
        among equally good moves."""
        from nqbench.workloads.local_search import searches  # numba: slow to import

        n, seed, iterations = (number(factors, name) for name in ("n", "seed", "iterations"))
        mapping = LEXICOGRAPHIC if factors["mapping"] == "-" else str(factors["mapping"])
        return checksum(searches.reference_search(n, seed, iterations, mapping).tour)

    def variant(self, plan: Plan, variant: Variant) -> KernelPlan:
        """The evaluation kernel of a search, built as ``variant``.

        Raises ``InfeasibleError`` for a search on the CPU, and for the kernel that applies the
        moves itself.
        """
        if not isinstance(plan, MultiLaunchPlan):
            raise InfeasibleError("a search on the CPU has no kernel without memory accesses")
        if plan.kernels[EVALUATION].entry.startswith("evaluation_resident"):
            raise InfeasibleError(
                "local_search.resident applies the move within its evaluation kernel; measure"
                " local_search.fused, whose evaluation is the same"
            )
        kernel = alone(plan, EVALUATION, cleared=(INVALID, HINTS), outputs=(DELTAS, BEST, INVALID))
        changes, key = _first_change(plan.about), plans.NO_BEST
        if len(changes):  # just above the key of the best move of the start tour: ``packed``
            key = int(np.nextafter(changes[0], np.float32(0)).view(np.uint32) ^ _SIGN) << 32
        known = np.array([key], np.uint64)
        buffers = tuple(replace(b, data=known) if b.name == BEST else b for b in kernel.buffers)
        return built_as(replace(kernel, buffers=buffers), variant)

    def variant_answer(self, plan: KernelPlan, outputs: Outputs) -> int:
        """Bits of the best change found, as an unsigned number; 0 if none ends below the threshold.

        Negative: minus the moves that the mapping sent outside the neighbourhood.
        """
        if BEST in outputs:
            return int(np.uint32(int(outputs[BEST][0]) >> 32) ^ _SIGN)
        if invalid := int(outputs[INVALID][0]):
            return -invalid
        least = np.float32(outputs[DELTAS].min())
        return int(least.view(np.uint32)) if least <= np.float32(THRESHOLD) else 0

    def variant_expected(self, factors: FactorLevels) -> int:
        """The same by the reference search: the change of its first move, if it makes one."""
        changes = _first_change(factors)
        return int(changes[0].view(np.uint32)) if len(changes) else 0

    def work(self, factors: FactorLevels) -> float:
        """Moves evaluated, if the search does not stop before its last iteration."""
        return float(number(factors, "iterations") * plans.moves_of(number(factors, "n")))


def checksum(tour: NDArray[Any]) -> int:
    """From the digest of the cities' numbers in order; never 0."""
    digest = hashlib.sha256(np.asarray(tour, "<u4").tobytes()).digest()
    return int.from_bytes(digest[:_BYTES], "little") + 1


def is_tour(tour: NDArray[Any], instance: Instance) -> bool:
    """Whether every city occurs once, and the first city has not moved."""
    cities = np.arange(instance.n)
    return bool(np.array_equal(np.sort(tour), cities)) and bool(tour[0] == instance.start[0])


def invalid_moves(outputs: Outputs) -> int:
    """Moves that the mapping sent outside, per evaluation (each evaluation meets the same)."""
    if "invalid" not in outputs:
        return 0
    return int(outputs["invalid"][0]) // max(1, int(outputs["evaluations"][0]))


def tour_length(instance: Instance, tour: NDArray[Any]) -> float:
    """Length of the closed tour in double precision."""
    places = instance.cities[tour].astype(np.float64)
    steps = places - np.roll(places, -1, axis=0)
    return float(np.hypot(steps[:, 0], steps[:, 1]).sum())


def _instance(plan: Plan) -> Instance:
    about = plan.about
    return load_instance(int(about["n"]), int(about["seed"]))


def _first_change(point: Mapping[str, Any]) -> NDArray[np.float32]:
    """The change of the best move of the start tour; empty if no move is one."""
    from nqbench.workloads.local_search import searches  # numba: slow to import

    n, seed = int(point["n"]), int(point["seed"])
    return searches.reference_search(n, seed, 1, LEXICOGRAPHIC).changes


WORKLOAD: Final = LocalSearch()
