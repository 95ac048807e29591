"""Faults of a real GPU through the whole runner: each costs its own point and no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nqbench import load
from nqbench.runs.reading import read_records
from nqbench.study import Measure
from tests.measure.faulty import FAULTY, kernel
from tests.measure.test_faults import newest
from tests.measure.test_pool import wait_gone
from tests.toys import ToyStudy, run_here

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

HOW = Measure(rounds=2, samples=5, budget_s=2.0, target=0.5, timeout_s=2.0)
EXPECTED: Mapping[str, tuple[str, str]] = {
    "greedy": ("launch_error", "does not fit"),  # out of device memory
    "stray": ("launch_error", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    "heavy": ("launch_error", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    "trap": ("launch_error", "CUDA_ERROR"),
    "endless": ("timeout", "2 s"),
    "refused": ("compile_error", "this kernel does not compile"),
    "wrong": ("wrong", "the answer is 43, but the known one is 42"),
}


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_costs_one_point(fault: str, tmp_path: Path) -> None:
    points = [kernel("good", 1), kernel(fault, 2), kernel("good", 29)]
    study = ToyStudy(points, HOW)
    outcome = run_here(study, "cuda:0", tmp_path / "r", isolate=True)
    status, words = EXPECTED[fault]
    assert outcome.counts == {"ok": 2, status: 1}
    [failure] = outcome.failures
    assert words in failure.reason
    assert "\n" not in failure.reason
    table = load(tmp_path / "r")
    good = table.query("fault == 'good' and round > 0")
    assert list(good.groupby("n")["round"].apply(sorted)) == [[1, 2], [1, 2]]
    assert good["value_s"].gt(0).all()
    assert all(wait_gone(pid) for pid in set(table["worker"]) if pid)


def test_faults_leave_the_gpu_as_it_was(device: CudaDevice, tmp_path: Path) -> None:
    """All of them in one sweep; afterwards no memory is missing and no process is left."""
    plan = FAULTY.plan({"n": 1, "fault": "good"}, None, device.facts)
    with device.prepare(plan) as prepared:
        prepared.launch()  # the context exists, so that its own memory is not counted
    before, _ = device.cuda.mem_get_info()
    points = [kernel(fault, n) for n, fault in enumerate((*EXPECTED, "good"), 1)]
    study = ToyStudy(points, HOW)
    outcome = run_here(study, "cuda:0", tmp_path / "r", isolate=True)
    found = newest([*read_records(tmp_path / "r").records])
    assert {name: found[name].status for name in EXPECTED} == {
        name: status for name, (status, _) in EXPECTED.items()
    }
    assert outcome.counts["ok"] == 1
    after, _ = device.cuda.mem_get_info()
    assert after == before
