"""`nqbench boards`: the same set on every device, right or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nqbench.cli.app import app
from nqbench.errors import NqbenchError, StudyError
from nqbench.plan import Outputs
from nqbench.simulator.launching import SimPrepared
from nqbench.solve import boards
from nqbench.solve.boards import find_boards
from nqbench.workloads.fitness.board_set import read_board_set
from tests.workloads.fitness import brute_force


@pytest.mark.parametrize(("n", "count"), [(40, 3), (100, 20)])
def test_the_set_does_not_depend_on_the_device(n: int, count: int) -> None:
    host, simulated = (find_boards(n, count, 9, spec) for spec in ("cpu", "sim:mini"))
    assert np.array_equal(host.boards, simulated.boards)
    assert np.array_equal(host.chains, simulated.chains)
    assert np.array_equal(host.evaluations, simulated.evaluations)
    assert len({board.tobytes() for board in host.boards}) == count
    assert all(brute_force(board) == 0 for board in host.boards)
    assert (host.system, simulated.system) == ("fitness.sa_delta", "fitness.sa_chains")


@pytest.mark.parametrize(("n", "solutions"), [(4, 2), (5, 10), (6, 4), (7, 40), (8, 92)])
def test_all_boards_of_a_small_size(n: int, solutions: int) -> None:
    found = find_boards(n, solutions, 1, "cpu")
    assert len(found) == solutions
    assert found.searches >= solutions
    with pytest.raises(StudyError, match=f"more than the {solutions} boards of {n} queens"):
        find_boards(n, solutions + 1, 1, "cpu")


def test_seeds_give_other_boards() -> None:
    first, second = (find_boards(200, 2, seed, "cpu") for seed in (1, 2))
    assert not np.array_equal(first.boards, second.boards)


def test_chance_that_does_not_suffice_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "SPARE_SEARCHES", 0)
    monkeypatch.setattr(boards, "SEARCHES_PER_BOARD", 1)
    with pytest.raises(NqbenchError, match="different boards of 8 queens in 92 searches"):
        find_boards(8, 92, 1, "cpu")


def test_a_device_that_claims_too_much_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SimPrepared.fetch

    def boasting(self: SimPrepared) -> Outputs:
        outputs = honest(self)
        outputs["boards"][:2] = outputs["boards"][1::-1]
        return outputs

    monkeypatch.setattr(SimPrepared, "fetch", boasting)
    with pytest.raises(NqbenchError, match=r"board 0 has \d+ conflicts; do not trust this device"):
        find_boards(30, 2, 1, "sim")


def call(*words: str) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(app, ["boards", *words])
    return result.exit_code, result.output, result.exception


def test_the_command_writes_and_keeps(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    code, output, _ = call("50", "--count", "4", "--device", "cpu", "--out", str(path))
    assert code == 0
    assert str(path) in output
    assert len(read_board_set(path)) == 4
    before = path.read_bytes()
    _, _, error = call("50", "--count", "5", "--device", "cpu", "--out", str(path))
    assert isinstance(error, StudyError)
    assert "--force" in str(error)
    assert path.read_bytes() == before
    assert call("50", "-c", "5", "-d", "cpu", "-o", str(path), "--force")[0] == 0
    assert len(read_board_set(path)) == 5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["3"], "N must be from 4"),
        (["100000000"], "N must be from 4 to 10000000"),
        (["8", "--count", "0"], "--count must be from 1"),
        (["8", "--count", "93"], "the 92 boards of 8 queens there are"),
        (["8", "--seed", "-1"], "--seed must be from 0"),
        (["8", "--device", "fake"], "computes nothing"),
        (["10000000", "--count", "1000000"], "bytes of memory"),
        (["8", "--out", "set.txt"], "name it set.txt.npz"),
        (["8", "--out", "nowhere/set.npz"], "there is no folder nowhere"),
        (["8", "--out", "/proc/set.npz"], "/proc/set.npz cannot be written"),
    ],
)
def test_what_cannot_be_is_a_sentence(words: list[str], sentence: str) -> None:
    if "--out" not in words:
        words = [*words, "--out", "set.npz"]
    if "--device" not in words:
        words = [*words, "--device", "cpu"]
    _, _, error = call(*words)
    assert isinstance(error, StudyError)
    assert sentence in str(error)
    assert "\n" not in str(error)
