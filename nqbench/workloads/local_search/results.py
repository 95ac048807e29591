"""The result of a search: its answer, the expected answer, and findings for the record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.base import FAULT
from nqbench.workloads.levels import number
from nqbench.workloads.local_search.instance import Instance, load_instance
from nqbench.workloads.local_search.reference import reference_search

NO_TOUR: Final = 0
"""The answer of a search whose result is not a permutation with the first city in its place."""
_BYTES: Final = 7  # of the digest: exact in any reader of JSON, and positive


LEXICOGRAPHIC: Final = "quadratic"
"""A mapping with the order in which all kernels but those with the rectangle break ties."""


def answer(plan: Plan, outputs: Outputs) -> int:
    """A checksum of the final tour, sensitive to its order; ``NO_TOUR`` if it is not one.

    Negative: minus the number of moves that the mapping sent outside the neighbourhood in one
    evaluation, for any tour. Such a search skipped moves.
    """
    invalid = invalid_moves(outputs)
    if invalid:
        return -invalid
    tour = outputs["tour"]
    return checksum(tour) if is_tour(tour, _instance(plan)) else NO_TOUR


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


def findings(plan: Plan, outputs: Outputs) -> dict[str, int | float | str]:
    """``iterations`` (moves applied), ``evaluations`` (of the neighbourhood), ``moves_evaluated``,
    ``start_length`` and ``final_length`` (double precision, of the tour itself), its
    ``final_solution_hash``, and ``invalid_moves`` per evaluation if there are any.
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


def tour_length(instance: Instance, tour: NDArray[Any]) -> float:
    """Length of the closed tour in double precision."""
    places = instance.cities[tour].astype(np.float64)
    steps = places - np.roll(places, -1, axis=0)
    return float(np.hypot(steps[:, 0], steps[:, 1]).sum())


def expected(factors: Mapping[str, Level]) -> int:
    """Checksum of the tour of a search with the same order among equally good moves."""
    mapping = str(factors["mapping"])
    found = reference_search(
        str(factors["instance"]),
        number(factors, "n"),
        number(factors, "seed"),
        number(factors, "iterations"),
        mapping if mapping != "-" else LEXICOGRAPHIC,
    )
    return checksum(found.tour)


def _instance(plan: Plan) -> Instance:
    about = plan.about
    return load_instance(str(about["instance"]), int(about["n"]), int(about["seed"]))
