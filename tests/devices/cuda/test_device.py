"""The CUDA device's logic over a pretended PyCUDA; tests/gpu asks a real GPU the same."""

from __future__ import annotations

import dataclasses
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
from nqbench.devices.cuda.query import find_gpus
from nqbench.devices.registry import list_devices
from nqbench.errors import DeviceError, DeviceUnavailable, LaunchError, LaunchTimeout
from nqbench.measure.measurement import phases_of
from nqbench.plan import Buffer, CpuPlan, Kernel, KernelPlan
from nqbench.system.machine import REPEATS
from tests.devices.cuda.fake_pycuda import Error, FakeDriver, LogicError, make_module

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
    package = types.ModuleType("pycuda")
    module = make_module(fake)
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", module)
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


def test_facts_come_from_the_driver(gpu: FakeDriver) -> None:
    facts = CudaDevice(0).facts
    assert (facts.kind, facts.name, facts.arch) == ("cuda", "Pretended H100", "sm_90")
    assert facts.shared_per_block_optin == 232448
    assert facts.shared_reserved_per_block == 1024
    assert facts.shared_carveouts[-1] == facts.shared_per_multiprocessor
    assert facts.memory_bytes == gpu.capacity
    assert gpu.contexts == 0  # asking makes no context


def test_identity_is_plain_data_and_stable(gpu: FakeDriver) -> None:
    import json

    device = CudaDevice(0)
    identity = device.identity()
    assert json.loads(json.dumps(identity)) == identity == device.identity()
    assert identity["cuda_driver"] == "13.0"
    assert "1234-5678" in str(identity["uuid"])
    assert set(identity) >= {
        "name", "driver", "nvrtc", "power_limit_w", "ecc", "mig", "persistence", "max_sm_mhz"
    }  # fmt: skip
    assert gpu.contexts == 0


def test_launches_start_from_the_same_memory(gpu: FakeDriver, plan: KernelPlan) -> None:
    gpu.kernel = add
    with CudaDevice(0).prepare(plan) as prepared:
        for _ in range(3):
            assert prepared.launch().kernel_s == 0.0025
            outputs = prepared.fetch()
            assert outputs["jobs"].tolist() == [15, 25, 35]
            assert outputs["total"].tolist() == [1]
            assert outputs["jobs"].shape == (3,)
    assert gpu.memory == {}


def test_an_output_never_starts_with_an_earlier_answer(gpu: FakeDriver, plan: KernelPlan) -> None:
    """The GPU gives freed memory out again, with the right answer of another point in it."""
    jobs, _ = plan.buffers
    found = dataclasses.replace(plan, buffers=(jobs, Buffer("total", "float32", 4, output=True)))
    gpu.kernel = lambda *_: None  # writes nothing
    with CudaDevice(0).prepare(found) as prepared:
        prepared.launch()
        assert np.isnan(prepared.fetch()["total"]).all()


def test_order_of_a_launch(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    assert gpu.names()[-1] != "launch"  # preparing launches nothing
    gpu.calls.clear()
    prepared.launch()
    assert gpu.names() == [
        "memcpy_dtod", "memset_d8", "synchronize", "launch", "elapsed", "synchronize"
    ]  # fmt: skip
    launch = gpu.calls[3]
    assert launch[1:] == ((2, 1, 1), (64, 1, 1), 0, ("P", "P", "i"))


def test_a_kernel_that_makes_the_input_runs_once_loaded_and_is_not_profiled(
    gpu: FakeDriver, plan: KernelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_driver, "profiler_start", lambda: gpu.note("on"))
    monkeypatch.setattr(cuda_driver, "profiler_stop", lambda: gpu.note("off"))
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


def test_transfer_is_timed_between_idle_moments(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    names = gpu.names()
    copy = names.index("memcpy_htod")
    assert names[copy - 1] == names[copy + 1] == "synchronize"
    assert names.count("memcpy_htod") == REPEATS  # the pristine copy is made on the device
    assert prepared.transfer_s is not None
    assert 0 < prepared.transfer_s < 1


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


@pytest.mark.parametrize(("cache", "percent"), [("prefer_l1", 0), ("prefer_shared", 100)])
def test_the_cache_factor_sets_the_carveout(
    gpu: FakeDriver, plan: KernelPlan, cache: Any, percent: int
) -> None:
    prepared = CudaDevice(0).prepare(dataclasses.replace(plan, cache=cache))
    assert ("set_attribute", "PREFERRED_SHARED_MEMORY_CARVEOUT", percent) in gpu.calls
    assert prepared.resources["carveout_percent"] == percent
    assert Probe.asked[-1][2] == percent


def test_the_default_leaves_the_split_to_the_driver(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    for _ in range(3):  # the later ones behind a blocking kernel
        prepared.launch()
    assert not {"set_attribute", "set_cache_config"} & set(gpu.names())


def test_much_dynamic_shared_memory_is_asked_for(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(dataclasses.replace(plan, shared_bytes=100_000))
    assert ("set_attribute", "MAX_DYNAMIC_SHARED_SIZE_BYTES", 100_000) in gpu.calls
    prepared.launch()
    assert next(call for call in gpu.calls if call[0] == "launch")[3] == 100_000


def test_too_much_shared_memory_names_the_limit(gpu: FakeDriver, plan: KernelPlan) -> None:
    with pytest.raises(DeviceError, match=r"300000 bytes of dynamic.*has 232448"):
        CudaDevice(0).prepare(dataclasses.replace(plan, shared_bytes=300_000))


def test_a_host_plan_is_refused(gpu: FakeDriver) -> None:
    with pytest.raises(DeviceError, match=r"b is a computation for the CPU.*--device cpu"):
        CudaDevice(0).prepare(CpuPlan("b", "a:b", (8,)))


def test_memory_that_does_not_fit_is_a_sentence_and_is_freed(
    gpu: FakeDriver, plan: KernelPlan
) -> None:
    gpu.capacity = 40
    big = dataclasses.replace(plan, buffers=(*plan.buffers, Buffer("more", "int64", 100)))
    with pytest.raises(DeviceError, match=r"buffer more \(800 bytes\) does not fit: 12 of 40"):
        CudaDevice(0).prepare(big)
    assert gpu.memory == {}


def test_a_launch_error_that_leaves_the_context_alive(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    gpu.failures["launch"] = LogicError("cuLaunchKernel failed: invalid argument")
    with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_VALUE") as caught:
        prepared.launch()
    assert not caught.value.fatal
    del gpu.failures["launch"]
    assert prepared.launch().kernel_s
    prepared.close()
    assert gpu.memory == {}


def test_a_fault_is_fatal_and_nothing_more_is_freed(
    gpu: FakeDriver, plan: KernelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = CudaDevice(0)
    prepared = device.prepare(plan)
    gpu.failures["elapsed"] = Error("cuEventSynchronize failed: an illegal memory access")
    monkeypatch.setattr(cuda_driver, "sticky_error", lambda: ILLEGAL)
    with pytest.raises(LaunchError, match=rf"kernel add .* failed with {ILLEGAL}") as caught:
        prepared.launch()
    assert caught.value.fatal
    gpu.calls.clear()
    prepared.close()
    device.close()
    assert gpu.names() == ["pop"]
    assert device.lost


def test_a_kernel_that_does_not_end_is_a_timeout(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    gpu.polls_until_done = 10**9
    with pytest.raises(LaunchTimeout, match=r"did not end within 0\.01 s") as caught:
        prepared.launch(timeout_s=0.01)
    assert caught.value.fatal
    assert "elapsed" not in gpu.names()  # waiting for it would hang


def test_a_kernel_within_its_limit_is_timed(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    gpu.polls_until_done = 3
    assert prepared.launch(timeout_s=5).kernel_s == 0.0025
    assert gpu.names().count("query") == 4


def test_wrong_arguments_and_data_are_named(gpu: FakeDriver, plan: KernelPlan) -> None:
    device = CudaDevice(0)
    with pytest.raises(DeviceError, match=r"buffer 'job' that its plan lacks; buffers: jobs, tot"):
        device.prepare(dataclasses.replace(plan, arguments=("job",)))
    with pytest.raises(DeviceError, match=r"takes 5; arguments are buffer names or numpy"):
        device.prepare(dataclasses.replace(plan, arguments=(5,)))  # type: ignore[arg-type]
    short = Buffer("jobs", "int32", 4, data=np.zeros(3, np.int32))
    with pytest.raises(DeviceError, match="3 elements of data but a length of 4"):
        device.prepare(dataclasses.replace(plan, buffers=(short,), arguments=("jobs",)))
    nothing = Buffer("jobs", "int32", 4, restore=True)
    with pytest.raises(DeviceError, match="to be restored but has no data"):
        device.prepare(dataclasses.replace(plan, buffers=(nothing,), arguments=("jobs",)))
    assert gpu.memory == {}


def test_the_context_is_made_once_and_ends_with_the_device(
    gpu: FakeDriver, plan: KernelPlan
) -> None:
    device = CudaDevice(0)
    for _ in range(2):
        device.prepare(plan).close()
    assert gpu.contexts == 1
    device.close()
    device.close()
    assert gpu.contexts == 0
    assert gpu.names()[-2:] == ["pop", "detach"]


def test_a_closed_kernel_does_not_launch(gpu: FakeDriver, plan: KernelPlan) -> None:
    prepared = CudaDevice(0).prepare(plan)
    prepared.close()
    prepared.close()
    with pytest.raises(DeviceError, match="closed"):
        prepared.launch()


def test_a_context_that_cannot_be_made_is_a_sentence(gpu: FakeDriver, plan: KernelPlan) -> None:
    gpu.failures["make_context"] = Error("cuCtxCreate failed: exclusive mode")
    with pytest.raises(DeviceUnavailable, match=r"cuda:0 gives no context .*compute mode"):
        CudaDevice(0).prepare(plan)


def test_gpus_are_found_without_a_context(gpu: FakeDriver) -> None:
    (row,) = (row for row in list_devices() if row.kind == "cuda")
    assert (row.spec, row.name) == ("cuda:0", "Pretended H100")
    assert row.note == "132 multiprocessors, sm_90, 1 GiB"
    assert gpu.contexts == 0
    with pytest.raises(DeviceUnavailable, match="no GPU cuda:4; GPUs here: cuda:0"):
        CudaDevice(4)


def test_what_is_absent_is_named_with_what_fixes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "LIBRARY", "libcuda-that-is-nowhere.so.1")
    with pytest.raises(DeviceUnavailable, match="no NVIDIA driver on this machine"):
        find_gpus()
    monkeypatch.setattr(cuda_driver, "require_driver", lambda: None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)  # as if not installed
    with pytest.raises(DeviceUnavailable, match=r"PyCUDA cannot be imported.*make ablation"):
        find_gpus()


def test_a_driver_that_does_not_start_is_named(gpu: FakeDriver) -> None:
    gpu.failures["init"] = Error("cuInit failed: no CUDA-capable device is detected")
    with pytest.raises(DeviceUnavailable, match="no CUDA-capable device"):
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


def test_module_variables_get_their_contents_before_every_launch(
    gpu: FakeDriver, plan: KernelPlan
) -> None:
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
    too_long = dataclasses.replace(plan, symbols={"c": np.zeros(5, np.float32)})
    with pytest.raises(
        DeviceError, match="20 bytes are given for the module variable c, which has"
    ):
        CudaDevice().prepare(too_long)


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
