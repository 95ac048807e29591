"""Instrumented kernels on a real GPU: their counts are the enumeration's and the literature's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nqbench.workloads.counting import WORKLOAD
from nqbench.workloads.counting.counts import count
from nqbench.workloads.counting.systems import SYSTEMS, is_cpu, paper_of
from tests.workloads.running import run

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

KERNELS = [s for s in SYSTEMS if not is_cpu(s) and paper_of(s) not in ("frontier", "middle")]
"""The papers': no formula says how often another loop passes."""


def counters(
    device: CudaDevice, n: int, system: str, probe: str, **given: int
) -> dict[str, int | float]:
    ran = run(WORKLOAD, device, {"n": n, "probe": probe, **given}, system, 1, timeout_s=300)
    return dict(WORKLOAD.counters(ran.plan, ran.outputs))


@pytest.mark.parametrize("system", KERNELS)
@pytest.mark.parametrize("n", [10, 13])
def test_steps_and_accesses_are_the_enumerations(device: CudaDevice, system: str, n: int) -> None:
    found = counters(device, n, system, "iterations")
    assert found["iterations_total"] == count("iterations", N=n, system=system)
    for stat in ("min", "max", "mean", "variance"):
        value = count("iterations_per_job", N=n, system=system, stat=stat)
        assert found[f"iterations_per_job_{stat}"] == pytest.approx(value)
    accesses = counters(device, n, system, "accesses")["workspace_accesses"]
    assert accesses == count("workspace_accesses", N=n, system=system)


@pytest.mark.parametrize("system", KERNELS)
def test_divergence_and_clocks_are_sane(device: CudaDevice, system: str) -> None:
    # The rule of the paper gives Zhang's systems 71 jobs at N=13, all alike: hence a depth.
    found = counters(device, 13, system, "divergence", depth=5)
    assert 0 < found["split_iteration_share"] < 1
    assert 1 <= found["active_lanes_mean"] <= 32
    lanes = found["active_lanes_mean"] * found["warp_iterations"]
    assert round(lanes) == count("iterations", N=13, system=system, depth=5)
    clocks = counters(device, 13, system, "clocks", depth=5)
    assert 0.1 < clocks["cycles_per_job_sd"] / clocks["cycles_per_job_mean"] < 3
    # Lanes that waited for their warp before they read the clock would all have the same.
    assert clocks["warp_utilization_mean"] < 0.97
    assert 0 < clocks["cycles_per_job_min"] < clocks["cycles_per_job_max"]


def test_table_6_of_zhang2011(device: CudaDevice) -> None:
    """Iterations of all 7,409,150 jobs of 18 queens; the same by enumeration on a CPU."""
    found = counters(device, 18, "zhang2011.low_divergence", "iterations", depth=7)
    assert found["probed_jobs"] == 7_409_150
    assert (found["iterations_per_job_min"], found["iterations_per_job_max"]) == (2, 47495)
    assert found["iterations_per_job_mean"] == pytest.approx(6511.3, abs=0.05)
    assert found["iterations_per_job_variance"] == pytest.approx(1.453e7, rel=5e-4)
    assert found["iterations_total"] == pytest.approx(4.824e10, rel=2e-4)
    assert found["warp_utilization_mean"] == pytest.approx(0.559, abs=0.006)
    naive = counters(device, 18, "zhang2011.naive_l1_16k", "iterations", depth=7)
    assert (naive["iterations_per_job_min"], naive["iterations_per_job_max"]) == (3, 58435)
    assert naive["iterations_per_job_mean"] == pytest.approx(7966.2, abs=0.05)
    assert naive["iterations_total"] == pytest.approx(5.902e10, rel=2e-4)


def test_split_passes_of_18_queens_are_at_least_those_of_lanes_in_step(device: CudaDevice) -> None:
    """Where the hardware runs all lanes of a warp in step, 85% of the passes split; groups of lanes
    that it lets drift apart split less often, and then there are more passes."""
    in_step = {"shared_no_conflict": 14612.5, "low_divergence": 11923.6}  # published.yaml
    for system, ideal in in_step.items():
        found = counters(device, 18, f"zhang2011.{system}", "divergence", depth=7)
        assert found["warp_iterations"] / (7_409_150 / 32) > 0.97 * ideal
        assert found["split_iteration_share"] < 0.9
