"""Kernels are compiled by processes without a device, before anything is launched."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.compiler.compile import compile_cubin
from nqbench.devices.models import load_model
from nqbench.measure.budget import Budget
from nqbench.measure.dispatch import Dispatch
from nqbench.measure.run_state import RunState, Task
from nqbench.measure.sampling.sampling import Policy
from nqbench.measure.stages import Stages
from nqbench.measure.worker.pool import WorkerPool, Workers
from nqbench.plan import KernelPlan
from nqbench.point import Point
from nqbench.runs.folder import RunWriter
from nqbench.study import Measure
from nqbench.workloads import get
from tests.measure.toy import Recorder, point

FACTS = load_model("sm_90").facts


class OnlyCompilers:
    """WorkerFactory for a test without a device."""

    def __call__(self, size: int = 1) -> Workers:
        raise AssertionError("compiling must not open a device")

    def compilers(self) -> Workers:
        """Two real processes."""
        return WorkerPool(None, 2)


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
        dispatch = Dispatch(measure, Policy(), state, Budget(measure), listener, OnlyCompilers())
        stages = Stages(dispatch, 1)
        kept = stages.compile(tasks, FACTS)
    assert [t.key for t in kept] == ["good", "host"]
    refused = state.latest(tasks[1], 0)
    assert refused is not None
    assert refused.status == "compile_error"
    assert "toy.cu" in refused.reason
    plan = workload.plan(good.factors, good.system, FACTS)
    assert isinstance(plan, KernelPlan)
    assert compile_cubin(plan.source, plan.entry, FACTS.arch, plan.options).cached
