"""The CUDA device on a real GPU."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nqbench.compiler.compiled import occupancy, resources_of
from nqbench.devices.cuda.driver import LoadedCopy
from nqbench.devices.cuda.kernel import CARVEOUT_PERCENT, CudaKernel
from nqbench.plan import Argument, Buffer, CachePreference, KernelPlan
from nqbench.simulator.models import is_model, load_model
from tests.compiling import compile_cubin

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

CACHES: tuple[CachePreference, ...] = ("default", "prefer_l1", "prefer_shared")
PRODUCT_FACTS = {"name", "kind", "multiprocessors", "memory_bytes", "max_grid_x"}


def plan(
    source: Path,
    entry: str,
    arguments: tuple[Argument, ...] = (),
    buffers: tuple[Buffer, ...] = (),
    *,
    block: int = 32,
    **more: Any,
) -> KernelPlan:
    return KernelPlan(
        source, entry, arguments, buffers=buffers, grid=(1, 1, 1), block=(block, 1, 1), **more
    )


def test_identity_is_complete(device: CudaDevice) -> None:
    identity = device.identity()
    assert json.loads(json.dumps(identity)) == identity == device.identity()
    for key in ("name", "uuid", "driver", "cuda_driver", "nvrtc", "pycuda", "max_sm_mhz"):
        assert identity[key], key


def test_model_of_this_architecture_agrees_with_the_driver(device: CudaDevice) -> None:
    if not is_model(device.facts.arch):
        pytest.skip(f"no model of {device.facts.arch}")
    model, real = load_model(device.facts.arch).facts.as_dict(), device.facts.as_dict()
    differing = {
        key: (model[key], real[key])
        for key in model
        if key not in PRODUCT_FACTS and model[key] != real[key]
    }
    assert not differing


@pytest.mark.parametrize(("renewed", "jobs", "total"), [(True, 5, 1), (False, 15, 3)])
def test_only_what_is_restored_or_zeroed_is_the_same_at_every_launch(
    device: CudaDevice, kernels: Path, renewed: bool, jobs: int, total: int
) -> None:
    start, nothing = np.arange(64, dtype=np.int32), np.zeros(1, np.int32)
    buffers = (
        Buffer("jobs", "int32", 64, data=start, restore=renewed, output=True),
        Buffer("total", "int32", 1, None if renewed else nothing, zero=renewed, output=True),
    )
    wanted = plan(kernels, "add", ("jobs", "total", np.int32(5)), buffers, block=64)
    with device.prepare(wanted) as prepared:
        for _ in range(3):
            prepared.launch()
        outputs = prepared.fetch()
    assert outputs["jobs"].tolist() == (start + jobs).tolist()
    assert outputs["total"].tolist() == [total]


def test_scalars_of_every_width_arrive(device: CudaDevice, kernels: Path) -> None:
    scalars = (np.int32(-7), np.int64(2**40 + 1), np.float32(0.5), np.uint8(200))
    buffers = (Buffer("out", "float64", 4, output=True),)
    with device.prepare(plan(kernels, "mixed", ("out", *scalars), buffers, block=1)) as prepared:
        prepared.launch()
        assert prepared.fetch()["out"].tolist() == [-7.0, 2.0**40 + 1, 0.5, 200.0]


def test_dynamic_shared_memory_up_to_the_opt_in_limit(device: CudaDevice, kernels: Path) -> None:
    limit = device.facts.shared_per_block_optin
    assert limit > 48 * 1024
    for nbytes in (48 * 1024, 48 * 1024 + 4, limit):
        words = nbytes // 4
        buffers = (Buffer("sum", "uint64", 1, zero=True, output=True),)
        with device.prepare(
            plan(kernels, "turn", ("sum", np.int32(words)), buffers, block=256, shared_bytes=nbytes)
        ) as prepared:
            prepared.launch()
            assert prepared.fetch()["sum"].tolist() == [words * (words - 1) // 2]


@pytest.mark.parametrize("cache", CACHES)
def test_the_carveout_is_what_the_function_reports(
    device: CudaDevice, kernels: Path, cache: CachePreference
) -> None:
    buffers = (Buffer("sum", "uint64", 1, zero=True),)
    with device.prepare(
        plan(kernels, "turn", ("sum", np.int32(8)), buffers, shared_bytes=32, cache=cache)
    ) as prepared:
        names = device.cuda.function_attribute
        assert isinstance(prepared, CudaKernel)
        loaded = prepared._kernel
        assert loaded is not None
        reported = loaded._function.get_attribute(names.PREFERRED_SHARED_MEMORY_CARVEOUT)
        assert reported == prepared.resources["carveout_percent"]
        prepared.launch()


def test_occupancy_equals_the_drivers_calculator(device: CudaDevice, tmp_path: Path) -> None:
    """Registers x block sizes x dynamic shared memory: cuOccupancyMaxActiveBlocksPerMultiprocessor
    and our own computation, at least 200 configurations."""
    live = "\n".join(f"  unsigned v{i} = in[{i} * n + threadIdx.x];" for i in range(128))
    use = "\n".join(f"  out[{i} * n + threadIdx.x] = v{i} ^ v{127 - i};" for i in range(128))
    source = tmp_path / "crowded.cu"
    source.write_text(
        "__global__ void crowded(const unsigned* in, unsigned* out, int n) {\n"
        f"{live}\n  __syncthreads();\n{use}\n}}\n"
    )
    facts = device.facts
    sizes = [s for s in (0, 1, 1000, 10_000, 49_000, 100_000) if s <= facts.shared_per_block_optin]
    compared, registers, limiters = 0, set(), set()
    for most in (24, 32, 40, 64, 96, 128, 200):
        built = compile_cubin(source, "crowded", facts.arch, (f"--maxrregcount={most}",))
        taken = resources_of(built)
        registers.add(taken.registers)
        probe = LoadedCopy(built.image, built.symbol)
        for block in (1, 32, 33, 96, 128, 192, 256, 512, 1024):
            for shared in sizes:
                ours = occupancy(facts, taken.registers, shared, block)
                theirs = probe.blocks_per_multiprocessor(block, shared, CARVEOUT_PERCENT["default"])
                assert ours.blocks_per_multiprocessor == theirs, (taken.registers, block, shared)
                limiters.add(ours.limiter)
                compared += 1
        probe.close()
    assert compared >= 200
    assert len(registers) >= 5
    assert limiters == {"warps", "blocks", "registers", "shared"}


@pytest.mark.parametrize(
    ("entry", "buffers"), [("loaded<4, 4>", 1), ("loaded<100, 4000>", 1), ("add", 2)]
)
def test_the_compilers_report_equals_the_drivers(
    device: CudaDevice, kernels: Path, entry: str, buffers: int
) -> None:
    report = resources_of(compile_cubin(kernels, entry, device.facts.arch))
    both = (Buffer("out", "uint32", 256 * 100), Buffer("total", "int32", 1))
    arguments: tuple[Argument, ...] = (*("out", "total")[:buffers], np.int32(1))
    with device.prepare(plan(kernels, entry, arguments, both)) as prepared:
        told = prepared.resources
    assert told["registers"] == report.registers
    assert told["static_shared_bytes"] == report.static_shared_bytes


@pytest.mark.parametrize("wanted_s", [0.0, 0.002, 0.02])
def test_time_is_that_of_the_kernel(device: CudaDevice, kernels: Path, wanted_s: float) -> None:
    """The GPU's own nanosecond timer decides how long these kernels last."""
    with device.prepare(plan(kernels, "wait", (np.uint64(wanted_s * 1e9),))) as prepared:
        prepared.launch()
        times = [prepared.launch(timeout_s=10).kernel_s or 0.0 for _ in range(15)]
    assert min(times) > 0
    # The timer ticks about every microsecond at worst every 32; events add some 10 us.
    assert wanted_s * 0.98 <= statistics.median(times) <= wanted_s * 1.05 + 1e-4


def test_closing_gives_the_memory_back(device: CudaDevice, kernels: Path) -> None:
    def prepare_and_close() -> None:
        big = Buffer("out", "uint32", 64 << 20, zero=True)
        device.prepare(plan(kernels, "loaded<4, 4>", ("out", np.int32(1)), (big,))).close()

    prepare_and_close()  # whatever the driver keeps for itself
    before, _ = device.cuda.mem_get_info()
    for _ in range(3):
        prepare_and_close()
    after, _ = device.cuda.mem_get_info()
    assert after == before
