"""Counting from the middle on a real GPU: right answers for every board and every level."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nqbench.count.chunks import ChunkedBoard, CountLog
from nqbench.count.counters import CpuCounter, KernelCounter, KernelLauncher
from nqbench.count.solutions import count_in_chunks
from nqbench.point import Level
from nqbench.workloads import get
from nqbench.workloads.counting.known import SOLUTIONS
from nqbench.workloads.counting.middle import groups, plans
from tests.workloads.running import run

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

COUNTING, SYSTEM = get("counting"), "middle"
LEVELS: list[dict[str, Level]] = [
    {"n": 16, "listing": "walk"},
    *({"n": 16, "order": order, "masks": "and"} for order in ("none", "plain", "gray")),
    *({"n": 15, "pair_test": "words", "masks": masks} for masks in ("none", "and", "and_or")),
    *({"n": 18, "split": split} for split in range(5)),
    *({"n": 17, "symmetry": symmetry} for symmetry in ("mirror", "quarter", "middle")),
]


@pytest.mark.parametrize("n", range(5, 21))
def test_every_board_is_counted_twice_alike(device: CudaDevice, n: int) -> None:
    assert run(COUNTING, device, {"n": n}, SYSTEM).answer == SOLUTIONS[n]


@pytest.mark.parametrize("given", LEVELS)
def test_every_level_counts_the_same(device: CudaDevice, given: dict[str, Level]) -> None:
    assert run(COUNTING, device, given, SYSTEM, times=1).answer == SOLUTIONS[int(str(given["n"]))]


@pytest.mark.parametrize("n", [20, 21, 22, 23])
def test_groups_of_larger_boards_have_the_solutions_of_a_test_of_all_pairs(
    device: CudaDevice, n: int
) -> None:
    some = groups.dealt(groups.groups(n))[:3]
    sums = []
    for levels in ({}, {"listing": "walk", "pair_test": "words", "masks": "none", "split": 0}):
        plan = plans.make_plan({"n": n, **levels}, device.facts, some)
        with device.prepare(plan) as prepared:
            prepared.launch()
            sums.append(prepared.fetch()["sums"])
    np.testing.assert_array_equal(*sums)
    assert sums[0].all()


def test_groups_without_room_are_counted_again(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "longest", lambda _: 600)
    ran = run(COUNTING, device, {"n": 16}, SYSTEM, times=2)
    assert ran.answer == SOLUTIONS[16]
    assert 0 < ran.outputs["spilled"].size < ran.outputs["sums"].size


@pytest.mark.parametrize("n", [12, 17, 18])
def test_a_count_by_half_boards_goes_on_from_a_gpu_to_a_cpu(
    device: CudaDevice, n: int, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with closing(CountLog(log, ChunkedBoard.of(n, halves=True).head)):
        pass
    launcher = KernelLauncher(device.spec)
    found = count_in_chunks(n, KernelCounter(launcher, n), log, checked=0.05)
    launcher.close()
    assert (found.solutions, found.checked > 0) == (SOLUTIONS[n], True)
    lines = log.read_text().splitlines()
    log.write_text("\n".join(lines[:-1]) + "\n")
    assert count_in_chunks(n, CpuCounter(), log).solutions == SOLUTIONS[n]
