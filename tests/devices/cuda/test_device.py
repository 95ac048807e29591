"""The CUDA device's logic over a pretended PyCUDA; tests/gpu asks a real GPU the same."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.device import Launch
from nqbench.devices.cuda import driver as cuda_driver
from nqbench.devices.cuda.device import CudaDevice
from nqbench.devices.cuda.gpu import ABANDONED
from nqbench.devices.cuda.query import SETTINGS, find_gpus
from nqbench.devices.registry import list_devices
from nqbench.errors import DeviceError, DeviceUnavailable, LaunchError, LaunchTimeout
from nqbench.measure.measurement import phases_of
from nqbench.plan import Buffer, CpuPlan, Kernel, KernelPlan
from nqbench.system.machine import REPEATS
from tests.devices.cuda import fake_pycuda
from tests.devices.cuda.fake_pycuda import Error, FakeDriver

ILLEGAL = "CUDA_ERROR_ILLEGAL_ADDRESS"


class Probe:
    """Stands for the driver's occupancy calculator."""

    asked: list[tuple[int, int, int]] = []  # noqa: RUF012  # cleared by the fixture

    def __init__(self, image: bytes, symbol: str) -> None:
        assert symbol.encode() in image

    def blocks_per_multiprocessor(self, block_size: int, shared: int, carveout: int) -> int:
        self.asked.append((block_size, shared, carveout))
        return 8

    def close(self) -> None:
        pass


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeDriver]:
    fake = FakeDriver()
    for name, module in (("pycuda", types.ModuleType("pycuda")), ("pycuda.driver", fake)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(cuda_driver, "require_driver", lambda: None)
    monkeypatch.setattr(cuda_driver, "LoadedCopy", Probe)
    monkeypatch.setattr(cuda_driver, "sticky_error", lambda: "")
    monkeypatch.setattr(cuda_driver, "error_name", lambda text: "CUDA_ERROR_INVALID_VALUE")
    monkeypatch.setattr(cuda_driver, "device_uuid", lambda index: "1234-5678")
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path / "cache"))
    Probe.asked.clear()
    yield fake
    ABANDONED.clear()


@pytest.fixture
def plan(tmp_path: Path) -> KernelPlan:
    """Adds ``bias`` to ``jobs`` in place, counts in ``total``."""
    source = tmp_path / "k.cu"
    source.write_text("__global__ void add(int* jobs, int* total, int bias) { jobs[0] += bias; }\n")
    jobs = np.array([10, 20, 30], dtype=np.int32)
    return KernelPlan(
        source=source,
        entry="add",
        arguments=("jobs", "total", np.int32(5)),
        buffers=(
            Buffer("jobs", "int32", 3, data=jobs, restore=True, output=True),
            Buffer("total", "int32", 1, zero=True, output=True),
        ),
        grid=(2, 1, 1),
        block=(64, 1, 1),
    )


def add(memory: dict[int, bytearray], jobs: int, total: int, bias: Any) -> None:
    """What the kernel does."""
    view = np.frombuffer(memory[jobs], dtype=np.int32)
    view += bias
    count = np.frombuffer(memory[total], dtype=np.int32)
    count += 1


def test_facts_and_identity_are_plain_and_come_from_the_driver(gpu: FakeDriver) -> None:
    device = CudaDevice(0)
    facts, identity = device.facts, device.identity()
    assert (facts.kind, facts.name, facts.arch) == ("cuda", "Pretended H100", "sm_90")
    assert facts.shared_per_block_optin == 232448
    assert facts.shared_reserved_per_block == 1024
    assert facts.shared_carveouts[-1] == facts.shared_per_multiprocessor
    assert facts.memory_bytes == gpu.capacity
    assert json.loads(json.dumps(identity)) == identity == device.identity()
    assert (identity["cuda_driver"], identity["uuid"]) == ("13.0", "1234-5678")
    assert set(identity) >= {"name", "driver", "nvrtc", *SETTINGS}
    (row,) = (row for row in list_devices() if row.kind == "cuda")
    assert (row.spec, row.name) == ("cuda:0", "Pretended H100")
    assert row.note == "132 multiprocessors, sm_90, 1 GiB"
    assert gpu.contexts == 0  # asking makes no context
    with pytest.raises(DeviceUnavailable, match="no GPU cuda:4; GPUs here: cuda:0"):
        CudaDevice(4)


def test_launches_start_from_the_same_memory(gpu: FakeDriver, plan: KernelPlan) -> None:
    gpu.kernel = add
    with CudaDevice(0).prepare(plan) as prepared:
        for _ in range(3):
            assert prepared.launch().kernel_s == 0.0025
            found = {name: array.tolist() for name, array in prepared.fetch().items()}
            assert found == {"jobs": [15, 25, 35], "total": [1]}
    assert gpu.memory == {}
    # The GPU gives freed memory out again, with the right answer of another point in it.
    output = Buffer("total", "float32", 4, output=True)
    unwritten = dataclasses.replace(plan, buffers=(plan.buffers[0], output))
    gpu.kernel = lambda *_: None
    with CudaDevice(0).prepare(unwritten) as prepared:
        prepared.launch()
        assert np.isnan(prepared.fetch()["total"]).all()
        first = prepared.fetch()["total"].view(np.uint32)
        assert prepared.refill({"jobs": np.array([7, 8, 9])})
        prepared.launch()
        found = prepared.fetch()
        assert not (found["total"].view(np.uint8) == first.view(np.uint8)).any()
        assert np.isnan(found["total"]).all()
        assert found["jobs"].tolist() == [7, 8, 9], "also what is put back before a launch"
        prepared.refill({}, again=False)
        assert (prepared.fetch()["total"].view(np.uint32) == first).all()


def test_order_of_a_launch(gpu: FakeDriver, plan: KernelPlan) -> None:
    device = CudaDevice(0)
    prepared = device.prepare(plan)
    assert gpu.names()[-1] != "launch"  # preparing launches nothing
    gpu.calls.clear()
    prepared.launch()
    renewed = ["memcpy_dtod", "memset_d8", "synchronize"]
    assert gpu.names() == [*renewed, "launch", "elapsed", "synchronize"]
    assert gpu.calls[3][1:] == ((2, 1, 1), (64, 1, 1), 0, ("P", "P", "i"))
    prepared.close()
    prepared.close()
    with pytest.raises(DeviceError, match="closed"):
        prepared.launch()
    device.prepare(plan).close()
    assert gpu.contexts == 1  # made once, and ended with the device
    device.close()
    device.close()
    assert gpu.contexts == 0
    assert gpu.names()[-2:] == ["pop", "detach"]


def test_a_kernel_that_makes_the_input_runs_once_loaded_and_is_not_profiled(
    gpu: FakeDriver, plan: KernelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_driver, "profiled", gpu.profiled)
    plan.source.write_text(plan.source.read_text() + "__global__ void make(int* made) {}\n")
    make = Kernel(plan.source, "make", ("made",), (1, 1, 1), (32, 1, 1))
    buffers = (*plan.buffers, Buffer("made", "int32", 1))
    made = dataclasses.replace(plan, buffers=buffers, prepare=make)
    with CudaDevice(0).prepare(made) as prepared:
        launches = [call[2] for call in gpu.calls if call[0] == "launch"]
        assert launches == [(32, 1, 1)]
        assert prepared.prepare_s == 0.0025
        launches = [call[2] for call in gpu.calls if call[0] == "launch"]
        assert launches.count((32, 1, 1)) == 1 + REPEATS  # without the first, which loads the code
        assert prepared.resources["registers@prepare"] == prepared.resources["registers"]
        found = phases_of(made, prepared, Launch(1.0), 1.0)
        assert found["split"] == 0.0025
        prepared.profile_first_launches()
        gpu.calls.clear()
        prepared.launch()
        prepared.launch()
        shown = [name for name in gpu.names() if name in ("on", "off", "launch", "elapsed")]
        assert shown[:4] == ["on", "launch", "elapsed", "off"]
        assert shown.count("on") == 1
        assert not [call for call in gpu.calls if (32, 1, 1) in call[1:3]]


def test_resources_hold_compiler_and_driver(gpu: FakeDriver, plan: KernelPlan) -> None:
    resources = CudaDevice(0).prepare(plan).resources
    assert resources["registers"] == 24
    assert resources["spill_bytes"] == 0
    assert resources["blocks_per_multiprocessor"] == 8
    assert resources["occupancy"] == 8 * 2 / 64
    assert resources["occupancy_computed"] == 1.0
    assert resources["occupancy_limiter"] == "warps"
    assert resources["carveout_percent"] == -1
    assert Probe.asked == [(64, 0, -1)]


@pytest.mark.parametrize(
    ("cache", "percent"), [("default", -1), ("prefer_l1", 0), ("prefer_shared", 100)]
)
def test_cache_and_shared_memory_are_asked_for(
    gpu: FakeDriver, plan: KernelPlan, cache: Any, percent: int
) -> None:
    prepared = CudaDevice(0).prepare(dataclasses.replace(plan, cache=cache, shared_bytes=100_000))
    for _ in range(3):  # the later ones behind a blocking kernel
        prepared.launch()
    assert next(call for call in gpu.calls if call[0] == "launch")[3] == 100_000
    asked = {call[1:] for call in gpu.calls if call[0] == "set_attribute"}
    split = {("PREFERRED_SHARED_MEMORY_CARVEOUT", percent)} if percent >= 0 else set()
    assert asked == {("MAX_DYNAMIC_SHARED_SIZE_BYTES", 100_000)} | split
    split_by = [call for call in gpu.calls if call[1:2] == ("PREFERRED_SHARED_MEMORY_CARVEOUT",)]
    assert len(split_by) == 2 * len(split)  # the kernel, and once the blocking kernel before it
    assert prepared.resources["carveout_percent"] == percent
    assert Probe.asked[-1] == (64, 100_000, percent)


JOBS = ("jobs",)
REFUSED: dict[str, dict[str, Any]] = {
    r"300000 bytes of dynamic.*has 232448": {"shared_bytes": 300_000},
    r"buffer 'job' that its plan lacks; buffers: jobs, tot": {"arguments": ("job",)},
    r"takes 5; arguments are buffer names or numpy": {"arguments": (5,)},
    "3 elements of data but a length of 4": {
        "buffers": (Buffer("jobs", "int32", 4, data=np.zeros(3, np.int32)),),
        "arguments": JOBS,
    },
    "to be restored but has no data": {
        "buffers": (Buffer("jobs", "int32", 4, restore=True),),
        "arguments": JOBS,
    },
    r"buffer more \(800 bytes\) does not fit: 40 of 40": {
        "buffers": (Buffer("more", "int64", 100),),
        "arguments": (),
    },
    "module variable d, which has 16": {"symbols": {"d": np.zeros(5, np.float32)}},
}


@pytest.mark.parametrize("said", REFUSED)
def test_impossible_plans_are_a_sentence(gpu: FakeDriver, plan: KernelPlan, said: str) -> None:
    plan.source.write_text("__device__ int d;" + plan.source.read_text().replace("+=", "+= d +"))
    gpu.capacity = 40 if "more" in said else gpu.capacity
    with pytest.raises(DeviceError, match=said):
        CudaDevice(0).prepare(dataclasses.replace(plan, **REFUSED[said]))
    assert gpu.memory.keys() <= {*gpu.variables.values()}


def test_other_plans_and_gpus_in_use_are_refused(gpu: FakeDriver, plan: KernelPlan) -> None:
    with pytest.raises(DeviceError, match=r"b is a computation for the CPU.*--device cpu"):
        CudaDevice(0).prepare(CpuPlan("b", "a:b", (8,)))
    gpu.failures["make_context"] = Error("cuCtxCreate failed: exclusive mode")
    with pytest.raises(DeviceUnavailable, match=r"cuda:0 gives no context .*compute mode"):
        CudaDevice(0).prepare(plan)


@pytest.mark.parametrize("stuck", ["", ILLEGAL])
def test_a_failed_launch_is_fatal_if_the_context_is_stuck(
    gpu: FakeDriver, plan: KernelPlan, monkeypatch: pytest.MonkeyPatch, stuck: str
) -> None:
    device = CudaDevice(0)
    prepared = device.prepare(plan)
    gpu.failures["elapsed"] = Error("cuEventSynchronize failed: an illegal memory access")
    monkeypatch.setattr(cuda_driver, "sticky_error", lambda: stuck)
    named = stuck or "CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(LaunchError, match=rf"kernel add .* failed with {named}") as caught:
        prepared.launch()
    assert caught.value.fatal == device.lost == bool(stuck)
    gpu.failures.clear()
    if not stuck:
        assert prepared.launch().kernel_s
    gpu.calls.clear()
    prepared.close()
    device.close()
    if stuck:
        assert gpu.names() == ["pop"]  # nothing more is freed
    else:
        assert gpu.memory == {}


def test_a_kernel_has_a_limit(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    gpu.polls_until_done = 3
    assert prepared.launch(timeout_s=5).kernel_s == 0.0025
    assert gpu.names().count("query") == 4
    gpu.calls.clear()
    gpu.polls_until_done = 10**9
    with pytest.raises(LaunchTimeout, match=r"did not end within 0\.01 s") as caught:
        prepared.launch(timeout_s=0.01)
    assert caught.value.fatal
    assert "elapsed" not in gpu.names()  # waiting for it would hang


def test_what_is_absent_is_named_with_what_fixes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "LIBRARY", "libcuda-that-is-nowhere.so.1")
    with pytest.raises(DeviceUnavailable, match="no NVIDIA driver on this machine"):
        find_gpus()
    monkeypatch.setattr(cuda_driver, "require_driver", lambda: None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)  # as if not installed
    with pytest.raises(DeviceUnavailable, match=r"PyCUDA cannot be imported.*make ablation"):
        find_gpus()


@pytest.mark.parametrize("value", ["", "-1", "abc", "GPU-0123"])
def test_a_variable_that_hides_gpus_is_named(
    value: str, gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    hidden = f"CUDA_VISIBLE_DEVICES is {value!r} here"
    with pytest.raises(DeviceUnavailable, match=f"GPUs here: cuda:0; {hidden}"):
        CudaDevice(4)
    gpu.failures["init"] = Error("cuInit failed: no CUDA-capable device is detected")
    with pytest.raises(DeviceUnavailable, match=f"no CUDA-capable device.*{hidden}"):
        find_gpus()


def test_module_variables_are_filled_before_every_launch(gpu: FakeDriver, plan: KernelPlan) -> None:
    text = "__device__ int d; __constant__ float c[4];\n"
    plan.source.write_text(
        text + "__global__ void add(int* j, int* t, int b) { j[0] += d + c[b]; }\n"
    )
    contents = np.array([1, 2, 3], np.float32)
    given = dataclasses.replace(plan, symbols={"c": contents, "d": np.array([5], np.int32)})
    with CudaDevice().prepare(given) as prepared:
        for _ in range(2):
            for address in gpu.variables.values():
                gpu.memory[address][:] = bytes(16)
            prepared.launch()
            assert gpu.memory[gpu.variables["c"]][:12] == contents.tobytes()
            assert gpu.memory[gpu.variables["d"]][:4] == np.int32(5).tobytes()


class Together(Probe):
    """Stands for the driver's cooperative launches too."""

    launches: list[tuple[Any, ...]] = []  # noqa: RUF012  # read by the test

    def launch(self, *arguments: Any) -> None:
        self.launches.append(arguments)


def test_a_cooperative_launch_goes_through_the_driver(
    gpu: FakeDriver, plan: KernelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_driver, "LoadedCopy", Together)
    with CudaDevice().prepare(dataclasses.replace(plan, cooperative=True)) as prepared:
        assert prepared.launch().kernel_s == pytest.approx(gpu.kernel_ms * 1e-3)
    ((grid, block, shared, values, types),) = Together.launches
    assert (grid, block, shared) == ((2, 1, 1), (64, 1, 1), 0)
    assert values[2] == 5
    assert [t.__name__ for t in types] == ["c_void_p", "c_void_p", "c_int"]
    assert not [call for call in gpu.names() if call == "launch"]


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


def test_large_buffers_serve_the_next_plan(
    gpu: FakeDriver, plan: KernelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nqbench.devices.cuda.kernel.KEPT_BYTES", 4000)
    sizes, device = {"jobs": 1000, "out": 1000, "total": 1}, CudaDevice(0)
    buffers = [Buffer(name, "int32", length) for name, length in sizes.items()]

    def places() -> dict[str, int]:
        with device.prepare(dataclasses.replace(plan, buffers=tuple(buffers))) as prepared:
            assert not any(device.spare.values())
            return {name: int(at) for name, at in prepared.memory.allocations.items()}

    places()
    assert gpu.used() == 0
    device.keeps_memory = True
    first = places()
    assert gpu.used() == 8000
    second = places()
    assert {name for name in sizes if second[name] in first.values()} == {"jobs", "out"}
    gpu.capacity = 12000  # more only if what is kept is freed
    buffers[:2] = [Buffer("jobs", "int32", 2000), Buffer("out", "int32", 990)]
    places()
    assert gpu.used() == 8000
    prepared = device.prepare(dataclasses.replace(plan, buffers=tuple(buffers)))
    gpu.calls.clear()
    device.lost = True
    prepared.close()
    assert not device.spare
    assert "free" not in gpu.names()


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
