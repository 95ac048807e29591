"""What the papers' optimisations do, counted in the simulator at N = 12."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nqbench.device import Device
from nqbench.plan import Plan
from nqbench.point import Level
from nqbench.simulator.liveness import readable, targets
from nqbench.simulator.tally import Tally
from nqbench.workloads.counting import WORKLOAD
from tests.simulator.harness import accesses, device
from tests.workloads.running import Ran, run

N = 12
LANES = 32
STACK = ("fixed_words", "launch_words")  # the names of the search stack in frame.cuh


def once(device: Device, system: str, **given: Level) -> Ran:
    return run(WORKLOAD, device, {"n": N, **given}, system, times=1)


def stack_accesses(plan: Plan) -> list[dict[str, Any]]:
    """The accesses whose address comes from the stack alone."""
    with device().prepare(plan) as prepared:
        prepared.launch()
        (kernel,) = prepared.kernels.values()
    assert kernel.run is not None
    blocks, variables = kernel.code.blocks, kernel.code.kernel.variables
    reached = targets(blocks, variables)
    found = accesses(Tally(kernel.run))
    return [x for x in found if readable(reached.get(x["instruction"], "")) in STACK]


@pytest.mark.parametrize(
    ("system", "layout", "depth", "stride"),
    [
        # words from one thread's row to the same row of the next
        ("zhang2011.shared_conflict", "per_thread", 4, 4 * (N - 4)),
        ("zhang2011.shared_conflict", "per_thread", 5, 4 * (N - 5)),
        ("zhang2011.shared_conflict", "per_thread", 6, 4 * (N - 6)),
        ("zhang2011.shared_conflict", "padded", 4, 4 * (N - 4) + 1),
        ("feinbube2010.opt4_compact", "per_thread", 5, 4 * (N - 5)),
        ("feinbube2010.opt2_shared_all", "per_thread", 4, 32),
        ("feinbube2010.opt3_shared_extern", "per_thread", 4, 4 * 32),
        ("zhang2011.shared_no_conflict", "interleaved", 4, 1),
        ("zhang2011.low_divergence", "interleaved", 5, 1),
    ],
)
def test_stacks_conflict_as_their_stride_says(
    simulator: Device, system: str, layout: str, depth: int, stride: int
) -> None:
    """All lanes write row 0 of their stacks at once: lane t to bank t * stride mod 32.

    gcd(stride, 32) lanes share a bank, so that is the number of passes of a full warp.
    """
    ran = once(simulator, system, layout=layout, depth=depth, block_size=64)
    jobs = int(ran.numbers["jobs"])
    full, rest = divmod(jobs, LANES)
    ways = math.gcd(stride, LANES)
    passes = full * ways + -(-rest // (LANES // ways))
    first_row = [line for line in stack_accesses(ran.plan) if line["lanes"] == jobs]
    assert first_row
    stores = [line for line in first_row if line["opcode"].startswith("st.shared.u32")]
    assert stores
    assert {line["requests"] for line in stores} == {full + (rest > 0)}
    assert {line["passes"] for line in stores} == {passes}
