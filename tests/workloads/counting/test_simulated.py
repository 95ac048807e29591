"""Every kernel gives the known answer in the simulator, all its checks on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nqbench.devices.base import Device
from nqbench.point import Level
from nqbench.workloads.counting import WORKLOAD
from nqbench.workloads.counting.known import SOLUTIONS
from nqbench.workloads.counting.systems import SYSTEMS, is_cpu
from tests.workloads.counting.combinations import feasible_places, kernels_at, label, pairwise_cover
from tests.workloads.running import GPU, run

KERNEL_SYSTEMS = [system for system in SYSTEMS if not is_cpu(system)]


def count(device: Device, given: Mapping[str, Level], system: str | None = None) -> int:
    answer = run(WORKLOAD, device, given, system).answer
    assert answer is not None
    return answer


@pytest.mark.parametrize("system", KERNEL_SYSTEMS)
@pytest.mark.parametrize("n", range(5, 11))
def test_systems(simulator: Device, system: str, n: int) -> None:
    assert count(simulator, {"n": n}, system) == SOLUTIONS[n]


@pytest.mark.parametrize("given", pairwise_cover(8, GPU), ids=label)
def test_pairwise_cover(simulator: Device, given: Mapping[str, Level]) -> None:
    assert count(simulator, given) == SOLUTIONS[8]


@pytest.mark.parametrize("given", pairwise_cover(9, GPU, seed=2), ids=label)
def test_pairwise_cover_of_an_odd_board(simulator: Device, given: Mapping[str, Level]) -> None:
    assert count(simulator, given) == SOLUTIONS[9]


@pytest.mark.parametrize(
    "given",
    [
        {"assignment": "block_pool", "pool_size": 1},
        {"assignment": "block_pool", "pool_size": 7},
        {"assignment": "block_pool", "pool_size": 10_000},
        {"assignment": "contiguous", "jobs_per_thread": 3},
        {"assignment": "contiguous", "blocks": 50},
        {"assignment": "strided", "jobs_per_thread": 10_000},
        {"assignment": "strided", "blocks": 50},
        {"assignment": "global_pool", "blocks": 1},
        {"assignment": "global_pool", "blocks": 50},
    ],
    ids=label,
)
def test_shares_that_leave_threads_idle_or_overloaded(
    simulator: Device, given: Mapping[str, Level]
) -> None:
    """129 jobs on grids far too small and far too large for them."""
    for loop in ("somers", "place_first", "irrc"):
        shape: dict[str, Level] = {"n": 9, "depth": 3, "block_size": 40, "loop": loop}
        assert count(simulator, {**shape, **given}) == SOLUTIONS[9]


@pytest.mark.full
@pytest.mark.timeout(3600)  # 360 kernels each, 0.3 s per kernel on an idle core
@pytest.mark.parametrize("place", feasible_places(8, GPU), ids=label)
def test_all_combinations(simulator: Device, place: Mapping[str, Level]) -> None:
    wrong = []
    for kernel in kernels_at(place, 8):
        given = {**kernel, "block_size": 32, "depth": 3}
        if count(simulator, given) != SOLUTIONS[8]:
            wrong.append(label(given))
    assert not wrong
