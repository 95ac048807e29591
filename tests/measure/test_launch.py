"""One configuration, launched once and checked."""

from __future__ import annotations

import pytest

from nqbench.devices.simulator import SimDevice
from nqbench.errors import InfeasibleError, StudyError, WrongAnswer
from nqbench.measure.launch import launch
from nqbench.point import Level
from nqbench.workloads import get


def test_a_kernel_in_the_simulator() -> None:
    found = launch("counting", {"n": 8, "system": "zhang2011.low_divergence"}, "sim:mini")
    assert found.answer == found.expected == 92
    assert found.counters["warp_instructions"] > 0
    assert any(line["space"] == "shared" for line in found.lines)
    assert found.resources["warps_per_block"] == 4
    assert found.kernel_s is None
    assert found.wall_s > 0
    assert found.factors["loop"] == "irrc"


def test_a_cpu_system_runs_on_the_cpu_whatever_the_device() -> None:
    found = launch(get("fitness"), {"n": 50, "system": "fitness.sa_delta"}, SimDevice("mini"))
    assert found.answer == 0
    assert found.kernel_s is not None
    assert found.findings["found"] == 1
    assert not found.lines


def test_an_instrumented_kernel_gives_its_own_counters() -> None:
    found = launch("counting", {"n": 7, "probe": "iterations"}, "sim:mini")
    assert found.counters["iterations_total"] > 0
    assert "warp_instructions" not in found.counters


@pytest.mark.parametrize(
    ("workload", "factors", "error", "said"),
    [
        ("countin", {"n": 8}, StudyError, "did you mean 'counting'"),
        ("tests.nowhere:AT_ALL", {"n": 8}, StudyError, "cannot be loaded"),
        ("pathlib:Path", {"n": 8}, StudyError, "inherit from nqbench.workloads.base.Workload"),
        ("counting", {"n": 8, "system": "zhang2011.low"}, StudyError, "no system 'zhang2011.low'"),
        ("counting", {"n": 8, "lop": "irrc"}, StudyError, "did you mean 'loop'"),
        ("counting", {"n": 4}, InfeasibleError, "n: 4 is less than the 5 of the kernels"),
    ],
)
def test_what_cannot_be_launched(
    workload: str, factors: dict[str, Level], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        launch(workload, factors, "sim:mini")


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(get("counting")), "expected", lambda *_: 41)
    with pytest.raises(WrongAnswer, match="answered 40 for n=7, but 41 is right"):
        launch("counting", {"n": 7}, "sim:mini")
    given: dict[str, Level] = {"n": 6000, "iterations": 1}
    given["system"] = "brodtkorb_part1.cpu_mapped"
    with pytest.raises(WrongAnswer, match=r"is right: the mapping sent \d+ numbers of moves"):
        launch("local_search", given, "cpu")
