"""What a check does not believe: what nobody wrote, what anything would pass, one launch alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import nqbench
from nqbench.analysis.data.dataset import load_dataset
from nqbench.analysis.data.quantities import quantity
from nqbench.device import Launch, Prepared
from nqbench.devices.registry import SimDevice
from nqbench.errors import WrongAnswer
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
from tests.workloads.own.test_own_kernel import study_with

pytestmark = pytest.mark.usefixtures("undrawn")

WITHOUT: Final = {"body": "right", "status": "ok", "says": ""}
"""What a case is where it does not say."""
CASES: Final = yaml.safe_load(Path(__file__).with_name("belief.yaml").read_text(encoding="utf-8"))


def study_of(folder: Path, body: str, changes: dict[str, Any]) -> Path:
    text = CASES["study"].replace("BODY", CASES["bodies"].get(body, body).strip())
    return study_with(folder, changes, text=text)


def ended(folder: Path, body: str, changes: dict[str, Any]) -> tuple[dict[str, int], str]:
    study = load_study(study_of(folder, body, changes))
    outcome = run_here(study, "sim:mini", folder / "run")
    return dict(outcome.counts), read_records(folder / "run").records[-1].reason


@pytest.mark.parametrize("name", [*CASES["doubted"], *CASES["proven"]])
def test_what_proves_nothing_is_not_ok(tmp_path: Path, name: str) -> None:
    given = dict({**CASES["doubted"], **CASES["proven"]}[name])
    body, status, said = (given.pop(k, v) for k, v in WITHOUT.items())
    counts, reason = ended(tmp_path, body, given)
    assert counts == {status: 1}, reason
    assert said in reason


def test_the_largest_errors_are_quantities(tmp_path: Path) -> None:
    changes = {"kernel/check/y": {"equals": "2 * x + 1e-3", "absolute": 2e-3, "relative": 0.1}}
    assert ended(tmp_path, "right", changes)[0] == {"ok": 1}
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
        ("right", 1, ""),
        ("half", 1, "y[0] and 31 more were never written"),
        ("keeps", 1, "the one on other contents: y[0] is "),
        ("keeps", 2, ""),
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


class Keeping(Timed):
    """A plan whose kernel does its work once, and gives the same ever after."""

    kept: Outputs | None = None

    def launch(self, timeout_s: float | None = None) -> Launch:
        found = super().launch(timeout_s)
        self.kept = self.kept or self.inner.fetch()
        return found

    def fetch(self) -> Outputs:
        return self.kept or {}


def test_python_launches_believe_as_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nan that nobody wrote", "bytes that nobody wrote"):
        given = dict(CASES["doubted"][name])
        body, said = given.pop("body", "right"), given.pop("says")
        changes = {key: value for key, value in given.items() if key != "status"}
        with pytest.raises(WrongAnswer, match=re.escape(said.partition(";")[0])):
            nqbench.launch(study_of(tmp_path, body, changes), device="sim:mini")
    study, device = study_of(tmp_path, "right", {}), TimedSim("mini")
    assert nqbench.launch(study, device=device, warm_up=True).kernel_s
    monkeypatch.setattr(device, "prepare", lambda plan: Keeping(SimDevice.prepare(device, plan)))
    assert nqbench.launch(study, device=device).kernel_s  # there is nothing to keep yet
    with pytest.raises(WrongAnswer, match=r"y\[0\] is .*; 0 of 64 elements are right"):
        nqbench.launch(study, device=device, warm_up=True)


def test_the_test_device_is_wrong_on_other_contents() -> None:
    request = MeasureRequest(point(8), 1, True, Policy(samples=6), timeout_s=10.0)
    found = session.Session("fake:stale=8").measure(request)
    assert found.status == "wrong"
    assert "on other contents: the answer is 257, but the known one is 256" in found.reason
    assert not found.samples_s
    assert session.Session("fake").measure(request).status == "ok"


def test_an_unchecked_point_is_counted_as_such(tmp_path: Path) -> None:
    assert ended(tmp_path, "right", {"kernel/check": None})[0] == {"unchecked": 1}
    data = load_dataset(tmp_path / "run")
    assert (data.outcome, data.points[0].ok) == ("0 of 1 points right, 1 unchecked", True)
    assert data.points[0].value(quantity("warp_instructions")) > 0
