"""Launch geometry: grids, shares, default block sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nqbench.point import Level
from nqbench.workloads.base import Resolved
from nqbench.workloads.counting import Counting
from tests.workloads.running import GPU

COUNTING = Counting()
JOBS = 9844  # N = 16, four rows placed


def resolve(system: str | None = None, /, **given: Level) -> Resolved:
    return COUNTING.resolve({"n": 16, "depth": 4} | given, system, GPU)


@pytest.mark.parametrize(
    ("given", "blocks", "share"),
    [
        ({"block_size": 128}, 77, 0),
        ({"block_size": 4}, 2461, 0),
        ({"block_size": 4, "blocks": "from_jobs_plus_one"}, 2462, 0),
        ({"assignment": "block_pool", "pool_size": 100}, 99, 100),
        ({"assignment": "block_pool", "block_size": 32}, 77, 128),
        ({"assignment": "strided", "blocks": 5}, 5, 0),
        ({"assignment": "contiguous", "blocks": 5, "block_size": 64}, 5, 31),
        ({"assignment": "contiguous", "jobs_per_thread": 7, "block_size": 64}, 22, 7),
        ({"assignment": "contiguous", "blocks": {"per_sm": 2}, "block_size": 64}, 8, 20),
        ({"assignment": "global_pool", "blocks": {"per_sm": 3}, "block_size": 32}, 12, 0),
        ({"assignment": "global_pool", "blocks": {"per_sm": 1000}, "block_size": 32}, 308, 0),
        ({"assignment": "global_pool", "blocks": "from_jobs"}, 77, 0),
    ],
)
def test_grids(given: dict[str, Level], blocks: int, share: int) -> None:
    derived = resolve(None, **given).derived
    assert derived["jobs"] == JOBS
    assert (derived["blocks"], derived["share"]) == (blocks, share)


def test_feinbube_has_a_surplus_block() -> None:
    """Listing 3 divides and adds one, also where nothing is left over (9844 = 4 x 2461)."""
    assert resolve("feinbube2010.base", block_size=4).derived["blocks"] == 2462
    assert resolve("feinbube2010.base", block_size=64).derived["blocks"] == 154


def test_tanaka_has_one_block_per_multiprocessor() -> None:
    resolved = COUNTING.resolve({"n": 16}, "tanaka2011.both", GPU)
    assert resolved.factors["blocks"] == {"per_sm": 1}
    assert (resolved.derived["blocks"], resolved.derived["threads"]) == (4, 640)


def test_default_blocks_shrink_to_fit_shared_memory() -> None:
    assert COUNTING.resolve({"n": 19}, "tanaka2011.both", GPU).factors["block_size"] == 160
    assert COUNTING.resolve({"n": 20}, "tanaka2011.both", GPU).factors["block_size"] == 128
    small = replace(GPU, shared_per_block=16_384, shared_per_block_optin=16_384)
    factors = COUNTING.resolve({"n": 12}, "feinbube2010.opt3_shared_extern", small).factors
    assert factors["block_size"] == 32


def test_default_grids_fill_the_device_but_leave_jobs_to_share() -> None:
    many = COUNTING.resolve({"n": 17, "depth": 6, "assignment": "global_pool"}, None, GPU)
    per_block = many.derived["shared_bytes"]
    assert isinstance(per_block, int)
    assert many.factors["blocks"] == {"per_sm": 233_472 // per_block}
    few = resolve(assignment="global_pool")
    assert few.factors["blocks"] == {"per_sm": JOBS // (4 * 128 * 4)}
    assert few.derived["mean_jobs_per_thread"] == JOBS / (4 * 4 * 128)


def test_a_system_grid_that_does_not_suit_the_assignment_is_dropped() -> None:
    assert resolve("tanaka2011.both", assignment="one_per_thread").factors["blocks"] == "from_jobs"
    assert resolve("feinbube2010.base", assignment="block_pool").factors["blocks"] == "from_jobs"
