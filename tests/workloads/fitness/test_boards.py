"""Boards: made, judged and read; brute force over all pairs is the truth."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from nqbench.errors import InfeasibleError
from nqbench.workloads.fitness.boards import (
    boards_of,
    checked,
    combined,
    conflicts,
    expected,
    random_board,
    read_board,
    valid_board,
)
from tests.workloads.fitness import brute_force


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 17, 60, 301, 2000])
def test_conflicts_are_pairs_on_a_diagonal(n: int) -> None:
    for seed in range(3):
        board = random_board(n, seed)
        assert np.array_equal(np.sort(board), np.arange(n))
        assert conflicts(board) == brute_force(board)
        if n < 100:
            rows = board.tolist()
            pairs = ((i, j) for i in range(n) for j in range(i + 1, n))
            assert conflicts(board) == sum(abs(rows[i] - rows[j]) == j - i for i, j in pairs)
    for size in (n, 100_000):  # over 32 bits
        assert conflicts(np.arange(size, dtype=np.int32)) == size * (size - 1) // 2


def test_valid_boards_of_all_sizes() -> None:
    for n in (1, *range(4, 700), 1000, 1001, 2000, 99_998, 100_000):  # all residues modulo 12
        board = valid_board(n)
        assert board.dtype == np.int32
        assert np.array_equal(np.sort(board), np.arange(n)), n
        assert conflicts(board) == 0, n
    assert brute_force(valid_board(200)) == 0
    for n in (2, 3):
        with pytest.raises(InfeasibleError, match=f"valid does not exist at n: {n}"):
            valid_board(n)


def test_random_boards_have_the_expected_conflicts() -> None:
    n, count = 300, 400
    mean = np.mean([conflicts(random_board(n, seed)) for seed in range(count)])
    assert mean == pytest.approx((2 * n - 1) / 3, rel=0.02)  # 1.4% is 4 standard errors


def test_boards_are_reproducible() -> None:
    assert np.array_equal(random_board(50, 3), random_board(50, 3))
    assert not np.array_equal(random_board(50, 3), random_board(50, 4))
    batch = boards_of({"board": "random", "n": 50, "seed": 3, "batch": 4})
    assert np.array_equal(batch[2], random_board(50, 5))


def test_answers_of_a_batch() -> None:
    each = [brute_force(random_board(30, seed)) for seed in (7, 8, 9)]
    assert (
        expected({"board": "random", "n": 30, "seed": 7, "batch": 3})
        == each[0] + 2 * each[1] + 3 * each[2]
    )
    assert combined([5]) == 5
    assert combined([1, 2]) != combined([2, 1])
    assert expected({"board": "valid", "n": 30, "seed": "-", "batch": 3}) == 0


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0, 1, 1], "permutation of 0 to 2: row 1 is outside, or holds several"),
        ([0, 3, 1], "row 3 is outside"),
        ([1, 2, 3], "rows count from 0"),
        ([-1, 0, 1], "row -1 is outside"),
        ([0.0, 1.0], "not one list of whole numbers"),
        ([[0, 1], [1, 0]], "of shape 2x2"),
    ],
)
def test_what_is_no_board(values: object, sentence: str) -> None:
    with pytest.raises(InfeasibleError, match=r"^it (holds|has|is)") as caught:
        checked(np.array(values), "it")
    assert sentence in str(caught.value)
    with pytest.raises(InfeasibleError, match="has 3 queens, but n is 4"):
        checked(np.arange(3), "it", 4)


@pytest.mark.parametrize("form", ["npy", "npz", "txt", "csv"])
def test_boards_of_files(tmp_path: Path, form: str) -> None:
    board, path = random_board(40, 6), tmp_path / f"board.{form}"
    if form == "npy":
        np.save(path, board)
    elif form == "npz":
        np.savez(path, n=np.int64(40), boards=np.stack([board, board[::-1]]))
    else:
        path.write_text(("," if form == "csv" else "\n").join(map(str, board)))
    assert np.array_equal(read_board(path, 40), board)


PICKLED = io.BytesIO()
np.save(PICKLED, np.array([{}, []], dtype=object), allow_pickle=True)
FILES: list[tuple[str, bytes | None, str]] = [
    ("missing.npy", None, "cannot be read"),
    ("empty.npy", b"", "cannot be read"),
    ("damaged.npy", b"\x93NUMPY\x01\x00garbage", "cannot be read"),
    ("unclosed.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr'\xc2 '<i4'\xa4(", "cannot be read"),
    ("objects.npy", PICKLED.getvalue(), "cannot be read"),  # they are not unpickled
    ("damaged.npz", b"PK\x03\x04garbage", "cannot be read"),
    ("words.txt", b"0 2\n1, three", "literal for int() with base 10: 'three'"),
    ("binary.txt", b"\xff\xfe\x00", "cannot be read"),
    ("empty.txt", b"", "has 0 queens, but n is 3"),
    ("huge.txt", b"0 99999999999999999999999999", "cannot be read"),
    ("twice.txt", b"0 0 1", "row 0 is outside, or holds several"),
]


@pytest.mark.parametrize(("name", "content", "said"), FILES, ids=[file[0] for file in FILES])
def test_files_that_hold_no_board(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InfeasibleError, match=name) as caught:
        read_board(path, 3)
    assert said in str(caught.value)
    assert caught.value.factor in ("board_file", "n")
    assert "\n" not in str(caught.value)
