"""A point of the local search as a worker measures it."""

from __future__ import annotations

import pytest

from nqbench.measure.measurement import Measurement
from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.session import Session
from nqbench.plan import CpuPlan
from nqbench.point import PART, Level, Point
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.plans import make_plan
from nqbench.workloads.local_search.searches import invalid_moves, reference_search, search
from tests.workloads.running import CPU


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
    block = verify("cpu", "brodtkorb_part1.cpu_mapped", n=6000, iterations=1)
    invalid = invalid_moves(6000, "quadratic")
    assert block.status == "wrong"
    assert block.answer == str(-invalid)
    assert f"the mapping sent {invalid} numbers of moves outside" in block.reason
    assert block.about["invalid_moves"] == invalid
    assert "fault" not in block.about


@pytest.mark.parametrize("system", ["brodtkorb_part1.gpu_v1", "local_search.fused"])
def test_a_part_of_a_search_that_starts_at_its_end(system: str) -> None:
    seed = next(
        s for s in range(99) if reference_search("uniform", 4, s, 1, "quadratic").applied == 0
    )
    for n, wanted in ((4, 0), (40, None)):
        block = verify("sim:mini", system, n=n, seed=seed, part="full")
        assert block.status == "ok"
        assert (block.answer == "0") == (wanted == 0)


def test_a_part_with_a_mapping_that_fails_is_wrong() -> None:
    block = verify("sim:mini", "brodtkorb_part1.gpu_v7", n=6000, part="full", blocks=2000)
    assert block.status == "wrong"
    assert block.answer == str(-invalid_moves(6000, "rearranged"))


def test_phases_of_a_search_on_the_cpu_fit_its_total() -> None:
    plan = make_plan({"n": 50, "iterations": 20}, "brodtkorb_part1.cpu_two_loops", CPU)
    assert isinstance(plan, CpuPlan)
    phases = search(*plan.arguments).phases
    assert isinstance(phases, dict)
    assert 0 < phases["evaluation"] + phases["apply"] <= phases["total"]


@pytest.mark.parametrize("system", ["brodtkorb_part1.gpu_v8", "local_search.resident"])
def test_what_a_record_tells(system: str) -> None:
    block = verify("sim:mini", system, n=40, iterations=4)
    assert block.status == "ok"
    about = block.about
    assert about["iterations"] == about["evaluations"] == 4
    assert about["moves_evaluated"] == 4 * about["moves_per_iteration"] == 4 * 39 * 38 // 2
    assert about["final_length"] < about["start_length"]
    assert str(about["final_solution_hash"]) == block.answer
