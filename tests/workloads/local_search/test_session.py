"""A point of the local search as a worker measures it."""

from __future__ import annotations

from typing import Any

import pytest

from nqbench.measure.keys import workload_sources
from nqbench.measure.session import Session
from nqbench.point import Level, Point
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.mapping import invalid_moves


def verify(device: str, system: str, **given: Level) -> dict[str, Any]:
    session = Session(device)
    try:
        resolved = WORKLOAD.resolve(given, system, session.device.facts)
        point = Point("s", "s", "local_search", system, resolved.factors, resolved.derived)
        request = {
            "point": point.as_json(),
            "round": 0,
            "timed": False,
            "policy": {},
            "timeout_s": 60.0,
            "expected_s": None,
        }
        return session.block(request)
    finally:
        session.close()


def test_a_mapping_that_fails_is_wrong_and_says_why() -> None:
    block = verify("cpu", "brodtkorb_part1.cpu_mapped", n=6000, iterations=1)
    invalid = invalid_moves(6000, "quadratic")
    assert block["status"] == "wrong"
    assert block["answer"] == str(-invalid)
    assert f"the mapping sent {invalid} numbers of moves outside" in block["reason"]
    assert block["about"]["invalid_moves"] == invalid
    assert "fault" not in block["about"]


@pytest.mark.parametrize("system", ["brodtkorb_part1.gpu_v8", "local_search.resident"])
def test_what_a_record_tells(system: str) -> None:
    block = verify("sim:mini", system, n=40, iterations=4)
    assert block["status"] == "ok"
    about = block["about"]
    assert about["iterations"] == about["evaluations"] == 4
    assert about["moves_evaluated"] == 4 * about["moves_per_iteration"] == 4 * 39 * 38 // 2
    assert about["final_length"] < about["start_length"]
    assert str(about["final_solution_hash"]) == block["answer"]


def test_a_changed_program_or_kernel_is_measured_again() -> None:
    sources = workload_sources("local_search", host=False)
    assert sources is not None
    names = {file.name for file in sources.files()}
    assert {"program.py", "cpu.py", "tiled.cuh", "local_search.cu", "parts.cuh"} <= names
