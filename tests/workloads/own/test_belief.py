"""What a check does not believe: what nobody wrote, what anything would pass, one launch alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from nqbench.analysis.data.dataset import load_dataset
from nqbench.analysis.data.quantities import quantity
from nqbench.device import Launch, Prepared
from nqbench.devices.registry import SimDevice
from nqbench.measure.measurement import Measurement
from nqbench.measure.sampling import Policy
from nqbench.measure.worker import session
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.plan import Outputs, Plan
from nqbench.runs.reading import read_records
from nqbench.study import expand, load_study
from nqbench.workloads import register
from tests.measure.toy import point
from tests.toys import run_here

pytestmark = pytest.mark.usefixtures("undrawn")

STUDY = """
name: doubt
n: 64
kernel:
  source: |
    extern "C" __global__ void twice(const float* x, float* y, float* kept) {
        const int i = threadIdx.x;
        BODY
    }
    extern "C" __global__ void bytes(unsigned char* y) { if (threadIdx.x % 2) y[threadIdx.x] = 7; }
    extern "C" __global__ void counts(int* y) { y[threadIdx.x] = threadIdx.x; }
  entry: twice
  arguments:
    x: {dtype: float32, length: n, contents: random, seed: 4}
    y: {dtype: float32, length: n}
    kept: {dtype: float32, contents: np.zeros(n + 1)}
  grid: 1
  block: 64
  check: {y: 2 * x}
"""
BODY = "y[i] = 2 * x[i];"
HALF = "if (i % 2) y[i] = 2 * x[i];"
KEEPS = """
        if (kept[64] != 0) y[i] = kept[i];
        else { kept[i] = y[i] = 2 * x[i]; __syncthreads(); if (i == 0) kept[64] = 1; }
"""
BYTES: dict[str, Any] = {
    "kernel/entry": "bytes",
    "kernel/arguments": {"y": {"dtype": "uint8", "length": "n"}},
}
COUNTS: dict[str, Any] = {
    "kernel/entry": "counts",
    "kernel/arguments": {"y": {"dtype": "int32", "length": "n"}},
}


def study_of(folder: Path, body: str, changes: dict[str, Any]) -> Path:
    data = yaml.safe_load(STUDY.replace("BODY", " ".join(body.split())))
    for keys, value in changes.items():
        *outer, last = keys.split("/")
        place = data
        for key in outer:
            place = place[key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    path = folder / "doubt.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def ended(folder: Path, body: str, changes: dict[str, Any]) -> tuple[dict[str, int], str]:
    study = load_study(study_of(folder, body, changes))
    outcome = run_here(study, "sim:mini", folder / "run")
    return dict(outcome.counts), read_records(folder / "run").records[-1].reason


DOUBTED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a fraction in a whole number": (
        BODY,
        COUNTS | {"kernel/check": {"y": "np.arange(n) + 0.9"}},
        "check_error",
        "`np.arange(n) + 0.9` gives 0.9, which a buffer of int32 cannot hold; give the numbers",
    ),
    "a number too large": (
        BODY,
        BYTES | {"kernel/check": {"y": "np.full(n, 300)"}},
        "check_error",
        "gives 300, which a buffer of uint8 cannot hold",
    ),
    "infinite as a float": (
        BODY,
        {"kernel/check/y": "np.full(n, 1e300)"},
        "check_error",
        "float32 cannot",
    ),
    "nan that nobody wrote": (
        HALF,
        {"kernel/check/y": "np.where(np.arange(n) % 2 == 1, 2 * x, np.nan)"},
        "wrong",
        "y[0] and 31 more were never written (right: nan)",
    ),
    "bytes that nobody wrote": (
        BODY,
        BYTES
        | {
            "kernel/check/y": "np.where(np.arange(n) % 2 == 1, 7, "
            "np.where(np.arange(n) % 4 == 0, 0xA5, 0xF7))"
        },
        "wrong",
        "y[0] and 31 more were never written (right: 165); 32 of 64 elements are wrong",
    ),
    "any tolerance": (
        BODY,
        {"kernel/check/y": {"equals": "3 * x", "absolute": float("inf")}},
        "check_error",
        "the check of 'y' allows absolute: inf, with which zeros would pass; give a smaller",
    ),
    "a tolerance that the input passes": (
        BODY,
        {"kernel/check/y": {"equals": "x * 1.01", "relative": 0.02}},
        "check_error",
        "allows relative: 0.02, with which 'x' as it is before the launch would pass",
    ),
    "what stands there before": (
        "",
        {"kernel/arguments/y/contents": "ones", "kernel/check/y": "y"},
        "check_error",
        "the check of y: a kernel that does nothing would pass, as the right values stand there",
    ),
    "nothing": (BODY, {"kernel/check": None}, "unchecked", "nothing tells whether the results"),
}


@pytest.mark.parametrize(("body", "changes", "status", "said"), DOUBTED.values(), ids=DOUBTED)
def test_what_proves_nothing_is_not_ok(
    tmp_path: Path, body: str, changes: dict[str, Any], status: str, said: str
) -> None:
    counts, reason = ended(tmp_path, body, changes)
    assert counts == {status: 1}, reason
    assert said in reason


PROVEN: dict[str, tuple[str, dict[str, Any]]] = {
    "bytes like those of the fill": (
        "y[i] = 2 * x[i];",
        BYTES
        | {
            "kernel/entry": "counts",
            "kernel/arguments/y": {"dtype": "int32", "length": "n"},
            "kernel/check": {"y": "np.arange(n)"},
        },
    ),
    "zeros that are right": (
        "y[i] = 0;",
        {"kernel/check/y": {"equals": "np.zeros(n)", "absolute": 1e-6}},
    ),
    "a copy": ("y[i] = x[i];", {"kernel/check/y": {"equals": "x", "relative": 1e-6}}),
    "nan that the kernel wrote": ('y[i] = nanf("");', {"kernel/check/y": "np.full(n, np.nan)"}),
    "one buffer that need not change": (
        "y[i] = 2 * x[i]; kept[64] = 0;",
        {"kernel/check": {"y": "2 * x", "kept": "kept"}},
    ),
}


@pytest.mark.parametrize(("body", "changes"), PROVEN.values(), ids=PROVEN)
def test_what_is_right_stays_ok(tmp_path: Path, body: str, changes: dict[str, Any]) -> None:
    counts, reason = ended(tmp_path, body, changes)
    assert counts == {"ok": 1}, reason


def test_the_largest_errors_are_quantities(tmp_path: Path) -> None:
    changes = {"kernel/check/y": {"equals": "2 * x + 1e-3", "absolute": 2e-3, "relative": 0.1}}
    assert ended(tmp_path, BODY, changes)[0] == {"ok": 1}
    (result,) = load_dataset(tmp_path / "run").points
    values = {
        name: result.value(quantity(name))
        for name in ("largest_absolute_error", "largest_relative_error")
    }
    assert values["largest_absolute_error"] == pytest.approx(1e-3, rel=1e-3)
    assert 0 < values["largest_relative_error"] < 0.1


class Timed(Prepared):
    """A plan in the simulator's memory whose launches all take as long."""

    def __init__(self, inner: Prepared) -> None:
        self.inner, self.resources = inner, inner.resources
        self.transfer_s = 0.0

    def launch(self, timeout_s: float | None = None) -> Launch:
        self.inner.launch(timeout_s)
        return Launch(1e-4)

    def fetch(self) -> Outputs:
        return self.inner.fetch()

    def refill(self, data: Outputs, *, again: bool = True) -> bool:
        return self.inner.refill(data, again=again)


class TimedSim(SimDevice):
    """The simulator as a device with a clock."""

    timed, deterministic = True, False

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.facts = replace(self.facts, kind="cuda")

    def prepare(self, plan: Plan) -> Any:
        return Timed(super().prepare(plan))


def measured(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch, round_: int) -> Measurement:
    monkeypatch.setattr(session, "open_device", lambda spec: TimedSim("mini"))
    study = load_study(study_of(folder, body, {}))
    register(study.external)
    one = session.Session("timed")
    (found,) = expand(study, one.device.facts)
    return one.measure(MeasureRequest(found, round_, True, Policy(samples=6), timeout_s=10.0))


@pytest.mark.parametrize(
    ("body", "round_", "said"),
    [
        (BODY, 1, ""),
        (HALF, 1, "y[0] and 31 more were never written"),
        (KEEPS, 1, "the one on other contents: y[0] is "),
        (KEEPS, 2, ""),
    ],
    ids=["right", "half of it", "keeps its results", "keeps them in another round"],
)
def test_one_timed_launch_finds_other_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, round_: int, said: str
) -> None:
    found = measured(tmp_path, body, monkeypatch, round_)
    assert (found.status, found.reason) == ("ok", "") if not said else found.status == "wrong"
    assert said in found.reason
    if round_ == 1 and not said:
        assert 1 <= found.about["checked_launch"] <= len(found.samples_s) + 1


def test_the_test_device_is_wrong_on_other_contents() -> None:
    request = MeasureRequest(point(8), 1, True, Policy(samples=6), timeout_s=10.0)
    found = session.Session("fake:stale=8").measure(request)
    assert found.status == "wrong"
    assert "on other contents: the answer is 257, but the known one is 256" in found.reason
    assert not found.samples_s
    assert session.Session("fake").measure(request).status == "ok"


def test_an_unchecked_point_is_counted_as_such(tmp_path: Path) -> None:
    assert ended(tmp_path, BODY, {"kernel/check": None})[0] == {"unchecked": 1}
    data = load_dataset(tmp_path / "run")
    assert (data.outcome, data.points[0].ok) == ("0 of 1 points right, 1 unchecked", True)
    assert data.points[0].value(quantity("warp_instructions")) > 0
