"""Moves by number, the CPU programs and the reference, against tours measured edge by edge; and
points as a worker measures them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nqbench.measure.measurement import Measurement
from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.session import Session
from nqbench.point import PART, Level, Point
from nqbench.workloads.local_search import WORKLOAD, searches
from nqbench.workloads.local_search.factors import MAPPING_CODES as CODES
from nqbench.workloads.local_search.factors import THRESHOLD
from nqbench.workloads.local_search.instance import load_instance
from tests.workloads.local_search.facts import LINE, Cities, given, length, swapped
from tests.workloads.running import CPU

__all__ = ["given"]  # a fixture

SEED = 3
"""Of a start from which the order among equals matters (from some it does not)."""

ROUNDING = 1e-5
"""Eight distances below 2 in single precision, each within 2^-23, and their sums."""


def pairs(n: int) -> list[tuple[int, int]]:
    return [(x, y) for x in range(1, n - 1) for y in range(x + 1, n)]


@pytest.mark.parametrize("mapping", CODES)
def test_a_number_is_a_move_and_a_move_has_a_number(mapping: str) -> None:
    code = CODES[mapping]
    for n in (4, 5, 6, 7, 20, 39, 40):
        found = [searches.positions(k, n, code) for k in range(len(pairs(n)))]
        assert sorted(found) == pairs(n)
        assert [searches.rank(x, y, n, code) for x, y in found] == list(range(len(pairs(n))))
        assert (found == pairs(n)) == (mapping != "rectangle" or n < 6)  # lexicographic
    last = 2999 * 2998 // 2 - 1
    for k in (0, 1, 2997, 2998, last // 2, last - 1, last):
        x, y = searches.positions(k, 3000, code)
        assert searches.is_valid(x, y, 3000)
        assert searches.rank(x, y, 3000, code) == k


def test_rectangle_has_the_reversed_order_in_its_other_half() -> None:
    """n = 6: rows of 4, 3, 2, 1 moves become two rows of 5."""
    pairs = [searches.positions(k, 6, CODES["rectangle"]) for k in range(10)]
    assert pairs[:4] == [(1, 2), (1, 3), (1, 4), (1, 5)]
    assert pairs[4] == (4, 5)
    assert pairs[5:8] == [(2, 3), (2, 4), (2, 5)]
    assert pairs[8:] == [(3, 5), (3, 4)]


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
    assert searches.invalid_moves(n, mapping) == invalid


@pytest.mark.parametrize("n", [4, 5, 6, 12, 30])
def test_change_is_the_difference_of_the_tours(n: int) -> None:
    instance = load_instance(n, 3)
    before = length(instance, instance.start)
    for x, y in pairs(n):
        after = length(instance, swapped(instance.start, x, y))
        found = searches.change(instance.start, instance.cities, x, y)
        assert isinstance(found, np.float32 | float)
        assert found == pytest.approx(after - before, abs=ROUNDING)


@pytest.mark.parametrize(("n", "seed"), [(4, 1), (5, 7), (12, 2), (25, 3), (25, 4)])
def test_every_move_is_a_best_one_and_the_end_a_local_minimum(n: int, seed: int) -> None:
    instance = load_instance(n, seed)
    tour = instance.start
    found = searches.reference_search(n, seed, 1000, "quadratic")
    assert found.evaluations == found.applied + 1
    for step in range(found.applied + 1):
        now = length(instance, tour)
        best = min(length(instance, swapped(tour, x, y)) for x, y in pairs(n)) - now
        if step == found.applied:
            assert best >= THRESHOLD - ROUNDING
            break
        assert found.changes[step] == pytest.approx(best, abs=ROUNDING)
        tour = searches.reference_search(n, seed, step + 1, "quadratic").tour
        assert length(instance, tour) - now == pytest.approx(best, abs=ROUNDING)
    assert np.array_equal(tour, found.tour)


@pytest.mark.parametrize("enumeration", ["numbers", "loops"])
@pytest.mark.parametrize("mapping", CODES)
@pytest.mark.parametrize("n", [4, 5, 10, 33, 120])
def test_it_takes_the_moves_of_an_exhaustive_search(n: int, mapping: str, enumeration: str) -> None:
    if enumeration == "loops" and mapping == "rectangle":
        mapping = "quadratic"  # loops know no other order
    instance = load_instance(n, 1)
    found = searches.reference_search(n, 1, 10 * n, mapping)
    direct = searches.search(
        instance.cities, instance.start, 10 * n, THRESHOLD, enumeration, CODES[mapping]
    )
    assert np.array_equal(direct.outputs["tour"], found.tour)
    assert np.array_equal(direct.outputs["changes"], found.changes)
    assert direct.outputs["evaluations"][0] == found.evaluations
    assert direct.outputs["invalid"][0] == 0
    phases = direct.phases
    assert isinstance(phases, dict)
    assert 0 < phases["evaluation"] + phases["apply"] <= phases["total"]


@pytest.mark.parametrize("mapping", ["quadratic", "rectangle"])
def test_ties_go_to_the_first_in_the_order_of_the_mapping(
    given: Callable[[Cities], None], mapping: str
) -> None:
    given(LINE)
    instance = load_instance(len(LINE), SEED)
    found = searches.reference_search(len(LINE), SEED, 300, mapping)
    tours = {
        order: searches.search(
            instance.cities, instance.start, 300, THRESHOLD, "numbers", CODES[order]
        ).outputs["tour"]
        for order in ("quadratic", "rectangle")
    }
    assert np.array_equal(tours[mapping], found.tour)
    assert not np.array_equal(tours["quadratic"], tours["rectangle"])


def test_what_is_no_tour_is_no_answer() -> None:
    system = "brodtkorb_part1.cpu_two_loops"
    factors = WORKLOAD.resolve({"n": 10, "iterations": 1}, system, CPU).factors
    plan = WORKLOAD.plan(factors, system, CPU)
    start = load_instance(10, 1).start
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


def verify(device: str, system: str, **given: Level) -> Measurement:
    session = Session(device)
    try:
        part = {PART: given.pop(PART)} if PART in given else {}
        resolved = WORKLOAD.resolve(given, system, session.device.facts)
        factors = {**resolved.factors, **part}
        point = Point("s", "s", "local_search", system, factors, resolved.derived)
        return session.measure(MeasureRequest(point, 0, False, Policy(), timeout_s=60.0))
    finally:
        session.close()


def test_a_mapping_that_fails_is_wrong_and_says_why() -> None:
    block = verify("cpu", "brodtkorb_part1.cpu_mapped", n=4200, iterations=1)
    invalid = searches.invalid_moves(4200, "quadratic")
    assert block.status == "wrong"
    assert block.answer == str(-invalid)
    assert f"the mapping sent {invalid} numbers of moves outside" in block.reason
    assert block.about["invalid_moves"] == invalid
    assert "fault" not in block.about


@pytest.mark.parametrize("system", ["brodtkorb_part1.gpu_v1", "local_search.fused"])
def test_a_part_of_a_search_that_starts_at_its_end(system: str) -> None:
    seed = next(
        s for s in range(99) if searches.reference_search(4, s, 1, "quadratic").applied == 0
    )
    for n, wanted in ((4, 0), (40, None)):
        block = verify("sim:mini", system, n=n, seed=seed, part="full")
        assert block.status == "ok"
        assert (block.answer == "0") == (wanted == 0)


@pytest.mark.parametrize(
    ("version", "mapping", "n"), [(6, "quadratic", 4200), (7, "rearranged", 6000)]
)
def test_a_kernel_whose_mapping_fails_errs_as_the_cpu(version: int, mapping: str, n: int) -> None:
    """The last moves of cities where single precision fails, and no access out of bounds."""
    system = f"brodtkorb_part1.gpu_v{version}"
    block = verify("sim:mini", system, n=n, part="full", blocks=2000)
    assert block.status == "wrong"
    assert block.answer == str(-searches.invalid_moves(n, mapping))


@pytest.mark.parametrize(
    ("device", "system"),
    [
        *(("cpu", system) for system in sorted(WORKLOAD.cpu_systems)),
        ("sim:mini", "brodtkorb_part1.gpu_v8"),
        ("sim:mini", "local_search.resident"),
    ],
)
def test_what_a_record_tells(device: str, system: str) -> None:
    block = verify(device, system, n=40, iterations=4)
    assert block.status == "ok"
    about = block.about
    assert about["iterations"] == about["evaluations"] == 4
    assert about["moves_evaluated"] == 4 * about["moves_per_iteration"] == 4 * 39 * 38 // 2
    mapping = "rectangle" if system.endswith("v8") else "quadratic"
    instance, found = load_instance(40, 1), searches.reference_search(40, 1, 4, mapping)
    assert about["start_length"] == pytest.approx(length(instance, instance.start))
    assert about["final_length"] == pytest.approx(length(instance, found.tour))
    assert about["final_length"] < about["start_length"]
    assert str(about["final_solution_hash"]) == block.answer
