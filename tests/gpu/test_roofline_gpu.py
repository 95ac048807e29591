"""Measured ceilings are plausible shares of what the clocks allow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from nqbench.analysis.data.dataset import load_dataset
from nqbench.analysis.limits.ceilings import ceilings_of
from nqbench.analysis.limits.roofline import roof_points
from nqbench.point import Point
from nqbench.study import Measure, expand, load_study
from nqbench.workloads.ceilings import WORKLOAD
from tests.toys import ToyStudy, run_here

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

CONFIG = Path(__file__).parents[2] / "configs" / "ceilings.yaml"
FP32_LANES: Final = {(7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 9): 128, (9, 0): 128, (10, 0): 128}
"""FP32 results per clock and multiprocessor (CUDA C++ Programming Guide, arithmetic instructions,
throughput of native arithmetic instructions)."""
DRAM: Final = {"H100 80GB HBM3": 3.35e12, "H200": 4.8e12, "A100-SXM4-80GB": 2.04e12}
"""Bytes per second by the data sheets."""


LARGE: Final = 1 << 26
"""Words of the copy: 256 MiB read and as many written, so that the L2 cache is no help."""
OF_THROUGHPUT: Final = 8_650_752
"""Words of the others: the odd size of ``configs/ceilings.yaml``, full waves of an H100."""


def kept(point: Point) -> bool:
    """One point of the study for each ceiling."""
    if point.sweep == "copy":
        return (point.n, point.factors["block_size"]) == (LARGE, 256)
    return point.n in (1 << 20, OF_THROUGHPUT)


@pytest.fixture(scope="module")
def ceilings(device: CudaDevice, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ceilings of this GPU, each from one point in two quick rounds."""
    folder = tmp_path_factory.mktemp("roofline") / "ceilings"
    points = [point for point in expand(load_study(CONFIG), device.facts) if kept(point)]
    quick = ToyStudy(points, Measure(rounds=2, budget_s=1.0), "ceilings")
    outcome = run_here(quick, device.spec, folder, isolate=True)
    assert not outcome.failures, [f.reason for f in outcome.failures]
    return outcome.path


def test_ceilings_are_plausible(device: CudaDevice, ceilings: Path) -> None:
    found = ceilings_of(load_dataset(ceilings)).found
    assert set(found) == {"copy", "read", "fma", "float_add", "int_add", "logic"}
    rate = {name: ceiling.per_s.value for name, ceiling in found.items()}
    identity = device.identity()
    lanes = FP32_LANES.get(device.facts.compute_capability)
    mhz = identity.get("max_sm_mhz")
    if lanes and mhz:
        peak = 2 * lanes * device.facts.multiprocessors * float(str(mhz)) * 1e6
        assert 0.6 * peak < rate["fma"] < 1.02 * peak, rate
    assert 0.4 * rate["fma"] < rate["float_add"] < 0.6 * rate["fma"], rate
    assert rate["read"] > 1.2 * rate["copy"], rate
    for name in ("int_add", "logic"):
        assert 0.15 * rate["fma"] < rate[name] < 0.75 * rate["fma"], rate
    for model, data_sheet in DRAM.items():
        if model in str(identity["name"]):
            assert 0.7 * data_sheet < rate["copy"] < data_sheet, rate


def test_a_copy_is_at_the_roof(device: CudaDevice, ceilings: Path, tmp_path: Path) -> None:
    """With its own work, known from its size."""
    n = 1 << 22
    resolved = WORKLOAD.resolve({"n": n}, "ceilings.copy", device.facts)
    point = Point("copy", "all", "ceilings", "ceilings.copy", resolved.factors, {})
    study = ToyStudy([point], Measure(rounds=2, budget_s=0.5), "copy")
    outcome = run_here(study, device.spec, tmp_path / "copy", isolate=True)
    assert not outcome.failures
    roof, timed = ceilings_of(load_dataset(ceilings)), load_dataset(outcome.path)
    known = {"key": timed.points[0].key, "dram_bytes": 2.0 * 4 * n, "fp32_operations": 0.0}
    counted = replace(timed, profiles=({**known, "integer_thread_instructions": 0.0},))
    (found,), left_out = roof_points(counted, roof)
    assert not left_out
    assert found.limit == "bytes"
    assert found.work["bytes"] == 2 * 4 * n
    assert 0.3 < found.share < 4, "32 MiB may stay in the L2 cache, and so be above the roof"
