"""What a point of the local search becomes: levels, plans, and instances drawn or read."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.plan import CpuPlan, MultiLaunchPlan
from nqbench.point import Level
from nqbench.study import expand, load_study
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.factors import INDEXED
from nqbench.workloads.local_search.instance import (
    load_instance,
    random_tour,
    uniform_cities,
    with_digest,
)
from nqbench.workloads.local_search.tsplib import read_tsplib
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
    assert levels[-1] == {**INDEXED}  # the last version has every improvement


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


HEAD = (
    "NAME : five\nTYPE: TSP\nCOMMENT : a\nCOMMENT : b\nDIMENSION : 5\nEDGE_WEIGHT_TYPE : EUC_2D\n"
)
CITIES = "1 0 0\n2 3.5 -4\n 3  1e1 2\n5 0.25 7\n4 8 8\n"
GOOD = HEAD + "NODE_COORD_SECTION\n" + CITIES + "EOF\n"


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


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.removesuffix("EOF\n"),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace(" :", ":"),
        GOOD.replace("\n", "\n\n\n"),
    ],
)
def test_reads_cities_in_the_order_of_their_numbers(tmp_path: Path, text: str) -> None:
    path = tmp_path / "five.tsp"
    path.write_text(text, newline="")
    assert read_tsplib(path).tolist() == [[0, 0], [3.5, -4], [10, 2], [8, 8], [0.25, 7]]


NO_CITY = "is not a city, `index x y`, with an index from 1 to DIMENSION: 5 and coordinates from"
MISTAKES: list[tuple[str, str, int, str]] = [
    # what is replaced by what, in which line, and what is said
    ("4 8 8\n", "", 11, "4 cities, but DIMENSION is 5; city 4 is missing"),
    ("EOF", "6 1 1", 13, f"'6 1 1' {NO_CITY} -1e+18 to 1e+18"),
    ("4 8 8", "3 8 8", 12, "city 3 is given twice, first in line 10"),
    *(
        ("4 8 8", city, 12, f"'{city[:40]}' {NO_CITY}")
        for city in (
            *("0 8 8", "d 8 8", "4 8 x", "4 8 inf", "4 nan 8", "4 8 2e18", "4 8 1_0"),
            *(f"{'9' * 5000} 8 8", "4 8", "4 8 8 8"),
        )
    ),
    ("DIMENSION : 5", f"DIMENSION : {'9' * 5000}", 5, "9'; it is the number of cities"),
    ("EUC_2D", "GEO", 6, "EDGE_WEIGHT_TYPE is 'GEO'; only EUC_2D"),
    ("EDGE_WEIGHT_TYPE : EUC_2D\n", "", 12, "EDGE_WEIGHT_TYPE is miss"),
    ("DIMENSION : 5", "DIMENSION : V", 5, "DIMENSION is 'V'"),
    ("DIMENSION : 5\n", "", 12, "DIMENSION is missing; it is the number of cities"),
    ("TYPE: TSP", "TYPE: ATSP", 2, "TYPE is 'ATSP'; only symmetric"),
    ("NAME", "NAMEN", 1, "'NAMEN : five' is not a line `KEYWORD : value`"),
    ("TYPE: TSP", "NAME: x", 2, "NAME is given twice, first in line 1"),
    ("NODE_COORD", "EDGE_WEIGHT", 7, "EDGE_WEIGHT_SECTION is not read; only NODE_COORD_SECTION"),
    ("EOF", "DISPLAY_DATA_SECTION", 13, "is not read"),
    (GOOD, HEAD + "EOF\n", 7, "the file has no NODE_COORD_SECTION"),
    (GOOD, "", 1, "the file has no NODE_COORD_SECTION"),
]


@pytest.mark.parametrize(
    ("right", "wrong", "line", "message"), MISTAKES, ids=[case[1][:20] for case in MISTAKES]
)
def test_mistakes(tmp_path: Path, right: str, wrong: str, line: int, message: str) -> None:
    path = tmp_path / "bad.tsp"
    path.write_text(GOOD.replace(right, wrong))
    with pytest.raises(StudyError) as raised:
        read_tsplib(path)
    assert str(raised.value).startswith(f"{path}:{line}: ")
    assert message in str(raised.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read: No such file"):
        read_tsplib(tmp_path / "absent.tsp")
    with pytest.raises(StudyError, match="cannot be read: embedded null"):
        with_digest("a\0b.tsp", 5)
    pipe = tmp_path / "pipe.tsp"
    os.mkfifo(pipe)
    with pytest.raises(StudyError, match="cannot be read: it is a pipe or a device"):
        read_tsplib(pipe)
    binary = tmp_path / "binary.tsp"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="cannot be read: it is not text"):
        read_tsplib(binary)


STUDY = """\
name: files
workload: local_search
n: [5]
sweeps:
  - name: one
    system: local_search.fused
    matrix:
      instance:
        - uniform
        - {file}
"""


def test_a_study_points_at_the_instance(tmp_path: Path) -> None:
    binary, good = tmp_path / "binary.tsp", tmp_path / "good.tsp"
    binary.write_bytes(b"\xff\xfe\x00")
    good.write_text(GOOD)
    study = tmp_path / "study.yaml"
    for file, message in ((tmp_path / "absent.tsp", "cannot be read"), (binary, "cannot be read")):
        study.write_text(STUDY.format(file=file))
        with pytest.raises(StudyError) as raised:
            expand(load_study(study), GPU)
        assert str(raised.value).startswith(f"{study}:10: instance '{file}' {message}")
    study.write_text(STUDY.format(file=good))
    assert len(expand(load_study(study), GPU)) == 2


def test_a_changed_file_is_another_level(tmp_path: Path) -> None:
    path = tmp_path / "five#2.tsp"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())  # as some editors do
    first = with_digest(str(path), 5)
    assert first.startswith(f"{path}#")
    assert with_digest(first, 5) == first  # resolved levels are resolved again by the worker
    assert load_instance(first, 5, 1).cities[1].tolist() == [3.5, -4]
    path.write_text(GOOD.replace("3.5", "13.5"))
    assert with_digest(str(path), 5) != first
    with pytest.raises(InfeasibleError, match="has changed since it was recorded"):
        with_digest(first, 5)
    with pytest.raises(InfeasibleError, match=r"has 5 cities, but n is 6; give n: \[5\]") as raised:
        WORKLOAD.resolve({"n": 6, "instance": str(path)}, "local_search.fused", GPU)
    assert raised.value.factor == "n"
