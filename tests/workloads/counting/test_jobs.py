"""The host split against the papers' numbers and against enumeration in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from nqbench.workloads.counting.jobs import ODD_RULES, Encoding, Symmetry, count_jobs, make_jobs
from tests.workloads.counting import oracle

ENCODINGS: tuple[Encoding, ...] = ("rows", "base_n", "masks")

# tanaka2011, Table 1; its 2720 at N = 19, m = 3 is a misprint of 2072.
TANAKA_TABLE_1 = {
    15: (882, 6990, 44714, 231519),
    16: (1118, 9844, 70906, 419408),
    17: (1393, 13510, 108466, 724001),
    18: (1710, 18132, 160850, 1199146),
    19: (2072, 23866, 232174, 1916187),
}


@pytest.mark.parametrize(("n", "row"), TANAKA_TABLE_1.items())
def test_job_counts_are_those_of_tanaka(n: int, row: tuple[int, ...]) -> None:
    assert tuple(count_jobs(n, m) for m in (3, 4, 5, 6)) == row


def test_counting_stops_at_its_limit() -> None:
    assert count_jobs(16, 6, "mirror", "restrict_second", 419408) == 419408
    assert count_jobs(16, 6, "mirror", "restrict_second", 419407) == 419408
    assert count_jobs(16, 6, "mirror", "restrict_second", 1000) == 1001


def rule_of(encoding: Encoding, symmetry: Symmetry) -> str:
    return "all" if symmetry == "none" else ODD_RULES[encoding]


@pytest.mark.parametrize("symmetry", ["none", "mirror"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("n", "depth"), [(5, 2), (6, 3), (7, 2), (7, 4), (8, 3), (9, 5)])
def test_jobs_are_the_placements_in_order(
    n: int, depth: int, encoding: Encoding, symmetry: Symmetry
) -> None:
    expected = oracle.jobs(n, depth, rule_of(encoding, symmetry))
    made = make_jobs(n, depth, encoding, symmetry)
    assert made.count == len(expected)
    if encoding == "rows":
        words = [1 << column for prefix in expected for column in prefix]
    elif encoding == "base_n":
        words = [sum(c * n ** (depth - 1 - i) for i, c in enumerate(p)) for p in expected]
    else:
        words = [mask for prefix in expected for mask in oracle.attacked(n, prefix)]
    assert made.words.tolist() == words


def test_a_wide_board_keeps_32_bits_of_its_diagonals() -> None:
    made = make_jobs(27, 4, "masks")
    assert made.words.dtype == np.uint32
    last = [int(word) for word in made.words[-3:]]
    assert last[0].bit_count() == 4
    assert last[1] < 2**31


def test_words_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        make_jobs(8, 2, "rows").words[0] = 1
