"""The fastest verified path: it fits the board that was asked for, whatever the board."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fastest import tuned_from
from nqbench.count import choice
from nqbench.count import solutions as count
from nqbench.devices.registry import SimDevice
from nqbench.errors import DeviceUnavailable, StudyError
from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.point import Level
from tests.builders import H100, Builder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own choices, which are none yet."""
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path))
    return tmp_path / choice.NAME


def facts_of(capability: tuple[int, int], kind: DeviceKind = "cuda") -> DeviceFacts:
    return replace(SimDevice("sm_90").facts, compute_capability=capability, kind=kind)


ENTRY = (
    "- {{capability: '{}', system: {}, n: 18, depths: {{18: 7}}, kernel_s: {},"
    " multiprocessors: 132}}\n"
)


def test_the_nearest_capability_is_taken_and_named(own: Path) -> None:
    for capability, system in [((7, 0), "frontier.unrolled"), ((6, 1), "frontier.lookahead")]:
        assert choice.choice_for(facts_of(capability))[0].system == system  # has its instructions
    own.write_text(ENTRY.format("8.9", "near", 0.5) + ENTRY.format("6.1", "old", 2))
    for capability, system, said in [
        ((8, 9), "near", "for compute capability 8.9"),
        ((8, 6), "near", "no choice is stored for compute capability 8.6, so that of 8.9"),
        ((7, 0), "old", "so that of 6.1"),
        ((9, 0), "frontier", "for compute capability 9.0"),
        ((12, 0), "frontier", "so that of 9.0"),
    ]:
        found, why = choice.choice_for(facts_of(capability))
        assert found.system.startswith(system)
        assert said in why
    junk = (lambda: own.write_text("- {capability: 9}\n"), lambda: own.write_bytes(b"\xff\0"))
    for damage in (*junk, lambda: os.mkfifo(own), own.mkdir):
        own.unlink()
        damage()
        with pytest.raises(StudyError, match="holds no choices of kernels"):
            choice.choice_for(facts_of((8, 9)))


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
    given = {**chosen.levels, "n": n, "depth": chosen.depth_at(n)}
    levels = counting.resolve(given, chosen.system, device).factors
    assert counting.plan(levels, chosen.system, device).buffers
assert "numba" not in sys.modules
"""


def test_a_count_on_a_gpu_does_not_wait_for_numba() -> None:
    """It takes 0.6 s to load, and the kernel 0.3 ms."""
    subprocess.run([sys.executable, "-c", QUICK], check=True)


def test_choices_fit_every_board_and_predict_its_time(own: Path) -> None:
    own.write_text(ENTRY.format("9.0", "frontier.predicated", 0.02))
    found, _ = choice.choice_for(facts_of((9, 0)))
    assert [found.depth_at(n) for n in (5, 12, 16, 18, 19, 22)] == [2, 2, 5, 7, 7, 7]
    assert found.seconds(18, facts_of((9, 0))) == pytest.approx(0.02)
    assert found.seconds(18, replace(facts_of((9, 0)), multiprocessors=66)) == pytest.approx(0.04)
    assert 6 < found.seconds(21, facts_of((9, 0))) < 14  # 472 times as many solutions


def test_a_tuned_choice_is_stored_and_used(own: Path, tmp_path: Path) -> None:
    own.write_text(ENTRY.format("9.0", "old", 1) + ENTRY.format("8.0", "other", 1))
    facts = facts_of((9, 0)).as_dict() | {"name": "NVIDIA H200", "multiprocessors": 132}
    builder = Builder(dict(H100) | {"facts": facts}, noise=0, study="frontier")
    full: dict[str, Level] = {"symmetry": "full", "storage": "vector", "depth": 7}
    for block_size, seconds in ((64, 0.03), (96, 0.02), (192, 0.04)):
        levels = {"n": 18, **full, "block_size": block_size, "blocks": {"per_sm": 4}}
        builder.time("launch", levels, seconds, "frontier.lookahead")
    for depth, seconds, whole in ((5, 0.003, 0.004), (6, 0.002, 0.003), (7, 0.001, 0.005)):
        levels = {"n": 16, **full, "depth": depth, "block_size": 64}
        builder.time("depths", levels, seconds, "frontier.lookahead", total_s=whole)
    builder.time("large", {"n": 19, **full, "block_size": 32}, 0.001, "frontier.predicated")
    builder.time("papers", {"n": 18, "symmetry": "mirror"}, 0.001, "tanaka2011.both")
    found, path = tuned_from(builder.write(tmp_path / "run"))
    assert (path, found.capability, found.kernel_s) == (own, "9.0", 0.02)
    assert found.levels == {"block_size": 96, "blocks": {"per_sm": 4}, "jobs_made": "gpu"}
    assert (found.system, found.n, found.depths) == ("frontier.lookahead", 18, {16: 6, 18: 7})
    assert [found.depth_at(n) for n in (14, 16, 17, 18, 20, 22)] == [4, 6, 6, 7, 7, 7]
    read, why = choice.choice_for(facts_of((9, 0)))
    assert read == found
    assert "NVIDIA H200" in why
    assert choice.choice_for(facts_of((8, 0)))[0].system == "other"
    assert "frontier.lookahead on sim:mini" in count.count_solutions(8, "sim:mini").how
    # Two rows ahead are automatic at this depth, and infeasible from N = 21 on: not stored.
    for lookahead, kept in ((2, {}), (3, {"lookahead": 3})):
        ahead = Builder(dict(H100) | {"facts": facts}, noise=0, study="frontier")
        levels = {"n": 18, "symmetry": "full", "depth": 8, "block_size": 128}
        ahead.time("ahead", {**levels, "lookahead": lookahead}, 0.01, "frontier.unrolled")
        found, _ = tuned_from(ahead.write(tmp_path / f"ahead{lookahead}"))
        assert found.levels == {"block_size": 128, "jobs_made": "gpu", **kept}
    builder.device = {**builder.device, "spec": "fake"}
    without = Builder(noise=0)
    without.time("papers", {"n": 18, "symmetry": "mirror"}, 0.001, "tanaka2011.both")
    for other in (without.write(tmp_path / "without"), builder.write(tmp_path / "fake")):
        with pytest.raises(StudyError, match="has no times of a system with symmetry: full"):
            tuned_from(other)


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
    for n, known in ((1, 1), (4, 2), (12, 14200)):
        found = count.count_solutions(n, "auto")
        assert found.value == known
        assert "cpu.frontier_multicore on cpu" in found.how
        assert "chunks" not in found.how, "one launch"
