"""Kernels whose bottleneck is known are named so on a real GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from nqbench.analysis.data.dataset import Dataset, load_dataset
from nqbench.analysis.limits.bottleneck import BEYOND, Bottleneck, bottlenecks
from nqbench.measure.variants import OfVariant
from nqbench.plan import KernelPlan
from nqbench.report.bottleneck import bottleneck_figure as draw
from nqbench.report.figures.style import styled
from nqbench.study import Measure, ReportItem, expand
from nqbench.study.asked import variants_study
from nqbench.workloads import get
from nqbench.workloads.base import VARIANTS, Variant
from tests.toys import ToyStudy, run_here

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

MEASURE = Measure(rounds=3, budget_s=1.0)
"""An interval over fewer rounds is too wide to judge by."""
MOVED: Final = 1 << 25
"""Words: 128 MiB read and as many written, beyond the L2 cache of an H100 (50 MB)."""
WORKED: Final = 1 << 22
"""Words of kernels that are bound by arithmetic, at 4,096 operations on each: 0.5 ms."""


@pytest.fixture(scope="module")
def taken_apart(device: CudaDevice, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """All kernels of this file in one run: starting workers takes as long as measuring."""
    studies = (
        variants_study(["ceilings.copy"], [MOVED]),
        variants_study(["ceilings.fma", "steps=4"], [MOVED]),
        variants_study(["ceilings.fma", "ceilings.int_add"], [WORKED]),
    )
    points = [point for study in studies for point in expand(study, device.facts)]
    joint = ToyStudy(points, MEASURE, "bottleneck")
    folder = tmp_path_factory.mktemp("bottleneck") / "run"
    outcome = run_here(joint, device.spec, folder, isolate=True)
    assert not outcome.failures, [f.reason for f in outcome.failures]
    return load_dataset(outcome.path)


def found(data: Dataset, system: str, steps: int) -> Bottleneck:
    (one,) = [b for b in bottlenecks(data) if (b.system, b.levels["steps"]) == (system, steps)]
    return one


def test_a_copy_is_memory_bound_and_a_throughput_kernel_is_not(taken_apart: Dataset) -> None:
    for system, steps, word in (
        ("ceilings.copy", 0, "memory bound"),
        ("ceilings.fma", 4096, "arithmetic bound"),
        ("ceilings.int_add", 4096, "arithmetic bound"),
    ):
        judged = found(taken_apart, system, steps).judged
        assert judged.word == word, (system, judged)
    with styled():
        (figure,) = draw(taken_apart, ReportItem("figure", "bottleneck"))
        drawing = figure()
    assert "memory bound" in drawing.alt


def test_more_arithmetic_moves_the_bottleneck(taken_apart: Dataset) -> None:
    """Memory's share of the time falls with the operations on each word, arithmetic's rises."""
    few, many = (found(taken_apart, "ceilings.fma", steps) for steps in (4, 4096))
    shares = [part.value for b in (few, many) for part in (b.math, b.memory) if part]
    assert all(share < BEYOND for share in shares)
    math_few, memory_few, math_many, memory_many = shares
    assert math_few < 0.5 < memory_few
    assert memory_many < 0.5 < math_many


@pytest.mark.parametrize("part", VARIANTS)
@pytest.mark.parametrize(
    ("system", "n"),
    [
        ("fitness_schemes.gpu_fine1", 1000),
        ("fitness_schemes.gpu_fine2", 1000),
        ("fitness_schemes.gpu_coarse", 2000),
        ("fitness.histogram", 2000),
        ("ceilings.read_l2", 4096),
    ],
)
def test_every_part_runs(device: CudaDevice, system: str, n: int, part: Variant) -> None:
    workload = get("ceilings" if system.startswith("ceilings") else "fitness")
    taken = OfVariant(workload, part)
    factors = workload.resolve({"n": n}, system, device.facts).factors
    plan = taken.plan(factors, system, device.facts)
    assert isinstance(plan, KernelPlan)
    with device.prepare(plan) as prepared:
        for _ in range(2):
            prepared.launch(30.0)
        assert taken.answer(plan, prepared.fetch()) == taken.expected(factors)
        if plan.about["occupancy_matched"]:
            ours = float(prepared.resources["occupancy"])
            assert ours == pytest.approx(float(plan.about["occupancy_full"]), abs=0.26)
