"""The evaluation kernels come apart: what is left in each part, counted by the simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import nqbench.workloads
from nqbench.devices.registry import open_device
from nqbench.plan import Buffer, KernelPlan
from nqbench.workloads.base import VARIANTS
from nqbench.workloads.local_search.instance import slack
from nqbench.workloads.variants import built_as

SOURCE = Path(nqbench.workloads.__file__).parent / "local_search" / "local_search.cu"
SIM = open_device("sim:mini")
N = 122
BLOCK, BLOCKS = 64, 4
ROWS, COLUMNS = 60, 4
MAPPINGS = ("quadratic", "rearranged", "rectangle")
NO_BEST = np.uint64(2**64 - 1)


def cities() -> NDArray[np.float32]:
    return np.random.default_rng(7).random((N, 2), dtype=np.float32)


def tour() -> NDArray[np.uint32]:
    order = np.arange(N, dtype=np.uint32)
    np.random.default_rng(8).shuffle(order[1:])
    return order


def by_number(mapping: str) -> KernelPlan:
    moves, threads = (N - 1) * (N - 2) // 2, BLOCK * BLOCKS
    return KernelPlan(
        SOURCE,
        f"evaluation<Full, Moves::strided, Mapping::{mapping}>",
        ("tour", "cities", np.uint32(N), np.uint32(moves), "deltas", "moves", "invalid"),
        buffers=(
            Buffer("tour", "uint32", N, data=tour()),
            Buffer("cities", "float32", 2 * N, data=cities().reshape(-1)),
            Buffer("deltas", "float32", threads, output=True),
            Buffer("moves", "uint32", threads, output=True),
            Buffer("invalid", "uint64", 1, zero=True, output=True),
        ),
        grid=(BLOCKS, 1, 1),
        block=(BLOCK, 1, 1),
    )


def tiled() -> KernelPlan:
    places = cities()[tour()].reshape(-1)
    return KernelPlan(
        SOURCE,
        f"evaluation_tiled<Full, {COLUMNS}>",
        (
            "places",
            np.uint32(N),
            np.uint32(ROWS),
            np.float32(-1e-7),
            slack(cities()),
            "best",
            "hints",
        ),
        buffers=(
            Buffer("places", "float32", 2 * N, data=places),
            Buffer("best", "uint64", 1, data=np.array([NO_BEST]), restore=True, output=True),
            Buffer("hints", "uint64", 32, zero=True),
        ),
        grid=(-(-(N - 2) // (BLOCK * COLUMNS)), -(-(N - 2) // ROWS), 1),
        block=(BLOCK, 1, 1),
        shared_bytes=8 * (ROWS + 4) + 4 * (ROWS + 2),
    )


PLANS = {**{f"by number, {m}": by_number(m) for m in MAPPINGS}, "tiled": tiled()}


def best_change() -> float:
    """The best swap by brute force: the whole tour's length after each, in double precision."""
    places = cities()[tour()].astype(float)

    def length(order: NDArray[np.float64]) -> float:
        return float(np.linalg.norm(order - np.roll(order, -1, axis=0), axis=1).sum())

    before, best = length(places), 0.0
    for x in range(1, N - 1):
        for y in range(x + 1, N):
            swapped = places.copy()
            swapped[[x, y]] = swapped[[y, x]]
            best = min(best, length(swapped) - before)
    return best


def informed(plan: KernelPlan) -> KernelPlan:
    """Knows a change as good as the best one but for a bit: few moves are looked at twice."""
    with SIM.prepare(built_as(plan, "full")) as prepared:
        prepared.launch()
        key = int(prepared.fetch()["best"][0]) >> 32
    known = np.array([(key + 1) << 32], np.uint64)
    buffers = [replace(b, data=known) if b.name == "best" else b for b in plan.buffers]
    return replace(plan, buffers=tuple(buffers))


def test_the_whole_finds_the_best_move() -> None:
    known = best_change()
    for name, plan in PLANS.items():
        with SIM.prepare(built_as(plan, "full")) as prepared:
            prepared.launch()
            outputs = prepared.fetch()
        if name == "tiled":
            high = ~np.uint32(int(outputs["best"][0]) >> 32)
            found = float(np.uint32(high).view(np.float32))
        else:
            found = float(outputs["deltas"].min())
            assert outputs["invalid"][0] == 0
        assert found == pytest.approx(known, rel=1e-4), name


@pytest.mark.parametrize("name", PLANS)
def test_parts_keep_what_they_should(name: str) -> None:
    found = {}
    plan = informed(PLANS[name]) if name == "tiled" else PLANS[name]
    for part in VARIANTS:
        with SIM.prepare(built_as(plan, part)) as prepared:
            found[part] = prepared.launch().counters or {}
    full, math, memory = (found[part] for part in VARIANTS)
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
