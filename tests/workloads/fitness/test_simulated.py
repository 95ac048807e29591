"""The GPU schemes agree with brute force in the simulator, all its checks on; as machine code they
have no spills and the shared memory that was planned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from nqbench.device import Device
from nqbench.plan import Kernel, MultiLaunchPlan
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.boards import boards_of, random_board
from nqbench.workloads.fitness.gpu import DYNAMIC
from tests.compiling import compile_cubin, compile_ptx
from tests.workloads.fitness import brute_force
from tests.workloads.fitness.running import OWN, PAPER, evaluate, launch
from tests.workloads.running import GPU

HISTOGRAMS: list[tuple[str, dict[str, Level]]] = [
    (f"{OWN}.histogram", {"counters": counters}) for counters in ("shared", "global")
]
SCHEMES: list[tuple[str, dict[str, Level]]] = [
    (f"{PAPER}.gpu_fine1", {}),
    (f"{PAPER}.gpu_fine2", {}),
    (f"{PAPER}.gpu_coarse", {}),
    (f"{PAPER}.gpu_coarse", {"atomics": "per_thread"}),
    (f"{PAPER}.gpu_coarse", {"allocation": "once"}),
    (f"{PAPER}.gpu_coarse", {"atomics": "per_warp"}),
    *HISTOGRAMS,
]
NAMES = [" ".join([system, *map(str, levels.values())]) for system, levels in SCHEMES]


@pytest.mark.parametrize(("system", "levels"), SCHEMES, ids=NAMES)
@pytest.mark.parametrize(
    "sizes", [(1, 2, 3, 4, 5, 9, 31, 32, 33), pytest.param(range(4, 61), marks=pytest.mark.full)]
)
def test_small_boards(
    simulator: Device, sizes: Sequence[int], system: str, levels: dict[str, Level]
) -> None:
    for n in sizes:
        truth = brute_force(random_board(n, 1))
        assert evaluate(simulator, system, n=n, **levels) == truth, n
        if n > 3:
            assert evaluate(simulator, system, n=n, board="valid", **levels) == 0, n


@pytest.mark.parametrize(("system", "levels"), SCHEMES, ids=NAMES)
@pytest.mark.parametrize(("n", "block_size"), [(257, 1), (513, 33), (2000, 1024)])
def test_awkward_sizes(
    simulator: Device, system: str, levels: dict[str, Level], n: int, block_size: int
) -> None:
    if n > 600 and "fine" in system:
        n //= 4  # as many threads as pairs
    truth = brute_force(random_board(n, 5))
    given: dict[str, Level] = {**levels, "n": n, "block_size": block_size}
    assert evaluate(simulator, system, seed=5, **given) == truth
    assert evaluate(simulator, system, board="valid", **given) == 0


@pytest.mark.parametrize("counters", ["shared", "global"])
@pytest.mark.parametrize(("n", "batch"), [(4, 1), (5, 3), (50, 40), (1001, 7)])
def test_batches(simulator: Device, counters: str, n: int, batch: int) -> None:
    boards = boards_of({"board": "random", "n": n, "seed": 11, "batch": batch})
    truth = sum(k * brute_force(board) for k, board in enumerate(boards, start=1))
    given: dict[str, Level] = {"n": n, "batch": batch, "counters": counters}
    assert evaluate(simulator, f"{OWN}.batched", seed=11, **given) == truth


@pytest.mark.parametrize(
    ("n", "counters"),
    [(6000, "shared"), (14_000, "shared"), (29_000, "shared"), (30_000, "global")],
)
def test_counters_of_large_boards(simulator: Device, n: int, counters: str) -> None:
    """Whole words, halves of words, and what no block can hold."""
    answer, run = launch(simulator, f"{OWN}.histogram", {"n": n})
    board, columns = random_board(n, 1), np.arange(n)
    queens = [np.bincount(diagonal) for diagonal in (columns + board, columns - board + n - 1)]
    assert answer == sum(int(np.sum(c * (c - 1) // 2)) for c in queens)
    assert run.counters is not None
    assert (run.counters["shared_atomics"] > 0) == (counters == "shared")


def test_the_papers_scheme_adds_every_conflict_by_itself(simulator: Device) -> None:
    given: dict[str, Level] = {"n": 1000}
    counts = {}
    for atomics in ("per_conflict", "per_thread", "per_warp"):
        _, run = launch(simulator, f"{PAPER}.gpu_coarse", {**given, "atomics": atomics})
        assert run.counters is not None
        counts[atomics] = run.counters["global_atomics"]
    assert counts["per_conflict"] > counts["per_warp"]
    assert 1 <= counts["per_warp"] <= 32  # warps of the launch


def kernels() -> Iterator[tuple[str, Kernel]]:
    more: list[tuple[str, dict[str, Level]]] = [(f"{OWN}.histogram", {"n": 20_000})]
    for system, given in (*SCHEMES, *more):
        factors = WORKLOAD.resolve({"n": 100, **given}, system, GPU).factors
        plan = WORKLOAD.plan(factors, system, GPU)
        assert isinstance(plan, MultiLaunchPlan)
        for kernel in plan.kernels.values():
            yield kernel.entry, kernel


KERNELS = dict(kernels())


@pytest.mark.parametrize("entry", KERNELS)
def test_no_spills(entry: str) -> None:
    kernel = KERNELS[entry]
    compiled = compile_cubin(kernel.source, entry, "sm_90")
    _, _, log = compiled.log.partition(
        f"'{compiled.symbol}'"
    )  # the source's other kernels come too
    own = log.partition("Compiling entry function")[0]
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in own
    shared = re.search(r"(\d+) bytes smem", own)
    assert int(shared.group(1) if shared else 0) == kernel.static_shared_bytes


def test_the_kernel_that_launches_kernels_compiles() -> None:
    ptx = compile_ptx(DYNAMIC, "dynamic", "sm_90", ("--relocatable-device-code=true",))
    assert b"cudaCDP2LaunchDevice" in ptx.image  # a call of the device runtime
    assert ptx.image.count(b".entry") == 2  # parent and sub-kernel
