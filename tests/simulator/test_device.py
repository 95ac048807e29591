"""The simulator as a device: answers, determinism, limits, the protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nqbench.device import Device, Prepared
from nqbench.devices.registry import SimDevice
from nqbench.errors import CompileError, DeviceError, DeviceUnavailable, LaunchError
from nqbench.plan import Buffer, CpuPlan, KernelPlan
from nqbench.simulator import translation
from nqbench.simulator.models import ORDERS
from nqbench.simulator.native import Cpu
from nqbench.vocabulary import COUNTERS
from tests.simulator.harness import cuda, device

SOLUTIONS = {5: 10, 6: 4, 7: 40, 8: 92, 9: 352, 10: 724}


def jobs(n: int, depth: int) -> NDArray[np.uint32]:
    """Attack masks (columns, left, right) of all placements in the first ``depth`` rows."""
    found: list[tuple[int, int, int]] = [(0, 0, 0)]
    for _ in range(depth):
        found = [
            (c | 1 << i, (left | 1 << i) << 1, (right | 1 << i) >> 1)
            for c, left, right in found
            for i in range(n)
            if not (c | left | right) >> i & 1
        ]
    return np.array(found, np.uint32).ravel()


def queens(n: int, *, block: int = 64) -> KernelPlan:
    work = jobs(n, 2)
    count = len(work) // 3
    arrays: dict[str, NDArray[Any] | np.generic] = {
        "jobs": work, "totals": np.zeros(count, np.uint64), "count": np.int32(count),
    }  # fmt: skip
    grid = -(-count // block)
    return cuda("queens.cu", f"queens<{n}, 2, {block}, true>", arrays, grid=grid, block=block)


def pool(n: int, blocks: int) -> KernelPlan:
    work = jobs(n, 3)
    arrays: dict[str, NDArray[Any] | np.generic] = {
        "jobs": work, "next": np.zeros(1, np.uint32), "total": np.zeros(1, np.uint64),
        "count": np.int32(len(work) // 3),
    }  # fmt: skip
    return cuda("queens.cu", f"queens_pool<{n}, 3, 64>", arrays, grid=blocks, block=64)


@pytest.mark.parametrize("n", sorted(SOLUTIONS))
def test_queens(n: int) -> None:
    with device().prepare(queens(n)) as prepared:
        launch = prepared.launch()
        assert int(prepared.fetch()["totals"].sum()) == SOLUTIONS[n]
    counters = launch.counters
    assert counters is not None
    assert set(counters) == set(COUNTERS)
    assert launch.kernel_s is None
    assert counters["bank_conflicts"] == 0
    assert 0 < counters["lane_efficiency"] <= 1
    assert counters["thread_instructions"] <= 32 * counters["warp_instructions"]


def test_counters_follow_from_the_plan_and_the_order_of_warps() -> None:
    plan, counters = pool(9, 4), {}
    for order in ORDERS:
        seen = []
        for _ in range(2):
            with SimDevice(order=order).prepare(plan) as prepared:
                for _ in range(2):
                    launch = prepared.launch()
                    assert int(prepared.fetch()["total"][0]) == SOLUTIONS[9]
                    seen.append((dict(launch.counters or {}), launch.detail))
        assert all(one == seen[0] for one in seen)
        assert seen[0][1]["order"] == order
        counters[order] = seen[0][0]
    assert len({tuple(found.items()) for found in counters.values()}) > 1
    assert "order" in device().identity()
    # No warp empties the pool before the others begin: each asks once more than it gets work.
    assert counters["round_robin"]["global_atomics"] >= counters["greedy"]["global_atomics"]


def test_a_cpu_without_vector_gathers_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with device().prepare(queens(7)) as prepared:
        want = prepared.launch().counters
    plain = Cpu("x86-64", "")

    def build(text: str, entry: str, memory: Any, **options: bool) -> translation.Translation:
        return translation.build(text, entry, memory, plain, **options)

    monkeypatch.setattr("nqbench.simulator.launching.build", build)
    with device().prepare(queens(7)) as prepared:
        assert prepared.launch().counters == want
        assert int(prepared.fetch()["totals"].sum()) == SOLUTIONS[7]


def test_it_is_a_device() -> None:
    sim: Device = SimDevice()
    prepared: Prepared = sim.prepare(queens(5))
    assert sim.spec == "sim:mini"
    assert not sim.timed
    assert sim.deterministic
    assert prepared.transfer_s is None
    prepared.close()
    with pytest.raises(LaunchError, match="was closed"):
        prepared.launch()


def test_buffers_are_renewed_as_the_plan_says() -> None:
    def plan(**how: Any) -> KernelPlan:
        data = None if how.get("zero") else np.full(32, 13, np.int32)
        buffer = Buffer("out", "int32", 32, data, output=True, **how)
        return replace(cuda("faults.cu", "divide", {"out": np.zeros(32)}), buffers=(buffer,))

    def after_two(given: KernelPlan) -> int:
        with device().prepare(given) as prepared:
            prepared.launch()
            prepared.launch()
            return int(prepared.fetch()["out"][0])

    assert after_two(plan(restore=True)) == 0  # 7 / (13 - 3)
    assert after_two(plan(zero=True)) == -2  # 7 / (0 - 3)
    assert after_two(plan()) == -2  # 7 / (0 - 3), from what the first launch left


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buffers": (Buffer("big", "uint8", 3 << 30),)}, "the simulator has"),
        ({"block": (1025, 1, 1)}, "1025 threads per block; sim:mini takes 1 to 1024"),
        ({"grid": (0, 1, 1)}, "has no blocks"),
        ({"shared_bytes": 300_000}, "has 232448"),
        ({"arguments": ("jobs", "totals")}, "takes 3 arguments, but 2 are given"),
        ({"arguments": ("jobs", "nothing", np.int32(1))}, "names buffer 'nothing'"),
        ({"arguments": ("jobs", "totals", np.int64(1))}, "8 bytes, but the kernel's parameter has"),
    ],
)
def test_a_launch_that_cannot_be_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises((CompileError, DeviceError)) as caught:
        device().prepare(replace(queens(5), **change))
    assert words in str(caught.value)


def test_host_plans_and_unknown_settings_are_refused() -> None:
    with pytest.raises(DeviceError, match="cpu device"):
        device().prepare(CpuPlan("c", "a.b:c", (1,)))
    with pytest.raises(DeviceUnavailable, match="no simulator model"):
        SimDevice("gtx9999")
    with pytest.raises(DeviceError, match="warp order 'random' is not known"):
        SimDevice(order="random")
