"""The four loops do exactly the steps of their listings, counted independently.

One thread per block makes a warp's loop iterations those of one thread. The expected numbers come
from enumerating placements: a *visit* is a row entered, a *placement* a queen set below the job.
"""

from __future__ import annotations

import pytest

from nqbench.device import Device
from nqbench.point import Level
from nqbench.workloads.counting import WORKLOAD
from tests.workloads.counting.oracle import placements
from tests.workloads.running import run

N, DEPTH = 8, 3


def extendable(rows: int) -> int:
    """Placements of ``rows`` rows that leave a column open in the next one."""
    return len({board[:rows] for board in placements(N, rows + 1)})


def expected_iterations(loop: str) -> int:
    """Iterations over all jobs of the whole tree.

    ``branchy``, ``place_first``: one per placement and one to leave each row visited.
    ``somers``: the same, but a solution leaves the last row at once.
    ``irrc``: one per placement, and one to leave each row that was entered with a column open; a
    dead end is seen from the row above. Only a job whose first row is dead costs one of its own.
    """
    found = [len(placements(N, rows)) for rows in range(N + 1)]
    jobs = found[DEPTH]
    placed = sum(found[DEPTH + 1 :])
    if loop == "irrc":
        left = sum(extendable(rows) for rows in range(DEPTH, N - 1))
        return placed + left + jobs - extendable(DEPTH)
    visits = jobs + sum(found[DEPTH + 1 : N])
    return placed + visits - (found[N] if loop == "somers" else 0)


def counters(
    device: Device, given: dict[str, Level], system: str | None = None
) -> dict[str, int | float]:
    return run(WORKLOAD, device, given, system, times=1).counters


@pytest.mark.parametrize("loop", ["somers", "branchy", "place_first", "irrc"])
def test_iterations_of_one_job_per_thread(simulator: Device, loop: str) -> None:
    """The iteration that finds the job done leaves the loop instead of passing its latch."""
    given: dict[str, Level] = {"n": N, "depth": DEPTH, "symmetry": "none", "block_size": 1}
    counted = counters(simulator, given | {"loop": loop})
    jobs = len(placements(N, DEPTH))
    assert counted["loop_iterations"] == expected_iterations(loop) - jobs


@pytest.mark.parametrize("assignment", ["strided", "contiguous", "global_pool", "block_pool"])
@pytest.mark.parametrize("loop", ["somers", "branchy", "place_first", "irrc"])
def test_a_next_job_costs_no_iteration(simulator: Device, loop: str, assignment: str) -> None:
    """One thread for all jobs: fetching happens inside the loop, which is left once."""
    given: dict[str, Level] = {"n": N, "depth": DEPTH, "symmetry": "none", "block_size": 1}
    given |= {"loop": loop, "assignment": assignment}
    given |= {"pool_size": 10_000} if assignment == "block_pool" else {"blocks": 1}
    assert counters(simulator, given)["loop_iterations"] == expected_iterations(loop) - 1
