"""Estimates, quantities, and how the measurements of a run become its points."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.data.select import launch_text, paper_of
from nqbench.analysis.factorial.effects import distinct_factors, swept_factors
from nqbench.errors import AnalysisError
from tests.builders import H100, MINI, Builder, ablation, factorial, interval


def test_interval_is_students_t_on_logarithms() -> None:
    values = [1.0, 1.1, 0.95, 1.02, 1.05]
    estimate = combine(values)
    logs = np.log(values)
    low, high = scipy.stats.t.interval(0.95, df=4, loc=logs.mean(), scale=scipy.stats.sem(logs))
    assert interval(estimate) == pytest.approx(
        (math.exp(low), scipy.stats.gmean(values), math.exp(high))
    )
    inverses = combine([1 / value for value in values])
    assert interval(estimate.inverse()) == pytest.approx(interval(inverses))
    assert (estimate.rounds, estimate.exact) == (5, False)


@pytest.mark.parametrize(
    ("estimate", "other", "differs"),
    [
        (combine([2.0]), 1, False),  # one round claims nothing
        (combine([3.0, 3.0], exact=True), 1, True),
        (combine([3.0, 3.0], exact=True), 3, False),
        (Estimate(math.nan, exact=True), 1, False),
        (combine([1.01, 1.03, 1.02, 1.05, 1.02]), 1, True),
    ],
)
def test_estimates_differ_where_known(estimate: Estimate, other: float, differs: bool) -> None:
    assert estimate.differs_from(other) == differs
    assert not (differs and estimate.bounded and estimate.differs_from(other, comparisons=100))


def test_bonferroni_uses_the_exact_quantile() -> None:
    """Just inside and just outside of the widened interval."""
    logs = np.array([-0.01, 0.0, 0.01])
    estimate = combine(list(np.exp(logs)))
    half = scipy.stats.t.ppf(1 - 0.05 / 4 / 2, 2) * scipy.stats.sem(logs)
    assert not estimate.differs_from(math.exp(half * 0.999), comparisons=4)
    assert estimate.differs_from(math.exp(half * 1.001), comparisons=4)


def test_what_a_quantity_is_and_reads() -> None:
    row = {"local_sectors": 3.0, "global_sectors": 4.0}
    assert quantity("off_chip_sectors").of(row) == 7.0
    assert math.isnan(quantity("bank_conflicts").of({})), "not recorded is not zero"
    assert quantity("kernel").kind == "time"
    assert quantity("issue_slots").kind == "counter"
    assert quantity("warp_instructions@apply").better == "lower"
    assert quantity("barriers").better == ""
    with pytest.raises(AnalysisError, match="did you mean 'bank_conflicts'"):
        quantity("bank_conflict")


LOST = {"value_s": None, "reason": "signal 9"}


@pytest.mark.parametrize(
    ("changes", "status", "rounds", "reason"),
    [
        ({}, "ok", [1, 2, 3], ""),
        ({2: LOST | {"status": "wrong", "reason": "", "answer": "1", "expected": "2"}},
         "wrong", [], "answer 1, expected 2"),
        ({2: LOST | {"status": "crashed"}}, "ok", [1, 3], "1 measurement lost: crashed: signal 9"),
        ({1: {"status": "unchecked"}}, "unchecked", [1, 2, 3], ""),
        ({1: {"value_s": 0.0}, 2: {"key": "old"}, 3: {"key": "old"}},
         "unfinished", [], "measurements took 0 s"),
        ({1: {"status": "throttled", "value_s": 9.0}},
         "ok", [2, 3], "1 measurement throttled and left out"),
        ({r: {"status": "throttled", "reason": "hot"} for r in range(4)}, "throttled", [], "hot"),
        ({r: {"key": "old"} for r in (0, 1)}, "ok", [2, 3], ""),
        ({r: {"key": "old"} for r in (1, 2, 3)}, "unfinished", [], "verified, but"),
        ({r: {"key": "old"} for r in (0, 1, 2, 3)}, "unfinished", [], "planned, but the run ended"),
    ],
)  # fmt: skip
def test_the_measurements_of_a_point(
    changes: dict[int, dict[str, Any]], status: str, rounds: list[int], reason: str
) -> None:
    """One wrong answer condemns it; a lost or throttled round, or one of another key, does not."""
    builder = Builder(H100, rounds=3)
    builder.time("s", {"n": 15, "memory": "shared"}, 0.5)
    for number, changed in changes.items():
        builder.rows[number] |= changed
    (point,) = builder.data().points
    assert (point.status, sorted(point.values(TIME))) == (status, rounds)
    assert (point.n, point.levels) == (15, {"memory": "shared"})
    assert reason in point.reason
    assert bool(reason) == bool(point.reason)
    if rounds:
        values = [builder.rows[r]["value_s"] for r in rounds]
        assert point.value(TIME) == pytest.approx(scipy.stats.gmean(values))


def test_the_order_of_lines_changes_nothing() -> None:
    builder = factorial(sizes=(15,))
    one = builder.data()
    random.Random(3).shuffle(builder.rows)
    two = builder.data()
    builder.rows.append(max(builder.rows, key=lambda row: row["round"]) | {"round": 6})
    assert one.rounds == builder.data().rounds == 5, "stopped in its sixth round"
    assert [p.levels for p in one.points] == [p.levels for p in two.points]
    assert [p.estimate(TIME) for p in one.points] == [p.estimate(TIME) for p in two.points]


def test_a_simulated_run_has_counters_and_its_cpu_baselines_have_times() -> None:
    data = ablation(MINI).data()
    assert data.provenance == "simulated"
    assert data.points[0].estimate(TIME) is None
    estimate = data.points[0].estimate(quantity("warp_instructions"))
    assert estimate is not None
    assert estimate.exact
    hosts = data.select("systems", cpu=True)
    assert {p.system for p in hosts} == {"cpu.somers", "cpu.multicore"}
    assert all(p.estimate(TIME) for p in hosts)
    assert not any(p.values(quantity("warp_instructions")) for p in hosts)
    assert Dataset("", {"device": H100, "devices": [1, 2]}, (), 5).device.endswith("(2 of them)")
    made_up = Dataset("x", {"device": {"spec": "fake:seed=1", "kind": "cuda"}}, (), 5)
    assert "not measured" in made_up.provenance


def test_factors_that_do_not_apply_are_left_out_whatever_their_form() -> None:
    builder = Builder(H100, rounds=2)
    builder.time("s", {"n": 15, "memory": "shared", "pool_size": 256}, 1.0)
    builder.time("s", {"n": 15, "memory": "local", "pool_size": "-"}, 1.0)
    builder.time("s", {"n": 15, "memory": "global", "blocks": {"per_sm": 2}}, 1.0)
    pooled, local, spread = builder.data().points
    assert pooled.levels["pool_size"] == 256
    assert "pool_size" not in local.levels
    assert spread.level("blocks") == "2/SM"
    levels = {"n": 15, "depth": 4, "block_size": "auto", "blocks": "from_jobs"}
    builder.time("t", levels, 1.0, block_size_used=160)
    data = builder.data()
    assert launch_text(data, data.points[-1]) == "depth 4, block_size auto (160)"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["/opt/venv/bin/nqbench", "run", "a b.yaml"], "nqbench run 'a b.yaml'"),
        (["/x/nqbench/__main__.py", "run", "c.yaml"], "nqbench run c.yaml"),
        (["nqbench", "run", "/x/c.yaml", "-o/tmp/a"], "nqbench run FOLDER/c.yaml -oFOLDER/a"),
        (["nqbench", "run", f"{Path.cwd()}/c", "--out=a"], "nqbench run FOLDER/c --out=a"),
        ("nqbench run 'x", """nqbench run ''"'"'x'"""),
        (["tool.py", "run"], "tool.py run"),
        ([], "nqbench run"),
    ],
)
def test_command_names_no_folder_of_a_computer(command: Any, shown: str) -> None:
    assert Dataset("x", {"command": command}, (), 0).command == shown


def test_swept_factors_come_from_the_study() -> None:
    data = ablation().data()
    assert swept_factors(data, "factorial") == ("memory", "layout", "loop", "assignment")
    assert swept_factors(data, "systems") == ("system",)
    assert set(swept_factors(data, "launch")) == {"depth", "block_size"}
    assert data.order("factorial", "memory") == ["global", "shared"]
    assert data.order("factorial", "assignment")[0] == "one_per_thread"
    listed: dict[str, Any] = {"name": "s", "matrix": {"memory": [], "loop": []}}
    follows = Builder(H100, rounds=2, sweeps=[listed])
    for memory, words in (("shared", 4), ("global", 1)):
        for loop in ("branchy", "irrc"):
            levels = {"n": 9, "memory": memory, "words": words, "loop": loop}
            follows.time("s", levels, 1.0)
    assert swept_factors(follows.data(), "s") == ("memory", "loop"), "words follow the memory"
    assert follows.data().order("s", "words") == [1, 4]
    assert distinct_factors(follows.data(), "s", ()) == ("memory", "loop")


@pytest.mark.parametrize(
    ("cpu", "timed", "counted"), [(False, False, True), (False, True, False), (True, False, False)]
)
def test_counters_are_those_of_simulated_kernels(cpu: bool, timed: bool, counted: bool) -> None:
    """What a timed kernel's record counts is another thing: a profiler's, or a program's own."""
    row = {"value_s": 1.0, "warp_instructions": 7}
    point = PointResult("s", "x", 8, {"n": 8}, cpu, timed, "ok", "", {1: row})
    assert point.values(quantity("warp_instructions")) == ({1: 7} if counted else {})
    errors = {r: {"largest_absolute_error": e} for r, e in ((1, 0.5), (2, 0.75), (3, 0.25))}
    assert replace(point, measurements=errors).value(quantity("largest_absolute_error")) == 0.75


@pytest.mark.parametrize(
    ("system", "program", "cpu"),
    [
        ("cpu.somers", None, True),
        ("tanaka2011.none", None, False),
        ("mine", {"device": "cpu"}, True),
        ("cpu.somers", {"device": "gpu"}, False),
    ],
)
def test_where_a_point_would_have_run(system: str, program: Any, cpu: bool) -> None:
    """Its size is 0 where a foreign file knows none; kernels give the sizes of a run."""
    builder = Builder(H100)
    builder.time("s", {"n": 14}, 1.0)
    builder.skip("s", {"block_size": 32}, "too long", system)
    builder.points[-1]["program"] = program
    data = builder.data()
    assert (data.points[1].cpu, data.points[1].n) == (cpu, 0)
    assert data.sizes == ([14] if cpu else [0, 14])


def test_the_paper_of_a_system() -> None:
    naive = "zhang2011.naive_l1_16k"
    for study, system, paper in (
        *(("ablation", naive, "zhang2011"), ("tanaka2011", naive, "tanaka2011")),
        ("ablation", "middle", "ablation"),
    ):
        assert paper_of(Dataset(study, {}, (), 1), system) == paper


@pytest.mark.parametrize(
    ("created", "device", "workload", "older"),
    [
        ("2026-11-22T12:00:00+00:00", H100, "counting", True),
        ("2026-11-22T14:00:00+02:00", H100, "counting", True),
        ("2026-11-22T13:00:00+00:00", H100, "counting", False),
        ("2026-11-22T12:00:00+00:00", H100, "fitness", False),
        ("2026-11-22T12:00:00+00:00", MINI, "counting", False),
    ],
)
def test_a_run_says_that_it_is_older_than_a_change_of_what_it_measures(
    created: str, device: dict[str, Any], workload: str, older: bool
) -> None:
    run = Builder(device).data()
    manifest = {**run.manifest, "created": created, "study": {"workload": workload}}
    said = replace(run, manifest=manifest).older_than
    assert [text.startswith("all cores of the CPU make the jobs") for text in said] == [
        True
    ] * older
    points = (PointResult("s", "middle", 8, {"n": 8}, False, True, "ok", "", {}),)
    more = replace(run, manifest=manifest, points=points).older_than
    assert any("joins six tiles" in text for text in more) == (
        device == H100 and workload == "counting"
    )
