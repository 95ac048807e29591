"""The known answers and tree sizes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from nqbench.workloads.counting.known import NODES, SOLUTIONS, nodes
from tests.workloads.counting import oracle


@pytest.mark.parametrize("n", range(1, 10))
def test_answers_of_small_boards(n: int) -> None:
    assert SOLUTIONS[n] == oracle.solutions(n)


def test_answers_printed_in_the_papers() -> None:
    assert SOLUTIONS[8] == 92
    assert SOLUTIONS[26] == 22_317_699_616_364_044
    assert sorted(SOLUTIONS) == list(range(1, 28))


@pytest.mark.parametrize("n", range(1, 10))
def test_nodes_of_small_boards(n: int) -> None:
    assert NODES[n] == sum(len(oracle.placements(n, rows)) for rows in range(1, n + 1))


def test_nodes_grow_beyond_the_table() -> None:
    sizes = [nodes(n) for n in range(5, 28)]
    ratios = [b / a for a, b in pairwise(sizes)]
    assert all(2 < ratio < 13 for ratio in ratios)
    assert nodes(17) == NODES[17]
