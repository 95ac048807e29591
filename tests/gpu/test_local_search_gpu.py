"""The local search on a real GPU: the moves of the reference at the paper's sizes, and where its
mappings fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nqbench.point import Level
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.instance import ROOT_ERROR
from nqbench.workloads.local_search.searches import invalid_moves, reference_search
from tests.workloads.local_search.facts import LINE, Cities, given, root_error_plan
from tests.workloads.local_search.test_slack import SHAPES, cities_of
from tests.workloads.running import Ran, run

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

__all__ = ["given"]  # a fixture

VERSIONS = [f"brodtkorb_part1.gpu_v{version}" for version in range(1, 9)]
OURS = ["local_search.fused", "local_search.resident"]
KERNELS = [*VERSIONS, *OURS]
FAILING = VERSIONS[:7]
"""Versions whose mapping has a square root in single precision."""


def right(device: CudaDevice, system: str, **given: Level) -> Ran:
    """Two runs that end as the reference does."""
    return run(WORKLOAD, device, given, system, timeout_s=60)


@pytest.mark.parametrize("system", KERNELS)
@pytest.mark.parametrize(("n", "iterations"), [(100, "auto"), (1000, 2500), (2000, 400)])
def test_moves_of_the_reference(device: CudaDevice, system: str, n: int, iterations: Level) -> None:
    ran = right(device, system, n=n, iterations=iterations)
    limit = 10 * n if iterations == "auto" else int(str(iterations))
    order = "rectangle" if system == "brodtkorb_part1.gpu_v8" else "quadratic"
    found = reference_search(n, 1, limit, order)
    if "changes" in ran.outputs:
        assert np.array_equal(ran.outputs["changes"], found.changes)
    told = WORKLOAD.findings(ran.plan, ran.outputs)
    assert (told["iterations"], told["evaluations"]) == (found.applied, found.evaluations)


@pytest.mark.parametrize("system", KERNELS)
def test_ties(device: CudaDevice, system: str, given: Callable[[Cities], None]) -> None:
    given(LINE)
    right(device, system, n=len(LINE), seed=3)


@pytest.mark.parametrize("system", FAILING)
def test_single_precision_fails_at_ten_thousand(device: CudaDevice, system: str) -> None:
    factors = WORKLOAD.resolve({"n": 10_000, "iterations": 3}, system, device.facts).factors
    plan = WORKLOAD.plan(factors, system, device.facts)
    invalid = invalid_moves(10_000, "rearranged" if system == VERSIONS[6] else "quadratic")
    with device.prepare(plan) as prepared:
        for _ in range(2):
            prepared.launch(60)
            outputs = prepared.fetch()
            assert WORKLOAD.answer(plan, outputs) == -invalid != WORKLOAD.expected(factors)
    assert WORKLOAD.findings(plan, outputs)["invalid_moves"] == invalid


@pytest.mark.parametrize("system", [VERSIONS[7], *OURS])
def test_integers_do_not_fail_at_ten_thousand(device: CudaDevice, system: str) -> None:
    right(device, system, n=10_000, iterations=50)


@pytest.mark.parametrize("system", OURS)
@pytest.mark.parametrize("across", [1, 2, 4, 8])
@pytest.mark.parametrize("rows", [5, 64])
def test_tiles(device: CudaDevice, system: str, across: int, rows: int) -> None:
    right(device, system, n=777, iterations=100, tile_x=across, tile_y=rows, block_size=64)


def test_the_root_is_within_what_is_assumed(device: CudaDevice) -> None:
    """Of all 2^31 positive normal numbers: what makes our kernels' choice of moves safe."""
    with device.prepare(root_error_plan(stride=1, blocks=1056)) as prepared:
        prepared.launch(60)
        (worst,) = prepared.fetch()["worst"].view(np.float64)
    assert 2.0**-26 < worst < ROOT_ERROR


@pytest.mark.parametrize("system", OURS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rough_changes_choose_no_other_move(
    device: CudaDevice, system: str, shape: str, given: Callable[[Cities], None]
) -> None:
    for n in (5, 300):
        given(cities_of(shape, n))
        right(device, system, n=n, iterations=400)
