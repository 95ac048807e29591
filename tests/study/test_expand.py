"""From a study to its points: products, order, conditions, devices, skips."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.point import Point
from nqbench.study import MAX_POINTS, expand
from tests.study.fake import CPU, CUDA, SIM, FakeWorkload, points_of, study_of

HEAD = "name: s\nn: [10]\n"


def column(points: list[Point], *factors: str) -> list[tuple[object, ...]]:
    return [tuple(point.factors[factor] for factor in factors) for point in points]


@pytest.mark.parametrize(
    ("text", "factors", "expected"),
    [
        pytest.param(
            "n: [12, 10]\nmatrix: {memory: [shared, global], depth: {range: [3, 5]}}",
            "n memory depth",
            [(n, m, d) for n in (10, 12) for m in ("shared", "global") for d in (3, 4, 5)],
            id="cartesian product, the last factor fastest",
        ),
        pytest.param(
            "n: 10\nmatrix: {memory: [shared, global]}\nzip: {depth: [3, 4], block_size: [32, 64]}",
            "memory depth block_size",
            [(m, *row) for m in ("shared", "global") for row in ((3, 32), (4, 64))],
            id="zip side by side inside the matrix",
        ),
        pytest.param(
            "n: {range: [8, 14], step: 3}\nmatrix: {depth: {range: [2, 2]}}",
            "n depth",
            [(8, 2), (11, 2), (14, 2)],
            id="ranges include both ends",
        ),
        pytest.param(
            "zip: {n: [12, 10], depth: [5, 3]}", "n depth", [(10, 3), (12, 5)], id="sizes in a zip"
        ),
        pytest.param(
            "n: 10\nsystem: alpha2010.opt1_shared\nmatrix: {block_size: [32, 96]}",
            "memory layout block_size",
            [("shared", "per_thread", size) for size in (32, 96)],
            id="factors override a system",
        ),
        pytest.param(
            "n: 10\nsystem: beta2011.pool\nmatrix: {block_size: [128, 512]}\ninfeasible: skip",
            "pool_size",
            [(256,), (256,)],
            id="a skipped point has the levels of its system",
        ),
        pytest.param(
            "n: [10, 16]\nsystem: alpha2010.opt1_shared\n"
            "fixed:\n  pool_size: block_size * depth\n  depth: 'max(4, n - 11)'\n"
            "  blocks: 2 * device.multiprocessors",
            "depth pool_size blocks",
            [(4, 256, 8), (5, 320, 8)],
            id="expressions read n, other factors, the system and the device",
        ),
        pytest.param(
            "n: 10\nmatrix: {depth: [auto, 5]}\nexclude: {depth: auto}",
            "depth",
            [(5,)],
            id="an excluded level matches as written",
        ),
        pytest.param(
            "n: 10\nmatrix: {depth: [auto, 5]}\nexclude: {depth: 2}",
            "depth",
            [(5,)],
            id="and as resolved",
        ),
    ],
)
def test_levels(tmp_path: Path, text: str, factors: str, expected: list[object]) -> None:
    assert column(points_of(tmp_path, f"name: s\n{text}"), *factors.split()) == expected


def test_sweeps_keep_the_order_of_the_file_and_their_own_sizes(tmp_path: Path) -> None:
    text = (
        "name: s\nn: [11]\nsweeps:\n"
        "- {name: z, n: 10, fixed: {depth: 4}}\n- {name: a, system: beta2011.pool}\n"
    )
    points = points_of(tmp_path, text)
    found = [(p.sweep, p.n, p.system) for p in points]
    assert found == [("z", 10, None), ("a", 11, "beta2011.pool")]
    assert {p.study for p in points} == {"s"}
    assert {p.workload for p in points} == {"counting"}


@pytest.mark.parametrize(
    "axis",
    [
        "systems: [beta2011.pool, cpu.plain]",
        "matrix: {system: [beta2011.pool, cpu.plain]}",
        "zip: {system: [beta2011.pool, cpu.plain]}",
    ],
)
def test_systems_as_an_axis(tmp_path: Path, axis: str) -> None:
    points = points_of(tmp_path, "name: s\nn: [11, 10]\n" + axis)
    expected = [(n, s) for n in (10, 11) for s in ("beta2011.pool", "cpu.plain")]
    assert [(p.n, p.system) for p in points] == expected


def test_values_by_kind_of_device(tmp_path: Path) -> None:
    text = (
        "name: s\nn: {sim: [10], cuda: {range: [15, 16]}}\n"
        "system: {sim: beta2011.pool, cuda: alpha2010.base}\n"
        "fixed: {depth: {sim: 3, cuda: 'n - 11'}}\n"
        "matrix: {block_size: {sim: [32], cuda: [64, 128]}}"
    )
    sim = points_of(tmp_path, text, SIM)
    assert column(sim, "n", "depth", "block_size") == [(10, 3, 32)]
    cuda = points_of(tmp_path, text, CUDA)
    wanted = [(n, n - 11, size) for n in (15, 16) for size in (64, 128)]
    assert column(cuda, "n", "depth", "block_size") == wanted
    assert {p.system for p in cuda} == {"alpha2010.base"}


def test_a_sweep_without_values_for_the_device_stays_out(tmp_path: Path) -> None:
    text = (
        "name: s\nn: [10]\nsweeps:\n- {name: a, fixed: {depth: 4}}\n"
        "- {name: b, n: {cuda: [16]}, fixed: {depth: 4}}"
    )
    assert [p.sweep for p in points_of(tmp_path, text, SIM)] == ["a"]
    assert [p.sweep for p in points_of(tmp_path, text, CUDA)] == ["a", "b"]


def test_auto_and_per_sm_reach_the_workload(tmp_path: Path) -> None:
    workload = FakeWorkload()
    text = HEAD + "fixed: {depth: auto, blocks: {per_sm: 2}}"
    point = expand(study_of(tmp_path, text), SIM, workload=workload)[0]
    assert workload.asked == [{"n": 10, "depth": "auto", "blocks": {"per_sm": 2}}]
    assert point.factors["depth"] == 2, "resolved by the workload"
    assert point.derived == {"jobs": 100, "shared_bytes": 16 * 8 * 128}


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("exclude: {memory: global}", [("shared", 3), ("shared", 4)]),
        ("exclude: {memory: global, depth: 3}", [("shared", 3), ("shared", 4), ("global", 4)]),
        ("exclude: {depth: [3, 9]}", [("shared", 4), ("global", 4)]),
        ("exclude: {depth: {range: [4, 9]}}", [("shared", 3), ("global", 3)]),
        ("exclude:\n  - {memory: global}\n  - depth == 4", [("shared", 3)]),
        ("where: depth < 4", [("shared", 3), ("global", 3)]),
        ("where:\n  - depth < 4\n  - memory in ['global', 'local']", [("global", 3)]),
        ("where: shared_bytes > 0", [("shared", 3), ("shared", 4)]),
        ("where: jobs >= 10000 and not memory == 'shared'", [("global", 4)]),
        ("where: shared_bytes <= device.shared_per_block // 4", None),
        ("where: device.compute_capability >= 90", None),
        ("where: device.arch == 'sm_90' and device.kind != 'cuda'", None),
    ],
)
def test_conditions(tmp_path: Path, condition: str, left: list[tuple[object, ...]] | None) -> None:
    text = HEAD + "fixed: {block_size: 64}\nmatrix: {memory: [shared, global], depth: [3, 4]}\n"
    points = points_of(tmp_path, text + condition)
    everything = [(memory, depth) for memory in ("shared", "global") for depth in (3, 4)]
    assert column(points, "memory", "depth") == (everything if left is None else left)


def test_conditions_that_leave_nothing_say_which_removed_how_many(tmp_path: Path) -> None:
    text = (
        "name: s\nn: [10, 12]\nmatrix: {depth: [3, 4]}\nexclude: {n: 10}\n"
        "where: [jobs < 9, depth > 3]"
    )
    said = r"yaml:5: .* of 4, `\{n: 10\}` removes 2, `jobs < 9` removes 1 and `depth > 3` removes 1"
    with pytest.raises(StudyError, match=said):
        points_of(tmp_path, text)


def test_exclude_removes_what_would_be_infeasible(tmp_path: Path) -> None:
    text = HEAD + "matrix: {memory: [local, shared], layout: [per_thread]}\n"
    with pytest.raises(StudyError, match="layout has no meaning for local"):
        points_of(tmp_path, text)
    for condition in ("exclude: {memory: local}", "where: memory != 'local'"):
        assert column(points_of(tmp_path, text + condition), "memory") == [("shared",)]


def test_infeasible_points_are_kept_with_their_reason(tmp_path: Path) -> None:
    text = HEAD + "matrix: {block_size: [128, 512]}\ninfeasible: skip"
    fits, skipped = points_of(tmp_path, text)
    assert (fits.skip, "49152" in skipped.skip) == ("", True)
    assert (skipped.label(), skipped.factors) == ("s N=10", {"n": 10, "block_size": 512})


def test_kernels_are_skipped_on_a_cpu_whatever_the_study_says(tmp_path: Path) -> None:
    text = HEAD + "systems: [beta2011.pool, cpu.plain]"
    kernel, program = points_of(tmp_path, text, CPU)
    assert "cannot run on a CPU" in kernel.skip
    assert program.skip == ""


def test_equal_points_are_merged_after_resolving(tmp_path: Path) -> None:
    text = HEAD + "matrix: {depth: [auto, 2, 3, 3]}"
    assert column(points_of(tmp_path, text), "depth") == [(2,), (3,)]
    two = HEAD + "sweeps:\n- {name: a, fixed: {depth: 2}}\n- {name: b, fixed: {depth: 2}}"
    assert [p.sweep for p in points_of(tmp_path, two)] == ["a", "b"], "but not across sweeps"


def test_a_dash_leaves_a_factor_to_the_system_without_it(tmp_path: Path) -> None:
    text = HEAD + (
        "matrix:\n  system: [alpha2010.base, beta2011.pool]\n  pool_size: ['-', 64, 128]\n"
        "where: (system == 'alpha2010.base') == (pool_size == '-')"
    )
    found = [(p.system, p.factors["pool_size"]) for p in points_of(tmp_path, text)]
    assert found == [("alpha2010.base", "-"), ("beta2011.pool", 64), ("beta2011.pool", 128)]


def test_the_limit_of_points(tmp_path: Path) -> None:
    text = HEAD + "fixed: {memory: global}\nmatrix: {pool_size: {range: [1, %d]}}"
    small = study_of(tmp_path, text % 3000)
    assert len(expand(small, SIM, workload=FakeWorkload())) == 3000
    large = text.replace("matrix:", "matrix: {memory: [global, shared]}\nzip:").replace(
        "fixed: {memory: global}\n", ""
    )
    with pytest.raises(StudyError, match=rf"20,002 combinations.*{MAX_POINTS:,}"):
        points_of(tmp_path, large % 10_001)
