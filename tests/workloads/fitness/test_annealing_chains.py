"""Many searches on a GPU: every chain is a walk of the CPU, and who wins is certain."""

from __future__ import annotations

import numpy as np
import pytest

from nqbench.devices.cpu import CpuDevice
from nqbench.devices.simulator import SimDevice
from nqbench.point import Level
from nqbench.simulator.models import load_model
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.annealing import chains as chains_module
from nqbench.workloads.fitness.annealing.cooling import (
    Cooling,
    chain_key,
)
from nqbench.workloads.fitness.annealing.walks import Walk, walk
from tests.workloads.fitness.running import ATTACKED, COOLING, SIM, same, search


@pytest.mark.parametrize("proposal", ["uniform", "attacked"])
@pytest.mark.parametrize("counters", ["shared", "global"])
@pytest.mark.parametrize("n", [4, 33, 300])
def test_every_chain_of_a_gpu_is_a_walk_of_the_processor(
    n: int, counters: str, proposal: str
) -> None:
    chains = 3
    _, outputs, told = search(
        *(SIM, "fitness.sa_chains"), n=n, chains=chains, counters=counters, proposal=proposal,
        stop="all", block_size=64, seed=5,
    )  # fmt: skip
    boards = outputs["boards"].reshape(chains, n)
    walks = [
        walk(n, chain_key(5, chain), ATTACKED if proposal == "attacked" else COOLING)
        for chain in range(chains)
    ]
    for chain, expected in enumerate(walks):
        given = (int(outputs[name][chain]) for name in ("conflicts", "steps", "accepted"))
        assert same(Walk(boards[chain], *given), expected)
    assert told["boards_found"] == sum(w.conflicts == 0 for w in walks)
    assert told["evaluations"] == min(w.evaluations for w in walks if w.conflicts == 0)


@pytest.mark.parametrize(("counters", "proposal"), [("shared", "attacked"), ("global", "uniform")])
@pytest.mark.parametrize("word", chains_module.WORDS, ids=lambda word: str(word[1]))
def test_words_of_every_width_hold_a_chain(
    word: tuple[int, str, str], counters: str, proposal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Column minus row is negative below the main diagonal, however wide the unsigned word."""
    _, dtype, _ = word
    monkeypatch.setattr(chains_module, "WORDS", [word])
    _, outputs, _ = search(
        *(SIM, "fitness.sa_chains"), n=64, chains=2, counters=counters, proposal=proposal,
        stop="all",
    )  # fmt: skip
    assert outputs["boards"].dtype == dtype
    for chain, board in enumerate(outputs["boards"].reshape(2, 64)):
        expected = walk(64, chain_key(1, chain), ATTACKED if proposal == "attacked" else COOLING)
        assert np.array_equal(board, expected.board)
        assert outputs["steps"][chain] == expected.evaluations


def test_the_widest_words_on_a_board_that_needs_them() -> None:
    n = 65_536
    _, outputs, _ = search(
        *(SIM, "fitness.sa_chains"), n=n, chains=1, proposal="attacked", max_evaluations=2000,
    )  # fmt: skip
    assert outputs["boards"].dtype == np.uint32
    expected = walk(n, chain_key(1), Cooling.constant(200, 2000))
    assert np.array_equal(outputs["boards"], expected.board)
    assert outputs["accepted"][0] == expected.accepted


def test_who_wins_a_race_does_not_depend_on_the_order_of_warps() -> None:
    told = [
        search(
            *(SimDevice(order=order), "fitness.sa_chains"), n=64, chains=7, seed=2,
        )[2]
        for order in ("round_robin", "reverse", "greedy")
    ]  # fmt: skip
    walks = [walk(64, chain_key(2, chain), COOLING) for chain in range(7)]
    best = min((w.evaluations, w.accepted) for w in walks if w.conflicts == 0)
    assert [(t["evaluations"], t["accepted_moves"]) for t in told] == [best] * 3


def test_chains_that_are_cut_short_give_the_best_of_them() -> None:
    answer, _, told = search(SIM, "fitness.sa_chains", n=50, chains=5, max_evaluations=300)
    cooling = Cooling(0.5, 0.01, 0.8, 20, 300)
    left = [walk(50, chain_key(1, chain), cooling).conflicts for chain in range(5)]
    assert answer == min(left) > 0
    assert told["found"] == told["boards_found"] == 0


def test_more_moves_than_a_search_can_number_are_one_temperature() -> None:
    given: dict[str, Level] = {"moves_per_queen": 100_000, "max_evaluations": 40}
    chains = search(SIM, "fitness.sa_chains", n=50_000, chains=1, **given)
    assert chains[0] == search(CpuDevice(), "fitness.sa_delta", n=50_000, **given)[0] > 0


@pytest.mark.parametrize(
    ("n", "chains", "memory"),
    [(100, 4224, "shared"), (3000, 924, "shared"), (20_000, 132, "shared"), (10**6, 67, "global")],
)
def test_chains_fill_an_h100_as_far_as_their_boards_allow(n: int, chains: int, memory: str) -> None:
    facts = load_model("sm_90").facts
    levels = WORKLOAD.resolve({"n": n}, "fitness.sa_chains", facts).factors
    assert (levels["chains"], levels["counters"]) == (chains, memory)
    shared = WORKLOAD.resolve({"n": n}, "fitness.sa_chains", facts).derived["shared_bytes"]
    # 132 multiprocessors of 228 KiB, a block at a time with 1 KiB of its own.
    assert int(str(shared)) + 1024 <= 233_472 // (chains // 132 or 1)
