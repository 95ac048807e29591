"""The reference and the CPU programs, against tours measured edge by edge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nqbench.devices.cpu import CpuDevice
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.factors import MAPPING_CODES as CODES
from nqbench.workloads.local_search.factors import THRESHOLD
from nqbench.workloads.local_search.instance import load_instance, with_digest
from nqbench.workloads.local_search.searches import change, moves_of, reference_search, search
from tests.workloads.local_search.facts import LINE_CITIES, length, swapped, write_line
from tests.workloads.running import CPU

SEED = 3
"""Of a start from which the order among equals matters (from some it does not)."""

ROUNDING = 1e-5
"""Eight distances below 2 in single precision, each within 2^-23, and their sums."""


def pairs(n: int) -> list[tuple[int, int]]:
    return [(x, y) for x in range(1, n - 1) for y in range(x + 1, n)]


@pytest.mark.parametrize("n", [4, 5, 6, 12, 30])
def test_change_is_the_difference_of_the_tours(n: int) -> None:
    instance = load_instance("uniform", n, 3)
    before = length(instance, instance.start)
    for x, y in pairs(n):
        after = length(instance, swapped(instance.start, x, y))
        found = change(instance.start, instance.cities, x, y)
        assert isinstance(found, np.float32 | float)
        assert found == pytest.approx(after - before, abs=ROUNDING)


@pytest.mark.parametrize(("n", "seed"), [(4, 1), (5, 7), (12, 2), (25, 3), (25, 4)])
def test_every_move_is_a_best_one_and_the_end_a_local_minimum(n: int, seed: int) -> None:
    instance = load_instance("uniform", n, seed)
    tour = instance.start
    found = reference_search("uniform", n, seed, 1000, "quadratic")
    assert found.evaluations == found.applied + 1
    for step in range(found.applied + 1):
        now = length(instance, tour)
        best = min(length(instance, swapped(tour, x, y)) for x, y in pairs(n)) - now
        if step == found.applied:
            assert best >= THRESHOLD - ROUNDING
            break
        assert found.changes[step] == pytest.approx(best, abs=ROUNDING)
        tour = reference_search("uniform", n, seed, step + 1, "quadratic").tour
        assert length(instance, tour) - now == pytest.approx(best, abs=ROUNDING)
    assert np.array_equal(tour, found.tour)


@pytest.mark.parametrize("enumeration", ["numbers", "loops"])
@pytest.mark.parametrize("mapping", CODES)
@pytest.mark.parametrize("n", [4, 5, 10, 33, 120])
def test_it_takes_the_moves_of_a_search_that_looks_at_all(
    n: int, mapping: str, enumeration: str
) -> None:
    if enumeration == "loops" and mapping == "rectangle":
        mapping = "quadratic"  # loops know no other order
    instance = load_instance("uniform", n, 1)
    found = reference_search("uniform", n, 1, 10 * n, mapping)
    direct = search(instance.cities, instance.start, 10 * n, THRESHOLD, enumeration, CODES[mapping])
    assert np.array_equal(direct.outputs["tour"], found.tour)
    assert np.array_equal(direct.outputs["changes"], found.changes)
    assert direct.outputs["evaluations"][0] == found.evaluations
    assert direct.outputs["invalid"][0] == 0
    assert isinstance(direct.phases, dict)
    assert set(direct.phases) == {"evaluation", "apply", "total"}


@pytest.mark.parametrize("mapping", ["quadratic", "rectangle"])
def test_ties_go_to_the_first_in_the_order_of_the_mapping(tmp_path: Path, mapping: str) -> None:
    name = with_digest(str(write_line(tmp_path)), LINE_CITIES)
    instance = load_instance(name, LINE_CITIES, SEED)
    found = reference_search(name, LINE_CITIES, SEED, 300, mapping)
    tours = {
        order: search(
            instance.cities, instance.start, 300, THRESHOLD, "numbers", CODES[order]
        ).outputs["tour"]
        for order in ("quadratic", "rectangle")
    }
    assert np.array_equal(tours[mapping], found.tour)
    assert not np.array_equal(tours["quadratic"], tours["rectangle"])


@pytest.mark.parametrize("system", sorted(WORKLOAD.cpu_systems))
def test_host_systems(system: str) -> None:
    factors = WORKLOAD.resolve({"n": 60, "iterations": 25}, system, CPU).factors
    plan = WORKLOAD.plan(factors, system, CPU)
    with CpuDevice().prepare(plan) as prepared:
        prepared.launch()
        outputs = prepared.fetch()
    assert WORKLOAD.answer(plan, outputs) == WORKLOAD.expected(factors)
    found = WORKLOAD.findings(plan, outputs)
    assert found["iterations"] == found["evaluations"] == 25
    assert found["moves_evaluated"] == 25 * moves_of(60)
    instance = load_instance("uniform", 60, 1)
    assert found["final_length"] == pytest.approx(length(instance, outputs["tour"]))
    assert float(found["final_length"]) < float(found["start_length"])


def test_a_mapping_that_fails_is_told_by_the_answer() -> None:
    """One evaluation of 5,900 cities is enough: the CPU's program leaves out what the paper's
    read out of bounds."""
    system = "brodtkorb_part1.cpu_mapped"
    factors = WORKLOAD.resolve({"n": 5900, "iterations": 1}, system, CPU).factors
    plan = WORKLOAD.plan(factors, system, CPU)
    with CpuDevice().prepare(plan) as prepared:
        prepared.launch()
        outputs = prepared.fetch()
    invalid = WORKLOAD.findings(plan, outputs)["invalid_moves"]
    assert int(invalid) > 0
    assert WORKLOAD.answer(plan, outputs) == -int(invalid)
    assert WORKLOAD.expected(factors) != -int(invalid)


def test_what_is_no_tour_is_no_answer() -> None:
    system = "brodtkorb_part1.cpu_two_loops"
    factors = WORKLOAD.resolve({"n": 10, "iterations": 1}, system, CPU).factors
    plan = WORKLOAD.plan(factors, system, CPU)
    start = load_instance("uniform", 10, 1).start
    outputs = {name: np.zeros(1, np.uint64) for name in ("invalid", "evaluations", "applied")}
    twice, turned = start.copy(), np.roll(start, 1)
    twice[3] = twice[4]
    assert WORKLOAD.answer(plan, {**outputs, "tour": twice}) == 0
    assert WORKLOAD.answer(plan, {**outputs, "tour": turned}) == 0
    assert WORKLOAD.answer(plan, {**outputs, "tour": start}) > 0
    reversed_tour = np.concatenate([start[:1], start[:0:-1]])
    assert WORKLOAD.answer(plan, {**outputs, "tour": reversed_tour}) != WORKLOAD.answer(
        plan, {**outputs, "tour": start}
    )
