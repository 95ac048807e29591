"""One configuration, launched once and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nqbench
from nqbench.devices.registry import SimDevice
from nqbench.errors import InfeasibleError, StudyError, WrongAnswer
from nqbench.measure.launch import launch
from nqbench.point import Level
from nqbench.workloads import get


def test_a_kernel_in_the_simulator() -> None:
    found = launch("counting", {"n": 8, "system": "zhang2011.low_divergence"}, "sim:mini")
    assert found.answer == found.expected == 92
    assert found.counters["warp_instructions"] > 0
    assert any(line["shared_requests"] for line in found.lines)
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


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(get("counting")), "expected", lambda *_: 41)
    with pytest.raises(WrongAnswer, match="answered 40 for n=7, but 41 is right"):
        launch("counting", {"n": 7}, "sim:mini")
    given: dict[str, Level] = {"n": 6000, "iterations": 1}
    given["system"] = "brodtkorb_part1.cpu_mapped"
    with pytest.raises(WrongAnswer, match=r"is right: the mapping sent \d+ numbers of moves"):
        launch("local_search", given, "cpu")


EXAMPLES = Path(__file__).parents[2] / "examples"
ADD: dict[str, Any] = {
    "source": """
extern "C" __global__ void add(const float* a, const float* b, float* sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sums[i] = a[i] + b[i];
}
""",
    "entry": "add",
    "arguments": {
        "a": {"dtype": "float32", "length": "n", "contents": "zeros"},
        "b": {"dtype": "float32", "shape": [2, "n // 2"], "contents": "ones"},
        "sums": {"dtype": "float32", "length": "n"},
        "n": "int32",
    },
    "grid": "ceil(n / 64)",
    "block": 64,
    "check": {"sums": "a + b.ravel()"},
}


def test_an_own_kernel_on_arrays() -> None:
    a = np.arange(100, dtype="float32")
    size: Any = np.int64(100)
    found = nqbench.launch(ADD, n=size, device="sim:mini", buffers={"a": a})
    assert found.outputs["sums"].tolist() == (a + 1).tolist()
    assert found.outputs["b"].shape == (2, 50)
    wrong = {**ADD, "check": {"sums": "a - b.ravel()"}}
    given: dict[str, Any] = {"n": 100, "device": "sim:mini", "buffers": {"a": a}}
    with pytest.raises(WrongAnswer, match=r"is 1.0, not -1.0.*0 of 100 elements are right"):
        nqbench.launch(wrong, **given)
    assert nqbench.launch(wrong, check=False, **given).outputs["sums"][1] == 2


def test_what_a_launch_leaves_out_is_the_first_of_its_study() -> None:
    """The size too; a level that the study calculates is left to the workload."""
    study = EXAMPLES / "transpose" / "transpose.yaml"
    first = nqbench.expand(study, "sim:mini")[0]
    assert nqbench.launch(study, device="sim:mini").factors == first.factors
    assert nqbench.launch("ablation", n=8, device="sim:mini").answer == 92


@pytest.mark.parametrize(
    ("kernel", "given", "error", "said"),
    [
        (3, {}, TypeError, "takes a study .* not int"),
        (ADD, {"factors": 8}, TypeError, "factors is a dictionary .* not int"),
        (ADD, {"device": 0}, TypeError, "device is a name such as 'sim:mini', not int"),
        (ADD, {"buffers": [1]}, TypeError, "buffers is a dictionary of NumPy arrays"),
        (ADD, {"buffers": {"a": [1]}}, TypeError, r"buffers\['a'\] is a NumPy array, not list"),
        (ADD, {"buffers": {"A": np.ones(8, "f4")}}, StudyError, "no buffer 'A'; did you mean 'a'"),
        (ADD, {"buffers": {"a": np.ones(9, "f4")}}, StudyError, r"the shape \(8,\), not \(9,\)"),
        (ADD, {"buffers": {"a": np.ones(8)}}, StudyError, "holds float32, not float64; convert"),
        ("counting", {"buffers": {"a": np.ones(8)}}, StudyError, "only a study's own kernel takes"),
        (ADD, {"system": "x"}, StudyError, "no system 'x' .* choose from kernel"),
        (ADD, {"block": 3}, StudyError, "has no factor 'block'"),
        ({}, {}, StudyError, "'kernel' is empty"),
        ("conv.yaml", {}, StudyError, "there is no study file conv.yaml"),
        ("zhang2011.lo_divergence", {}, StudyError, "no workload 'zhang2011.lo_divergence'"),
        ("countin", {}, StudyError, "did you mean 'counting'"),
        ("tests.nowhere:AT_ALL", {}, StudyError, "cannot be loaded"),
        ("pathlib:Path", {}, StudyError, "inherit from nqbench.workloads.base.Workload"),
        ("counting", {"system": "zhang2011.low"}, StudyError, "no system 'zhang2011.low'"),
        ("counting", {"lop": "irrc"}, StudyError, "did you mean 'loop'"),
        ("counting", {"n": 4}, InfeasibleError, "n: 4 is less than the 5 of the kernels"),
    ],
)
def test_wrong_arguments(
    kernel: Any, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        nqbench.launch(kernel, **{"n": 8, "device": "sim:mini", **given})
