"""The known answers and tree sizes, and the CPU programs that find them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from nqbench.workloads.counting import cpu
from nqbench.workloads.counting.known import NODES, SOLUTIONS, nodes
from tests.workloads.counting import oracle


@pytest.mark.parametrize("n", range(1, 10))
def test_answers_and_nodes_of_small_boards(n: int) -> None:
    assert SOLUTIONS[n] == oracle.solutions(n)
    assert NODES[n] == sum(len(oracle.placements(n, rows)) for rows in range(1, n + 1))


def test_nodes_grow_beyond_the_table() -> None:
    assert sorted(SOLUTIONS) == list(range(1, 28))
    sizes = [nodes(n) for n in range(5, 28)]
    ratios = [b / a for a, b in pairwise(sizes)]
    assert all(2 < ratio < 13 for ratio in ratios)
    assert nodes(17) == NODES[17]


@pytest.mark.parametrize("n", range(1, 15))
@pytest.mark.parametrize(
    "count",
    [
        *(cpu.count_somers, cpu.count_multicore, cpu.count_frontier, cpu.count_frontier_multicore),
        *(cpu.count_middle, cpu.count_middle_multicore),
    ],
)
def test_cpu_programs(count: Callable[[int], int], n: int) -> None:
    assert count(n) == SOLUTIONS[n]
