"""Rooflines of runs whose times and counts are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from typer.testing import CliRunner

from nqbench.analysis.data.dataset import Dataset, PointResult, load_dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.limits import ceilings
from nqbench.analysis.limits.ceilings import Ceiling, GpuCeilings, WorkKind, ceilings_of
from nqbench.analysis.limits.roofline import RoofPoint, roof_points
from nqbench.cli.app import app
from nqbench.errors import NqbenchError
from nqbench.point import Level
from nqbench.report.roofline import roofline_table, write_roofline
from nqbench.report.table import Source
from nqbench.simulator.models import load_model
from nqbench.workloads.ceilings import amounts
from tests.builders import H100, MINI, Builder, interval
from tests.toys import TOY

SOURCE = Source("device", "measured, 3 rounds", "nqbench run")
N = 1024
COUNTED = {"dram_bytes": "bytes_moved", "fp32_operations": "float_operations",
           "integer_thread_instructions": "integer_operations"}  # fmt: skip
Kernels = Sequence[tuple[str, Mapping[str, Level]]]
KERNELS: Kernels = (
    ("ceilings.copy", {}),
    ("ceilings.fma", {"steps": 8}),
    ("ceilings.int_add", {"steps": 2}),
)


def run(path: Path, device: Mapping[str, Any], name: str, kernels: Kernels) -> Path:
    """Kernels of the workload ``ceilings``, timed and profiled, or counted."""
    made = Builder(device, rounds=3, noise=0.001, study=name, workload=TOY.name)
    for i, (system, levels) in enumerate(kernels):
        factors = TOY.resolve({"n": N, **levels}, system, load_model("mini").facts).factors
        done = amounts(factors)
        made.add("all", factors, 1e-3 + 1e-4 * i, {"warp_instructions": 1}, system)
        if not made.simulated:
            made.profile({name: done.get(of, 0) for name, of in COUNTED.items()})
    return made.write(path)


@pytest.fixture(scope="module")
def roof(runs: dict[str, Path]) -> GpuCeilings:
    return ceilings_of(load_dataset(runs["ceilings"]))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Ceilings and kernels of one device, and the kernels in the simulator."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        "ceilings": run(folder / "ceilings", H100, "ceilings", [(s, {}) for s in TOY.systems]),
        "kernels": run(folder / "kernels", H100, "kernels", KERNELS),
        "counts": run(folder / "counts", MINI, "kernels", KERNELS),
    }


def test_a_ceiling_is_work_over_time(runs: dict[str, Path]) -> None:
    data = load_dataset(runs["ceilings"])
    found = ceilings_of(data).found
    assert list(found) == ["copy", "read", "fma", "float_add", "int_add", "logic"]
    times = {p.system: p.estimate(TIME) for p in data.points}
    copy, fma = times["ceilings.copy"], times["ceilings.fma"]
    assert copy is not None
    assert fma is not None
    assert found["copy"].per_s.value == pytest.approx(2 * 4 * N / copy.value)
    assert found["fma"].per_s.value == pytest.approx(2 * 4096 * N / fma.value)
    low, value, high = interval(found["fma"].per_s)
    assert low < value < high
    best = [ceilings_of(data).best(kind).operation for kind in ("bytes", "float", "integer")]
    assert best == ["copy", "fma", "int_add"]


def test_the_peak_of_a_gpu_is_that_of_its_data_sheet() -> None:
    for capability, multiprocessors, mhz, gflops in (
        ("7.5", 40, 1590, 8_100),  # T4
        ("8.0", 108, 1410, 19_500),  # A100
        ("9.0", 132, 1980, 67_000),  # H100 SXM
    ):
        identity = {"compute_capability": capability, "max_sm_mhz": mhz}
        device = {"identity": identity, "facts": {"multiprocessors": multiprocessors}}
        found = ceilings.device_number(Dataset("", {"device": device}, (), 1), "peak_gflops_single")
        assert found == pytest.approx(gflops, rel=0.01)


def test_points_under_the_roof(runs: dict[str, Path], roof: GpuCeilings) -> None:
    found, left_out = roof_points(load_dataset(runs["kernels"]), roof)
    assert not left_out
    assert [p.system for p in found] == [system for system, _ in KERNELS]
    copy, fma, add = found
    assert [p.work["bytes"] for p in found] == [2 * 4 * N] * 3
    assert (copy.work["float"], fma.work["float"]) == (0, 2 * 8 * N)
    assert (copy.limit, fma.operations, add.operations) == ("bytes", "float", "integer")
    for point in found:
        longest = max(
            point.work[kind] / roof.best(kind).per_s.value for kind in ("bytes", "float", "integer")
        )
        assert point.share == pytest.approx(longest / point.time.value)
    assert fma.intensity == pytest.approx(2.0)
    table = roofline_table(roof, found, ["other at N = 3"], SOURCE)
    assert len(table.rows) == 3
    assert any("other at N = 3" in note for note in table.notes)
    assert table.notes[0].count(" Gop/s") == 4


MEASURED: tuple[tuple[str, WorkKind, float], ...] = (
    ("copy", "bytes", 1e3),
    ("read", "bytes", 9e3),  # of a cache, which is not device memory
    ("fma", "float", 1e3),
    ("int_add", "integer", 1e3),
)
ROOF = GpuCeilings(
    "cuda:0", {n: Ceiling(n, n, kind, Estimate(per_s)) for n, kind, per_s in MEASURED}
)


@pytest.mark.parametrize(
    ("least_s", "shown"),
    [((0.1, 0.3, 0.2), "FP32"), ((0.1, 0.2, 0.3), "INT32"), ((0.7, 0.3, 0.2), "memory")],
)
def test_the_limit_is_the_longest_least_time(least_s: tuple[float, ...], shown: str) -> None:
    kinds: tuple[WorkKind, ...] = ("bytes", "float", "integer")
    limits = dict(zip(kinds, least_s, strict=True))
    work = dict(zip(kinds, (10.0, 300.0, 100.0), strict=True))
    point = RoofPoint("s", 1, {}, Estimate(1.4), work, limits)
    assert point.share == pytest.approx(max(least_s) / 1.4)
    assert point.intensity == pytest.approx(work[point.operations] / 10)
    assert shown in roofline_table(ROOF, [point], [], SOURCE).rows[0]


def test_what_was_not_profiled_is_left_out(runs: dict[str, Path], roof: GpuCeilings) -> None:
    """And a configuration of several sweeps is one kernel."""
    plain = load_dataset(runs["kernels"])
    points = plain.points
    blocks = {r: {**block, "key": "other"} for r, block in points[1].measurements.items()}
    other = replace(points[1], levels={**points[1].levels, "block_size": 1}, measurements=blocks)
    twice = replace(plain, points=(*points, points[1], other))
    row = {"key": points[1].detail("key"), "dram_bytes": 4096.0, "fp32_operations": 64.0,
           "integer_thread_instructions": 32.0}  # fmt: skip
    assert len(roof_points(replace(plain, profiles=(row,)), roof)[1]) == 2
    (found,), left_out = roof_points(replace(twice, profiles=(row,)), roof)
    assert found.system == "ceilings.fma"
    assert found.work == {"bytes": 4096.0, "float": 64.0, "integer": 32.0}
    assert "ceilings.fma at N = 1024 (1 point)" in left_out


def test_what_is_missing_is_said(runs: dict[str, Path], roof: GpuCeilings, tmp_path: Path) -> None:
    alone = copytree(runs["kernels"], tmp_path / "run")
    undated = {name: v for name, v in PROFILE.items() if not name.startswith("duration_ns")}
    kernels, simulated = load_dataset(runs["kernels"]), load_dataset(runs["counts"])
    refused: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: ceilings_of(simulated), "no measured ceiling"),
        (lambda: roof_points(replace(kernels, profiles=()), roof), "`counters: ncu`"),
        (lambda: roof_points(simulated, roof), r"is simulated: .* a run on a GPU"),
        (lambda: roof_points(kernels, replace(roof, device="another GPU")), "the run is of"),
        (lambda: roof_points(replace(program(TWO), profiles=(undated,)), ROOF), "known operations"),
        (lambda: write_roofline([alone]), r"nqbench run ceilings"),
        (lambda: write_roofline([tmp_path / "nowhere"], runs["ceilings"]), "nowhere"),
    )
    for asked, said in refused:
        with pytest.raises(NqbenchError, match=said):
            asked()


def test_the_command(runs: dict[str, Path], tmp_path: Path) -> None:
    words = ["report", str(runs["kernels"]), "--roofline"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Kernels under the roofline" in done.output
    names = {path.name for path in tmp_path.iterdir()}
    assert {"table-roofline.md", "figure-roofline.svg"} <= names


def program(block: Mapping[str, object]) -> Dataset:
    """A run with one point of a program, whose kernels are ``evaluate`` and ``apply``."""
    blocks: Mapping[int, Mapping[str, object]] = {1: {"key": "k", **block}}
    point = PointResult("s", "p.two", 100, {"n": 100}, False, True, "ok", "", blocks)
    return Dataset("run", {"device": {"spec": "cuda:0", "kind": "cuda"}}, (point,), 1)


TWO = {"value_s": 10.0, "evaluate_s": 3.0, "apply_s": 2.0, "other_s": 5.0,
       "registers@evaluate": 32, "registers@apply": 16}  # fmt: skip
# A profiler's first launch of a kernel has its own time.
PROFILE = {"key": "k", "dram_bytes@evaluate": 64.0, "fp32_operations@evaluate": 8.0,
           "integer_thread_instructions@evaluate": 4.0, "duration_ns@evaluate": 5e8,
           "duration_ns@apply": 4e8, "dram_bytes": 1.0, "duration_ns": 1.0}  # fmt: skip


def test_a_program_is_set_by_the_kernel_whose_first_launch_takes_longest() -> None:
    (found,), left_out = roof_points(replace(program(TWO), profiles=(PROFILE,)), ROOF)
    assert not left_out
    assert found.kernel == "evaluate"
    assert found.time.value == pytest.approx(0.5)
    assert found.work == {"bytes": 64.0, "float": 8.0, "integer": 4.0}
    assert found.share == pytest.approx(64 / 1e3 / 0.5)
    table = roofline_table(ROOF, [found], [], SOURCE)
    assert [column.name for column in table.columns][:2] == ["system", "kernel"]
    assert table.rows[0][1] == "evaluate"
