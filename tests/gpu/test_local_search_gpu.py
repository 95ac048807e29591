"""The local search on a real GPU: the moves of the reference at the paper's sizes, and where its
mappings fail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nqbench.plan import Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.instance import ROOT_ERROR
from nqbench.workloads.local_search.searches import invalid_moves, reference_search
from tests.workloads.local_search.facts import (
    LINE_CITIES,
    root_error_plan,
    write_instance,
    write_line,
)
from tests.workloads.local_search.test_slack import SHAPES, cities_of

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

VERSIONS = [f"brodtkorb_part1.gpu_v{version}" for version in range(1, 9)]
OURS = ["local_search.fused", "local_search.resident"]
KERNELS = [*VERSIONS, *OURS]
FAILING = VERSIONS[:7]
"""Versions whose mapping has a square root in single precision."""


def run(device: CudaDevice, system: str, **given: Level) -> tuple[Plan, Outputs, int, int]:
    """Plan, outputs, answer and expected answer of two runs that end alike."""
    factors = WORKLOAD.resolve(given, system, device.facts).factors
    plan = WORKLOAD.plan(factors, system, device.facts)
    with device.prepare(plan) as prepared:
        answers = []
        for _ in range(2):
            prepared.launch(60)
            outputs = prepared.fetch()
            answers.append(WORKLOAD.answer(plan, outputs))
    assert answers[0] == answers[1]
    return plan, outputs, answers[0], WORKLOAD.expected(factors) or 0


@pytest.mark.parametrize("system", KERNELS)
@pytest.mark.parametrize(("n", "iterations"), [(100, "auto"), (1000, 2500), (2000, 400)])
def test_same_moves_as_the_reference(
    device: CudaDevice, system: str, n: int, iterations: Level
) -> None:
    plan, outputs, answer, expected = run(device, system, n=n, iterations=iterations)
    assert answer == expected
    limit = 10 * n if iterations == "auto" else int(str(iterations))
    order = "rectangle" if system == "brodtkorb_part1.gpu_v8" else "quadratic"
    found = reference_search("uniform", n, 1, limit, order)
    if "changes" in outputs:
        assert np.array_equal(outputs["changes"], found.changes)
    told = WORKLOAD.findings(plan, outputs)
    assert (told["iterations"], told["evaluations"]) == (found.applied, found.evaluations)


@pytest.mark.parametrize("system", KERNELS)
def test_ties(device: CudaDevice, system: str, tmp_path: Path) -> None:
    path = str(write_line(tmp_path))
    _, _, answer, expected = run(device, system, n=LINE_CITIES, instance=path, seed=3)
    assert answer == expected


@pytest.mark.parametrize("system", FAILING)
def test_single_precision_fails_at_ten_thousand(device: CudaDevice, system: str) -> None:
    plan, outputs, answer, expected = run(device, system, n=10_000, iterations=3)
    mapping = "rearranged" if system == VERSIONS[6] else "quadratic"
    assert answer == -invalid_moves(10_000, mapping) != expected
    assert WORKLOAD.findings(plan, outputs)["invalid_moves"] == -answer


@pytest.mark.parametrize("system", [VERSIONS[7], *OURS])
def test_integers_do_not_fail_at_ten_thousand(device: CudaDevice, system: str) -> None:
    _, _, answer, expected = run(device, system, n=10_000, iterations=50)
    assert answer == expected


@pytest.mark.parametrize("kernel", ["tiled", "resident"])
@pytest.mark.parametrize("across", [1, 2, 4, 8])
def test_tiles(device: CudaDevice, kernel: str, across: int) -> None:
    for rows in (5, 64):
        given: dict[str, Level] = {"tile_x": across, "tile_y": rows, "block_size": 64}
        system = f"local_search.{'fused' if kernel == 'tiled' else kernel}"
        _, _, answer, expected = run(device, system, n=777, iterations=100, **given)
        assert answer == expected


def test_the_root_is_within_what_is_assumed(device: CudaDevice) -> None:
    """Of all 2^31 positive normal numbers: what makes our kernels' choice of moves safe."""
    with device.prepare(root_error_plan(stride=1, blocks=1056)) as prepared:
        prepared.launch(60)
        (worst,) = prepared.fetch()["worst"].view(np.float64)
    assert 2.0**-26 < worst < ROOT_ERROR


@pytest.mark.parametrize("system", OURS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rough_changes_choose_no_other_move(
    device: CudaDevice, system: str, shape: str, tmp_path: Path
) -> None:
    for n in (5, 300):
        path = write_instance(tmp_path, cities_of(shape, n))
        _, _, answer, expected = run(device, system, n=n, instance=path, iterations=400)
        assert answer == expected
