"""What a point of the local search becomes: levels, plans, instances."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nqbench.errors import WrongDeviceError
from nqbench.plan import CpuPlan, MultiLaunchPlan
from nqbench.point import Level
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.factors import KERNEL_DEFAULTS
from nqbench.workloads.local_search.instance import random_tour, uniform_cities
from tests.workloads.running import CPU, GPU

VERSIONS = [f"brodtkorb_part1.gpu_v{version}" for version in range(1, 9)]


def test_each_version_changes_one_thing() -> None:
    levels = [dict(WORKLOAD.systems[version]) for version in VERSIONS]
    assert levels[0]["blocks"] == 64
    assert levels[0]["block_size"] == 128
    assert levels[0]["apply_size"] == 512
    changed = [{k for k in b if a[k] != b[k]} for a, b in pairwise(levels)]
    rest: list[set[str]] = [{"cache"}, {"moves"}, {"reduction"}, {"unroll"}]
    assert changed == [{"block_size", "blocks"}, *rest, {"mapping"}, {"mapping"}]
    assert levels[-1] == KERNEL_DEFAULTS["indexed"]  # the last version has every improvement


def test_the_paper_s_numbers() -> None:
    derived = WORKLOAD.resolve({"n": 1000}, VERSIONS[0], GPU).derived
    assert derived["moves_per_iteration"] == 498_501
    assert derived["threads"] == 8192
    assert derived["moves_per_thread"] == 61
    plan = WORKLOAD.plan({"n": 1000}, VERSIONS[1], GPU)
    assert isinstance(plan, MultiLaunchPlan)
    assert plan.kernels["evaluation"].grid == (105, 1, 1)
    assert plan.kernels["apply"].block == (512, 1, 1)
    assert plan.kernels["apply"].static_shared_bytes == 4096
    assert plan.about["moves_per_iteration"] == 498_501
    assert WORKLOAD.resolve({"n": 10_000}, VERSIONS[7], GPU).derived["moves_per_iteration"] == (
        49_985_001
    )


def test_grids_and_tiles_grow_with_the_device_and_the_size() -> None:
    resolved = WORKLOAD.resolve({"n": 70, "blocks": {"per_sm": 3}}, VERSIONS[3], GPU)
    assert resolved.derived["blocks"] == 3 * GPU.multiprocessors
    assert resolved.factors["iterations"] == 700
    shapes: dict[tuple[int, ...], tuple[int, int]] = {
        (64, 128): (1, 15), (500, 128): (8, 15), (20_000, 128): (8, 63),
        (20_000, 1024): (2, 63),  # more positions of a thread would need too many registers
    }  # fmt: skip
    for (n, block_size), shape in shapes.items():
        given = {"n": n, "block_size": block_size}
        levels = WORKLOAD.resolve(given, "local_search.fused", GPU).factors
        assert (levels["tile_x"], levels["tile_y"]) == shape
    fixed = {"n": 64, "tile_x": 8, "tile_y": 5}
    assert WORKLOAD.resolve(fixed, "local_search.fused", GPU).factors["tile_x"] == 8


def test_operations_of_a_move() -> None:
    def operations(system: str, **given: Level) -> tuple[object, object, object]:
        derived = WORKLOAD.resolve({"n": 70, **given}, system, GPU).derived
        return tuple(  # type: ignore[return-value]
            derived[f"{what}_per_move"] for what in ("operations", "roots", "bytes")
        )

    assert operations(VERSIONS[7]) == (55, 8, 72)
    assert operations("local_search.fused", tile_x=8) == (11.625, 1.25, 1.5)
    assert operations("local_search.fused", tile_x=1) == (23, 3, 12)


def test_devices() -> None:
    with pytest.raises(WrongDeviceError, match=r"cpu_mapped, brodtkorb_part1\.cpu_two_loops"):
        WORKLOAD.resolve({"n": 9}, VERSIONS[0], CPU)
    for device in (GPU, CPU):
        assert isinstance(WORKLOAD.plan({"n": 9}, "brodtkorb_part1.cpu_mapped", device), CpuPlan)


def test_uniform_cities_are_single_precision_in_the_unit_square() -> None:
    cities = uniform_cities(20_000, 3)
    assert cities.dtype == np.float32
    assert cities.min() >= 0
    assert cities.max() < 1
    assert np.all(cities * 2**24 % 1 == 0)
    assert np.allclose(cities.mean(axis=0), 0.5, atol=0.01)
    assert np.allclose(cities.var(axis=0), 1 / 12, atol=0.002)
    assert abs(np.corrcoef(cities[:, 0], cities[:, 1]).flat[1]) < 0.03


FIRST_CITIES = [[8586941.0, 15946134.0], [2418596.0, 15915696.0]]
FIRST_TOUR = [5, 6, 3, 0, 7, 2, 1, 4, 9, 8]


def test_a_seed_gives_one_instance_for_ever() -> None:
    """These values must never change: recorded answers depend on them."""
    assert (uniform_cities(2, 1) * 2**24).tolist() == FIRST_CITIES
    assert random_tour(10, 1).tolist() == FIRST_TOUR
    assert not np.array_equal(uniform_cities(9, 1), uniform_cities(9, 2))
    assert not np.array_equal(random_tour(9, 1), random_tour(9, 2))
    assert sorted(random_tour(1000, 5)) == list(range(1000))
