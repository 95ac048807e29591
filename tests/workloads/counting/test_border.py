"""One eighth of the tree stands for all of it: against orbits, placements and known counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nqbench.workloads.counting import border
from nqbench.workloads.counting.border_rule import allowed, tying
from nqbench.workloads.counting.border_search import weights_of_jobs
from nqbench.workloads.counting.jobs import CLOSED_JOBS
from nqbench.workloads.counting.known import EIGHTH_NODES, SOLUTIONS
from tests.workloads.counting import oracle


@pytest.mark.parametrize("n", range(4, 10))
def test_the_weights_of_an_orbit_are_its_size(n: int) -> None:
    left = set(oracle.placements(n, n))
    while left:
        orbit = oracle.images(left.pop())
        left -= orbit
        assert sum(map(oracle.weight, orbit)) == len(orbit)


@pytest.mark.parametrize("n", range(4, 9))
def test_rows_and_ties_against_the_solutions(n: int) -> None:
    """The rule's masks keep the solutions of positive weight, and no other with that first queen;
    ties count the border queens that share the largest distance."""
    for board in oracle.placements(n, n):
        first = board[0]
        if not 1 <= first <= (n - 1) // 2:
            continue
        kept = all(allowed(n, first, row) >> board[row] & 1 for row in range(1, n))
        assert kept == (oracle.weight(board) > 0)
        if kept:
            ties = sum(tying(n, first, row) >> board[row] & 1 for row in range(1, n))
            assert ties == oracle.distances(board).count(first) - 1


@pytest.mark.parametrize("n", range(5, 10))
def test_jobs_are_the_placements_of_the_rule_in_order(n: int) -> None:
    for depth in range(2, n - 1):
        words = []
        for prefix in sorted(oracle.eighth(n, depth), key=lambda p: -p[0]):
            largest = prefix[0]
            sides = [min(r, n - 1 - r) for r, c in enumerate(prefix) if r and c in (0, n - 1)]
            columns, left, right = oracle.attacked(n, prefix)
            columns |= sides.count(largest) << border.SHIFT
            words += [columns, left & 2**n - 1 | largest << border.SHIFT, right]
        assert border.jobs(n, depth).tolist() == words


@pytest.mark.parametrize(("n", "depth"), [(13, 6), (16, 5)])
def test_jobs_may_be_made_in_steps(n: int, depth: int) -> None:
    whole = border.jobs(n, depth)
    for row in range(2, depth):
        above = border.jobs(n, row)
        assert np.array_equal(border.jobs(n, depth, above=above), whole)
        assert border.count_jobs(n, depth, above=above) == whole.size // 3


@pytest.mark.parametrize("n", range(4, 13))
def test_every_split_gives_the_same_sum(n: int) -> None:
    for depth in range(2, n - 1):
        jobs = border.jobs(n, depth)
        count = jobs.size // 3
        edges = [0, count // 3, count // 2, count]
        parts = [weights_of_jobs(n, depth, jobs, *span) for span in pairwise(edges)]
        assert border.total(sum(parts)) == SOLUTIONS[n]
        for limit in (2, count - 1, count):
            assert border.count_jobs(n, depth, limit) == min(limit + 1, count)


def test_known_numbers() -> None:
    for n in range(5, 11):
        rows = [len(oracle.eighth(n, depth)) for depth in range(2, n + 1)]
        assert (n - 1) // 2 + sum(rows) == EIGHTH_NODES[n]
    assert (border.total(3 * 46), border.total(3 * 46 + 1)) == (92, -1)
    for (n, depth), jobs in CLOSED_JOBS.items():
        assert border.count_jobs(n, depth, closed=True) == jobs


@pytest.mark.parametrize("n", [7, 8, 11, 16])
def test_few_starts_are_the_jobs(n: int) -> None:
    for rows in range(1, 5):
        np.testing.assert_array_equal(border.few_starts(n, rows), border.jobs(n, rows))
