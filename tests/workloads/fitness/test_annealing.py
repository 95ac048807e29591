"""Annealing: one walk for all evaluators, exact differences, boards that hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nqbench.devices.cpu import CpuDevice
from nqbench.devices.models import load_model
from nqbench.devices.sim import SimDevice
from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.plan import HostPlan, Outputs
from nqbench.point import Level
from nqbench.workloads.fitness import (
    WORKLOAD,
    annealing,
    annealing_chains,
    annealing_full,
    annealing_walk,
)
from nqbench.workloads.fitness.annealing_cooling import (
    GOLDEN,
    MOST_RISE,
    Cooling,
    Walk,
    chain_key,
    mix,
    seed_key,
    shuffle_key,
    walk,
)
from nqbench.workloads.fitness.annealing_host import walk_measured
from nqbench.workloads.fitness.boards import brute_force, conflicts, is_board

PAPER = Cooling(0.5, 0.01, 0.8, 20)
ATTACKED = Cooling.constant(200)
SIM = SimDevice()


def same(first: Walk, second: Walk) -> bool:
    ends = [(w.conflicts, w.evaluations, w.accepted, w.board.tolist()) for w in (first, second)]
    return ends[0] == ends[1]


def run(device: Any, system: str, **given: Level) -> tuple[int, Outputs, Any]:
    resolved = WORKLOAD.resolve(given, system, device.facts)
    plan = WORKLOAD.plan(resolved.factors, system, device.facts)
    with device.prepare(plan) as prepared:
        prepared.launch()
        first = prepared.fetch()
        prepared.launch()
        outputs = prepared.fetch()
    for name, values in first.items():
        assert np.array_equal(values, outputs[name]), name
    answer = WORKLOAD.answer(plan, outputs)
    assert answer == WORKLOAD.expected(resolved.factors)
    return answer, outputs, WORKLOAD.findings(plan, outputs)


def test_random_numbers_are_splitmix64() -> None:
    # The generator's published stream for the state 1234567.
    stream = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [mix(1234567 + t * GOLDEN) for t in (1, 2, 3)] == stream
    drawn = [int(annealing_walk.draw(np.uint64(1234567), np.uint64(t))) for t in (1, 2, 3)]
    assert drawn == stream


def test_the_start_is_shuffled_evenly() -> None:
    n, starts = 5, 6000
    rows = np.array(
        [annealing_walk.shuffled(n, np.uint64(shuffle_key(chain_key(s)))) for s in range(starts)]
    )
    assert all(is_board(row) for row in rows[:50])
    seen = np.array([[np.count_nonzero(rows[:, i] == r) for r in range(n)] for i in range(n)])
    assert np.all(np.abs(seen - starts / n) < 5 * math.sqrt(starts * 0.2 * 0.8))


def test_chances_of_acceptance_are_metropolis() -> None:
    table = PAPER.table()
    assert table.shape == (len(PAPER.temperatures), MOST_RISE)
    assert PAPER.temperatures[0] == 0.5
    assert PAPER.temperatures[-1] >= 0.01 > PAPER.temperatures[-1] * 0.8
    assert table[0, 0] / 2**32 == pytest.approx(math.exp(-1 / 0.5), abs=1e-9)
    assert table[3, 1] / 2**32 == pytest.approx(math.exp(-2 / (0.5 * 0.8**3)), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 40))
def test_the_difference_of_every_exchange_is_exact(data: st.DataObject, n: int) -> None:
    board = np.array(data.draw(st.permutations(range(n))), np.int32)
    i, j = data.draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(_differ))
    rising, falling = np.zeros((2, 2 * n - 1), np.int32)
    before = annealing_walk.count_diagonals(board, rising, falling)
    assert before == brute_force(board)
    change = annealing_walk.change_of(board, rising, falling, i, j)
    annealing_walk.exchange(board, rising, falling, i, j)
    assert before + change == brute_force(board)
    again = np.zeros((2, 2 * n - 1), np.int32)
    annealing_walk.count_diagonals(board, again[0], again[1])
    assert np.array_equal(again, [rising, falling])


def _differ(pair: tuple[int, int]) -> bool:
    return pair[0] != pair[1]


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 24), st.integers(0, 10**6), st.integers(0, 400))
def test_full_evaluation_and_differences_walk_alike(n: int, seed: int, limit: int) -> None:
    cooling = Cooling(0.5, 0.01, 0.8, 20, limit)
    key = chain_key(seed)
    measured = walk_measured(n, key, cooling, brute_force)
    assert same(measured, walk(n, key, cooling))
    assert measured.conflicts == brute_force(measured.board)


@pytest.mark.parametrize("cooling", [PAPER, ATTACKED], ids=["paper", "attacked"])
def test_a_walk_depends_on_its_seed_alone(cooling: Cooling) -> None:
    walks = [walk(50, chain_key(seed), cooling) for seed in (1, 1, 2)]
    assert same(walks[0], walks[1])
    assert not same(walks[0], walks[2])


@pytest.mark.parametrize("cooling", [PAPER, ATTACKED], ids=["paper", "attacked"])
def test_a_limit_cuts_the_same_walk_short(cooling: Cooling) -> None:
    full = walk(30, chain_key(3), cooling)
    assert full.conflicts == 0
    exact = Cooling(*_with_limit(cooling, full.evaluations))
    short = Cooling(*_with_limit(cooling, full.evaluations - 1))
    assert same(walk(30, chain_key(3), exact), full)
    cut = walk(30, chain_key(3), short)
    assert cut.evaluations == full.evaluations - 1
    assert cut.conflicts == conflicts(cut.board) > 0


def _with_limit(cooling: Cooling, limit: int) -> tuple[Any, ...]:
    return (
        *(cooling.start, cooling.end, cooling.factor, cooling.moves_per_queen),
        *(limit, cooling.attacked),
    )


@pytest.mark.parametrize("n", [4, 5, 7, 8, 9, 13, 20, 33, 64, 100, 200, 1000, 3000])
def test_the_papers_schedule_finds_boards_more_often_than_not(n: int) -> None:
    seeds = range(20 if n < 1000 else 5)
    walks = [walk(n, chain_key(seed), PAPER) for seed in seeds]
    assert all(w.conflicts == conflicts(w.board) for w in walks)
    assert all(is_board(w.board) for w in walks)
    assert sum(w.conflicts == 0 for w in walks) > len(walks) / 2


@pytest.mark.parametrize("n", [4, 6, 12, 100, 3000, 100_000])
def test_proposals_for_queens_in_conflict_always_find_a_board(n: int) -> None:
    for seed in range(20 if n <= 3000 else 1):
        found = walk(n, chain_key(seed), ATTACKED)
        assert found.conflicts == conflicts(found.board) == 0
        if n >= 100:
            assert found.evaluations < 30 * n  # the schedule of the paper takes 100 to 300


@pytest.mark.parametrize("n", [2, 3])
def test_a_board_that_has_no_solution_ends_with_what_remains(n: int) -> None:
    answer, outputs, told = run(CpuDevice(), "fitness.sa_delta", n=n)
    assert answer == conflicts(outputs["boards"][0]) > 0
    assert told["found"] == 0
    assert told["evaluations"] == PAPER.limit(n)


@pytest.mark.parametrize("kept", [1 << 20, 100], ids=["whole", "scaled"])
@pytest.mark.parametrize("evaluator", ["cpu_serial", "cpu_histogram"])
def test_the_compiled_search_is_the_same_walk(
    evaluator: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annealing_full, "KEPT", kept)
    cooling = Cooling(0.5, 0.01, 0.8, 20, 3000)
    key = chain_key(4)
    found = annealing_full.full_walk(200, key, cooling, evaluator)
    assert same(found.ended, walk(200, key, cooling))
    # Without evaluating it goes the same way: one step less than values, the first is the start's.
    again, _ = found.remembered()
    limit = min(kept - 1, found.ended.evaluations)
    cut = walk(200, key, replace(cooling, max_evaluations=limit))
    assert (again.conflicts, again.accepted) == (cut.conflicts, cut.accepted)
    assert again.evaluations == limit
    phases = found.phases()
    assert 0 < phases["other"] <= phases["total"]
    assert phases["evaluation"] + phases["other"] == pytest.approx(phases["total"])


@pytest.mark.parametrize("evaluator", ["cpu_serial", "cpu_histogram"])
def test_the_processors_search(evaluator: str) -> None:
    answer, outputs, told = run(CpuDevice(), "fitness_schemes.sa_cpu", n=40, evaluator=evaluator)
    assert answer == 0
    assert told["found"] == told["boards_found"] == 1
    expected = walk(40, chain_key(1), PAPER)
    assert told["evaluations"] == expected.evaluations
    assert told["accepted_moves"] == expected.accepted
    assert np.array_equal(outputs["boards"][0], expected.board)


@pytest.mark.parametrize("evaluator", ["gpu_coarse", "gpu_fine1", "gpu_fine2", "histogram"])
@pytest.mark.parametrize("seed", [1, 7])
def test_a_gpu_scheme_as_evaluator_walks_the_same_way(evaluator: str, seed: int) -> None:
    _, outputs, told = run(
        SIM, "fitness_schemes.sa_gpu", n=10, seed=seed, evaluator=evaluator, max_evaluations=150
    )
    expected = walk(10, chain_key(seed), Cooling(0.5, 0.01, 0.8, 20, 150))
    assert np.array_equal(outputs["boards"].reshape(-1), expected.board)
    assert told["evaluations"] == expected.evaluations
    assert told["accepted_moves"] == expected.accepted


@pytest.mark.parametrize("proposal", ["uniform", "attacked"])
@pytest.mark.parametrize("counters", ["shared", "global"])
@pytest.mark.parametrize("n", [4, 6, 31, 32, 33, 64, 100, 300])
def test_every_chain_of_a_gpu_is_a_walk_of_the_processor(
    n: int, counters: str, proposal: str
) -> None:
    chains = 3
    _, outputs, told = run(
        *(SIM, "fitness.sa_chains"), n=n, chains=chains, counters=counters, proposal=proposal,
        stop="all", block_size=64, seed=5,
    )  # fmt: skip
    boards = outputs["boards"].reshape(chains, n)
    walks = [
        walk(n, chain_key(5, chain), ATTACKED if proposal == "attacked" else PAPER)
        for chain in range(chains)
    ]
    for chain, expected in enumerate(walks):
        given = (int(outputs[name][chain]) for name in ("conflicts", "steps", "accepted"))
        assert same(Walk(boards[chain], *given), expected)
    assert told["boards_found"] == sum(w.conflicts == 0 for w in walks)
    assert told["evaluations"] == min(w.evaluations for w in walks if w.conflicts == 0)


@pytest.mark.parametrize("proposal", ["uniform", "attacked"])
@pytest.mark.parametrize("counters", ["shared", "global"])
@pytest.mark.parametrize("word", annealing_chains.WORDS, ids=lambda word: str(word[1]))
def test_words_of_every_width_hold_a_chain(
    word: tuple[int, str, str], counters: str, proposal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Column minus row is negative below the main diagonal, however wide the unsigned word."""
    _, dtype, _ = word
    monkeypatch.setattr(annealing_chains, "WORDS", [word])
    _, outputs, _ = run(
        *(SIM, "fitness.sa_chains"), n=64, chains=2, counters=counters, proposal=proposal,
        stop="all",
    )  # fmt: skip
    assert outputs["boards"].dtype == dtype
    for chain, board in enumerate(outputs["boards"].reshape(2, 64)):
        expected = walk(64, chain_key(1, chain), ATTACKED if proposal == "attacked" else PAPER)
        assert np.array_equal(board, expected.board)
        assert outputs["steps"][chain] == expected.evaluations


def test_the_widest_words_on_a_board_that_needs_them() -> None:
    n = 65_536
    _, outputs, _ = run(
        *(SIM, "fitness.sa_chains"), n=n, chains=1, proposal="attacked", max_evaluations=2000,
    )  # fmt: skip
    assert outputs["boards"].dtype == np.uint32
    expected = walk(n, chain_key(1), Cooling.constant(200, 2000))
    assert np.array_equal(outputs["boards"], expected.board)
    assert outputs["accepted"][0] == expected.accepted


def test_who_wins_a_race_does_not_depend_on_the_order_of_warps() -> None:
    told = [
        run(
            *(SimDevice(order=order), "fitness.sa_chains"), n=64, chains=7, seed=2,
        )[2]
        for order in ("round_robin", "reverse", "greedy")
    ]  # fmt: skip
    walks = [walk(64, chain_key(2, chain), PAPER) for chain in range(7)]
    best = min((w.evaluations, w.accepted) for w in walks if w.conflicts == 0)
    assert [(t["evaluations"], t["accepted_moves"]) for t in told] == [best] * 3


def test_chains_that_are_cut_short_give_the_best_of_them() -> None:
    answer, _, told = run(SIM, "fitness.sa_chains", n=50, chains=5, max_evaluations=300)
    cooling = Cooling(0.5, 0.01, 0.8, 20, 300)
    left = [walk(50, chain_key(1, chain), cooling).conflicts for chain in range(5)]
    assert answer == min(left) > 0
    assert told["found"] == told["boards_found"] == 0


def test_streams_of_chains_differ() -> None:
    keys = {chain_key(seed, chain) for seed in range(50) for chain in range(50)}
    assert len(keys) == 2500
    assert chain_key(3, 4) == mix(seed_key(3) + 4 * GOLDEN)


@pytest.mark.parametrize(
    ("told", "right"),
    [(7 << 32 | 1, True), (9 << 32 | 2, False), (7 << 32 | 5, False), (2**64 - 1, False)],
)
def test_chains_must_name_the_first_that_found_a_board(told: int, right: bool) -> None:
    found, lost = walk(12, chain_key(1), PAPER).board, np.arange(12, dtype=np.int32)
    outputs = {
        "boards": np.stack([lost, found, found]), "best": np.array([told], np.uint64),
        "conflicts": np.array([conflicts(lost), 0, 0], np.uint64),
        "steps": np.array([5, 7, 9], np.uint32), "accepted": np.ones(3, np.uint32),
    }  # fmt: skip
    plan = HostPlan("somewhere:else", (), about={"task": "anneal"})
    assert WORKLOAD.answer(plan, outputs) == (0 if right else annealing.FALSE_CLAIM)
    assert WORKLOAD.findings(plan, outputs)["boards_found"] == 2  # whoever is named


def test_more_moves_than_a_search_can_number_are_one_temperature() -> None:
    given: dict[str, Level] = {"moves_per_queen": 100_000, "max_evaluations": 40}
    chains = run(SIM, "fitness.sa_chains", n=50_000, chains=1, **given)
    assert chains[0] == run(CpuDevice(), "fitness.sa_delta", n=50_000, **given)[0] > 0


@pytest.mark.parametrize("damage", ["claim", "twice"])
def test_a_false_claim_is_a_wrong_answer(damage: str) -> None:
    board = walk(12, chain_key(1), PAPER).board.copy()
    if damage == "claim":
        board[[0, 1]] = board[[1, 0]]
    else:
        board[0] = board[1]
    outputs = {
        "boards": board[np.newaxis], "conflicts": np.zeros(1, np.uint64),
        "steps": np.ones(1, np.uint32), "accepted": np.ones(1, np.uint32),
    }  # fmt: skip
    plan = HostPlan("somewhere:else", (), about={"task": "anneal"})
    assert WORKLOAD.answer(plan, outputs) == annealing.FALSE_CLAIM


@pytest.mark.parametrize(
    ("device", "system", "given", "words"),
    [
        ("cpu", "sa_delta", {"n": 1}, "no two queens"),
        ("cpu", "sa_delta", {"n": 9, "proposal": "attacked", "cooling": 900}, "cooling: 900 means"),
        ("cpu", "sa_delta", {"n": 9, "start_temperature": 5}, "above start_temperature: 5"),
        ("cpu", "sa_cpu", {"n": 9, "evaluator": "gpu_coarse"}, "no scheme of the processor"),
        ("sim", "sa_gpu", {"n": 9, "evaluator": "cpu_serial"}, "scheme of the processor"),
        ("sim", "sa_gpu", {"n": 9, "counters": "shared"}, "means nothing to evaluator: gpu_coarse"),
        ("sim", "sa_chains", {"n": 9, "block_size": 48}, "no multiple of 32"),
        ("sim", "sa_chains", {"n": 30_000, "counters": "shared"}, "bytes of shared memory"),
        ("sim", "sa_chains", {"n": 10**6, "chains": 10**5}, "bytes of device memory"),
    ],
)
def test_what_makes_no_sense_is_refused(
    device: str, system: str, given: dict[str, Level], words: str
) -> None:
    facts = (CpuDevice() if device == "cpu" else SIM).facts
    family = "fitness_schemes" if system in ("sa_cpu", "sa_gpu") else "fitness"
    with pytest.raises(InfeasibleError, match=words):
        WORKLOAD.resolve(given, f"{family}.{system}", facts)


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


def test_chains_need_a_gpu() -> None:
    with pytest.raises(WrongDeviceError):
        WORKLOAD.resolve({"n": 9}, "fitness.sa_chains", CpuDevice().facts)


def test_resolved_levels_resolve_to_themselves() -> None:
    for system in ("fitness_schemes.sa_gpu", "fitness.sa_chains"):
        first = WORKLOAD.resolve({"n": 20}, system, SIM.facts)
        assert WORKLOAD.resolve(first.factors, system, SIM.facts) == first
    attacked = WORKLOAD.resolve({"n": 20, "proposal": "attacked"}, "fitness.sa_delta", SIM.facts)
    assert WORKLOAD.resolve(attacked.factors, "fitness.sa_delta", SIM.facts) == attacked
