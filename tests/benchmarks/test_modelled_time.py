"""The record of modelled times: slices of a plan, and effects by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.modelled_time import POOL, Key, effect, part_of, sliced
from nqbench.devices.simulator import SimDevice
from nqbench.plan import KernelPlan
from nqbench.simulator.models import TIME, load_model
from nqbench.workloads.counting import Counting

MINI = load_model("mini")


@pytest.mark.parametrize(
    ("assignment", "system", "blocks"),
    [
        ("one_per_thread", "zhang2011.low_divergence", 2 * POOL // 128),
        ("block_pool", "zhang2011.pool_distributed", 2),
        ("global_pool", "zhang2011.pool_monolithic", 2),
    ],
)
def test_a_slice_has_whole_pools_of_jobs_and_runs(
    assignment: str, system: str, blocks: int
) -> None:
    workload = Counting()
    levels: dict[str, int | str] = {"n": 10, "depth": 5, "block_size": 128}
    levels |= {"pool_size": POOL} if assignment == "block_pool" else {}
    levels |= {"blocks": 4} if assignment == "global_pool" else {}
    factors = workload.resolve(levels, system, MINI.facts).factors
    whole = workload.plan(factors, None, MINI.facts)
    assert isinstance(whole, KernelPlan)
    count = int(whole.about["jobs"])
    assert -(-count // POOL) == 4  # of which a half has the second and the last
    half = sliced(whole, assignment, 2)
    assert half.grid == (blocks, 1, 1)
    given, taken = (
        next(b.data for b in plan.buffers if b.name == "jobs") for plan in (whole, half)
    )
    assert given is not None
    assert taken is not None
    words = len(given) // count
    first = given[POOL * words : 2 * POOL * words]
    assert np.array_equal(taken[: len(first)], first)
    device = SimDevice("mini", modes=(TIME,))
    device.simulation = replace(device.simulation, model=part_of(MINI, 2))
    with device.prepare(half) as prepared:
        assert (prepared.launch().counters or {})["modelled_ms"] > 0


def test_an_effect_is_a_ratio_of_geometric_means() -> None:
    times: dict[Key, float] = {
        ("global", "a", "b", "c"): 8.0, ("global", "x", "b", "c"): 2.0,
        ("shared", "a", "b", "c"): 1.0, ("shared", "x", "b", "c"): 1.0,
    }  # fmt: skip
    assert effect(times, "memory", "global", "shared") == pytest.approx(1 / 4)
    assert effect(times, "layout", "a", "x") == pytest.approx(1 / 2)
