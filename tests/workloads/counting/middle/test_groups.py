"""Groups, weights and quarter lists against the definition."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from nqbench.workloads.counting.known import SOLUTIONS
from nqbench.workloads.counting.middle import groups
from tests.workloads.counting import oracle


@pytest.mark.parametrize("symmetry", groups.SYMMETRIES)
@pytest.mark.parametrize("n", range(4, 10))
def test_every_symmetry_gives_the_known_counts(n: int, symmetry: groups.Symmetry) -> None:
    found = oracle.from_the_middle(n, symmetry == "middle")
    every = groups.groups(n, symmetry).tolist()
    assert sum(weight * found[upper, m] for upper, _, m, weight in every) == SOLUTIONS[n]


@pytest.mark.parametrize(("n", "whole"), [(10, 252), (16, 12870), (11, 2772), (13, 12012)])
def test_weights_stand_for_all_groups(n: int, whole: int) -> None:
    shares: dict[groups.Symmetry, int] = {"mirror": 2, "quarter": 4}
    for symmetry, share in shares.items():
        found = groups.groups(n, symmetry)
        assert found[:, 3].sum() == whole
        assert whole / share <= len(found) < whole / share * 1.15
        assert not np.any(found[:, 0] & found[:, 1])


@pytest.mark.parametrize(("n", "rows"), [(6, 2), (7, 3), (8, 4)])
def test_quarter_lists_hold_every_placement_of_every_set(n: int, rows: int) -> None:
    lists = groups.quarter_lists(n, rows)
    for columns in combinations(range(n), rows):
        word = sum(1 << c for c in columns)
        k = int(np.searchsorted(groups.subsets(n, rows), word))
        span = slice(lists.starts[k], lists.starts[k + 1])
        found = zip(*(getattr(lists, name)[span] for name in WORDS), strict=True)
        assert sorted(tuple(map(int, words)) for words in found) == sorted(
            _words(order, n)
            for order in permutations(columns)
            if all(abs(order[r] - order[s]) != s - r for r, s in combinations(range(rows), 2))
        )


WORDS = ("rising", "falling", "crossed")


def _words(board: tuple[int, ...], n: int) -> tuple[int, ...]:
    rows = len(board)
    crossed = [r for r, c in enumerate(board) if c in ((n - 1) // 2, n // 2)]
    return (
        sum(1 << c + rows - 1 - r for r, c in enumerate(board)),
        sum(1 << c + r for r, c in enumerate(board)),
        min(crossed, default=groups.NO_ROW),
    )
