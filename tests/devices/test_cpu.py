"""The CPU as a device."""

from __future__ import annotations

import pytest

from nqbench.devices.cpu import CpuDevice
from nqbench.errors import DeviceError
from nqbench.plan import CpuPlan
from tests.measure.toy import TOY

CALLS: list[tuple[int, ...]] = []


def noted(*arguments: int) -> int:
    """A function that notes how it was called."""
    CALLS.append(arguments)
    return sum(arguments)


def test_it_warms_up_and_then_calls_with_the_plan_s_arguments() -> None:
    CALLS.clear()
    device = CpuDevice()
    plan = CpuPlan("noted", "tests.devices.test_cpu:noted", (3, 4), warm_up=(1, 1))
    for _ in range(2):
        with device.prepare(plan) as prepared:
            launch = prepared.launch()
            assert launch.kernel_s is not None
            assert launch.kernel_s > 0
            assert int(prepared.fetch()["answer"][0]) == 7
    assert CALLS == [(1, 1), (3, 4)] * 2


def test_mistakes_are_sentences_and_large_answers_survive() -> None:
    device = CpuDevice()
    assert {*device.identity()} == {"name", "cores", "governor", "numba"}
    kernel = TOY.plan({"n": 5}, None, device.facts)
    with pytest.raises(DeviceError, match=r"toy<5, plain> needs a GPU .*a CPU system"):
        device.prepare(kernel)
    for path in ("no.such.module:f", "tests.devices.test_cpu:absent"):
        with pytest.raises(DeviceError, match="cannot be loaded"):
            device.prepare(CpuPlan("lost", path, ()))
    largest = 234907967154122528  # the solutions for 27 queens
    prepared = device.prepare(CpuPlan("noted", "tests.devices.test_cpu:noted", (largest,)))
    with pytest.raises(DeviceError, match="not called yet"):
        prepared.fetch()
    prepared.launch()
    assert int(prepared.fetch()["answer"][0]) == largest
