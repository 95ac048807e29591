"""Programs of several kernels on a real GPU."""

from __future__ import annotations

import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nqbench.devices.registry import SimDevice
from nqbench.measure.ncu import PROFILE_ROUND
from nqbench.plan import MultiLaunchPlan
from nqbench.runs.reading import read_records
from nqbench.study import Measure
from tests.gpu import programs
from tests.gpu.programs import program
from tests.simulator.test_program import plan as simulated_plan
from tests.toys import Recorder, ToyStudy, run_here

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice
    from nqbench.devices.cuda.program import CudaProgram


def prepare(device: CudaDevice, plan: MultiLaunchPlan) -> CudaProgram:
    from nqbench.devices.cuda.program import CudaProgram

    prepared = device.prepare(plan)
    assert isinstance(prepared, CudaProgram)
    return prepared


def median_s(prepared: CudaProgram, runs: int = 15) -> float:
    prepared.launch()
    return statistics.median(prepared.launch(60).kernel_s or 0.0 for _ in range(runs))


def test_it_computes_what_the_simulator_computes(device: CudaDevice) -> None:
    plan = simulated_plan("steps", 9)
    with SimDevice("mini").prepare(plan) as elsewhere:
        elsewhere.launch()
        expected = elsewhere.fetch()
    with prepare(device, plan) as here:
        for _ in range(3):
            here.launch(timeout_s=60)
            found = here.fetch()
            assert found.keys() == expected.keys()
            assert all(found[name].tolist() == expected[name].tolist() for name in found)
        assert here.resources[f"registers@{[*plan.kernels][1]}"]
        assert here.resources["registers"] == here.resources["registers@scale"]


def test_the_wall_time_is_that_of_the_kernels(device: CudaDevice) -> None:
    with prepare(device, program("waits", programs.WAIT, 10, 2_000_000)) as prepared:
        for timeout_s in (None, 60.0):
            prepared.launch(timeout_s)
            times = [prepared.launch(timeout_s).kernel_s or 0.0 for _ in range(5)]
            assert 0.02 * 0.98 <= statistics.median(times) <= 0.02 * 1.05 + 1e-3
        phases = prepared.phases(60)
    assert phases["wait"] == pytest.approx(phases["kernel"])
    assert 0.02 * 0.98 <= phases["wait"] <= 0.02 * 1.05 + 1e-3


def test_what_the_host_loop_costs(device: CudaDevice) -> None:
    with prepare(device, program("launches", programs.EMPTY, 5000)) as prepared:
        launch_us = median_s(prepared) / 5000 * 1e6
        split = prepared.phases()
    with prepare(device, program("asks", programs.COUNT, 1000)) as prepared:
        ask_us = median_s(prepared) / 1000 * 1e6
        assert prepared.fetch()["seen"].tolist() == [1000]
    print(  # noqa: T201
        f"a queued launch {launch_us:.2f} us, with a download {ask_us:.2f} us,"
        f" an empty kernel by events {split['empty'] / 5000 * 1e6:.2f} us"
    )
    assert launch_us < 15
    assert ask_us < 60
    assert split["empty"] / 5000 < 10e-6  # blocked: without the CPU's work of launching


def test_phases_of_a_run(device: CudaDevice) -> None:
    with prepare(device, program("mixed", programs.COUNT, 0.01)) as prepared:
        whole_s = median_s(prepared)
        started = time.perf_counter()
        phases = prepared.phases(60)
        wall_s = time.perf_counter() - started
        assert prepared.fetch()["seen"].tolist() == [0 + 1 + 2]
    named = {"allocate", "transfer", "count", "kernel", "decide", "reduce", "free"}
    assert phases.keys() == named | {"total"}
    assert all(seconds > 0 for seconds in phases.values())
    assert 0.01 <= phases["decide"] < 0.0125
    total_s = sum(phases[name] for name in named - {"kernel"})
    assert total_s <= phases["total"] <= wall_s
    # Waiting after every operation costs little here: the parts make up the whole.
    assert 0.8 * whole_s <= total_s <= 1.5 * whole_s


def test_a_run_gives_its_memory_back(device: CudaDevice) -> None:
    plan = program("mixed", programs.COUNT, 0.0)
    with prepare(device, plan) as prepared:
        prepared.phases()  # what holds launches back has memory of its own
    before, _ = device.cuda.mem_get_info()
    with prepare(device, plan) as prepared:
        for _ in range(5):
            prepared.launch()
        prepared.phases()
    after, _ = device.cuda.mem_get_info()
    assert after == before


@pytest.mark.parametrize("n", [1, 64, 1000, 4096])
def test_a_kernel_that_launches_kernels(device: CudaDevice, n: int) -> None:
    with prepare(device, program("once", programs.nested(n))) as prepared:
        for _ in range(3):
            kernel_s = prepared.launch(60).kernel_s
            out = prepared.fetch()["out"]
            assert out[:n].tolist() == (np.arange(n) ** 2).tolist()
            assert not out[n:].any()
        assert kernel_s
        assert kernel_s < 0.1
        phases = prepared.phases(60)
        assert 0 < phases["parent"] < 0.1
        assert prepared.fetch()["out"][:n].tolist() == (np.arange(n) ** 2).tolist()


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("timeout_s", [None, 60.0])
def test_a_fault_in_a_program_is_fatal_to_its_process_alone(timeout_s: float | None) -> None:
    said = programs.lost('program("strays", STRAY)', timeout_s)
    assert said.startswith("LaunchError True")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said
    assert "last launch: stray" in said


@pytest.mark.usefixtures("device")
def test_a_program_that_lasts_too_long_is_a_timeout(device: CudaDevice) -> None:
    said = programs.lost('program("waits", WAIT, 1, 5_000_000_000)', 0.2)
    assert said.startswith("LaunchTimeout True")
    assert "did not end within 0.2 s" in said
    with prepare(device, program("asks", programs.COUNT, 1)) as prepared:
        assert prepared.launch(60).kernel_s


@pytest.mark.usefixtures("device")
def test_counters_of_each_kernel(tmp_path: Path) -> None:
    if shutil.which("ncu") is None:
        pytest.skip("ncu is not on the PATH")
    how = Measure(rounds=1, samples=10, budget_s=5.0, counters="ncu")
    study, listener = ToyStudy([programs.point(3)], how), Recorder()
    run_here(study, "cuda:0", tmp_path, listener=listener, isolate=True)
    refused = [text for text in listener.messages if text.startswith("counters:")]
    if refused:
        pytest.skip(refused[0])
    records = read_records(tmp_path).records
    assert {r.status for r in records} == {"ok"}, [r.reason for r in records]
    (record,) = [r for r in records if r.round == PROFILE_ROUND]
    found = record.counters
    print(dict(sorted(found.items())))  # noqa: T201
    assert record.about["profiled"] == "fused count"
    assert record.answer == str(programs.COUNTING.expected({"n": 3}))
    threads = programs.THREADS * programs.BLOCKS
    # Four fused operations and the sum of four at the end; counted at one launch of three.
    operations = threads * (8 * programs.ROUNDS + 3)
    assert found["fp32_operations@fused"] == pytest.approx(operations, rel=0.01)
    assert found["fp32_operations"] == found["fp32_operations@fused"]
    assert found["fp32_operations@count"] == 0
    assert found["global_store_sectors@fused"] == threads * 4 / 32
    assert found["global_store_sectors_per_request@fused"] == pytest.approx(4)
    assert found["global_store_efficiency_percent@fused"] == pytest.approx(100)
    assert found["branch_efficiency_percent@fused"] == pytest.approx(100, abs=1)
    assert found["lane_efficiency@fused"] == pytest.approx(1, abs=0.01)
    assert found["warp_instructions@fused"] > 1000 * found["warp_instructions@count"]
    assert found["duration_ns@fused"] > found["duration_ns@count"] > 0
    assert found["instructions_issued@fused"] >= found["warp_instructions@fused"]
