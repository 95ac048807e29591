"""What the stages of a run do: the whole way, compiling without a device, and counting."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.analysis.data.dataset import load_dataset
from nqbench.measure.budget import Budget
from nqbench.measure.measurement import Measurement
from nqbench.measure.run_state import RunState, Task
from nqbench.measure.sampling import Policy
from nqbench.measure.stages import Stages
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.pool import WorkerPool, Workers
from nqbench.measure.worker.session import Session
from nqbench.plan import KernelPlan
from nqbench.point import Point
from nqbench.runs.folder import RunWriter
from nqbench.runs.frame import load
from nqbench.simulator.models import load_model
from nqbench.study import Measure
from nqbench.vocabulary import COUNTERS
from nqbench.workloads import get, probe_counters
from tests.compiling import compile_cubin
from tests.measure.toy import point
from tests.toys import Recorder, ToyStudy, run_here

FACTS = load_model("sm_90").facts


class OnlyCompilers:
    """WorkerFactory for a test without a device."""

    def __call__(self, size: int = 1) -> Workers:
        raise AssertionError("compiling must not open a device")

    def compilers(self) -> Workers:
        """A real process."""
        return WorkerPool(None)


def task(name: str, where: Point) -> Task:
    """A timed task on a GPU."""
    return Task(where, name, "cuda:0", exact=False)


def test_kernels_are_in_the_cache_afterwards_and_refused_ones_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path / "cache"))
    workload = get("counting")
    found = workload.resolve({"n": 7}, "zhang2011.low_divergence", FACTS)
    system = "zhang2011.low_divergence"
    good = Point("s", "w", "counting", system, found.factors, found.derived)
    tasks = [
        task("good", good),
        task("no source", point(8)),  # the toy's kernel has no file
        task("host", point(8, system="cpu.power")),
    ]
    listener = Recorder()
    measure = Measure()
    with RunWriter(tmp_path / "run") as writer:
        state = RunState(writer, (), tasks, listener)
        stages = Stages(measure, Policy(), state, Budget(measure), listener, OnlyCompilers())
        kept = stages.compile(tasks, FACTS)
    assert [t.key for t in kept] == ["good", "host"]
    assert [state.has(t.key) for t in tasks] == [False, True, False]
    hello = Session("fake").hello()
    assert [Task.of(t.point, "k", hello).device for t in tasks] == ["fake", "fake", "cpu"]
    refused = state.latest(tasks[1], 0)
    assert refused is not None
    assert refused.status == "compile_error"
    assert "toy.cu" in refused.reason
    plan = workload.plan(good.factors, good.system, FACTS)
    assert isinstance(plan, KernelPlan)
    assert compile_cubin(plan.source, plan.entry, FACTS.arch, plan.options).cached


QUICK = Measure(rounds=2, samples=5, budget_s=3.0)


def test_on_a_timed_device_they_have_one_measurement_without_a_time(tmp_path: Path) -> None:
    study = ToyStudy([point(8), point(8, probe="iterations"), point(9, probe="none")], QUICK)
    listener = Recorder()
    outcome = run_here(study, "fake", tmp_path, listener=listener)
    assert outcome.counts == {"ok": 3}
    assert listener.stages[:2] == [
        ("counting variants without timing them", 1),
        ("checking answers", 2),
    ]
    table = load(tmp_path)
    probed = table[table["probe"] == "iterations"]
    assert list(probed["round"]) == [1]
    assert probed[["value_s", "kernel_s", "total_s"]].isna().all(axis=None)
    assert list(probed.status) == ["ok"]
    rest = table[table["probe"] != "iterations"]
    assert sorted(rest["round"]) == [0, 0, 1, 1, 2, 2]
    assert rest[rest["round"] > 0]["value_s"].notna().all()
    seen = load_dataset(tmp_path).points  # reports do not see them
    assert [(p.n, p.levels.get("probe")) for p in seen] == [(8, None), (9, "none")]
    assert {p.status for p in seen} == {"ok"}


def test_their_counters_are_the_probes_own() -> None:
    """The simulator's would count the instrumentation as work of the kernel."""
    session, workload, system = Session("sim:mini"), get("counting"), "zhang2011.low_divergence"

    def measured(probe: str) -> Measurement:
        resolved = workload.resolve({"n": 8, "probe": probe}, system, session.device.facts)
        where = Point("s", "w", "counting", system, resolved.factors, resolved.derived)
        assert where.probed == (probe != "none")
        return session.measure(MeasureRequest(where, 0, False, Policy(), timeout_s=10.0))

    plain, probed = measured("none"), measured("iterations")
    session.close()
    assert (plain.status, plain.ended_by) == ("ok", "deterministic")
    assert set(plain.counters) <= set(COUNTERS)
    assert (probed.status, probed.ended_by) == ("ok", "probed")
    assert set(probed.counters) <= set(probe_counters())
    assert probed.counters["iterations_total"] > 0
    assert probed.answer == probed.expected == "92"
