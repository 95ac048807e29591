"""The test device keeps to its own noise model, and misbehaves only when asked."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from nqbench.devices.fake import LONGEST_S, FakeDevice, FakeModel
from nqbench.devices.registry import open_device
from nqbench.errors import CompileError, DeviceError, DeviceUnavailable
from nqbench.plan import CpuPlan, KernelPlan
from tests.measure.toy import TOY


def plan(n: int = 8) -> KernelPlan:
    """A kernel plan of the toy workload."""
    made = TOY.plan({"n": n}, None, FakeDevice().facts)
    assert isinstance(made, KernelPlan)
    return made


def times(model: FakeModel, count: int, *, round_: int = 1, n: int = 8) -> list[float]:
    """Kernel times of consecutive launches."""
    device = FakeDevice(model)
    device.begin_round(round_)
    with device.prepare(plan(n)) as prepared:
        return [float(prepared.launch().kernel_s or 0.0) for _ in range(count)]


def test_its_times_follow_its_model() -> None:
    assert times(FakeModel(base=1e-3, growth=3.0), 2, n=10) == pytest.approx([9e-3, 9e-3])
    assert times(FakeModel(), 1, n=1_000_000) == pytest.approx([LONGEST_S])
    errors = np.log(times(FakeModel(noise=0.01), 20_000)) - math.log(1e-4)
    assert abs(errors.std() / 0.01 - 1) < 0.03
    rounds = FakeModel(round=0.02)
    offsets = [math.log(times(rounds, 1, round_=r)[0] / 1e-4) for r in range(400)]
    assert abs(statistics.stdev(offsets) / 0.02 - 1) < 0.15
    other = math.log(times(rounds, 1, round_=3, n=9)[0] / 4e-4)
    assert math.isclose(other, offsets[3], abs_tol=1e-12)  # shared by all plans of a round
    throttled = times(FakeModel(throttle=1.5), 120)
    assert math.isclose(throttled[-1] / throttled[0], 1.5)
    spread = FakeModel(spread=0.2)
    own = {times(spread, 1, n=n)[0] / 4.0 ** (n - 8) for n in range(4, 12)}
    assert len(own) == 8
    assert all(0.8e-4 <= value <= 1.2e-4 for value in own)


def test_the_same_seed_and_round_give_the_same_times() -> None:
    model = FakeModel(seed=4, noise=0.01, round=0.01)
    assert times(model, 5) == times(model, 5)
    assert times(model, 5) != times(model, 5, round_=2)
    assert times(model, 5) != times(FakeModel(seed=5, noise=0.01, round=0.01), 5)


def test_it_misbehaves_only_when_asked() -> None:
    device = open_device("fake:wrong=8,refuse=9")
    assert device.prepare(plan(8)).known_answer() == 2**8 + 1
    assert device.prepare(plan(7)).known_answer() == 2**7
    with pytest.raises(CompileError, match=r"toy\.cu:1"):
        device.prepare(plan(9))
    with pytest.raises(DeviceError, match="CPU plans run on the cpu"):
        device.prepare(CpuPlan("b", "a:b", ()))
    with pytest.raises(DeviceError, match="no output buffers"):
        device.prepare(plan()).fetch()
    specs = ("fake", "fake:crash=3", "fake:noise=1")
    healthy, ill, noisy = (open_device(spec).identity() for spec in specs)
    assert healthy == ill != noisy  # it may recover from its faults
    for spec in ("fake:colour=1", "fake:noise=much", "fake:seed=1.5"):
        with pytest.raises(DeviceUnavailable, match="fake device"):
            open_device(spec)
