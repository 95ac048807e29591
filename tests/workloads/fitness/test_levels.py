"""What a point of the fitness workload becomes: levels, limits, and counts against enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.errors import InfeasibleError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.system.machine import free_memory_bytes
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness import levels as fitness_levels
from nqbench.workloads.fitness.counts import diagonals, pairs, sub_kernels, sub_threads
from nqbench.workloads.fitness.gpu import pair_list
from tests.workloads.fitness import brute_force
from tests.workloads.fitness.running import OWN, PAPER
from tests.workloads.running import CPU, CUDA, GPU


def resolve(
    system: str | None = None, device: DeviceFacts = GPU, **given: Level
) -> dict[str, Level]:
    return dict(WORKLOAD.resolve(given, system, device).factors)


def test_the_papers_launch() -> None:
    levels = resolve(f"{PAPER}.gpu_coarse", n=1000)
    assert levels["block_size"] == 512
    assert levels["allocation"] == "per_call"
    assert levels["atomics"] == "per_conflict"
    assert levels["threads"] == levels["threshold"] == "-"
    assert resolve(f"{PAPER}.gpu_coarse", n=10, board="valid")["seed"] == "-"
    assert resolve(f"{PAPER}.gpu_cdp", CUDA, n=1000)["child_block_size"] == 32


def test_free_memory_is_the_least_that_anybody_says(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  2000 kB\nMemAvailable:    1000 kB\n")
    (tmp_path / "memory.max").write_text("500000\n")
    (tmp_path / "memory.current").write_text("100000\n")
    assert free_memory_bytes(meminfo, tmp_path) == 400_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory_bytes(meminfo, tmp_path) == 1_024_000
    free = free_memory_bytes()
    assert free is None or free > 2**20


FINE1, PAIRS = f"{PAPER}.gpu_fine1", 50_000 * 49_999 // 2


@pytest.mark.parametrize(
    ("free", "device", "system", "given", "parts", "factor"),
    [
        (
            *(None, GPU, FINE1, {"n": 50_000}),
            (
                f"needs {8 * PAIRS + 4 * 50_000 + 8} bytes of device memory",
                *(f"8 bytes for each of {PAIRS} pairs", f"has {2**32}"),
            ),
            "n",
        ),
        (None, GPU, f"{OWN}.batched", {"n": 10**6, "batch": 1000}, ("1000 boards",), "batch"),
        (1000, GPU, FINE1, {"n": 100}, ("bytes of host memory", "and 1000 are available"), "n"),
        (
            *(1000, GPU, f"{OWN}.batched", {"n": 100, "batch": 300}),
            *(("(300 boards)", "use a smaller n or batch"), "batch"),
        ),
        # A simulated device keeps its memory on the host.
        (60_000, replace(GPU, kind="sim"), FINE1, {"n": 100}, ("80008 bytes of host mem",), "n"),
        (
            *(10**9, CPU, f"{OWN}.cpu_histogram", {"n": 10**6, "batch": 2**20}),
            ("8388608000000 bytes of host memory", "1000000000 are available; use a smaller n"),
            "batch",
        ),
    ],
)
def test_what_does_not_fit_into_memory(
    free: int | None, device: DeviceFacts, system: str, given: dict[str, Level],
    parts: tuple[str, ...], factor: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if free is not None:
        monkeypatch.setattr(fitness_levels, "free_memory_bytes", lambda: free)
    with pytest.raises(InfeasibleError) as caught:
        resolve(system, device, **given)
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.factor == factor


def test_what_just_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve(f"{PAPER}.gpu_cdp", CUDA, n=1000, threshold=41, nesting=25)["nesting"] == 25
    assert resolve(f"{PAPER}.gpu_fine2", n=70_000)["block_size"] == 512
    monkeypatch.setattr(fitness_levels, "free_memory_bytes", lambda: 60_000)
    assert resolve(FINE1, replace(GPU, kind="cuda"), n=100)["n"] == 100  # 40,000 on the host
    monkeypatch.setattr(fitness_levels, "free_memory_bytes", lambda: 10**9)
    assert resolve(f"{OWN}.cpu_histogram", CPU, n=1_000_000, batch=100)["batch"] == 100


def test_all_pairs_once_in_order() -> None:
    assert pair_list(1).shape == (0, 2)
    assert pair_list(4).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert np.array_equal(pair_list(70), np.column_stack(np.triu_indices(70, 1)))


@pytest.mark.parametrize(
    ("n", "block_size"), [(100, 256), (1000, 256), (2500, 512), (10_000, 1024)]
)
def test_a_batch_fills_the_multiprocessors(n: int, block_size: int) -> None:
    levels = resolve(f"{OWN}.batched", n=n)
    assert levels["block_size"] == block_size
    taken = int(WORKLOAD.resolve({"n": n}, f"{OWN}.batched", GPU).derived["shared_bytes"])
    resident = min(GPU.shared_per_multiprocessor // taken, 2048 // block_size)
    assert resident * block_size == 2048


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_the_mean_over_all_boards(n: int) -> None:
    boards = [np.array(p, np.int32) for p in permutations(range(n))]
    mean = sum(brute_force(board) for board in boards) / len(boards)
    assert WORKLOAD.count("expected_conflicts_random", N=n) == pytest.approx(mean)


@pytest.mark.parametrize("n", [50, 1000])
def test_boards_drawn_at_random_come_out_at_it(n: int) -> None:
    mean = WORKLOAD.count("mean_conflicts_random", N=n)
    assert mean == pytest.approx(WORKLOAD.count("expected_conflicts_random", N=n), rel=0.02)
    assert mean == WORKLOAD.count("mean_conflicts_random", N=n)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("pears", {"N": 8}, "did you mean 'pairs'"),
        ("pairs", {}, "needs a board size"),
        ("pairs", {"N": 0}, "needs a board size"),
        ("pairs", {"N": 8, "depth": 2}, "no parameter 'depth'"),
    ],
)
def test_mistakes(name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        WORKLOAD.count(name, **given)


def derived(system: str, **given: Level) -> dict[str, int | float | str]:
    return dict(WORKLOAD.resolve(given, system, GPU).derived)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 33])
@pytest.mark.parametrize("threshold", [1, 2, 3, 8, 40])
def test_sub_threads_and_sub_kernels(n: int, threshold: int) -> None:
    split = [-(-work // threshold) for work in range(n) if work > threshold]
    assert sub_threads(n, threshold) == sum(split)
    for nesting in (1, 2, 3, 7):
        launched = 0
        for left in split:  # as the kernels share a row's sub-threads among their levels
            levels = nesting
            while left > 0:
                launched += 1
                left -= -(-left // levels)
                levels -= 1
        assert sub_kernels(n, threshold, nesting) == launched


def test_sizes() -> None:
    for n in (1, 2, 5, 20):
        rounds = sum(x + 1 for x in range(n) for _ in range(x + 1, n))  # that derive a pair
        assert derived(f"{PAPER}.gpu_fine2", n=n)["operations"] == 4 * pairs(n) + 3 * rounds
    assert pairs(50_000) == 1_249_975_000
    assert diagonals(6) == len({c + r for c in range(6) for r in range(6)}) * 2
    fine1 = derived(f"{PAPER}.gpu_fine1", n=1000)
    assert fine1["transfer_bytes"] == 8 * 499_500 + 4 * 1000 + 8
    assert fine1["bytes_moved"] == 16 * 499_500


def test_a_batch_is_so_many_boards() -> None:
    one = derived(f"{OWN}.histogram", n=500, counters="global")
    many = derived(f"{OWN}.batched", n=500, counters="global", batch=7)
    for name in ("bytes_moved", "operations", "transfer_bytes", "device_bytes"):
        assert many[name] == 7 * int(one[name]), name
