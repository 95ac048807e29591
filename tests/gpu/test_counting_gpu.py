"""The papers' systems on a real GPU: right answers, and sane figures beside them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nqbench.count import counters
from nqbench.count.counters import CpuCounter, KernelCounter, KernelLauncher
from nqbench.count.solutions import count_in_chunks
from nqbench.plan import KernelPlan
from nqbench.point import Level
from nqbench.workloads import get
from nqbench.workloads.counting.factors import FRONTIER_LOOPS
from nqbench.workloads.counting.known import SOLUTIONS
from tests.cli.call import process
from tests.measure.test_pool import wait_until
from tests.workloads.running import run

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

COUNTING = get("counting")
SYSTEMS = [name for name in COUNTING.systems if not name.startswith(("cpu.", "middle"))]
TIMEOUT_S = 60.0

SMALL, UP_TO_18 = range(5, 17), range(5, 19)
LOOPS = [loop for loop in FRONTIER_LOOPS if loop != "unrolled"]
POLICIES = ("one_per_thread", "block_pool", "global_pool")


def make_plan(device: CudaDevice, system: str, n: int, **given: Level) -> KernelPlan:
    resolved = COUNTING.resolve({"n": n, **given}, system, device.facts)
    plan = COUNTING.plan(resolved.factors, system, device.facts)
    assert isinstance(plan, KernelPlan)
    return plan


def right(
    device: CudaDevice, sizes: Iterable[int], system: str | None = None, **given: Level
) -> None:
    """Two launches of each size give the known answer."""
    for n in sizes:
        kernel_s = run(COUNTING, device, {"n": n, **given}, system, timeout_s=60).launch.kernel_s
        assert kernel_s is not None
        assert kernel_s > 0


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_on_all_small_boards(device: CudaDevice, system: str) -> None:
    right(device, SMALL, system)


@pytest.mark.parametrize("symmetry", ["none", "mirror", "full"])
@pytest.mark.parametrize("storage", ["vector", "struct"])
@pytest.mark.parametrize("loop", LOOPS)
def test_loops_made_for_speed(device: CudaDevice, loop: str, storage: str, symmetry: str) -> None:
    """Every policy on the path; the largest boards where one eighth of the tree is walked."""
    given: dict[str, Level] = {"loop": loop, "storage": storage, "symmetry": symmetry}
    for n in UP_TO_18 if symmetry == "full" else SMALL:
        for assignment in POLICIES:
            right(device, [n], None, **given, depth=max(2, n - 11), assignment=assignment)


@pytest.mark.parametrize(
    ("encoding", "jobs_made"), [("masks", "cpu"), ("masks", "gpu"), ("packed", "gpu")]
)
@pytest.mark.parametrize("lookahead", [1, 2, 3])
@pytest.mark.parametrize("adders", ["alu", "both"])
def test_the_unrolled_loop(
    device: CudaDevice, adders: str, lookahead: int, encoding: str, jobs_made: str
) -> None:
    given: dict[str, Level] = {"adders": adders, "lookahead": lookahead}
    given |= {"encoding": encoding, "jobs_made": jobs_made}
    for n in UP_TO_18:
        for assignment, steps in (("warp_pool", 15), ("warp_pool", 3), ("global_pool", 14)):
            given |= {"depth": max(2, n - 11), "assignment": assignment, "steps": steps}
            right(device, [n], "frontier.unrolled", **given)


@pytest.mark.parametrize("loop", ["somers", "branchy", "place_first", "irrc"])
def test_one_eighth_of_the_tree_by_the_papers_loops(device: CudaDevice, loop: str) -> None:
    for n in SMALL:
        right(device, [n], loop=loop, symmetry="full", depth=max(2, n - 11))


@pytest.mark.parametrize(
    "system", ["frontier.predicated", "frontier.lookahead", "frontier.unrolled"]
)
def test_the_fastest_kernels_on_the_largest_boards(device: CudaDevice, system: str) -> None:
    right(device, range(17, 21), system)


@pytest.mark.parametrize("system", SYSTEMS)
def test_resources_are_complete_occupancy_is_the_drivers(device: CudaDevice, system: str) -> None:
    plan = make_plan(device, system, 14)
    with device.prepare(plan) as prepared:
        told = prepared.resources
        assert told["registers"]
        assert told["static_shared_bytes"] == plan.static_shared_bytes
        assert told["occupancy"] == told["occupancy_computed"]
        assert prepared.transfer_s is not None
        assert 0 < prepared.transfer_s < 1


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("n", [5, 12, 13, 14, 15, 16])
def test_count_takes_one_launch(n: int) -> None:
    done = process("count", n, "--device", "cuda:0")
    assert done.out.startswith(f"a({n}) = {SOLUTIONS[n]}\n"), done.err
    assert "on cuda:0" in done.out
    assert "launches" not in done.out
    assert "%" not in done.err  # no line of progress where nobody sees it


@pytest.mark.usefixtures("device")
def test_a_killed_count_is_resumed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = ("count", "21", "--device", "cuda:0", "--log", str(log))
    counting = subprocess.Popen(
        [sys.executable, "-m", "nqbench", *words], stdout=subprocess.DEVNULL
    )
    wait_until(lambda: log.exists() and log.read_text().count("\n") >= 4)
    counting.kill()
    assert counting.wait() == -signal.SIGKILL
    kept = log.read_text().splitlines()[1:-1]
    assert len(kept) >= 2
    done = process(*words)
    assert done.out.startswith("a(21) = 314666222712\n"), done.err
    assert f"of them from {log}" in done.out
    assert log.read_text().splitlines()[1 : 1 + len(kept)] == kept


def test_chunks_are_counted_again_by_another_kernel_and_resumed_by_the_cpu(
    tmp_path: Path, device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "LAUNCH_S", 0.001)
    launcher = KernelLauncher(device.spec)
    for n in (8, 12, 16):
        log = tmp_path / str(n)
        found = count_in_chunks(n, KernelCounter(launcher, n), log, checked=1)
        assert (found.solutions, found.checked) == (SOLUTIONS[n], found.chunks)
        lines = log.read_text().splitlines()
        assert len(lines) == 1 + found.parts
        log.write_text("\n".join(lines[:-1]) + "\n")
        missing = json.loads(lines[-1]).get("count", 1)
        again = count_in_chunks(n, CpuCounter(), log)
        assert (again.solutions, again.resumed) == (SOLUTIONS[n], again.chunks - missing)
    launcher.close()
