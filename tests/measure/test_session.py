"""The device side: launches, signs of life, and what goes into a record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.device import Prepared
from nqbench.devices import fake
from nqbench.devices.fake import FakePrepared
from nqbench.errors import StudyError
from nqbench.measure import sampling
from nqbench.measure.launch import compile_point
from nqbench.measure.measurement import SPENT, plain, scalars
from nqbench.measure.sampling import Policy
from nqbench.measure.variants import runs_on_cpu
from nqbench.measure.worker import messages
from nqbench.measure.worker.session import Session
from nqbench.plan import KernelPlan, Plan
from nqbench.workloads import get as find_workload
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


def test_it_gives_a_sign_of_life_before_launching_but_not_before_each() -> None:
    beats: list[int] = []
    session = Session("fake", lambda: beats.append(1))
    found = session.measure(REQUEST)
    assert len(found.samples_s) == 6
    assert len(beats) == 2  # before the launches, and before the phases


def test_it_gives_one_before_every_slow_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "BEAT_S", 0.0)
    beats: list[int] = []
    Session("fake", lambda: beats.append(1)).measure(REQUEST)
    assert len(beats) == 11  # four to warm up, six samples, and the phases


def test_a_record_s_numbers_are_plain_json() -> None:
    value = {"a": np.int64(3), "b": (np.float64(0.5), [np.bool_(True)]), 4: "x"}
    assert plain(value) == {"a": 3, "b": [0.5, [True]], "4": "x"}
    assert type(plain(value)["a"]) is int


def test_long_details_of_a_launch_stay_out_of_the_record() -> None:
    assert scalars({"steps": 5, "lines": [{"ptx_line": 1}]}) == {"steps": 5}


def test_the_record_tells_the_derived_numbers_and_the_first_launch() -> None:
    about = Session("fake").measure(replace(REQUEST, timed=False)).about
    assert about["jobs"] == 1
    assert about["first_launch_s"] == 1e-4


def test_an_answer_nobody_knows_is_recorded_and_not_called_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(TOY), "expected", lambda self, factors: None)
    found = Session("fake").measure(REQUEST)
    assert (found.status, found.answer, found.expected) == ("ok", "256", None)
    assert found.value_s is not None
    assert found.value_s > 0


def test_a_kernel_that_does_not_compile_is_found_before_anything_is_launched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "toy.cu"
    original = type(TOY).plan

    def plan(self: Any, *arguments: Any) -> Plan:
        made = original(self, *arguments)
        assert isinstance(made, KernelPlan)
        return KernelPlan(
            source, "toy", ("out",), buffers=made.buffers, grid=made.grid, block=made.block
        )

    monkeypatch.setattr(type(TOY), "plan", plan)
    facts = Session("fake").hello().facts
    source.write_text('extern "C" __global__ void toy(unsigned long long *out) { *out = 1; }\n')
    assert compile_point(point(8), facts).status == "ok"
    source.write_text("__global__ void toy(int *out) { *out = mistake; }\n")
    found = compile_point(point(8), facts)
    assert found.status == "compile_error"
    assert "toy.cu" in found.reason
    assert "mistake" in found.reason


def test_a_cold_l2_cache_is_a_measurement_of_its_own() -> None:
    session = Session("fake:cold=1.5")
    hot = session.measure(REQUEST)
    cold = session.measure(replace(REQUEST, point=point(8, l2="cold")))
    assert (hot.about["l2"], cold.about["l2"]) == ("hot", "cold")
    assert hot.value_s is not None
    assert cold.value_s == 1.5 * hot.value_s
    assert (cold.status, cold.answer) == ("ok", "256")


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


def test_a_throttled_measurement_is_marked_and_keeps_its_samples() -> None:
    session = Session("fake:throttle=1.5")
    policy = Policy(samples=120)
    found = session.measure(replace(REQUEST, policy=policy))
    assert found.status == "throttled"
    assert "hw_thermal_slowdown; at 1000 to 1500 MHz, 90 degrees C" in found.reason
    assert "cooling" in found.reason
    assert len(found.samples_s) == 120
    assert found.value_s is not None
    wrong = Session("fake:throttle=1.5,wrong=8").measure(replace(REQUEST, policy=policy))
    assert (wrong.status, wrong.samples_s) == ("wrong", ())


def test_the_time_of_a_measurement_is_accounted_for() -> None:
    found = Session("fake:sleep=1,base=2e-3").measure(REQUEST)
    spent = found.spent_s
    assert set(spent) == set(SPENT)
    assert 0.019 < spent["kernels"] <= spent["warm_up"] + spent["sample"]
    parts = sum(seconds for name, seconds in spent.items() if name != "kernels")
    assert spent["kernels"] < parts <= found.wall_s


def test_host_baselines_have_no_gpu_telemetry() -> None:
    found = Session("fake").measure(replace(REQUEST, point=point(8, system="cpu.power")))
    assert (found.device, found.telemetry) == ("cpu", {})
    assert "l2" not in found.about


def test_workloads_of_others_are_found_by_module_and_name() -> None:
    assert find_workload("tests.measure.toy:TOY") is TOY
    with pytest.raises(StudyError, match="cannot be loaded"):
        find_workload("tests.measure.toy:ABSENT")


def test_cpu_systems_run_on_the_host() -> None:
    assert runs_on_cpu(point(5, system="cpu.power"))
    assert not runs_on_cpu(point(5, system="zhang2011.low_divergence"))
    assert not runs_on_cpu(point(5))
