"""The device side: launches, signs of life, and what goes into a record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nqbench.device import Prepared
from nqbench.devices import fake
from nqbench.devices.fake import FakePrepared
from nqbench.measure import sampling
from nqbench.measure.measurement import plain, scalars
from nqbench.measure.sampling import Policy
from nqbench.measure.worker import messages
from nqbench.measure.worker.session import Session
from nqbench.vocabulary import SPENT
from tests.measure.toy import TOY, point

REQUEST = messages.MeasureRequest(point(8), 1, True, Policy(samples=6), timeout_s=10.0)
"""A timed measurement of the toy study."""


def test_a_long_launch_warms_itself_up() -> None:
    session = Session("fake")
    about = session.measure(replace(REQUEST, expected_s=0.6)).about
    assert (about["warm_up_launches"], about["warm_up_ended_by"]) == (0, "long_launch")


def test_warm_up_continues_until_launches_get_no_faster() -> None:
    about = Session("fake").measure(REQUEST).about
    assert (about["warm_up_launches"], about["warm_up_ended_by"]) == (4, "steady")
    found = Session("fake:ramp=1").measure(REQUEST)
    assert found.about["warm_up_launches"] > 15
    assert max(found.samples_s) < 1.02e-4  # the first launch took twice that
    policy = Policy(samples=6, warm_up=0)
    cold = Session("fake:ramp=1").measure(replace(REQUEST, policy=policy))
    assert cold.about["warm_up_ended_by"] == "off"
    assert cold.samples_s[0] == 2e-4


@pytest.mark.parametrize(
    ("every_s", "count"),
    [
        (sampling.BEAT_S, 2),  # before the launches, and before the phases
        (0.0, 11),  # of slow launches: four to warm up, six samples, and the phases
    ],
)
def test_it_gives_a_sign_of_life_before_launching(
    every_s: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "BEAT_S", every_s)
    beats: list[int] = []
    found = Session("fake", lambda: beats.append(1)).measure(REQUEST)
    assert (len(found.samples_s), len(beats)) == (6, count)


def test_a_record_holds_short_plain_numbers() -> None:
    value = {"a": np.int64(3), "b": (np.float64(0.5), [np.bool_(True)]), 4: "x"}
    assert plain(value) == {"a": 3, "b": [0.5, [True]], "4": "x"}
    assert type(plain(value)["a"]) is int
    detail = {"steps": 5, "lines": [{"ptx_line": 1}], "printed": ["x" * 1500, "y" * 1500]}
    assert scalars(detail) == {"steps": 5, "printed": "x" * 1500 + "y" * 500}
    about = Session("fake").measure(replace(REQUEST, timed=False)).about
    assert (about["jobs"], about["first_launch_s"]) == (1, 1e-4)
    on_cpu = Session("fake").measure(replace(REQUEST, point=point(8, system="cpu.power")))
    assert (on_cpu.device, on_cpu.telemetry) == ("cpu", {})
    assert "l2" not in on_cpu.about


def test_an_answer_nobody_knows_is_recorded_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(TOY), "expected", lambda self, factors: None)
    found = Session("fake").measure(REQUEST)
    assert (found.status, found.answer, found.expected) == ("unchecked", "256", None)
    assert found.value_s is not None
    assert found.value_s > 0


def test_a_device_that_cannot_flush_l2_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Warm(FakePrepared):
        flush_l2 = Prepared.flush_l2

    monkeypatch.setattr(fake, "FakePrepared", Warm)
    found = Session("fake").measure(replace(REQUEST, point=point(8, l2="cold")))
    assert found.status == "launch_error"
    assert "measure with l2: hot" in found.reason


@pytest.mark.parametrize("base", ["nan", "-1"])
def test_a_clock_that_makes_no_sense_times_nothing(base: str) -> None:
    found = Session(f"fake:base={base}").measure(REQUEST)
    assert (found.status, found.value_s, found.samples_s) == ("launch_error", None, ())
    assert "clock says that a launch took" in found.reason


def test_a_measurement_says_what_the_device_was_doing() -> None:
    telemetry = Session("fake").measure(REQUEST).telemetry
    assert telemetry["sm_mhz"] == {"min": 1500, "median": 1500.0, "max": 1500}
    assert telemetry["energy_mj"] == 30 * 6  # six samples between the first and the last reading
    assert telemetry["clock_reasons"] == []  # idle between launches is no reason


def test_the_time_of_a_measurement_is_accounted_for() -> None:
    found = Session("fake:sleep=1,base=2e-3").measure(REQUEST)
    spent = found.spent_s
    assert set(spent) == set(SPENT)
    assert 0.0019 * len(found.samples_s) < spent["kernels"] <= spent["warm_up"] + spent["sample"]
    parts = sum(seconds for name, seconds in spent.items() if name != "kernels")
    assert spent["kernels"] < parts <= found.wall_s
