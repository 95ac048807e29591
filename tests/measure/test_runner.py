"""From points to records: what is verified, timed, skipped, resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nqbench.devices.fake import FakeDevice
from nqbench.errors import DeviceError, DeviceUnavailable, StoreError
from nqbench.measure.run_state import RunOutcome
from nqbench.point import Point
from nqbench.runs.frame import load
from nqbench.runs.reading import RECORDS, read_manifest, read_records
from nqbench.study import Measure
from tests.measure.toy import point
from tests.toys import Recorder, ToyStudy, run_here

NOISY = "fake:noise=0.003,round=0.004,seed=5"
QUICK = Measure(rounds=3, samples=6, budget_s=3.0, target=0.01)


def measure(
    out: Path,
    points: Sequence[Point],
    device: str = NOISY,
    how: Measure = QUICK,
    *,
    isolate: bool = False,
    listener: Any = None,
    **more: Any,
) -> RunOutcome:
    """Run a toy study, in this process unless told otherwise."""
    study = ToyStudy(points, how)
    return run_here(study, device, out, listener=listener, **more, isolate=isolate)


def sizes(*numbers: int) -> list[Point]:
    """Points of the toy study."""
    return [point(n) for n in numbers]


def test_every_point_is_verified_once_going_up_and_timed_once_per_round(tmp_path: Path) -> None:
    listener = Recorder()
    outcome = measure(tmp_path / "r", sizes(9, 6, 8, 7), listener=listener)
    assert outcome.counts == {"ok": 4}
    assert listener.stages == [("checking answers", 4)] + [
        (f"timing, round {r} of 3", 4) for r in (1, 2, 3)
    ]
    table = load(tmp_path / "r")
    verified = table[table["round"] == 0]
    assert list(verified["n"]) == [6, 7, 8, 9]
    assert verified["value_s"].isna().all()
    timed = table[table["round"] > 0]
    assert [sorted(rounds) for _, rounds in timed.groupby("n")["round"]] == [[1, 2, 3]] * 4
    assert (timed["samples"] >= 6).all()
    assert (timed["answer"] == timed["expected"]).all()


def test_a_listener_knows_what_is_measured_before_it_is(tmp_path: Path) -> None:
    """And whether it is timed; the steps of the rounds to come are announced."""
    told: list[tuple[object, ...]] = []

    class Witness(Recorder):
        def points(self, points: Sequence[Point]) -> None:
            told.append(("points", *(p.n for p in points)))

        def ahead(self, steps: int) -> None:
            told.append(("ahead", steps))

        def started(self, point: Point, *, timed: bool) -> None:
            told.append(("started", point.n, timed))

        def advanced(self, record: Any = None) -> None:
            told.append(("advanced", record.point["factors"]["n"], record.round > 0))

    measure(tmp_path / "r", sizes(6, 7), listener=Witness())
    assert told[0] == ("points", 6, 7)
    assert [one for one in told if one[0] == "ahead"] == [("ahead", 4), ("ahead", 2), ("ahead", 0)]
    steps = [one for one in told if one[0] in ("started", "advanced")]
    assert len(steps) == 2 * 2 * 4
    for before, after in zip(steps[::2], steps[1::2], strict=True):
        assert before == ("started", *after[1:]), "nothing else comes between"


def test_a_measurement_keeps_every_sample_and_its_phases_add_up(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(8))
    for record in read_records(tmp_path / "r").records[1:]:
        assert record.value_s == pd.Series(record.samples_s).median()
        assert record.ended_by == "target"
        phases = dict(record.phases)
        assert phases["kernel"] == record.value_s
        assert phases["split"] == 0.001
        assert phases["total"] == pytest.approx(sum(phases.values()) - phases["total"])


def test_each_round_has_its_own_recorded_order(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(*range(1, 9)))
    table = load(tmp_path / "r")
    orders = []
    for round_ in (1, 2, 3):
        block = table[table["round"] == round_]
        assert list(block["order"]) == list(range(8))  # visited as recorded
        orders.append(tuple(block["n"]))
        assert sorted(orders[-1]) == list(range(1, 9))
    assert len(set(orders)) == 3


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        ("wrong=7", "wrong", "the answer is 129, but the known one is 128"),
        ("fail=7", "launch_error", "launch failed"),
        ("refuse=7", "compile_error", "toy.cu:1"),
    ],
)
def test_a_point_that_fails_its_verification_is_never_timed(
    tmp_path: Path, fault: str, status: str, words: str
) -> None:
    outcome = measure(tmp_path / "r", sizes(6, 7, 8), f"fake:{fault}")
    assert outcome.counts == {"ok": 2, status: 1}
    [failure] = outcome.failures
    assert words in failure.reason
    rows = load(tmp_path / "r").query("n == 7")
    assert list(rows["round"]) == [0]
    assert rows["value_s"].isna().all()
    assert list(rows["samples"]) == [0]


def test_an_answer_that_turns_wrong_while_timed_loses_its_time(tmp_path: Path) -> None:
    outcome = measure(tmp_path / "r", sizes(6, 7), "fake:wrong=7,from_round=2")
    assert outcome.counts == {"ok": 1, "wrong": 1}
    rows = load(tmp_path / "r").query("n == 7")
    assert list(rows["round"]) == [0, 1, 2]  # and round 3 does not try it again
    assert list(rows["status"]) == ["ok", "ok", "wrong"]
    assert list(rows["samples"] > 0) == [False, True, False]


def test_rounds_are_fresh_processes_and_crashed_points_get_one_more(tmp_path: Path) -> None:
    outcome = measure(tmp_path / "r", sizes(6, 7), "fake:crash=7,from_round=1", isolate=True)
    assert outcome.counts == {"ok": 1, "crashed": 1}
    table = load(tmp_path / "r")
    assert list(table.query("n == 7")["round"]) == [0, 1, 2]
    assert table.query("n == 6").groupby("round")["worker"].first().nunique() == 4


def test_a_throttled_measurement_is_measured_once_more_and_kept(tmp_path: Path) -> None:
    # each measurement makes 10 launches: the 100th to 104th in a round fall into its last one
    points = sizes(*range(1, 13))
    outcome = measure(tmp_path / "r", points, "fake:throttle=2,throttle_for=5")
    assert outcome.counts == {"ok": 12}
    table = load(tmp_path / "r")
    assert set(table["status"]) == {"ok"}
    records = read_records(tmp_path / "r").records
    marked = [r for r in records if r.status == "throttled"]
    assert {r.round for r in marked} == {1, 2, 3}
    for record in marked:
        assert len(record.samples_s) >= 6  # kept as they are
        assert "hw_thermal_slowdown" in record.telemetry["clock_reasons"]
        repeat = [r for r in records if (r.key, r.round) == (record.key, record.round)][1]
        assert (repeat.status, repeat.worker) == ("ok", record.worker)
        assert repeat.order == 12  # after all others
    timed = table[table["round"] > 0]
    assert set(timed["sm_mhz"]) == {1500}
    assert set(timed["clock_reasons"]) == {""}
    assert timed["temperature_c"].max() == 50


def test_a_measurement_that_is_always_throttled_is_repeated_once_only(tmp_path: Path) -> None:
    listener = Recorder()
    how = replace(QUICK, samples=120)
    outcome = measure(tmp_path / "r", sizes(7), "fake:throttle=2", how, listener=listener)
    assert outcome.counts == {"throttled": 1}
    records = read_records(tmp_path / "r").records
    assert [(r.round, r.status) for r in records] == [
        (0, "ok"),
        *[(round_, "throttled") for round_ in (1, 1, 2, 2, 3, 3)],
    ]
    reason = outcome.failures[0].reason
    assert "slowed itself down (hw_thermal_slowdown; at 750 to 750 MHz, 90 degrees C)" in reason
    wrong = measure(tmp_path / "w", sizes(7), "fake:throttle=2,wrong=7,from_round=1", how)
    assert wrong.counts == {"wrong": 1}


def test_hot_and_cold_are_points_of_their_own(tmp_path: Path) -> None:
    points = [point(7, l2="hot"), point(7, l2="cold")]
    outcome = measure(tmp_path / "r", points, "fake:cold=1.5")
    assert outcome.counts == {"ok": 2}
    table = load(tmp_path / "r").query("round > 0")
    assert table["key"].nunique() == 2
    values = table.groupby("l2")["value_s"].unique()
    assert values["cold"] == pytest.approx(1.5 * values["hot"])


def test_lacking_telemetry_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(self: FakeDevice) -> None:
        raise DeviceError("NVML does not start")

    monkeypatch.setattr(FakeDevice, "sensor", absent)
    listener = Recorder()
    measure(tmp_path / "r", sizes(6, 7), listener=listener)
    assert listener.messages == ["clocks, heat and power are not recorded: NVML does not start"]
    assert all(r.telemetry == {} for r in read_records(tmp_path / "r").records)


def test_a_deterministic_device_gives_one_measurement_with_counters_no_time(tmp_path: Path) -> None:
    points = [*sizes(9, 8, 7), point(5, system="cpu.power")]
    listener = Recorder()
    outcome = measure(tmp_path / "r", points, "fake:deterministic=1", listener=listener)
    assert outcome.counts == {"ok": 4}
    assert listener.stages[0] == ("counting variants in the simulator", 3)
    table = load(tmp_path / "r")
    counted = table[table["simulated"]]
    assert list(counted["round"]) == [1, 1, 1]
    assert counted["warp_instructions"].gt(0).all()
    assert counted[["value_s", "kernel_s", "total_s"]].isna().all(axis=None)
    host = table[~table["simulated"]]
    assert set(host["device"]) == {"cpu"}
    assert list(host["round"]) == [0, 1, 2, 3]
    assert host.query("round > 0")["value_s"].gt(0).all()


def test_the_manifest_says_what_was_run_where_and_with_what(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(6), command=("nqbench", "run", "toy.yaml"))
    manifest = read_manifest(tmp_path / "r")
    assert manifest["command"] == ["nqbench", "run", "toy.yaml"]
    assert manifest["study"]["text"] == "name: toy\n"
    assert manifest["device"]["kind"] == "cuda"
    assert manifest["device"]["identity"]["noise"] == 0.003
    assert manifest["protocol"]["share_s"] == 1.0
    assert len(manifest["environment"]["source_sha256"]) == 16
    assert manifest["environment"]["packages"]["numpy"]
    [listed] = manifest["points"]
    assert listed["factors"] == {"n": 6}
    assert listed["key"] == read_records(tmp_path / "r").records[0].key


def test_failed_points_are_tried_again_and_the_rest_is_kept(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(6, 7), NOISY + ",wrong=7")
    listener = Recorder()
    outcome = measure(tmp_path / "r", sizes(6, 7), NOISY, listener=listener)
    assert outcome.counts == {"ok": 2}
    assert listener.stages[0] == ("checking answers", 1)
    assert set(load(tmp_path / "r")["status"]) == {"ok"}


def test_starting_over_keeps_the_old_records_aside(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(6))
    before = (tmp_path / "r" / RECORDS).read_bytes()
    listener = Recorder()
    measure(tmp_path / "r", sizes(6), fresh=True, listener=listener)
    assert listener.stages[0] == ("checking answers", 1)
    [aside] = (tmp_path / "r" / "old").iterdir()
    assert (aside / RECORDS).read_bytes() == before


def test_what_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(DeviceUnavailable, match="colour"):
        measure(tmp_path / "absent", sizes(6), "fake:colour=1")
    with pytest.raises(StoreError, match="reference run"):
        measure(tmp_path / "results" / "reference" / "x", sizes(6))
    assert not [*tmp_path.iterdir()]
    measure(tmp_path / "r", sizes(6))
    other = ToyStudy(sizes(6), QUICK, name="other")
    with pytest.raises(StoreError, match=r"holds a run of study 'toy', not 'other'.*--fresh"):
        run_here(other, NOISY, tmp_path / "r")
    with pytest.raises(StoreError, match="holds a run of device 'fake"):
        measure(tmp_path / "r", [point(5, system="cpu.power")], "cpu")
