"""The CPU as a device."""

from __future__ import annotations

import pytest

from nqbench.devices.cpu import CpuDevice
from nqbench.errors import DeviceError
from nqbench.plan import CpuPlan, KernelPlan
from tests.measure.toy import TOY

CALLS: list[tuple[int, ...]] = []


def noted(*arguments: int) -> int:
    """A function that notes how it was called."""
    CALLS.append(arguments)
    return sum(arguments)


def test_it_warms_up_once_and_then_calls_with_the_plan_s_arguments() -> None:
    CALLS.clear()
    device = CpuDevice()
    plan = CpuPlan("noted", "tests.devices.test_cpu:noted", (3, 4), warm_up=(1, 1))
    for _ in range(2):
        with device.prepare(plan) as prepared:
            launch = prepared.launch()
            assert launch.kernel_s is not None
            assert launch.kernel_s > 0
            assert int(prepared.fetch()["answer"][0]) == 7
    assert CALLS == [(1, 1), (3, 4), (3, 4)]


def test_answers_beyond_32_bits_survive() -> None:
    largest = 234907967154122528  # the solutions for 27 queens
    with CpuDevice().prepare(
        CpuPlan("noted", "tests.devices.test_cpu:noted", (largest,))
    ) as prepared:
        prepared.launch()
        assert int(prepared.fetch()["answer"][0]) == largest


def test_a_gpu_kernel_is_refused_in_a_sentence() -> None:
    device = CpuDevice()
    plan = TOY.plan({"n": 5}, None, device.facts)
    assert isinstance(plan, KernelPlan)
    with pytest.raises(DeviceError, match=r"toy<5, plain> needs a GPU .*a CPU system"):
        device.prepare(plan)


@pytest.mark.parametrize("path", ["no.such.module:f", "tests.devices.test_cpu:absent"])
def test_a_function_that_is_not_there_is_said(path: str) -> None:
    with pytest.raises(DeviceError, match="cannot be loaded"):
        CpuDevice().prepare(CpuPlan("lost", path, ()))


def test_nothing_can_be_fetched_before_a_call() -> None:
    prepared = CpuDevice().prepare(CpuPlan("noted", "tests.devices.test_cpu:noted", ()))
    with pytest.raises(DeviceError, match="not called yet"):
        prepared.fetch()


def test_it_says_what_cpu_it_is() -> None:
    identity = CpuDevice().identity()
    assert set(identity) == {"name", "cores", "governor", "numba"}
    assert identity["cores"]
