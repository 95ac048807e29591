"""Instrumented kernels: they count what is there, and the others pay nothing for them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from nqbench.device import Device
from nqbench.plan import KernelPlan
from nqbench.point import Level
from nqbench.vocabulary import COUNTERS
from nqbench.workloads import probe_counters
from nqbench.workloads.counting import WORKLOAD
from nqbench.workloads.counting.plans import SOURCE
from nqbench.workloads.counting.probe import GROUPS, JOBS, utilization
from tests.compiling import compile_ptx
from tests.workloads.counting import oracle
from tests.workloads.counting.steps import lockstep, traces, warps
from tests.workloads.running import GPU, Ran, run

N, DEPTH = 8, 3
LOOPS = ("somers", "branchy", "place_first", "irrc")
_HOOK = re.compile(
    r"^.*\b(?:source\.)?probe\.(?:job_begins|iteration|job_ends|thread_ends)\(.*\n", re.M
)


def launch(device: Device, given: dict[str, Level], system: str | None = None) -> Ran:
    return run(WORKLOAD, device, given, system, times=1)


def counters(
    device: Device, given: dict[str, Level], system: str | None = None
) -> dict[str, int | float]:
    ran = launch(device, given, system)
    found = dict(WORKLOAD.counters(ran.plan, ran.outputs))
    assert set(found) <= set(probe_counters()) - set(COUNTERS)
    return found


def whole_tree(**more: Level) -> dict[str, Level]:
    """All placements of the first rows as jobs: no symmetry in the way."""
    return {"n": N, "depth": DEPTH, "symmetry": "none", "block_size": 32, **more}


def code(source: Path, given: dict[str, Level], system: str) -> str:
    """PTX of a system without what tells where in the source it comes from."""
    plan = WORKLOAD.plan(given, system, GPU)
    assert isinstance(plan, KernelPlan)
    ptx = (
        compile_ptx(source, plan.entry, "sm_90", plan.options)
        .image.decode()
        .partition(".section")[0]
    )
    lines = (line.partition("//")[0].rstrip() for line in ptx.splitlines())
    return "\n".join(line for line in lines if not re.match(r"\s*\.(loc|file)\b", line))


@pytest.mark.parametrize(
    "system",
    ["feinbube2010.base", "tanaka2011.both", "zhang2011.pool_distributed", "frontier.predicated"],
)
def test_hooks_cost_a_kernel_without_a_probe_nothing(system: str, tmp_path: Path) -> None:
    """The same machine-independent code as from a source without any hook."""
    removed, folder = 0, tmp_path / "counting"
    folder.mkdir()
    shutil.copy(SOURCE.parent.parent / "warp.cuh", tmp_path)
    for file in SOURCE.parent.glob("*.cu*"):
        text = file.read_text(encoding="utf-8")
        if file.name != "probe.cuh":
            text, found = _HOOK.subn("", text)
            removed += found
            text = text.replace("typename Probe::template FrameOf<C> frame", "Frame<C> frame")
        (folder / file.name).write_text(text, encoding="utf-8")
    assert removed == 18  # 5 beginnings of a job, 6 iterations, 6 ends, 1 end of a thread
    bare = folder / SOURCE.name
    assert code(bare, {"n": 15}, system) == code(SOURCE, {"n": 15}, system)
    assert code(SOURCE, {"n": 15, "probe": "clocks"}, system) != code(SOURCE, {"n": 15}, system)


@pytest.mark.parametrize(
    ("loop", "assignment"),
    list(zip(LOOPS, ("strided", "contiguous", "block_pool", "global_pool"), strict=True)),
)
def test_iterations_of_a_job_do_not_depend_on_who_does_it(
    simulator: Device, loop: str, assignment: str
) -> None:
    given = whole_tree(loop=loop, probe="iterations", assignment=assignment)
    given |= {"pool_size": 70} if assignment == "block_pool" else {"blocks": 2}
    ran = launch(simulator, given)
    outputs = ran.outputs
    expected = [len(t) for t in traces(N, oracle.jobs(N, DEPTH, "all"), loop)]
    assert outputs[JOBS].tolist() == expected
    assert int(outputs[GROUPS].sum()) == sum(expected)
    counted = WORKLOAD.counters(ran.plan, outputs)
    assert counted["iterations_total"] == sum(expected)
    assert counted["probed_jobs"] == len(expected)
    assert counted["probed_threads"] < len(expected)
    # One thread for all jobs fetches them inside the loop, which is left once.
    given = whole_tree(loop=loop, assignment=assignment, block_size=1)
    given |= {"pool_size": 10_000} if assignment == "block_pool" else {"blocks": 1}
    assert launch(simulator, given).counters["loop_iterations"] == sum(expected) - 1


@pytest.mark.parametrize("loop", LOOPS)
def test_divergence_is_that_of_lanes_in_step(simulator: Device, loop: str) -> None:
    found = traces(N, oracle.jobs(N, DEPTH, "all"), loop)
    passes, split, lanes = map(sum, zip(*map(lockstep, warps(found)), strict=True))
    counted = counters(simulator, whole_tree(loop=loop, probe="divergence"))
    assert counted == {
        "probed_warps": len(warps(found)),
        "warp_iterations": passes,
        "split_iterations": split,
        "split_iteration_share": split / passes,
        "active_lanes_mean": lanes / passes,
    }
    # The simulator's own count of the same kernel without a probe: the last pass of a warp
    # leaves the loop instead of passing its latch.
    assert launch(simulator, whole_tree(loop=loop)).counters["loop_iterations"] == passes - len(
        warps(found)
    )


@pytest.mark.parametrize(
    ("loop", "rows"), [*((loop, "remaining") for loop in LOOPS), ("somers", "n"), ("irrc", "n")]
)
def test_accesses_are_those_of_the_simulator(simulator: Device, loop: str, rows: str) -> None:
    """One thread per block: its requests to shared memory are its accesses to the work space.

    In Somers' loop the compiler saves, per job, the load of the sentinel, whose value nobody asks
    for, and where the given rows are replayed (``rows: n``) three loads for each of them.
    """
    given = whole_tree(loop=loop, rows=rows, encoding="rows") | {"block_size": 1}
    counted = counters(simulator, given | {"probe": "accesses"})
    plain = launch(simulator, given)
    saved = 0
    if loop == "somers":
        saved = 1 if rows == "remaining" else 1 + 3 * DEPTH
    jobs = len(oracle.jobs(N, DEPTH, "all"))
    assert counted["workspace_accesses"] == plain.counters["shared_requests"] + saved * jobs
    assert counted["workspace_loads"] + counted["workspace_stores"] == counted["workspace_accesses"]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_lane_stops_its_clock_when_its_own_search_ends(simulator: Device, loop: str) -> None:
    """Not when its warp is done: within a warp, more iterations take more cycles."""
    iterations = launch(simulator, whole_tree(loop=loop, probe="iterations")).outputs
    ran = launch(simulator, whole_tree(loop=loop, probe="clocks"))
    clocks = ran.outputs
    for first in range(0, clocks[JOBS].size, 32):
        by_cycles = np.argsort(clocks[JOBS][first : first + 32], kind="stable")
        ordered = iterations[JOBS][first : first + 32][by_cycles].astype(int)
        assert (np.diff(ordered) >= 0).all()
        assert np.unique(clocks[JOBS][first : first + 32]).size == np.unique(ordered).size
    counted = WORKLOAD.counters(ran.plan, clocks)
    assert counted["cycles_total"] == int(clocks[JOBS].sum()) == int(clocks[GROUPS].sum())
    assert counted["cycles_per_job_min"] > 0


def test_utilization_by_hand() -> None:
    """Two blocks of 40 threads: a full warp and one of 8, one of these idle altogether."""
    work = np.zeros(80, np.uint64)
    work[:32] = 10  # full
    work[32:40] = [4, 2, 2, 0, 0, 0, 0, 0]  # 8 of 32 possible
    work[40:72] = [8] * 16 + [4] * 16  # 192 of 256
    found = utilization(work, 40)
    assert found["probed_warps"] == 3
    assert found["warp_utilization"] == pytest.approx((320 + 8 + 192) / (320 + 32 + 256))
    assert found["warp_utilization_min"] == 0.25
    assert found["warp_utilization_max"] == 1
    assert found["warp_utilization_mean"] == pytest.approx((1 + 0.25 + 0.75) / 3)
