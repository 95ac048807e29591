"""What a search ended with, as one number and as facts for the record."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import Outputs
from nqbench.workloads.base import FAULT
from nqbench.workloads.local_search.instance import Instance

NO_TOUR: Final = 0
"""The answer of a search whose result is not a permutation with the first city in its place."""
_BYTES: Final = 7  # of the digest: exact in any reader of JSON, and positive


def answer_of(instance: Instance, outputs: Outputs) -> int:
    """A checksum of the final tour, sensitive to its order; ``NO_TOUR`` if it is none.

    Negative: minus the number of moves that the mapping sent outside the neighbourhood in one
    evaluation, whatever the tour. Such a search left moves out.
    """
    invalid = invalid_moves(outputs)
    if invalid:
        return -invalid
    tour = outputs["tour"]
    return checksum(tour) if is_tour(tour, instance) else NO_TOUR


def checksum(tour: NDArray[Any]) -> int:
    """From the digest of the cities' numbers in order; never 0."""
    digest = hashlib.sha256(np.asarray(tour, "<u4").tobytes()).digest()
    return int.from_bytes(digest[:_BYTES], "little") + 1


def is_tour(tour: NDArray[Any], instance: Instance) -> bool:
    """Whether every city occurs once, and the first is where the search found it."""
    everyone = np.arange(instance.n)
    return bool(np.array_equal(np.sort(tour), everyone)) and bool(tour[0] == instance.start[0])


def invalid_moves(outputs: Outputs) -> int:
    """Moves that the mapping sent outside, per evaluation (each evaluation meets the same)."""
    if "invalid" not in outputs:
        return 0
    return int(outputs["invalid"][0]) // max(1, int(outputs["evaluations"][0]))


def findings_of(instance: Instance, outputs: Outputs, moves: int) -> dict[str, int | float | str]:
    """``iterations`` (moves applied), ``evaluations`` (of the neighbourhood), ``moves_evaluated``,
    ``start_length`` and ``final_length`` (double precision, of the tour itself), its
    ``final_solution_hash``, and ``invalid_moves`` per evaluation if there are any."""
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
