"""Held launches, a cold L2 cache and telemetry on a real GPU."""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nqbench.device import Prepared
from nqbench.devices.cuda.gpu import LIMIT_S, BlockingKernel
from nqbench.devices.cuda.kernel import CudaKernel
from nqbench.devices.cuda.query import CLOCK_REASONS
from nqbench.errors import DeviceError
from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.session import Session
from nqbench.plan import Buffer, KernelPlan
from nqbench.point import Point
from nqbench.vocabulary import SPENT
from tests.gpu.test_cuda_gpu import plan

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

WORDS = 1 << 21
"""8 MiB: far more than L1, far less than the L2 cache of a data-centre GPU."""


def median_s(prepared: Prepared, launches: int = 30) -> float:
    return statistics.median(prepared.launch().kernel_s or 0.0 for _ in range(launches))


def sweep(kernels: Path) -> KernelPlan:
    buffers = (
        Buffer("data", "uint32", WORDS, data=np.ones(WORDS, np.uint32)),
        Buffer("sum", "uint64", 1, zero=True, output=True),
    )
    arguments = ("data", "sum", np.int32(WORDS))
    return KernelPlan(
        kernels, "sweep", arguments, buffers=buffers, grid=(256, 1, 1), block=(256, 1, 1)
    )


def test_a_blocked_launch_contains_no_launch_latency(device: CudaDevice, kernels: Path) -> None:
    with device.prepare(plan(kernels, "wait", (np.uint64(0),))) as prepared:
        assert not prepared.launch().blocked
        assert prepared.launch().blocked
        blocked_s = median_s(prepared)
        assert isinstance(prepared, CudaKernel)
        loaded = prepared._kernel
        assert loaded is not None
        free = []
        for _ in range(30):
            loaded._launched = False
            free.append(prepared.launch().kernel_s or 0.0)
    free_s = statistics.median(free)
    print(f"empty kernel: blocked {blocked_s * 1e6:.2f} us, free {free_s * 1e6:.2f} us")  # noqa: T201
    assert blocked_s < 10e-6
    assert blocked_s <= free_s * 1.05


def test_host_work_between_the_events_stays_out(device: CudaDevice, kernels: Path) -> None:
    """A millisecond of host work after the start event is queued, before the kernel is."""
    with device.prepare(plan(kernels, "wait", (np.uint64(0),))) as prepared:
        prepared.launch()
        blocker = device.blocking_kernel()
        assert blocker is not None
        cuda = device.cuda
        start, end = cuda.Event(), cuda.Event()
        with blocker.blocking(-1):
            start.record()
            time.sleep(0.001)
            end.record()
        end.synchronize()
        assert start.time_till(end) < 0.1  # milliseconds
        assert not blocker.expired


def test_a_blocking_kernel_that_nobody_ends_ends_itself(device: CudaDevice, kernels: Path) -> None:
    with device.prepare(plan(kernels, "wait", (np.uint64(0),))):
        blocker = BlockingKernel(device.cuda, device.facts.arch, limit_s=0.1)
        started = time.monotonic()
        with blocker.blocking(-1):
            device.synchronize()  # a deadlock without the limit
        assert 0.05 < time.monotonic() - started < LIMIT_S
        assert blocker.expired
        with blocker.blocking(-1):
            pass
        device.synchronize()
        assert not blocker.expired


def test_a_cold_launch_reads_from_memory(device: CudaDevice, kernels: Path) -> None:
    with device.prepare(sweep(kernels)) as prepared:
        prepared.launch()
        hot_s = median_s(prepared)
        prepared.flush_l2()
        cold_s = median_s(prepared)
        assert prepared.fetch()["sum"].tolist() == [WORDS]
    print(f"8 MiB read once: hot {hot_s * 1e6:.1f} us, cold {cold_s * 1e6:.1f} us")  # noqa: T201
    assert cold_s > 1.1 * hot_s


def test_the_sensor_reads_a_working_gpu(device: CudaDevice, kernels: Path) -> None:
    try:
        sensor = device.sensor()
    except DeviceError as absence:
        pytest.skip(str(absence))
    with device.prepare(plan(kernels, "wait", (np.uint64(500_000_000),))) as prepared:
        before = sensor.read()
        prepared.launch()
        after = sensor.read()
    started = time.perf_counter()
    for _ in range(10):
        sensor.read()
    print(f"{(time.perf_counter() - started) * 100:.2f} ms a reading; {after}")  # noqa: T201
    sensor.close()
    assert after.sm_mhz is not None
    assert 100 < after.sm_mhz < 5000
    assert after.temperature_c is None or 10 < after.temperature_c < 110
    assert after.power_mw is None or 5_000 < after.power_mw < 1_500_000
    assert set(after.reasons) <= set(CLOCK_REASONS.values())
    if before.energy_mj is not None and after.energy_mj is not None:
        assert 1_000 < after.energy_mj - before.energy_mj < 1_500_000  # 2 W to 3 kW over 0.5 s


@pytest.mark.parametrize("state", ["hot", "cold"])
def test_a_measurement_records_all_of_it(device: CudaDevice, state: str) -> None:
    """One counting point through the session that workers use."""
    from nqbench.workloads import get

    system = "zhang2011.low_divergence"
    found = get("counting").resolve({"n": 12}, system, device.facts)
    point = Point("s", "s", "counting", system, {**found.factors, "l2": state}, found.derived)
    request = MeasureRequest(point, 1, True, Policy(share_s=2.0), timeout_s=20.0)
    with closing(Session("cuda:0")) as session:
        absence = session.hello().no_telemetry
        measured = session.measure(request)
    print(measured)  # noqa: T201
    assert (measured.status, measured.reason) == ("ok", "")
    about = measured.about
    assert about["l2"] == state
    assert about["blocked_samples"] == len(measured.samples_s)
    assert about["warm_up_launches"] >= 1
    assert set(measured.spent_s) == set(SPENT)
    assert measured.spent_s["kernels"] <= measured.wall_s
    if not absence:
        assert measured.telemetry["sm_mhz"]["min"] > 0
