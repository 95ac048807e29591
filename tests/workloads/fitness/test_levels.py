"""What a user may ask of the fitness workload, and the sentence for what cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.plan import MultiLaunchPlan
from nqbench.point import Level
from nqbench.system.machine import free_memory_bytes
from nqbench.workloads.fitness import WORKLOAD, limits
from nqbench.workloads.fitness.boards import random_board
from nqbench.workloads.fitness.gpu import pair_list
from tests.workloads.fitness.running import OWN, PAPER
from tests.workloads.running import CPU, CUDA, GPU


def resolve(
    system: str | None = None, device: DeviceFacts = GPU, **given: Level
) -> dict[str, Level]:
    return dict(WORKLOAD.resolve(given, system, device).factors)


def test_the_papers_launch() -> None:
    levels = resolve(f"{PAPER}.gpu_coarse", n=1000)
    assert resolve(scheme="histogram", n=10) == resolve(f"{OWN}.histogram", n=10)
    assert levels["block_size"] == 512
    assert levels["allocation"] == "per_call"
    assert levels["atomics"] == "per_conflict"
    assert levels["threads"] == levels["threshold"] == levels["board_file"] == "-"
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
            *(("(300 boards)", "use a smaller batch"), "batch"),
        ),
        # A simulated device keeps its memory on the host.
        (60_000, replace(GPU, kind="sim"), FINE1, {"n": 100}, ("80000 bytes of host mem",), "n"),
        (
            *(10**9, CPU, f"{OWN}.cpu_histogram", {"n": 10**6, "batch": 2**20}),
            ("8388608000000 bytes of host memory", "1000000000 are available; use a smaller batch"),
            "batch",
        ),
    ],
)
def test_what_does_not_fit_into_memory(
    free: int | None, device: DeviceFacts, system: str, given: dict[str, Level],
    parts: tuple[str, ...], factor: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if free is not None:
        monkeypatch.setattr(limits, "free_memory_bytes", lambda: free)
    with pytest.raises(InfeasibleError) as caught:
        resolve(system, device, **given)
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.factor == factor


def test_what_just_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve(f"{PAPER}.gpu_cdp", CUDA, n=1000, threshold=41, nesting=25)["nesting"] == 25
    assert resolve(f"{PAPER}.gpu_fine2", n=70_000)["block_size"] == 512
    monkeypatch.setattr(limits, "free_memory_bytes", lambda: 60_000)
    assert resolve(FINE1, replace(GPU, kind="cuda"), n=100)["n"] == 100  # 40,000 on the host
    monkeypatch.setattr(limits, "free_memory_bytes", lambda: 10**9)
    assert resolve(f"{OWN}.cpu_histogram", CPU, n=1_000_000, batch=100)["batch"] == 100


def test_all_pairs_once_in_order() -> None:
    assert pair_list(1).shape == (0, 2)
    assert pair_list(4).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert np.array_equal(pair_list(70), np.column_stack(np.triu_indices(70, 1)))


def test_boards_of_a_file(tmp_path: Path) -> None:
    path, system = tmp_path / "board.npy", f"{PAPER}.gpu_coarse"
    given: dict[str, Level] = {"n": 30, "board": "file", "board_file": str(path)}
    digests = set()
    for seed in (4, 5):  # a changed file is read again
        np.save(path, random_board(30, seed))
        resolved = WORKLOAD.resolve(given, system, GPU)
        digests.add(str(resolved.derived["board_sha256"]))
    assert [len(digest) for digest in digests] == [16, 16]
    plan = WORKLOAD.plan(resolved.factors, system, GPU)
    assert isinstance(plan, MultiLaunchPlan)
    assert np.array_equal(plan.buffers[0].data, random_board(30, 5))  # type: ignore[arg-type]
    random = WORKLOAD.resolve({"n": 30, "seed": 5}, system, GPU).factors
    assert WORKLOAD.expected(resolved.factors) == WORKLOAD.expected(random)
    batch = {**given, "batch": 3}
    batched = WORKLOAD.resolve(batch, f"{OWN}.batched", GPU).factors
    assert WORKLOAD.expected(batched) == 6 * int(WORKLOAD.expected(random) or 0)
    with pytest.raises(InfeasibleError, match="has 30 queens, but n is 31"):
        WORKLOAD.resolve({**given, "n": 31}, system, GPU)


@pytest.mark.parametrize(
    ("n", "block_size"), [(100, 256), (1000, 256), (2500, 512), (10_000, 1024)]
)
def test_a_batch_fills_the_multiprocessors(n: int, block_size: int) -> None:
    levels = resolve(f"{OWN}.batched", n=n)
    assert levels["block_size"] == block_size
    taken = int(WORKLOAD.resolve({"n": n}, f"{OWN}.batched", GPU).derived["shared_bytes"])
    resident = min(GPU.shared_per_multiprocessor // taken, 2048 // block_size)
    assert resident * block_size == 2048
