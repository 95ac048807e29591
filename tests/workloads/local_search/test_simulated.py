"""Every kernel takes the moves of the reference, in its order, in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from nqbench.device import Device
from nqbench.devices.registry import SimDevice
from nqbench.plan import Outputs
from nqbench.point import Level
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.searches import reference_search
from tests.workloads.local_search.facts import LINE, Cities, given
from tests.workloads.running import run

__all__ = ["given"]  # a fixture

KERNELS = [system for system in WORKLOAD.systems if system not in WORKLOAD.cpu_systems]


def search(device: Device, given: Mapping[str, Level], system: str | None = None) -> Outputs:
    """Outputs of a search that took the moves of the reference, twice."""
    ran = run(WORKLOAD, device, given, system)
    plan, outputs, factors = ran.plan, ran.outputs, ran.factors
    mapping = str(factors["mapping"])
    n, seed, limit = (int(str(factors[name])) for name in ("n", "seed", "iterations"))
    order = "quadratic" if mapping == "-" else mapping
    found = reference_search(n, seed, limit, order)
    assert np.array_equal(outputs["tour"], found.tour)
    if "changes" in outputs:
        assert np.array_equal(outputs["changes"], found.changes)  # move by move, bit by bit
    told = WORKLOAD.findings(plan, outputs)
    assert told["iterations"] == found.applied
    assert told["evaluations"] == found.evaluations
    return outputs


@pytest.mark.parametrize("system", KERNELS)
@pytest.mark.parametrize("n", [4, 7, 33])
def test_to_the_local_minimum(simulator: Device, system: str, n: int) -> None:
    search(simulator, {"n": n}, system)


@pytest.mark.parametrize("system", KERNELS)
@pytest.mark.parametrize(("n", "iterations"), [(131, 2), (300, 3)])
def test_some_moves_of_larger_ones(simulator: Device, system: str, n: int, iterations: int) -> None:
    search(simulator, {"n": n, "iterations": iterations, "seed": n}, system)


@pytest.mark.parametrize("system", KERNELS)
def test_ties(simulator: Device, system: str, given: Callable[[Cities], None]) -> None:
    """On a line most changes are those of many moves; each kernel still takes the first."""
    given(LINE)
    search(simulator, {"n": len(LINE), "iterations": 300, "seed": 3}, system)


@pytest.mark.parametrize(
    ("across", "rows", "block_size", "sizes"),
    [
        *((*shape, 32, (9, 70)) for shape in ((1, 1), (1, 300), (2, 3), (4, 7), (8, 1), (8, 16))),
        *((*shape, 128, (300,)) for shape in ((1, 7), (8, 5))),  # warps begin at rows of their own
    ],
)
@pytest.mark.parametrize("kernel", ["tiled", "resident"])
def test_tiles_of_any_shape(
    simulator: Device, kernel: str, across: int, rows: int, block_size: int, sizes: tuple[int, ...]
) -> None:
    shape: dict[str, Level] = {"tile_x": across, "tile_y": rows, "block_size": block_size}
    for n in sizes:
        search(simulator, {"n": n, "iterations": 4, "kernel": kernel, **shape})


@pytest.mark.parametrize(
    "given",
    [
        {"moves": "consecutive", "mapping": "rectangle", "blocks": {"per_sm": 1}},
        {"moves": "strided", "mapping": "quadratic", "reduction": "consecutive", "apply_size": 32},
        {"moves": "consecutive", "mapping": "rearranged", "unroll": "full", "apply_size": 64},
        {"unroll": "none", "apply_size": 1024, "blocks": 3, "block_size": 33},
        {"blocks": 1, "block_size": 1, "cache": "prefer_shared"},
    ],
    ids=str,
)
def test_combinations_that_no_paper_tried(simulator: Device, given: Mapping[str, Level]) -> None:
    for n in (8, 51):
        search(simulator, {"n": n, "iterations": 5, **given})


@pytest.mark.parametrize("every", [1, 3, 64])
def test_how_often_the_host_looks_does_not_matter(simulator: Device, every: int) -> None:
    for iterations in (5, 1000):  # before the local minimum, and beyond it
        search(
            simulator,
            {"n": 20, "check_every": every, "iterations": iterations},
            "local_search.resident",
        )


@pytest.mark.parametrize("order", ["reverse", "greedy"])
@pytest.mark.parametrize("system", ["local_search.fused", "local_search.resident"])
def test_in_any_order_of_the_warps(system: str, order: str) -> None:
    search(SimDevice("mini", order=order), {"n": 80, "iterations": 5, "tile_y": 5}, system)


COUNTED: dict[str, tuple[Mapping[str, Level], float]] = {
    "brodtkorb_part1.gpu_v8": ({}, 1.01),
    "brodtkorb_part1.gpu_v7": ({}, 1.01),
    # Beside the stated operations of whole tiles: two rows of distances before the first move of a
    # thread, and what of a warp's tile lies below the diagonal.
    "local_search.fused": ({"tile_x": 4, "tile_y": 63}, 1.35),
}


@pytest.mark.parametrize("system", COUNTED)
def test_a_moves_stated_operations_are_about_those_counted(simulator: Device, system: str) -> None:
    given, slack = COUNTED[system]
    resolved = WORKLOAD.resolve({"n": 1000, "iterations": 1, **given}, system, simulator.facts)
    plan = WORKLOAD.plan(resolved.factors, system, simulator.facts)
    with simulator.prepare(WORKLOAD.variant(plan, "full")) as prepared:
        counted = (prepared.launch().counters or {})["float_operations"]
    per_move = counted / (999 * 998 / 2)
    stated = float(resolved.derived["operations_per_move"])
    assert 0.98 * stated < per_move < slack * stated
