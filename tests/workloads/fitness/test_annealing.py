"""Annealing: one walk for all evaluators and every chain, exact differences, boards that hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nqbench.devices.cpu import CpuDevice
from nqbench.devices.registry import SimDevice
from nqbench.plan import CpuPlan, Outputs
from nqbench.point import Level
from nqbench.simulator.models import load_model
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.annealing import points, walks
from nqbench.workloads.fitness.annealing.chains import NOTHING_FOUND
from nqbench.workloads.fitness.annealing.cooling import (
    GOLDEN,
    MAX_RISE,
    Cooling,
    chain_key,
    mix,
    shuffle_key,
)
from nqbench.workloads.fitness.annealing.walks import Walk, walk, walk_measured
from nqbench.workloads.fitness.boards import conflicts, is_board
from tests.workloads.fitness import brute_force
from tests.workloads.fitness.running import ATTACKED, COOLING, SIM, same, search

SA_CPU, SA_GPU = "fitness_schemes.sa_cpu", "fitness_schemes.sa_gpu"


def test_random_numbers_are_splitmix64() -> None:
    # The generator's published stream for the state 1234567.
    stream = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [mix(1234567 + t * GOLDEN) for t in (1, 2, 3)] == stream
    drawn = [int(walks.draw(np.uint64(1234567), np.uint64(t))) for t in (1, 2, 3)]
    assert drawn == stream
    assert len({chain_key(seed, chain) for seed in range(50) for chain in range(50)}) == 2500


def test_the_start_is_shuffled_evenly() -> None:
    n, starts = 5, 6000
    rows = np.array(
        [walks.shuffled(n, np.uint64(shuffle_key(chain_key(s)))) for s in range(starts)]
    )
    assert all(is_board(row) for row in rows[:50])
    seen = np.array([[np.count_nonzero(rows[:, i] == r) for r in range(n)] for i in range(n)])
    assert np.all(np.abs(seen - starts / n) < 5 * math.sqrt(starts * 0.2 * 0.8))


def test_chances_of_acceptance_are_metropolis() -> None:
    table = COOLING.table()
    assert table.shape == (len(COOLING.temperatures), MAX_RISE)
    assert COOLING.temperatures[0] == 0.5
    assert COOLING.temperatures[-1] >= 0.01 > COOLING.temperatures[-1] * 0.8
    assert table[0, 0] / 2**32 == pytest.approx(math.exp(-1 / 0.5), abs=1e-9)
    assert table[3, 1] / 2**32 == pytest.approx(math.exp(-2 / (0.5 * 0.8**3)), abs=1e-9)


@settings(max_examples=60)
@given(st.data(), st.integers(2, 40))
def test_the_difference_of_every_exchange_is_exact(data: st.DataObject, n: int) -> None:
    board = np.array(data.draw(st.permutations(range(n))), np.int32)
    i, j = data.draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(_differ))
    rising, falling, before = walks.diagonals_of(board)
    assert before == brute_force(board)
    change = walks.change_of(board, rising, falling, i, j)
    walks.exchange(board, rising, falling, i, j)
    assert before + change == brute_force(board)
    assert np.array_equal(walks.diagonals_of(board)[:2], [rising, falling])


def _differ(pair: tuple[int, int]) -> bool:
    return pair[0] != pair[1]


@settings(max_examples=25)
@given(st.integers(2, 24), st.integers(0, 10**6), st.integers(0, 400))
def test_full_evaluation_and_differences_walk_alike(n: int, seed: int, limit: int) -> None:
    cooling = Cooling(0.5, 0.01, 0.8, 20, limit)
    key = chain_key(seed)
    measured = walk_measured(n, key, cooling, brute_force)
    assert same(measured, walk(n, key, cooling))
    assert measured.conflicts == brute_force(measured.board)


@pytest.mark.parametrize("cooling", [COOLING, ATTACKED], ids=["paper", "attacked"])
def test_a_walk_depends_on_its_seed_alone_and_a_limit_cuts_it_short(cooling: Cooling) -> None:
    full, again, other = (walk(30, chain_key(seed), cooling) for seed in (3, 3, 2))
    assert same(full, again)
    assert not same(full, other)
    assert full.conflicts == 0
    exact, cut = (
        walk(30, chain_key(3), replace(cooling, max_evaluations=full.evaluations - less))
        for less in (0, 1)
    )
    assert same(exact, full)
    assert cut.evaluations == full.evaluations - 1
    assert cut.conflicts == conflicts(cut.board) > 0


@pytest.mark.parametrize("n", [4, 5, 8, 20, 100, 1000])
def test_the_papers_schedule_finds_boards_more_often_than_not(n: int) -> None:
    seeds = range(20 if n < 1000 else 5)
    walks = [walk(n, chain_key(seed), COOLING) for seed in seeds]
    assert all(w.conflicts == conflicts(w.board) for w in walks)
    assert all(is_board(w.board) for w in walks)
    assert sum(w.conflicts == 0 for w in walks) > len(walks) / 2


@pytest.mark.parametrize("n", [4, 6, 100, 3000])
def test_proposals_for_queens_in_conflict_always_find_a_board(n: int) -> None:
    for seed in range(20 if n <= 3000 else 1):
        found = walk(n, chain_key(seed), ATTACKED)
        assert found.conflicts == conflicts(found.board) == 0
        if n >= 100:
            assert found.evaluations < 30 * n  # the schedule of the paper takes 100 to 300


@pytest.mark.parametrize("n", [2, 3])
def test_a_board_that_has_no_solution_ends_with_what_remains(n: int) -> None:
    answer, outputs, told = search(CpuDevice(), "fitness.sa_delta", n=n)
    assert answer == conflicts(outputs["boards"][0]) > 0
    assert told["found"] == 0
    assert told["evaluations"] == COOLING.limit(n)


@pytest.mark.parametrize("kept", [1 << 20, 100], ids=["whole", "scaled"])
def test_the_compiled_search_is_the_same_walk(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cooling, key, values = Cooling(0.5, 0.01, 0.8, 20, 3000), chain_key(4), np.empty(kept, np.int64)
    ended, _ = walks.full_walk(200, key, cooling, values)
    assert same(ended, walk(200, key, cooling))
    # Without evaluating it goes the same way: one step less than values, the first is the start's.
    again, _ = walks.full_walk(200, key, cooling, values, kept)
    limit = min(kept - 1, ended.evaluations)
    cut = walk(200, key, replace(cooling, max_evaluations=limit))
    assert (again.conflicts, again.accepted, again.evaluations) == (
        *(cut.conflicts, cut.accepted, limit),
    )
    monkeypatch.setattr(walks, "KEPT", kept)
    phases_of = walks.anneal_full(200, key, cooling).phases
    assert callable(phases_of)
    phases = phases_of()
    assert 0 < phases["other"] <= phases["total"]
    assert phases["evaluation"] + phases["other"] == pytest.approx(phases["total"])


@pytest.mark.parametrize(
    ("device", "system", "n", "limit"), [(CpuDevice(), SA_CPU, 40, 0), (SIM, SA_GPU, 10, 150)]
)
def test_every_evaluator_walks_the_same_way(device: Any, system: str, n: int, limit: int) -> None:
    answer, outputs, findings = search(device, system, n=n, seed=7, max_evaluations=limit)
    expected = walk(n, chain_key(7), replace(COOLING, max_evaluations=limit))
    assert answer == expected.conflicts
    assert findings["found"] == findings["boards_found"] == (answer == 0)
    assert findings["evaluations"] == expected.evaluations
    assert findings["accepted_moves"] == expected.accepted
    assert np.array_equal(outputs["boards"].reshape(-1), expected.board)


def test_resolved_levels_are_resolved_to_themselves() -> None:
    given: dict[str, Level] = {"n": 20, "proposal": "attacked"}
    attacked = WORKLOAD.resolve(given, "fitness.sa_delta", SIM.facts)
    assert WORKLOAD.resolve(attacked.factors, "fitness.sa_delta", SIM.facts) == attacked
    full = WORKLOAD.resolve({"n": 20, "block_size": "auto"}, SA_GPU, SIM.facts)
    assert full.factors["block_size"] == 512
    assert WORKLOAD.resolve(full.factors, SA_GPU, SIM.facts) == full


BOARD, LOST = walk(12, chain_key(1), COOLING).board, np.arange(12, dtype=np.int32)
NONE, BEST = NOTHING_FOUND, 7 << 32 | 1


@pytest.mark.parametrize(
    ("boards", "best", "right"),
    [
        ([BOARD], None, True),
        ([BOARD[[1, 0, *range(2, 12)]]], None, False),  # has conflicts
        ([BOARD[[1, 1, *range(2, 12)]]], None, False),  # has a row twice
        *(([LOST, BOARD, BOARD], told, told == BEST) for told in (BEST, 9 << 32 | 2, NONE)),
        ([LOST, BOARD, BOARD], 7 << 32 | 5, False),  # there is no chain 5
    ],
)
def test_a_false_claim_is_a_wrong_answer(
    boards: list[NDArray[np.int32]], best: int | None, right: bool
) -> None:
    """Boards that their chains claim to be valid but for the one that is lost, and who won."""
    claims = [conflicts(LOST) if board is LOST else 0 for board in boards]
    outputs: Outputs = {
        "boards": np.stack(boards),
        "conflicts": np.array(claims, np.uint64),
        "steps": np.array([5, 7, 9][: len(boards)], np.uint32),
        "accepted": np.ones(len(boards), np.uint32),
    }
    if best is not None:
        outputs["best"] = np.array([best], np.uint64)
    plan = CpuPlan("else", "somewhere:else", (), about={"task": "anneal"})
    assert WORKLOAD.answer(plan, outputs) == (0 if right else points.FALSE_CLAIM)
    assert WORKLOAD.findings(plan, outputs)["boards_found"] == claims.count(0)  # whoever is named


@pytest.mark.parametrize("proposal", ["uniform", "attacked"])
@pytest.mark.parametrize("counters", ["shared", "global"])
@pytest.mark.parametrize("n", [4, 33, 300])
def test_every_chain_of_a_gpu_is_a_walk_of_the_cpu(n: int, counters: str, proposal: str) -> None:
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
