"""Kernels whose bottleneck is known are named so on a real GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nqbench.analysis.bottleneck import BEYOND, bottlenecks
from nqbench.analysis.collect import load_dataset
from nqbench.bottleneck import PartsStudy, measure_parts, parts_study
from nqbench.measure.parts import OfPart
from nqbench.plan import KernelPlan
from nqbench.report.figures.bottleneck import bottleneck as draw
from nqbench.report.figures.style import styled
from nqbench.study import Measure, ReportItem
from nqbench.workloads import get
from nqbench.workloads.separable import PARTS, Part

if TYPE_CHECKING:
    from nqbench.devices.cuda import CudaDevice

MEASURE = Measure(rounds=3, budget_s=3.0)
N = 1 << 26
"""256 MiB read and as many written: beyond the L2 cache of any GPU."""


def verdicts(study: PartsStudy, run: Path) -> dict[str, str]:
    outcome = measure_parts(study, "cuda:0", run)
    assert not outcome.failures, [f.reason for f in outcome.failures]
    found = bottlenecks(load_dataset(outcome.path))
    return {f"{b.system} {b.n}": f"{b.judged.word}: {b.judged.reason}" for b in found}


@pytest.mark.usefixtures("device")
def test_a_copy_is_memory_bound_and_a_throughput_kernel_is_not(tmp_path: Path) -> None:
    study = parts_study(["ceilings.copy", "ceilings.fma", "ceilings.int_add"], [N], MEASURE)
    found = verdicts(study, tmp_path / "run")
    assert found[f"ceilings.copy {N}"].startswith("memory bound"), found
    assert found[f"ceilings.fma {N}"].startswith("arithmetic bound"), found
    assert found[f"ceilings.int_add {N}"].startswith("arithmetic bound"), found
    with styled():
        (drawing,) = draw(load_dataset(tmp_path / "run"), ReportItem("figure", "bottleneck"))
    assert "memory bound" in drawing.alt


@pytest.mark.usefixtures("device")
def test_more_arithmetic_moves_the_bottleneck(tmp_path: Path) -> None:
    """A part's share grows with its work: memory's falls, arithmetic's rises, step by step."""
    shares = []
    for steps in (4, 64, 1024):
        study = parts_study(["ceilings.fma", f"steps={steps}"], [N], MEASURE)
        outcome = measure_parts(study, "cuda:0", tmp_path / str(steps))
        (found,) = bottlenecks(load_dataset(outcome.path))
        assert found.math is not None
        assert found.memory is not None
        assert found.math.value < BEYOND
        assert found.memory.value < BEYOND
        shares.append((found.math.value, found.memory.value))
    (math4, memory4), _, (math1024, memory1024) = shares
    assert math4 < 0.5 < memory4
    assert memory1024 < 0.5 < math1024


@pytest.mark.parametrize("part", PARTS)
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
def test_every_part_runs(device: CudaDevice, system: str, n: int, part: Part) -> None:
    workload = get("ceilings" if system.startswith("ceilings") else "fitness")
    taken = OfPart(workload, part)
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
