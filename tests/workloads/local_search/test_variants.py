"""The evaluation kernels come apart: what is left in each part, counted by the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nqbench.point import Level
from nqbench.workloads.base import VARIANTS
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.instance import load_instance
from tests.workloads.running import SIM, counted

N = 122
COLUMNS = 4
NUMBERED: dict[str, Level] = {"moves": "strided", "block_size": 64, "blocks": 4}
KERNELS: dict[str, dict[str, Level]] = {
    **{f"by number, {m}": {**NUMBERED, "mapping": m} for m in ("quadratic", "rearranged")},
    "by number, rectangle": {**NUMBERED, "mapping": "rectangle"},
    "tiled": {"kernel": "tiled", "block_size": 64, "tile_x": COLUMNS, "tile_y": 60},
}
PLANS = {
    name: WORKLOAD.plan({"n": N, "iterations": 1, **levels}, None, SIM.facts)
    for name, levels in KERNELS.items()
}


def best_change() -> float:
    """The best swap by brute force: the whole tour's length after each, in double precision."""
    instance = load_instance("uniform", N, 1)
    places = instance.cities[instance.start].astype(float)

    def length(order: NDArray[np.float64]) -> float:
        return float(np.linalg.norm(order - np.roll(order, -1, axis=0), axis=1).sum())

    before, best = length(places), 0.0
    for x in range(1, N - 1):
        for y in range(x + 1, N):
            swapped = places.copy()
            swapped[[x, y]] = swapped[[y, x]]
            best = min(best, length(swapped) - before)
    return best


def test_the_whole_finds_the_best_move() -> None:
    known = best_change()
    for name, plan in PLANS.items():
        whole = WORKLOAD.variant(plan, "full")
        with SIM.prepare(whole) as prepared:
            prepared.launch()
            answer = WORKLOAD.variant_answer(whole, prepared.fetch())
        assert float(np.uint32(answer).view(np.float32)) == pytest.approx(known, rel=1e-4), name


@pytest.mark.parametrize("name", PLANS)
def test_parts_keep_what_they_should(name: str) -> None:
    full, math, memory = (counted(WORKLOAD.variant(PLANS[name], part)) for part in VARIANTS)
    assert math["global_requests"] == math["shared_requests"] == 0
    # The whole looks at the best move twice, and with it at others of its warp.
    twice = 0.005 if name == "tiled" else 0
    assert 0 < math["float_operations"] <= full["float_operations"]
    assert full["float_operations"] <= (1 + twice) * math["float_operations"]
    # Addresses are gone, values in their place are made: they cost about the same.
    assert math["thread_instructions"] == pytest.approx(full["thread_instructions"], rel=0.08)
    assert memory["shared_requests"] == full["shared_requests"]
    if name == "tiled":  # all but what one warp takes to look at the best move again, and report it
        report, look = 2, 6 * COLUMNS
        assert full["global_atomics"] == 1
        more = full["global_requests"] - memory["global_requests"]
        assert report < more <= report + look
    else:
        for counter in ("global_requests", "global_sectors"):
            assert memory[counter] == full[counter]
    assert memory["float_operations"] < 0.5 * full["float_operations"]
