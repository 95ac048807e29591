"""Counting from the middle on a real GPU: right answers for every board and every level."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

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
LEVELS = [
    *(f"{n} listing walk" for n in (14, 16)),
    *(f"{n} order none masks none" for n in (14, 18)),
    *(f"16 order {order} masks and_or" for order in ("none", "plain", "gray")),
    *(f"15 order gray masks {masks} pair_test words" for masks in ("none", "and", "and_or")),
    *(f"17 symmetry {symmetry}" for symmetry in ("mirror", "quarter", "middle")),
]
TESTED: dict[str, Level] = {"listing": "walk", "pair_test": "words", "masks": "none", "split": 0}
"""Another listing, and a test of all pairs."""


@pytest.mark.parametrize("n", range(5, 21))
def test_every_board_is_counted_twice_alike(device: CudaDevice, n: int) -> None:
    run(COUNTING, device, {"n": n}, SYSTEM)


@pytest.mark.parametrize("levels", LEVELS)
def test_every_level_counts_the_same(device: CudaDevice, levels: str) -> None:
    n, *words = levels.split()
    run(COUNTING, device, {"n": int(n), **dict(zip(words[::2], words[1::2], strict=True))}, SYSTEM)


@pytest.mark.parametrize("split", range(5))
@pytest.mark.parametrize("n", [17, 18])
def test_every_split_counts_the_same(device: CudaDevice, n: int, split: int) -> None:
    run(COUNTING, device, {"n": n, "split": split, "order": "gray"}, SYSTEM)


@pytest.mark.parametrize(("n", "bucket_bits"), [(18, 0), (18, 4), (19, 3)])
def test_lists_in_many_parts_are_ordered_whole(
    device: CudaDevice, n: int, bucket_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = plans.OrderShape(256, 4, bucket_bits, 96)
    monkeypatch.setattr(plans, "order_shape", lambda _: shape)
    run(COUNTING, device, {"n": n}, SYSTEM)


@pytest.mark.parametrize("n", range(20, 25))
def test_groups_of_larger_boards_have_the_solutions_of_a_test_of_all_pairs(
    device: CudaDevice, n: int
) -> None:
    some = groups.dealt(groups.groups(n))[:3]
    answers = []
    for levels in (dict[str, Level](), TESTED):
        plan = plans.make_plan({"n": n, **levels}, device.facts, some)
        with device.prepare(plan) as prepared:
            prepared.launch()
            answers.append(int(prepared.fetch()["answer"][0]))
    assert answers[0] == answers[1] != 0


@pytest.mark.parametrize("order", ["none", "gray"])
def test_groups_without_room_are_counted_again(
    device: CudaDevice, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "longest", lambda _: 600)
    ran = run(COUNTING, device, {"n": 16, "order": order}, SYSTEM, times=2)
    assert ran.answer == SOLUTIONS[16]
    assert 0 < ran.outputs["spilled"].size < len(groups.groups(16))


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


def test_large_buffers_serve_the_next_plan(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "keeps_memory", True)
    plan = plans.make_plan({"n": 20}, device.facts, groups.dealt(groups.groups(20))[:300])
    answers = []
    for _ in range(2):
        with device.prepare(plan) as prepared:
            assert not any(device.spare.values())
            prepared.launch()
            answers.append(int(prepared.fetch()["answer"][0]))
        assert any(device.spare.values())
    device.free_spare()
    assert answers[0] == answers[1] != 0
