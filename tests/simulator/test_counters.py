"""Operations of a roofline, counted by the simulator against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from nqbench.devices.registry import open_device
from nqbench.plan import KernelPlan
from nqbench.point import Level
from nqbench.workloads.ceilings import WORKLOAD
from tests.simulator.harness import ptx, run

N, STEPS = 512, 64


@pytest.mark.parametrize("operation", ["fma", "float_add", "int_add", "logic"])
def test_operations_of_the_ceilings(operation: str) -> None:
    """What the workload says that it does, and beyond it the few of loops and addresses."""
    device = open_device("sim:mini")
    given: dict[str, Level] = {"n": N, "operation": operation, "steps": STEPS}
    factors = WORKLOAD.resolve(given, None, device.facts).factors
    plan = WORKLOAD.plan(factors, None, device.facts)
    assert isinstance(plan, KernelPlan)
    with device.prepare(plan) as prepared:
        counters = prepared.launch().counters or {}
    if operation in ("fma", "float_add"):
        assert counters["float_operations"] == plan.about["float_operations"]
    else:
        assert counters["float_operations"] == 0
        # The two instructions of x ^ (y & a) may become one, which is what a GPU does with them.
        least = int(plan.about["integer_operations"])
        assert least <= counters["integer_operations"] <= 2.2 * least


def test_only_lanes_whose_guard_holds() -> None:
    body = """
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 5;
    mov.f32 %f1, 0f3f800000;
    @%p1 fma.rn.f32 %f1, %f1, %f1, %f1;
    @%p1 xor.b32 %r1, %r1, 7;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    and.pred %p2, %p1, %p1;
    min.f32 %f1, %f1, %f1;
    st.global.f32 [%rd3], %f1;
    """
    counters = run(ptx(body, 1), [np.zeros(32, np.float32)]).counters
    assert counters["float_operations"] == 2 * 5
    assert counters["integer_operations"] == 32 * 3 + 5  # setp, mul, add; xor where it runs
