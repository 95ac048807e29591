"""Numbers of moves and positions: exact where they should be, wrong where the paper says so."""

from __future__ import annotations

import pytest

from nqbench.workloads.local_search.factors import MAPPING_CODES as CODES
from nqbench.workloads.local_search.searches import (
    invalid_moves,
    is_valid,
    moves_of,
    positions,
    rank,
)


def every_pair(n: int) -> list[tuple[int, int]]:
    return [(x, y) for x in range(1, n - 1) for y in range(x + 1, n)]


@pytest.mark.parametrize("mapping", CODES)
@pytest.mark.parametrize("n", [4, 5, 6, 7, 20, 39, 40])
def test_bijection(n: int, mapping: str) -> None:
    code = CODES[mapping]
    pairs = [positions(k, n, code) for k in range(moves_of(n))]
    assert sorted(pairs) == every_pair(n)
    assert [rank(x, y, n, code) for x, y in pairs] == list(range(moves_of(n)))
    if mapping != "rectangle":
        assert pairs == every_pair(n)  # lexicographic


def test_rectangle_has_the_reversed_order_in_its_other_half() -> None:
    """n = 6: rows of 4, 3, 2, 1 moves become two rows of 5."""
    pairs = [positions(k, 6, CODES["rectangle"]) for k in range(10)]
    assert pairs[:4] == [(1, 2), (1, 3), (1, 4), (1, 5)]
    assert pairs[4] == (4, 5)
    assert pairs[5:8] == [(2, 3), (2, 4), (2, 5)]
    assert pairs[8:] == [(3, 5), (3, 4)]


@pytest.mark.parametrize("mapping", CODES)
def test_the_right_half_of_the_largest_numbers(mapping: str) -> None:
    n = 3000
    for k in (0, 1, n - 3, n - 2, moves_of(n) // 2, moves_of(n) - 2, moves_of(n) - 1):
        x, y = positions(k, n, CODES[mapping])
        assert is_valid(x, y, n)
        assert rank(x, y, n, CODES[mapping]) == k


INVALID = {
    "quadratic": {1000: 0, 4000: 0, 6000: 4197, 10_000: 24_310},
    "rearranged": {1000: 0, 4000: 0, 6000: 2190, 10_000: 9400},
    "rectangle": {1000: 0, 10_000: 0},
}


@pytest.mark.parametrize(
    ("mapping", "n", "invalid"),
    [(mapping, n, count) for mapping, counts in INVALID.items() for n, count in counts.items()],
)
def test_single_precision_fails_where_the_paper_did(mapping: str, n: int, invalid: int) -> None:
    """Counts found by array arithmetic, apart from this code."""
    assert invalid_moves(n, mapping) == invalid
