"""The host programs."""

from __future__ import annotations

import pytest

from nqbench.workloads.counting.cpu import count_multicore, count_somers
from nqbench.workloads.counting.known import SOLUTIONS


@pytest.mark.parametrize("n", range(1, 14))
def test_sequential_search(n: int) -> None:
    assert count_somers(n) == SOLUTIONS[n]


@pytest.mark.parametrize("n", range(1, 14))
def test_search_on_all_cores(n: int) -> None:
    assert count_multicore(n) == SOLUTIONS[n]


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_the_number_of_threads_does_not_matter(threads: int) -> None:
    assert count_multicore(11, threads) == SOLUTIONS[11]
