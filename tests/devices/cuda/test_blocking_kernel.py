"""The blocking kernel and the L2 flush, over a pretended PyCUDA; tests/gpu looks at the effect."""

from __future__ import annotations

import pytest

from nqbench.devices.cuda import gpu as cuda_gpu
from nqbench.devices.cuda.device import CudaDevice
from nqbench.errors import DeviceError, LaunchError
from nqbench.plan import KernelPlan
from tests.devices.cuda import fake_pycuda
from tests.devices.cuda.fake_pycuda import Error, FakeDriver
from tests.devices.cuda.test_device import gpu, plan

__all__ = ["gpu", "plan"]  # fixtures


def test_all_but_the_first_launch_are_blocked_until_everything_is_queued(
    gpu: FakeDriver, plan: KernelPlan
) -> None:
    prepared = CudaDevice(0).prepare(plan)
    assert not prepared.launch().blocked
    assert "block" not in gpu.names()
    prepared.launch()
    gpu.calls.clear()
    assert prepared.launch().blocked
    assert gpu.names() == [
        "memcpy_dtod", "memset_d8", "synchronize", "block", "launch", "release", "elapsed",
        "synchronize",
    ]  # fmt: skip


def test_one_kernel_with_a_time_limit_blocks_for_a_whole_process(
    gpu: FakeDriver, plan: KernelPlan
) -> None:
    device = CudaDevice(0)
    for _ in range(2):
        with device.prepare(plan) as prepared:
            for _ in range(3):
                prepared.launch()
    assert gpu.names().count("pagelocked_zeros") == 1
    blocks = [call for call in gpu.calls if call[0] == "block"]
    assert blocks == [("block", (1, 1, 1), (1, 1, 1), round(cuda_gpu.LIMIT_S * 1e9))] * 4


def test_a_launch_that_fails_releases_the_stream(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    prepared.launch()
    gpu.failures["launch"] = Error("cuLaunchKernel failed: invalid value")
    with pytest.raises(LaunchError):
        prepared.launch()
    assert gpu.names()[-1] == "release"


def test_a_blocking_kernel_that_expired_is_the_last_one(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    prepared.launch()
    gpu.block_expires = True
    assert not prepared.launch().blocked
    gpu.calls.clear()
    assert not prepared.launch().blocked
    assert "block" not in gpu.names()


def test_without_mapped_memory_launches_are_not_blocked(gpu: FakeDriver, plan: KernelPlan) -> None:
    gpu.failures["pagelocked_zeros"] = Error("cuMemHostAlloc failed: not supported")
    prepared = CudaDevice(0).prepare(plan)
    assert [prepared.launch().blocked for _ in range(3)] == [False] * 3
    assert gpu.names().count("pagelocked_zeros") == 1


def test_a_cold_launch_writes_twice_the_cache_before_the_timed_interval(
    gpu: FakeDriver, plan: KernelPlan
) -> None:
    device = CudaDevice(0)
    prepared = device.prepare(plan)
    prepared.flush_l2()
    assert ("mem_alloc", 2 * (50 << 20)) in gpu.calls
    prepared.launch()
    prepared.launch()
    gpu.calls.clear()
    prepared.launch()
    assert gpu.names() == [
        "memcpy_dtod", "memset_d8", "synchronize", "memset_d8", "block", "launch", "release",
        "elapsed", "synchronize",
    ]  # fmt: skip
    flushed = [call[1] for call in gpu.calls if call[0] == "memset_d8"][1]
    assert len(gpu.memory[flushed]) == 2 * (50 << 20)
    prepared.close()
    device.prepare(plan).flush_l2()
    assert gpu.names().count("mem_alloc") == 3  # two buffers and a copy; the flush is shared


def test_what_prevents_a_flush_is_said(
    gpu: FakeDriver, plan: KernelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = CudaDevice(0).prepare(plan)
    gpu.capacity = 1 << 20
    with pytest.raises(DeviceError, match=r"104857600 bytes of memory left .* l2: hot"):
        prepared.flush_l2()
    monkeypatch.setitem(fake_pycuda._DEVICE_ATTRIBUTES, "L2_CACHE_SIZE", 0)
    with pytest.raises(DeviceError, match="does not report the size of its L2 cache"):
        prepared.flush_l2()
