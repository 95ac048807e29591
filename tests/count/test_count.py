"""The fastest verified path: it fits the board that was asked for, whatever the board."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nqbench.count import choice
from nqbench.count import solutions as count
from nqbench.devices.registry import SimDevice
from nqbench.errors import DeviceUnavailable, StudyError, WrongAnswer
from nqbench.facts import DeviceFacts, DeviceKind


@pytest.fixture
def choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of choices in place of nqbench's."""
    monkeypatch.setattr(choice, "CHOICES", tmp_path / "fastest.yaml")
    return tmp_path / "fastest.yaml"


def facts_of(capability: tuple[int, int], kind: DeviceKind = "cuda") -> DeviceFacts:
    return replace(SimDevice("sm_90").facts, compute_capability=capability, kind=kind)


ENTRY = (
    "- {{capability: '{}', system: {}, n: 18, depths: {{18: 7}}, kernel_s: {},"
    " multiprocessors: 132}}\n"
)
RECORDED = choice.CHOICES.read_text(encoding="utf-8")


def test_the_nearest_capability_is_taken_and_named(choices: Path) -> None:
    choices.write_text(RECORDED)
    for capability, system in [((7, 0), "frontier.unrolled"), ((6, 1), "frontier.lookahead")]:
        found, _ = choice.choice_for(facts_of(capability), 15)  # one with its instructions
        assert found.system == system
    for halves, system in ((True, "middle"), (False, "frontier.unrolled")):
        assert choice.choice_for(facts_of((9, 0)), 20, halves)[0].system == system
    assert choice.choice_for(facts_of((9, 0)), 20)[0].system == "middle"
    choices.write_text(RECORDED + ENTRY.format("8.9", "near", 0.5) + ENTRY.format("7.5", "old", 2))
    for capability, system, said in [
        ((8, 9), "near", "for compute capability 8.9"),
        ((8, 6), "near", "no choice is stored for compute capability 8.6, so that of 8.9"),
        ((7, 0), "old", "so that of 7.5"),
        ((8, 2), "old", "so that of 7.5"),  # 8.9 is as near, and newer
        ((9, 0), "frontier", "for compute capability 9.0"),
        ((12, 0), "frontier", "so that of 9.0"),
    ]:
        found, why = choice.choice_for(facts_of(capability), 15)
        assert found.system.startswith(system)
        assert said in why


QUICK = """
import sys
from nqbench import workloads
from nqbench.count import solutions
from nqbench.count.choice import recorded_choice
from nqbench.devices.registry import facts_for
from nqbench.workloads.counting.plans import QUICK
QUICK.set(True)
device, counting = facts_for("sim:sm_90"), workloads.named("counting")
for n in range(16, 20):
    chosen = recorded_choice(n)
    given = {**chosen.levels, "n": n}
    given |= {"depth": chosen.depth_at(n)} if chosen.depths else {}
    levels = counting.resolve(given, chosen.system, device).factors
    assert counting.plan(levels, chosen.system, device).buffers
assert not {"numba", "filelock"} & {*sys.modules}
"""


def test_a_count_on_a_gpu_does_not_wait_for_numba() -> None:
    """It takes 0.6 s to load, and the kernel 0.3 ms."""
    subprocess.run([sys.executable, "-c", QUICK], check=True)


def test_choices_fit_every_board_and_predict_its_time(choices: Path) -> None:
    choices.write_text(ENTRY.format("9.0", "frontier.predicated", 0.02))
    found, _ = choice.choice_for(facts_of((9, 0)), 18)
    assert [found.depth_at(n) for n in (5, 12, 16, 18, 19, 22)] == [2, 2, 5, 7, 7, 7]
    assert found.seconds(18, facts_of((9, 0))) == pytest.approx(0.02)
    assert found.seconds(18, replace(facts_of((9, 0)), multiprocessors=66)) == pytest.approx(0.04)
    assert 6 < found.seconds(21, facts_of((9, 0))) < 14  # 472 times as many solutions


@pytest.mark.parametrize("n", [0, 28, -1])
def test_sizes_without_a_known_answer_are_refused(n: int) -> None:
    with pytest.raises(StudyError, match=f"not {n}: a"):
        count.count_solutions(n, "sim")


def test_without_a_gpu_the_cpu_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> list[object]:
        raise DeviceUnavailable("no driver")

    monkeypatch.setattr("nqbench.devices.cuda.query.find_gpus", absent)
    chosen = count.choose("auto")
    assert chosen.spec == "cpu"
    assert "no driver" in chosen.why
    assert count.choose("sim").spec.startswith("sim:")
    assert ", simulated, " in count.count_solutions(5, "sim:mini").how
    for n, known in ((1, 1), (4, 2), (12, 14200), (13, 73712)):
        found = count.count_solutions(n, "auto")
        assert found.value == known
        assert "cpu.frontier_multicore on cpu" in found.how
        assert ("chunks" in found.how) == (n > 12), "one launch"


@pytest.mark.parametrize(
    ("found", "launched", "timed", "log", "how"),
    [
        ((78, 0, 0, 1, 2.5), True, True, None, "78 chunks, 1 launch, kernel 2.5 s, "),
        ((78, 5, 3, 2, 2.5), True, False, "log",
         "78 chunks, 5 of them from log, 3 counted again by another way, 2 launches, simulated, "),
        ((78, 0, 0, 9, 2.5), False, True, None, "78 chunks, "),
    ],
)  # fmt: skip
def test_a_count_says_how_it_was_made(
    found: tuple[Any, ...], launched: bool, timed: bool, log: str | None, how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    counter: Any = SimpleNamespace(check_name="another way", launches=launched, timed=timed)
    file = Path(log) if log else None
    clock = SimpleNamespace(perf_counter=itertools.count(5, 3).__next__)
    monkeypatch.setattr(count, "time", clock)
    for by, blamed in ((0, ""), (1, "this file or" if log else "this device")):
        counted = count.Counted(92 + by, *found)
        monkeypatch.setattr(count, "count_in_chunks", lambda *_, of=counted, **__: of)
        if blamed:
            with pytest.raises(WrongAnswer, match=f"sums up to 93 .* do not trust {blamed}"):
                count.in_chunks(8, counter, "a kernel", file, None)
        else:
            made = count.in_chunks(8, counter, "a kernel", file, None)
            assert made == count.Count(8, 92, f"a kernel, {how}3 s in all; equal to OEIS A000170")
