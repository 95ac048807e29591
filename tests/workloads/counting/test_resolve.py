"""Resolving: which levels go together, the grid of a launch, and the sentence for each refusal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nqbench.errors import InfeasibleError, StudyError
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
    ("given", "sentence"),
    [
        ({"memory": "local", "layout": "padded"}, "layout: padded makes no sense with memory: loc"),
        ({"memory": "global", "allocation": "dynamic"}, "allocation: dynamic makes no sense"),
        ({"memory": "shared_stack", "storage": "struct"}, "storage: struct makes no sense with"),
        ({"storage": "chunk", "layout": "interleaved"}, "use storage: arrays"),
        ({"jobs_made": "gpu"}, "jobs_made: gpu makes no sense with symmetry: mirror, whose jobs"),
        ({"pool_size": 64}, "pool_size: 64 makes no sense with assignment: one_per_thread"),
        ({"jobs_per_thread": 4}, "jobs_per_thread: 4 makes no sense with assignment: one_per"),
        ({"max_board": 20}, "max_board: 20 makes no sense with rows: remaining"),
        ({"memory": 3}, "memory: 3 is not a level"),
        ({"blocks": {"per_sm": 0}}, "blocks: {'per_sm': 0} is not a level"),
        ({"block_size": {"per_sm": 1}}, "block_size: {'per_sm': 1} is not a level"),
        ({"blocks": 4}, "blocks: 4 makes no sense with assignment: one_per_thread"),
        (
            {"assignment": "block_pool", "blocks": {"per_sm": 2}},
            "blocks: {per_sm: 2} makes no sense with assignment: block_pool",
        ),
        (
            {"assignment": "strided", "blocks": 3, "jobs_per_thread": 2},
            "blocks: 3 and jobs_per_thread: 2 both fix the number of threads",
        ),
    ],
)
def test_senseless_combinations_are_refused(given: dict[str, Level], sentence: str) -> None:
    with pytest.raises((StudyError, InfeasibleError), match=re.escape(sentence)) as caught:
        resolve(None, **given)
    if isinstance(caught.value, InfeasibleError):
        assert caught.value.factor in {*given, "layout"}


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


OLD = replace(GPU, name="old GPU", compute_capability=(6, 1), max_threads_per_block=512)


LARGE: dict[str, Level] = {"n": 12, "block_size": 128}
STRIDED: dict[str, Level] = {"n": 12, "assignment": "strided", "blocks": 2**31 - 1}


@pytest.mark.parametrize(
    ("system", "given", "sentence", "factor"),
    [
        (None, {"n": 4}, "n: 4 is less than the 5 of the kernels; use a cpu", "n"),
        (
            "cpu.multicore",
            {"n": 8, "depth": 3},
            "means nothing to cpu.multicore; leave depth out",
            "depth",
        ),
        ("cpu.somers", {"n": 28}, "n: 28 is outside 1 to 27", "n"),
        (None, {"n": 8, "depth": 6}, "depth: 6 is outside 2 to N-3 = 5 at n: 8", "depth"),
        (None, {"n": 12, "block_size": 600}, "over the 512 threads per block of old", "block_size"),
        (
            "feinbube2010.opt2_shared_all",
            LARGE,
            "66560 bytes of static shared memory for a block of 128 threads are over the limit of"
            " 49152 on test GPU; try a block_size of at most 94, rows: remaining or another memory",
            "block_size",
        ),
        (
            "feinbube2010.opt3_shared_extern",
            LARGE | {"block_size": 512},
            "262144 bytes of shared memory for a block of 512",
            "block_size",
        ),
        (None, {"n": 20, "encoding": "base_n", "depth": 8}, "over the 31 bits", "depth"),
        ("zhang2011.low_divergence", {"n": 22}, "gives more than 357913941 jobs", "depth"),
        ("zhang2011.naive_l1_16k", {"n": 19}, "use a smaller depth or memory: shared", "depth"),
        ("feinbube2010.base", {"n": 20, "max_board": 16}, "16 is less than n: 20", "max_board"),
        (None, STRIDED, "blocks of 128 threads are over the limit of 8388608", "blocks"),
        (None, {"n": 12, "block_size": 1025}, "block_size: 1025 is outside", "block_size"),
        ("frontier.unrolled", {"n": 25}, "loop: unrolled at n: 25, whose rows", "loop"),
        ("frontier.unrolled", {"n": 18, "depth": 8}, "7.0 and later, and old GPU has 6.1", "loop"),
        ("frontier.unrolled", {"n": 9, "blocks": 2**23}, "over the limit of 4194304", "blocks"),
        ("frontier.unrolled", {"n": 21}, "has more at any depth; nqbench count 21", "depth"),
        (
            "frontier.unrolled",
            {"n": 18, "block_size": 256},
            "over the limit of 49152 on test GPU; try a block_size of at most 224",
            "block_size",
        ),
    ],
)
def test_limits(system: str | None, given: dict[str, Level], sentence: str, factor: str) -> None:
    with pytest.raises(InfeasibleError, match=re.escape(sentence)) as caught:
        COUNTING.resolve(given, system, OLD if "old" in sentence else GPU)
    assert "\n" not in str(caught.value)
    assert caught.value.factor == factor


def test_the_largest_boards_are_accepted() -> None:
    for system in COUNTING.systems:
        largest = {"frontier.unrolled": 18, "middle": 24}
        given: dict[str, Level] = {"n": 23 if "cpu.middle" in system else largest.get(system, 27)}
        if not system.startswith("cpu") and system != "middle":
            given["depth"] = 4
        assert COUNTING.resolve(given, system, GPU).factors["n"] == given["n"]
