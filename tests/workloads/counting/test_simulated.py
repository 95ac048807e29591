"""Every kernel gives the known answer in the simulator, all its checks on."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import cycle, product, starmap
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nqbench.device import Device
from nqbench.plan import KernelPlan
from nqbench.point import FactorLevels, Level
from nqbench.workloads.counting import WORKLOAD, border
from nqbench.workloads.counting.border_rule import allowed, tying
from nqbench.workloads.counting.border_search import weights_of_jobs
from nqbench.workloads.counting.factors import FRONTIER_LOOPS
from nqbench.workloads.counting.jobs import Encoding, words_per_job
from nqbench.workloads.counting.known import SOLUTIONS
from nqbench.workloads.counting.plans import kernel_plan
from nqbench.workloads.counting.systems import SYSTEMS, is_cpu
from tests.workloads.counting import oracle
from tests.workloads.counting.combinations import label, pairwise_cover
from tests.workloads.running import GPU, run

KERNEL_SYSTEMS = [system for system in SYSTEMS if not is_cpu(system)]
SIZES = range(5, 11)

FEW_STEPS: FactorLevels = {"steps": 4}
"""Of `loop: unrolled`: four instead of fifteen take a third of the time to translate."""


def count(device: Device, given: FactorLevels, system: str | None = None) -> int:
    answer = run(WORKLOAD, device, given, system).answer
    assert answer is not None
    return answer


def full(values: Iterable[tuple[Any, ...]], always: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Cases, of which all but some are for the full tests."""
    kept = [*always]
    return [v if v in kept else pytest.param(*v, marks=pytest.mark.full) for v in values]


@pytest.mark.parametrize(
    ("system", "n"),
    full(product(KERNEL_SYSTEMS, SIZES), zip(KERNEL_SYSTEMS, cycle(SIZES), strict=False)),
)
def test_systems(simulator: Device, system: str, n: int) -> None:
    assert count(simulator, {"n": n}, system) == SOLUTIONS[n]


@pytest.mark.parametrize(
    ("n", "seed", "kernels"),
    full(
        [(n, seed, slice(i, i + 7)) for n, seed in ((8, 1), (9, 2)) for i in range(0, 63, 7)],
        [(8, 1, slice(i, i + 7)) for i in range(0, 28, 7)],
    ),
)
def test_pairwise_cover(simulator: Device, n: int, seed: int, kernels: slice) -> None:
    """The first 28 of about 60 kernels have nine tenths of all pairs."""
    for given in pairwise_cover(n, GPU, seed)[kernels]:
        fewer = FEW_STEPS if given["loop"] == "unrolled" else {}
        assert count(simulator, {**given, **fewer}) == SOLUTIONS[n], label(given)


@pytest.mark.parametrize(
    ("loop", "n", "deep"),
    full(
        product(FRONTIER_LOOPS, range(5, 13), (False, True)),
        product(FRONTIER_LOOPS, [9], [True]),  # shallow: test_one_eighth_is_walked_once
    ),
)
def test_loops_written_for_speed(simulator: Device, loop: str, n: int, deep: bool) -> None:
    """Shallow jobs, whose ties fall into the search, and deep ones, which know them already."""
    alone = "warp_pool" if loop == "unrolled" else "one_per_thread"
    given: dict[str, Level] = {"n": n, "loop": loop, "storage": "vector", "symmetry": "full"}
    given["depth"] = min(n - 3, 5 if n < 12 else 4) if deep else 2
    given["assignment"] = alone if deep else "global_pool"
    assert count(simulator, given) == SOLUTIONS[n]


@pytest.mark.parametrize(
    ("n", "depth", "encoding"), [(5, 2, "packed"), (10, 6, "masks"), (12, 4, "packed")]
)
def test_jobs_made_on_the_gpu(simulator: Device, n: int, depth: int, encoding: Encoding) -> None:
    """The same jobs as on the CPU, in an order of their own, before the first launch."""
    system = "frontier.predicated" if encoding == "masks" else "frontier.unrolled"
    given: dict[str, Level] = {"n": n, "depth": depth, "jobs_made": "gpu", "block_size": 64}
    given |= FEW_STEPS if encoding == "packed" else {}
    factors = WORKLOAD.resolve(given, system, simulator.facts).factors
    plan = WORKLOAD.plan(factors, system, simulator.facts)
    assert isinstance(plan, KernelPlan)
    jobs, *others = plan.buffers
    assert jobs.data is None
    with simulator.prepare(
        replace(plan, buffers=(replace(jobs, output=True), *others))
    ) as prepared:
        made = prepared.fetch()["jobs"].reshape(-1, words_per_job(encoding, depth))
        expected = border.jobs(n, depth, closed=encoding == "packed").reshape(-1, 3)
        if encoding == "masks":
            assert sorted(made.tolist()) == sorted(expected.tolist())
        else:  # the columns without a queen are the top bits of the first word, or return later
            columns = ~(made[:, 0] | made[:, 3]) >> np.uint32(32 - n)
            assert sorted(columns) == sorted(expected[:, 0] & (1 << n) - 1)
        launches = [prepared.launch() for _ in range(2)]
        assert launches[0].counters == launches[1].counters
        assert WORKLOAD.answer(plan, prepared.fetch()) == SOLUTIONS[n]


@pytest.mark.parametrize(("made", "rows"), [("cpu", 4), ("gpu", 3), ("gpu", 6)])
def test_some_jobs_of_fewer_rows(simulator: Device, made: str, rows: int) -> None:
    """A launch counts what is below them, wherever their own jobs are made."""
    n, depth = 11, 6
    some = border.jobs(n, rows)[: 3 * 70]  # with a first queen near the middle
    given: dict[str, Level] = {"n": n, "depth": depth, "jobs_made": made, "block_size": 64}
    plan = kernel_plan(given, "frontier.lookahead", simulator.facts, some)
    with simulator.prepare(plan) as prepared:
        prepared.launch()
        weights = int(prepared.fetch()["results"].sum())
    assert weights == weights_of_jobs(n, rows, some, 0, 70) > 0


@pytest.mark.parametrize("loop", FRONTIER_LOOPS)
def test_one_eighth_is_walked_once(simulator: Device, loop: str) -> None:
    """Passes of the loop are the queens that the rule allows below the jobs' own rows."""
    given: dict[str, Level] = {"n": 9, "depth": 2, "loop": loop, "symmetry": "full"}
    given |= {"assignment": "global_pool", "storage": "vector"}
    given |= FEW_STEPS if loop == "unrolled" else {}
    passes = run(WORKLOAD, simulator, given | {"probe": "iterations"})
    found = WORKLOAD.counters(passes.plan, passes.outputs)["iterations_total"]
    queens = sum(len(oracle.eighth(9, rows)) for rows in range(3, 10))
    if loop in ("lookahead", "unrolled"):
        assert found < queens
    elif loop == "registers":
        assert found > 1.5 * queens  # leaving a row takes a pass
    else:
        # A last row may hold a queen too far from a corner, which only her weight rules out.
        assert queens <= found < 1.01 * queens


def random_jobs(n: int, depth: int, count: int) -> NDArray[np.uint32]:
    """Placements of ``depth`` rows by chance, as jobs of one eighth of the tree."""
    draw = random.Random(n)
    words: list[int] = []
    while len(words) < 3 * count:
        distance = draw.randrange(n // 3, (n + 1) // 2 - 1)
        columns, left, right, tied = 1 << distance, 2 << distance, 1 << distance >> 1, 0
        for row in range(1, depth):
            free = allowed(n, distance, row) & ~(columns | left | right)
            choices = [1 << column for column in range(n) if free >> column & 1]
            if not choices:
                break
            queen = draw.choice(choices)
            tied += bool(tying(n, distance, row) & queen)
            columns, left, right = columns | queen, (left | queen) << 1, (right | queen) >> 1
        else:
            words += [columns | tied << border.SHIFT]
            words += [left & (1 << n) - 1 | distance << border.SHIFT, right]
    return np.array(words, np.uint32)


def widest(n: int, loop: str) -> tuple[int, int, FactorLevels]:
    """From 26 columns on, no word has room for the row's number."""
    return n, n - 13, {"rows": "n", "symmetry": "full", "loop": loop}


def ahead(n: int, depth: int, rows: int, **more: Level) -> tuple[int, int, FactorLevels]:
    """The least depth at which a word holds the diagonals of so many rows ahead."""
    return n, depth, {"lookahead": rows, **more}


@pytest.mark.parametrize(
    ("n", "depth", "given"),
    [
        *full(
            starmap(widest, product((25, 26, 27), ("irrc", "siblings", "predicated", "lookahead"))),
            [widest(25, "lookahead"), widest(26, "siblings"), widest(27, "predicated")],
        ),
        ahead(17, 5, 2, encoding="masks", steps=4),
        ahead(20, 8, 3, encoding="packed", steps=12),
        ahead(23, 13, 2, encoding="packed", steps=3),
        ahead(24, 13, 1, encoding="packed", steps=2),
    ],
)
def test_some_subtrees(simulator: Device, n: int, depth: int, given: FactorLevels) -> None:
    """The same weights as on the CPU."""
    system = None if "loop" in given else "frontier.unrolled"
    some = random_jobs(n, depth, 64 if n - depth < 14 else 2)
    levels = {**given, "n": n, "depth": depth, "block_size": 64}
    plan = kernel_plan(levels, system, simulator.facts, some)
    with simulator.prepare(plan) as prepared:
        prepared.launch()
        weights = int(prepared.fetch()["results"].sum())
    assert weights == weights_of_jobs(n, depth, some, 0, some.size // 3) > 0


@pytest.mark.parametrize(
    "given",
    [
        {"assignment": "block_pool", "pool_size": 1},
        {"assignment": "block_pool", "pool_size": 7},
        {"assignment": "block_pool", "pool_size": 10_000},
        {"assignment": "contiguous", "jobs_per_thread": 3},
        {"assignment": "contiguous", "blocks": 50},
        {"assignment": "strided", "jobs_per_thread": 10_000},
        {"assignment": "strided", "blocks": 50},
        {"assignment": "global_pool", "blocks": 1},
        {"assignment": "global_pool", "blocks": 50},
    ],
    ids=label,
)
def test_shares_that_leave_threads_idle_or_overloaded(
    simulator: Device, given: FactorLevels
) -> None:
    """129 jobs on grids far too small and far too large for them."""
    shape: dict[str, Level] = {"n": 9, "depth": 3, "block_size": 40, "loop": "irrc"}
    assert count(simulator, {**shape, **given}) == SOLUTIONS[9]
