"""The simulator's test kernels on a real GPU: what the simulator gives is what a GPU gives."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nqbench.plan import KernelPlan
from tests.simulator.harness import cuda
from tests.simulator.test_kernels import CASES, RIGHT, known

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

NEEDS = {"copies": 80, "phases": 80, "bulk": 90, "elected": 90, "vectors": 90}
"""Compute capability, times ten, of an instruction."""


def outputs(device: CudaDevice, plan: KernelPlan, launches: int = 1) -> dict[str, Any]:
    with device.prepare(plan) as prepared:
        for _ in range(launches):
            prepared.launch(timeout_s=20)
        return dict(prepared.fetch())


@pytest.mark.parametrize("entry", [*CASES, *RIGHT])
def test_kernels_with_known_results(device: CudaDevice, entry: str) -> None:
    if int(device.facts.arch.removeprefix("sm_").rstrip("af")) < NEEDS.get(entry, 0):
        pytest.skip(f"{device.facts.arch} does not have it")
    plan, want = known(entry)
    assert outputs(device, plan)["out"].tolist() == want


def test_halves(device: CudaDevice) -> None:
    from tests.simulator.harness import device as simulator

    a = np.linspace(-3, 3, 32).astype(np.float16)
    pairs = np.stack([a, a[::-1]], 1).reshape(-1).copy()
    arrays = {"a": a, "pairs": pairs, "total": np.zeros(2, np.float16)}
    plan = cuda("halves.cu", "halves", {**arrays, "out": np.zeros(32, np.float32)})
    got = outputs(device, plan)
    with simulator().prepare(plan) as prepared:
        prepared.launch()
        assert np.array_equal(prepared.fetch()["pairs"], got["pairs"])


def test_module_variables_have_their_contents_at_every_launch(device: CudaDevice) -> None:
    plan = cuda("symbols.cu", "count", {"out": np.zeros(32, np.uint32)})
    given = dataclasses.replace(plan, symbols={"counter": np.array([100], np.uint32)})
    assert sorted(outputs(device, given, launches=3)["out"].tolist()) == list(range(100, 132))


def test_blocks_of_a_cooperative_launch_wait_for_one_another(device: CudaDevice) -> None:
    values = np.arange(256, dtype=np.int32)
    plan = cuda("symbols.cu", "rotate", {"values": values}, grid=4, block=64)
    got = outputs(device, dataclasses.replace(plan, cooperative=True), launches=2)["values"]
    assert got.tolist() == (np.roll(values, -3) + 3).tolist()
