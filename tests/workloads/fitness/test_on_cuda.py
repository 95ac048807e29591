"""The GPU schemes' calls over a pretended PyCUDA: what is allocated, copied and freed, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nqbench.devices.cuda import driver as cuda_driver
from nqbench.devices.cuda.device import CudaDevice
from nqbench.errors import LaunchError
from nqbench.measure.measurement import whole_run
from nqbench.plan import MultiLaunchPlan
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.boards import conflicts
from tests.devices.cuda.fake_pycuda import FakeDriver
from tests.devices.cuda.test_device import gpu
from tests.workloads.fitness.running import PAPER

__all__ = ["gpu"]  # a fixture

N = 40


@pytest.fixture
def refused(gpu: FakeDriver) -> list[int]:
    """A GPU that knows the kernels; refuses as many launches of sub-kernels as the list says."""
    refuse = [0]

    def board(memory: dict[int, bytearray], address: int, n: int) -> np.ndarray[Any, Any]:
        return np.frombuffer(memory[address], np.int32)[:n]

    def coarse(memory: dict[int, bytearray], queens: int, n: int, results: int) -> None:
        np.frombuffer(memory[results], np.uint64)[0] += conflicts(board(memory, queens, n))

    def dynamic(memory: dict[int, bytearray], queens: int, n: int, *more: int) -> None:
        *_, results = more
        np.frombuffer(memory[results], np.uint64)[:] += np.array(
            [conflicts(board(memory, queens, n)), refuse[0]], np.uint64
        )

    gpu.kernels = {"coarse": coarse, "dynamic": dynamic}
    return refuse


def answers(system: str, **given: Level) -> list[int]:
    """The answers of two runs on the pretended GPU."""
    device = CudaDevice(0)
    factors = WORKLOAD.resolve({"n": N, **given}, system, device.facts).factors
    plan = WORKLOAD.plan(factors, system, device.facts)
    found = []
    with device.prepare(plan) as prepared:
        for _ in range(2):
            prepared.launch()
            found.append(WORKLOAD.answer(plan, prepared.fetch()))
    assert WORKLOAD.expected(factors) == found[0]
    return found


@pytest.mark.parametrize("allocation", ["per_call", "once"])
def test_memory_is_taken_in_every_call_or_once(
    gpu: FakeDriver, refused: list[int], allocation: str
) -> None:
    one, other = answers(f"{PAPER}.gpu_coarse", allocation=allocation)
    assert one == other
    allocations = gpu.names().count("mem_alloc")
    assert allocations == (4 if allocation == "per_call" else 2)  # board and counter
    assert gpu.memory == {}
    launches = [place for place, name in enumerate(gpu.names()) if name == "queue"]
    between = gpu.names()[launches[0] : launches[1]]
    assert any("htod" in name for name in between)  # the candidate is copied in every call


def test_sub_kernels_may_all_wait_and_refused_ones_are_an_error(
    gpu: FakeDriver, refused: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cuda.bindings.nvjitlink")
    allowed: list[int] = []
    monkeypatch.setattr(cuda_driver, "allow_pending_launches", allowed.append)
    answers(f"{PAPER}.gpu_cdp", threshold=10)
    assert allowed == [N - 1 - 10]  # one for each row with more comparisons than the threshold
    refused[0] = 3
    with pytest.raises(LaunchError, match=r"refused 3 launches of sub-kernels .* larger threshold"):
        answers(f"{PAPER}.gpu_cdp", threshold=10)
    assert gpu.memory == {}  # freed all the same


def test_a_search_tells_its_evaluations_as_a_whole(gpu: FakeDriver, refused: list[int]) -> None:
    device = CudaDevice(0)
    system, given = f"{PAPER}.sa_gpu", {"n": N, "max_evaluations": 30}
    factors = WORKLOAD.resolve(given, system, device.facts).factors
    plan = WORKLOAD.plan(factors, system, device.facts)
    assert isinstance(plan, MultiLaunchPlan)
    with device.prepare(plan) as prepared:
        total_s = prepared.launch().kernel_s
        assert total_s is not None
        assert WORKLOAD.answer(plan, prepared.fetch()) == WORKLOAD.expected(factors)
        parts = prepared.phases()
    calls = sum(parts[name] for name in ("allocate", "transfer", "reduce", "free"))
    assert calls <= parts["evaluation"] <= parts["total"]
    found = whole_run(parts, plan.kernels, total_s, plan.groups)
    assert found["total"] - found["evaluation"] == pytest.approx(
        min(total_s, parts["total"] - parts["evaluation"])
    )
