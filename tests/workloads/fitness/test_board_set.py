"""Sets of boards in files: what is written is read again, and what is damaged is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nqbench.errors import InterchangeError
from nqbench.solve.boards import find_boards
from nqbench.workloads.fitness.board_set import BoardSet, fault_of, read_board_set, write_board_set
from nqbench.workloads.fitness.boards import conflicts, random_board, read_board, valid_board

FOUND = find_boards(12, 5, 3, "cpu")


def arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "boards.npz"
    write_board_set(target, FOUND)
    return target


def test_what_is_written_is_read_again(path: Path) -> None:
    again = read_board_set(path)
    for name in ("boards", "chains", "evaluations"):
        assert np.array_equal(getattr(again, name), getattr(FOUND, name))
    assert again.provenance() == FOUND.provenance()
    assert (again.n, len(again), again.boards.dtype) == (12, 5, np.dtype("uint8"))
    assert [p.name for p in path.parent.iterdir()] == ["boards.npz"]  # no part file is left


def test_a_study_takes_the_first_board(path: Path) -> None:
    board = read_board(path, 12)
    assert np.array_equal(board, FOUND.boards[0])
    assert conflicts(board) == 0


def test_faults_are_found() -> None:
    good = valid_board(10)
    assert fault_of(np.stack([good, good[::-1]])) == ""
    assert fault_of(np.stack([good, good])) == "boards 0 and 1 are identical"
    other = random_board(10, 1)
    assert fault_of(np.stack([good, other])) == f"board 1 has {conflicts(other)} conflicts"
    other[3] = other[4]
    assert fault_of(other[np.newaxis]) == "board 0 is not a permutation of 0 to 9"


Arrays = dict[str, Any]


def with_seed(arrays: Arrays, seed: object) -> Arrays:
    provenance = json.loads(str(arrays["provenance"])) | {"seed": seed}
    return arrays | {"provenance": np.array(json.dumps(provenance))}


def without(arrays: Arrays, name: str) -> Arrays:
    return {key: array for key, array in arrays.items() if key != name}


def with_board(arrays: Arrays, board: Any) -> Arrays:
    return arrays | {"boards": np.stack([*arrays["boards"][:2], board, *arrays["boards"][3:]])}


CHANGES: dict[str, tuple[Callable[[Arrays], Arrays], str]] = {
    "rows exchanged": (
        lambda a: with_board(a, np.r_[a["boards"][2][[1, 0]], a["boards"][2][2:]]),
        r"board 2 has \d+ conflicts",
    ),
    "a board twice": (lambda a: with_board(a, a["boards"][1]), "boards 1 and 2 are identical"),
    "no boards": (lambda a: without(a, "boards"), "array 'boards' is missing"),
    "fractions": (lambda a: a | {"boards": a["boards"] + 0.5}, "array 'boards' is float64"),
    "a chain less": (lambda a: a | {"chains": a["chains"][1:]}, "4 chains"),
    "no provenance": (
        lambda a: without(a, "provenance"),
        "does not say that it is a set of boards",
    ),
    "broken provenance": (
        lambda a: a | {"provenance": np.array("{")},
        "does not say that it is a set of boards",
    ),
    "a seed that is a word": (lambda a: with_seed(a, "one"), "no valid 'seed'"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_file_is_refused(path: Path, name: str) -> None:
    change, words = CHANGES[name]
    arrays = change(arrays_of(path))
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    with pytest.raises(InterchangeError, match=words):
        read_board_set(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    array, text = tmp_path / "array.npz", tmp_path / "text.npz"
    with array.open("wb") as file:
        np.save(file, np.arange(4))
    text.write_text("boards", encoding="utf-8")
    for other in (array, text, tmp_path / "absent.npz"):
        with pytest.raises(InterchangeError, match="cannot be read as a set of boards"):
            read_board_set(other)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255), st.booleans())
def test_damage_is_a_sentence_or_harmless(path: Path, at: float, flip: int, cut: bool) -> None:
    raw = bytearray(path.read_bytes())
    place = int(at * len(raw))
    raw[place] ^= flip
    damaged = path.with_name("damaged.npz")
    damaged.write_bytes(raw[:place] if cut else raw)
    try:
        again = read_board_set(damaged)
    except InterchangeError:
        return
    assert fault_of(again.boards) == ""


def test_a_failed_write_keeps_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    broken = BoardSet(
        FOUND.boards, FOUND.chains, FOUND.evaluations, 1, 1, object(), "", "", ""  # type: ignore[arg-type]
    )  # fmt: skip
    with pytest.raises(TypeError):
        write_board_set(path, broken)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["boards.npz"]
