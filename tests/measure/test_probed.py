"""Instrumented points: launched once, counted, never timed and never compared."""

from __future__ import annotations

from pathlib import Path

from nqbench.analysis.data.collect import load_dataset
from nqbench.measure.runner import run_study
from nqbench.measure.sampling.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.session import Session
from nqbench.point import Point, labels
from nqbench.runs.frame import load
from nqbench.study import Measure
from nqbench.vocabulary import COUNTERS
from nqbench.workloads import get, probe_counters
from tests.measure.toy import Recorder, ToyStudy, point

QUICK = Measure(rounds=2, samples=5, budget_s=3.0)


def test_on_a_timed_device_they_have_one_block_without_a_time(tmp_path: Path) -> None:
    study = ToyStudy([point(8), point(8, probe="iterations"), point(9, probe="none")], QUICK)
    listener = Recorder()
    outcome = run_study(
        study, "fake", tmp_path, isolate=False, listener=listener, expand=study.expand
    )
    assert outcome.counts == {"ok": 3}
    assert listener.stages[:2] == [("count", 1), ("verify", 2)]
    table = load(tmp_path)
    probed = table[table["probe"] == "iterations"]
    assert list(probed["round"]) == [1]
    assert probed[["value_s", "kernel_s", "total_s"]].isna().all(axis=None)
    assert list(probed.status) == ["ok"]
    rest = table[table["probe"] != "iterations"]
    assert sorted(rest["round"]) == [0, 0, 1, 1, 2, 2]
    assert rest[rest["round"] > 0]["value_s"].notna().all()


def test_reports_do_not_see_them(tmp_path: Path) -> None:
    study = ToyStudy([point(8), point(8, probe="iterations"), point(9, probe="none")], QUICK)
    run_study(study, "fake", tmp_path, isolate=False, expand=study.expand)
    seen = load_dataset(tmp_path).points
    assert [(p.n, p.levels.get("probe")) for p in seen] == [(8, None), (9, "none")]
    assert {p.status for p in seen} == {"ok"}


def counting_point(probe: str) -> Point:
    """A small point of the counting workload on the simulator."""
    workload = get("counting")
    facts = Session("sim:mini").device.facts
    system = "zhang2011.low_divergence"
    resolved = workload.resolve({"n": 8, "probe": probe}, system, facts)
    return Point("s", "w", "counting", system, dict(resolved.factors), dict(resolved.derived))


def test_their_counters_are_the_probes_own() -> None:
    """The simulator's would count the instrumentation as work of the kernel."""
    session = Session("sim:mini")
    plain, probed = (
        session.measure(MeasureRequest(counting_point(p), 0, False, Policy(), timeout_s=10.0))
        for p in ("none", "iterations")
    )
    session.close()
    assert (plain.status, probed.status) == ("ok", "ok")
    assert set(plain.counters) <= set(COUNTERS)
    assert plain.ended_by == "deterministic"
    assert set(probed.counters) <= set(probe_counters())
    assert probed.counters["iterations_total"] > 0
    assert probed.ended_by == "probed"
    assert probed.answer == probed.expected == "92"


def test_labels_tell_them_from_the_kernel_itself() -> None:
    points = [counting_point("none"), counting_point("clocks")]
    assert [p.probed for p in points] == [False, True]
    first, second = labels(points)
    assert first != second
    assert second.endswith("probe=clocks")
