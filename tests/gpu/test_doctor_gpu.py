"""The doctor and the cross-check with nvbench on a real GPU."""

from __future__ import annotations

import importlib.metadata
import time
from typing import TYPE_CHECKING

import pytest

from benchmarks import nvbench_crosscheck
from nqbench.doctor.report import examine

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

DOCTOR_LIMIT_S = 5.0
"""It should take less than 2 s; a driver without persistence mode needs more to start."""


def test_doctor_sees_what_the_device_sees(device: CudaDevice) -> None:
    started = time.monotonic()
    report = examine("cuda:0")
    assert time.monotonic() - started < DOCTOR_LIMIT_S
    assert report.usable, report.summary()
    rows = {row.name: row for row in report.rows}
    assert rows["NVIDIA driver"].state == "ok"
    assert rows["compiler fits the GPU"].state == "ok"
    assert rows["NVML"].state == "ok"
    assert any(
        device.facts.name in row.found and device.facts.arch in row.found
        for name, row in rows.items()
        if name.startswith("GPU ")
    )


def test_doctor_knows_of_no_gpu_that_is_not_there() -> None:
    assert not examine("cuda:99").usable


@pytest.mark.parametrize("kernel", ["spin_1000us", "tanaka2011.both_n15"])
def test_nvbench_agrees(device: CudaDevice, kernel: str) -> None:
    """In processes of their own; the full check is ``python -m benchmarks.nvbench_crosscheck``."""
    try:
        importlib.metadata.version("cuda-bench")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("cuda-bench is not installed")
    found = {
        tool: [nvbench_crosscheck.one_process(tool, [kernel], 0, cold=True)]
        for tool in nvbench_crosscheck.TOOLS
    }
    (comparison,) = nvbench_crosscheck.compare([kernel], found)
    assert comparison.in_range
    assert comparison.share <= 1, comparison
