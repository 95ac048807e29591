"""Counts by enumeration: against plain recursion, published numbers, and the kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.device import Device
from nqbench.errors import AnalysisError, InfeasibleError, StudyError
from nqbench.workloads.counting import WORKLOAD, enumeration
from nqbench.workloads.counting.counts import count
from nqbench.workloads.counting.enumeration import Split
from nqbench.workloads.counting.jobs import OddRule, words_of_jobs
from nqbench.workloads.counting.known import SOLUTIONS
from tests.workloads.counting import oracle
from tests.workloads.counting.steps import traces
from tests.workloads.running import run


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test enumerates anew."""
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path))
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
    words = words_of_jobs(n, depth, "masks", "mirror", rule)
    split = Split(n, depth, "mirror", rule)
    work = enumeration.work_of(split, words, 0, len(jobs))
    assert enumeration.loop_iterations(loop, work).tolist() == expected
    found = enumeration.enumerate_jobs(split).iterations[loop]
    assert (found.count, found.total) == (len(jobs), sum(expected))
    assert (found.min, found.max) == (min(expected), max(expected))
    assert found.mean == pytest.approx(np.mean(expected))
    assert found.variance == pytest.approx(np.var(expected))


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
    assert {n: count("jobs", N=n, depth=n - 11) for n in jobs} == jobs
    assert count("jobs", N=16, depth=6, encoding="base_n") == 419408
    assert count("jobs", N=10, system="frontier.predicated") == 1686


def test_bytes_to_the_device() -> None:
    assert count("h2d_bytes", N=17, depth=5, encoding="base_n") == 4 * 108466
    assert count("h2d_bytes", N=17, depth=5, encoding="rows") == 4 * 5 * 108466
    assert count("h2d_bytes", system="low_divergence", N=15) == 12 * 7432


@pytest.mark.parametrize("n", range(5, 13))
def test_solutions(n: int) -> None:
    assert count("solutions", N=n) == SOLUTIONS[n]
    assert count("solutions", N=n, system="low_divergence") == SOLUTIONS[n]


@pytest.mark.parametrize(
    ("system", "n"),
    [
        ("feinbube2010.opt4_compact", 8),
        ("feinbube2010.opt2_shared_all", 8),  # replays the rows given
        ("tanaka2011.both", 9),
        ("zhang2011.naive_l1_16k", 8),
        ("zhang2011.low_divergence", 9),
    ],
)
def test_counts_are_those_of_instrumented_kernels(simulator: Device, system: str, n: int) -> None:
    iterations = probed(simulator, system, n, "iterations")
    assert count("jobs", N=n, system=system) == iterations["probed_jobs"]
    assert count("iterations", N=n, system=system) == iterations["iterations_total"]
    for stat in ("min", "max", "mean", "variance", "sd"):
        value = count("iterations_per_job", N=n, system=system, stat=stat)
        assert value == pytest.approx(iterations[f"iterations_per_job_{stat}"])
    accesses = probed(simulator, system, n, "accesses")
    assert count("workspace_accesses", N=n, system=system) == accesses["workspace_accesses"]


def test_a_large_tree_is_not_walked_and_another_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnalysisError, match="n = 17, minutes"):
        count("iterations", system="low_divergence", N=17)
    asked = count("iterations", system="low_divergence", N=9)
    monkeypatch.setattr(enumeration, "enumerate_jobs", None)
    assert count("iterations", system="low_divergence", N=9) == asked  # the disk's


def test_a_damaged_store_is_walked_again(own_cache: Path) -> None:
    first = count("iterations", N=9)
    (file,) = (own_cache / "counts").iterdir()
    before = file.read_bytes()
    file.write_bytes(before.replace(b"1", b"2"))
    assert count("iterations", N=9) == first
    assert file.read_bytes() == before  # stored again


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
        ("h2d_bytes", {"N": 8, "encoding": "one_hot"}, "'encoding' takes "),
        ("jobs", {"N": 8, "depth": 6}, "depth: 6"),
        ("jobs", {"N": 8, "depth": 0}, "depth: 0"),
        ("occupancy_percent", {"compute_capability": "1.2", "block_size": 32}, "not known"),
        ("iterations", {"N": 10, "system": "frontier.predicated"}, "symmetry: full without a run"),
        ("warp_utilization", {"N": 10}, "run the system with a probe"),
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
