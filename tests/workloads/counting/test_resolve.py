"""Resolving: which levels go together, the grid of a launch, and the sentence for each refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nqbench.point import Level
from nqbench.workloads.base import Resolved
from nqbench.workloads.counting import Counting
from tests.workloads.running import GPU

COUNTING = Counting()


def resolve(system: str | None = None, /, **given: Level) -> dict[str, Level]:
    return dict(COUNTING.resolve({"n": 12} | given, system, GPU).factors)


@pytest.mark.parametrize(
    ("system", "memory", "follows"),
    [
        (None, "local", {"allocation": "-", "storage": "-", "layout": "-"}),  # no order of its own
        (None, "global", {"allocation": "-"}),
        (None, "shared_stack", {"storage": "arrays"}),  # the stack is one array
        ("feinbube2010.opt2_shared_all", "local", {"layout": "-", "loop": "somers"}),
    ],
)
def test_the_memory_decides_what_else_applies(
    system: str | None, memory: str, follows: dict[str, Level]
) -> None:
    levels = resolve(system, memory=memory)
    assert levels | follows | {"memory": memory} == levels


def test_a_system_without_a_layout_starts_from_the_papers_form() -> None:
    moved = resolve("feinbube2010.base", memory="shared")
    assert moved == resolve("feinbube2010.opt2_shared_all")


@pytest.mark.parametrize(
    ("system", "n", "depth"),
    [
        ("zhang2011.low_divergence", 18, 7),
        ("zhang2011.low_divergence", 12, 4),  # N - 11 = 1 is too few rows: 2,000 jobs decide
        ("tanaka2011.both", 16, 5),
        ("tanaka2011.both", 8, 5),
        ("tanaka2011.both", 7, 4),  # 5 > N - 3
        ("feinbube2010.base", 19, 3),
        ("frontier.predicated", 19, 7),
        ("frontier.unrolled", 15, 7),
        ("frontier.unrolled", 18, 8),
        (None, 8, 5),  # no depth gives 2,000 jobs
        (None, 5, 2),
    ],
)
def test_auto_depth(system: str | None, n: int, depth: int) -> None:
    assert resolve(system, n=n, depth="auto")["depth"] == depth
    assert resolve(system, n=n)["depth"] == depth
    # A GPU makes more jobs: there are 8,758,748 of 7 rows.
    assert resolve("frontier.predicated", n=19, jobs_made="cpu")["depth"] == 6


JOBS = 9844  # N = 16, four rows placed


def of_16(system: str | None = None, /, **given: Level) -> Resolved:
    return COUNTING.resolve({"n": 16, "depth": 4} | given, system, GPU)


@pytest.mark.parametrize(
    ("system", "given", "blocks", "share"),
    [
        # Listing 3 divides and adds one, also where nothing is left over (9844 = 4 x 2461).
        ("feinbube2010.base", {"block_size": 4}, 2462, 0),
        ("feinbube2010.base", {"block_size": 64}, 154, 0),
        ("tanaka2011.both", {}, 4, 0),  # one per multiprocessor
        (None, {"block_size": 128}, 77, 0),
        (None, {"block_size": 4, "blocks": "from_jobs_plus_one"}, 2462, 0),
        (None, {"assignment": "block_pool", "pool_size": 100}, 99, 100),
        (None, {"assignment": "block_pool", "block_size": 32}, 77, 128),
        (None, {"assignment": "strided", "blocks": 5}, 5, 0),
        (None, {"assignment": "contiguous", "blocks": 5, "block_size": 64}, 5, 31),
        (None, {"assignment": "contiguous", "jobs_per_thread": 7, "block_size": 64}, 22, 7),
        (None, {"assignment": "contiguous", "blocks": {"per_sm": 2}, "block_size": 64}, 8, 20),
        (None, {"assignment": "global_pool", "blocks": {"per_sm": 3}, "block_size": 32}, 12, 0),
        (None, {"assignment": "global_pool", "blocks": {"per_sm": 1000}, "block_size": 32}, 308, 0),
    ],
)
def test_grids(system: str | None, given: dict[str, Level], blocks: int, share: int) -> None:
    derived = of_16(system, **given).derived
    assert derived["jobs"] == JOBS
    assert (derived["blocks"], derived["share"]) == (blocks, share)


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
    few = of_16(assignment="global_pool")
    assert few.factors["blocks"] == {"per_sm": JOBS // (4 * 128 * 4)}
    assert few.derived["mean_jobs_per_thread"] == JOBS / (4 * 4 * 128)


def test_a_system_grid_that_does_not_suit_the_assignment_is_dropped() -> None:
    assert of_16("tanaka2011.both", assignment="one_per_thread").factors["blocks"] == "from_jobs"
    assert of_16("feinbube2010.base", assignment="block_pool").factors["blocks"] == "from_jobs"


def test_the_largest_boards_are_accepted() -> None:
    for system in COUNTING.systems:
        largest = {"frontier.unrolled": 18, "middle": 24}
        given: dict[str, Level] = {"n": 23 if "cpu.middle" in system else largest.get(system, 27)}
        if not system.startswith("cpu") and system != "middle":
            given["depth"] = 4
        assert COUNTING.resolve(given, system, GPU).factors["n"] == given["n"]
