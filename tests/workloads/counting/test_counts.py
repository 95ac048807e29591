"""Counts by enumeration: against plain recursion, published numbers, and the kernels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.device import Device
from nqbench.errors import AnalysisError, InfeasibleError, StudyError
from nqbench.workloads.counting import WORKLOAD, counts, enumeration
from nqbench.workloads.counting.counts import (
    COUNTS,
    Sample,
    count,
    sample_jobs,
    sampled_divergence,
    sampled_utilization,
)
from nqbench.workloads.counting.enumeration import Split
from nqbench.workloads.counting.jobs import OddRule, masks_of_jobs
from nqbench.workloads.counting.known import SOLUTIONS
from tests.workloads.counting import oracle
from tests.workloads.counting.steps import lockstep, steps, traces, warps
from tests.workloads.running import run

LOOP_OF = {
    "feinbube2010.opt4_compact": "somers",
    "tanaka2011.both": "place_first",
    "zhang2011.naive_l1_16k": "branchy",
    "zhang2011.low_divergence": "irrc",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test enumerates anew."""
    monkeypatch.setattr(enumeration, "cache_folder", lambda: tmp_path)
    return tmp_path


def probed(device: Device, system: str, n: int, probe: str) -> dict[str, int | float]:
    """What an instrumented kernel counts."""
    ran = run(WORKLOAD, device, {"n": n, "probe": probe}, system, times=1)
    return dict(WORKLOAD.counters(ran.plan, ran.outputs))


@pytest.mark.parametrize("loop", ["somers", "branchy", "irrc"])
@pytest.mark.parametrize(("n", "depth"), [(6, 2), (7, 4), (8, 3), (9, 5)])
@pytest.mark.parametrize("rule", ["restrict_second", "full_middle"])
def test_iterations_of_every_job(loop: str, n: int, depth: int, rule: OddRule) -> None:
    jobs = oracle.jobs(n, depth, rule)
    expected = [len(trace) for trace in traces(n, jobs, loop)]
    words = masks_of_jobs(n, depth, "mirror", rule)
    split = Split(n, depth, "mirror", rule)
    work = enumeration.work_of(split, words, 0, len(jobs))
    assert enumeration.loop_iterations(loop, work).tolist() == expected
    found = enumeration.enumerate_jobs(split, threads=2).iterations[loop]
    assert (found.count, found.total) == (len(jobs), sum(expected))
    assert (found.min, found.max) == (min(expected), max(expected))
    assert found.mean == pytest.approx(np.mean(expected))
    assert found.variance == pytest.approx(np.var(expected))


def test_nodes_of_a_task_are_the_queens_placed_below_it() -> None:
    n, depth = 8, 4
    jobs = oracle.jobs(n, depth, "restrict_second")
    nodes = [sum(steps(n, prefix, "branchy")) for prefix in jobs]
    assert count("min_nodes_per_task", N=n, m=depth) == min(nodes)
    assert count("max_nodes_per_task", N=n, m=depth) == max(nodes)
    assert count("mean_nodes_per_task", N=n, m=depth) == pytest.approx(np.mean(nodes))
    assert count("nodes_per_task", N=n, m=depth, stat="sd") == pytest.approx(np.std(nodes))


def test_the_lists_of_zhang2011_at_n_15() -> None:
    """Every job of the paper's smallest board, enumerated apart from this code."""
    low = count("iterations_per_job", system="low_divergence", N=15)
    assert isinstance(low, dict)
    assert (low["min"], low["max"], round(low["mean"], 1)) == (3559, 46238, 20038.8)
    naive = count("iterations_per_job", system="naive_l1_16k", N=15)
    assert isinstance(naive, dict)
    assert round(naive["mean"], 1) == 24557.2
    assert count("iterations", system="naive_l1_16k", N=15) == naive["total"]
    assert count("iterations_total", system="low_divergence", N=15) == low["total"]


def test_jobs_and_tasks_as_printed() -> None:
    jobs = {15: 7432, 16: 70906, 17: 762380, 18: 7409150}
    assert {n: count("jobs", N=n, k=n - 11) for n in jobs} == jobs
    by_depth = {2: 105, 3: 1118, 4: 9844, 5: 70906, 6: 419408}
    assert {m: count("tasks", N=16, m=m) for m in by_depth} == by_depth


def test_bytes_to_the_device() -> None:
    assert count("h2d_bytes", N=17, m=5, encoding="base_n") == 4 * 108466
    assert count("h2d_bytes", N=17, m=5, encoding="one_hot_rows") == 4 * 5 * 108466
    assert count("h2d_bytes", system="low_divergence", N=15) == 12 * 7432


@pytest.mark.parametrize("n", range(5, 13))
def test_solutions(n: int) -> None:
    assert count("solutions", N=n) == SOLUTIONS[n]
    assert count("solutions", N=n, system="low_divergence") == SOLUTIONS[n]


@pytest.mark.parametrize(("system", "n"), list(zip(LOOP_OF, (8, 9, 8, 9), strict=True)))
def test_counts_are_those_of_the_instrumented_kernels(
    simulator: Device, system: str, n: int
) -> None:
    iterations = probed(simulator, system, n, "iterations")
    assert count("jobs", N=n, system=system) == iterations["probed_jobs"]
    assert count("iterations", N=n, system=system) == iterations["iterations_total"]
    for stat in ("min", "max", "mean", "variance", "sd"):
        value = count("iterations_per_job", N=n, system=system, stat=stat)
        assert value == pytest.approx(iterations[f"iterations_per_job_{stat}"])
    accesses = probed(simulator, system, n, "accesses")
    for name in ("workspace_loads", "workspace_stores", "workspace_accesses"):
        assert count(name, N=n, system=system) == accesses[name]


def test_replayed_rows_are_accesses_too(simulator: Device) -> None:
    system = "feinbube2010.opt2_shared_all"
    found = probed(simulator, system, 8, "accesses")
    assert count("workspace_accesses", N=8, system=system) == found["workspace_accesses"]


@pytest.mark.parametrize("loop", ["somers", "branchy", "irrc"])
def test_warps_in_step(loop: str) -> None:
    n, depth = 8, 4
    groups = warps(traces(n, oracle.jobs(n, depth, "full_middle"), loop))[:-1]  # full warps only
    expected = [lockstep(group) for group in groups]
    found = sampled_divergence(Split(n, depth), loop, Sample(10_000))
    assert found["warps"] == len(groups)
    passes = sum(p for p, _, _ in expected)
    assert found["warp_iterations_mean"] == pytest.approx(passes / len(groups))
    assert found["share"] == pytest.approx(sum(s for _, s, _ in expected) / passes)
    shares = [lanes / (32 * p) for p, _, lanes in expected]
    used = sampled_utilization(Split(n, depth), loop, Sample(10_000))
    assert used["mean"] == pytest.approx(np.mean(shares))
    assert (used["min"], used["max"]) == pytest.approx((min(shares), max(shares)))
    assert used["value"] == pytest.approx(sum(lanes for *_, lanes in expected) / (32 * passes))


def test_a_sample_is_warps_of_neighbours_and_repeats() -> None:
    drawn = sample_jobs(1000, Sample(5, seed=3))
    assert drawn.shape == (5, 32)
    assert (np.diff(drawn, axis=1) == 1).all()
    assert (drawn[:, 0] % 32 == 0).all()
    assert (drawn == sample_jobs(1000, Sample(5, seed=3))).all()
    shuffled = sample_jobs(1000, Sample(5, seed=3, order="random"))
    assert len(set(shuffled.ravel().tolist())) == 5 * 32
    assert (np.diff(shuffled, axis=1) != 1).any()


def test_sampled_warps_of_18_queens_agree_with_an_earlier_sample() -> None:
    """5,000 and 400 warps drawn elsewhere: mean utilization 0.559, 0.401 in random order; split
    passes 0.852 and 0.845. Tolerances: four standard errors of both samples together."""
    consecutive = count("warp_utilization", N=18, warps=200)
    assert isinstance(consecutive, dict)
    tolerance = 4 * consecutive["sd"] * math.sqrt(1 / 200 + 1 / 5000)
    assert abs(consecutive["mean"] - 0.559) < tolerance
    mixed = count("warp_utilization", N=18, warps=200, order="random")
    assert isinstance(mixed, dict)
    assert abs(mixed["mean"] - 0.401) < 4 * mixed["sd"] * math.sqrt(1 / 200 + 1 / 5000)
    found = sampled_divergence(Split(18, 7), "irrc", Sample(50))
    assert abs(found["share"] - 0.845) < 4 * found["standard_error"] * math.sqrt(1 + 50 / 400)


def test_a_large_tree_is_walked_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnalysisError, match="full=True"):
        count("iterations", system="low_divergence", N=17)
    monkeypatch.setattr(counts, "MAX_N_ON_THE_FLY", 8)
    with pytest.raises(AnalysisError, match="n = 9"):
        count("iterations", system="low_divergence", N=9)
    asked = count("iterations", system="low_divergence", N=9, full=True)
    with monkeypatch.context() as now:
        now.setattr(enumeration, "enumerate_jobs", None)
        assert count("iterations", system="low_divergence", N=9, full=True) == asked  # the disk's
    # What is said unasked must not depend on what the disk has.
    with pytest.raises(AnalysisError, match="n = 9"):
        count("iterations", system="low_divergence", N=9)


def test_a_damaged_store_is_walked_again(own_cache: Path) -> None:
    first = count("iterations", N=9)
    (file,) = (own_cache / "counts").iterdir()
    file.write_text(file.read_text(encoding="utf-8")[:50], encoding="utf-8")
    assert count("iterations", N=9) == first
    assert len(file.read_text(encoding="utf-8")) > 50  # and stored again


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("itrations", {"N": 8}, "did you mean 'iterations'"),
        ("jobs", {"N": 8, "depht": 3}, "no parameter 'depht'; did you mean 'depth'"),
        ("jobs", {"N": 8, "stat": "mean"}, "no parameter 'stat'"),
        ("jobs", {}, "whole number n"),
        ("iterations", {"N": 8, "system": "low_divergense"}, "low_divergence"),
        ("iterations", {"N": 8, "system": "cpu.somers"}, "no system 'cpu.somers'"),
        ("iterations_per_job", {"N": 8, "stat": "median"}, "no statistic is called 'median'"),
        ("h2d_bytes", {"N": 8, "encoding": "one_hot"}, "encoding: no level 'one_hot'"),
        ("jobs", {"N": 8, "k": 6}, "depth: 6"),
        ("jobs", {"N": 8, "k": 0}, "depth: 0"),
        ("occupancy_percent", {"compute_capability": "1.2", "block_size": 32}, "not known"),
        ("iterations", {"N": 10, "system": "frontier.predicated"}, "symmetry: full without a run"),
        ("warp_utilization", {"N": 10, "system": "frontier.predicated"}, "full without a run"),
    ],
)
def test_mistakes(name: str, params: dict[str, object], said: str) -> None:
    with pytest.raises((StudyError, InfeasibleError), match=said):
        count(name, **params)


@pytest.mark.parametrize(
    ("launch", "percent"),
    [
        (("1.1", 32), 100 * 8 / 24),  # eight blocks of a warp
        (("1.1", 33), 100 * 16 / 24),
        (("1.1", 256), 100),
        (("1.1", 256, 11), 100 * 16 / 24),  # two blocks of 256 threads with 11 of 8192 registers
        (("1.1", 32, 0, 5120), 100 * 3 / 24),  # N = 16, six rows on the CPU: 160 bytes per thread
        (("1.1", 512, 0, 16385), 0),
        (("1.3", 64), 100 * 16 / 32),
    ],
)
def test_occupancy_of_the_papers_gpus(launch: tuple[Any, ...], percent: float) -> None:
    names = ("compute_capability", "block_size", "registers", "shared_bytes")
    given = dict(zip(names, launch, strict=False))
    assert count("occupancy_percent", N=16, **given) == pytest.approx(percent)


def test_every_count_has_a_meaning_and_a_value() -> None:
    for name, kind in COUNTS.items():
        assert kind.about
        assert count(name, N=9) is not None
    assert count("jobs", N=10, system="frontier.predicated") == 1686
