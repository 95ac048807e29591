"""Points times the ways to measure them: variants of a kernel, a hot and a cold L2 cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import PART, Point, labels
from nqbench.study import expand, load_study
from nqbench.workloads.base import VARIANTS
from tests.study.fake import CPU, CUDA, H100, SIM, points_of

STUDY = Path(__file__).with_name("waiting.yaml").read_text(encoding="utf-8")


def points(folder: Path, text: str = STUDY, facts: DeviceFacts = H100) -> list[Point]:
    file = folder / "study.yaml"
    file.write_text(text, encoding="utf-8")
    return expand(load_study(file), facts)


def test_each_point_of_the_sweep_becomes_three(tmp_path: Path) -> None:
    found = points(tmp_path)
    whole = [p for p in found if p.sweep == "whole"]
    assert [p.factors.get(PART) for p in whole] == [None]
    kernels = [p for p in found if p.system == "brodtkorb_part1.gpu_v1" and p.sweep == "parts"]
    assert [p.factors[PART] for p in kernels] == list(VARIANTS)
    assert len({str(p.configuration) for p in kernels}) == 1
    assert not any(p.skip for p in kernels)
    reasons = {p.system: p.skip for p in found if p.skip}
    assert "local_search.resident applies the move" in reasons["local_search.resident"]
    assert "runs on the CPU" in reasons["brodtkorb_part1.cpu_mapped"]
    assert points(tmp_path, STUDY.replace("variants:", "apart:")) == found, "the key's old name"


def test_a_kernel_without_a_gpu_keeps_its_own_reason(tmp_path: Path) -> None:
    found = [p for p in points(tmp_path, facts=CPU) if p.sweep == "parts"]
    kernels = [p for p in found if p.system == "brodtkorb_part1.gpu_v1"]
    assert all("is a GPU kernel" in p.skip for p in kernels)


REFUSED = {
    "workload": (
        STUDY.replace("workload: local_search\n", "").replace(
            "[brodtkorb_part1.gpu_v1, local_search.resident, brodtkorb_part1.cpu_mapped]\n"
            "    fixed: {iterations: 1}",
            "[zhang2011.naive_l1_16k]",
        ).replace("brodtkorb_part1.gpu_v1", "zhang2011.naive_l1_16k").replace("[100]", "[12]"),
        "no kernel of workload counting has variants",
    ),
    "sweep": (STUDY.replace("[parts]", "[part]"), "there is no sweep 'part'; did you mean"),
    "form": (STUDY.replace("[parts]", "parts"), "'variants' takes a list of entries"),
    "old name": (STUDY + "  apart: [parts]\n", "unknown key 'apart' in 'measure'"),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_a_mistake_names_its_line(which: str, tmp_path: Path) -> None:
    text, said = REFUSED[which]
    with pytest.raises(StudyError, match=r"study\.yaml:\d+: ") as caught:
        points(tmp_path, text)
    assert said in str(caught.value)


CACHE_STUDY = """\
name: s
n: {cuda: [12], sim: [12], cpu: [10]}
systems: [beta2011.pool, cpu.plain]
measure: {l2: LEVELS}
"""


def cache_points(tmp_path: Path, levels: str, facts: DeviceFacts = CUDA) -> list[Point]:
    return points_of(tmp_path, CACHE_STUDY.replace("LEVELS", levels), facts)


def test_both_double_the_points_of_the_gpu_and_leave_the_baseline_alone(tmp_path: Path) -> None:
    found = cache_points(tmp_path, "[hot, cold]")
    assert [(p.system, p.factors["l2"]) for p in found] == [
        ("beta2011.pool", "hot"),
        ("beta2011.pool", "cold"),
        ("cpu.plain", "-"),
    ]
    hot, cold, _ = labels(found)
    assert hot.endswith("l2=hot")
    assert cold.endswith("l2=cold")
    assert found[0].configuration == found[1].configuration
    assert "l2" not in found[0].configuration


@pytest.mark.parametrize(
    ("levels", "facts", "states"),
    [
        ("cold", CUDA, ["cold", "-"]),
        ("[cold]", CUDA, ["cold", "-"]),
        ("hot", CUDA, [None, None]),  # what every study measures
        ("[hot]", CUDA, [None, None]),
        ("[hot, cold]", SIM, [None, None]),  # it has no choice
    ],
)
def test_states_of_the_cache(
    tmp_path: Path, levels: str, facts: DeviceFacts, states: list[str | None]
) -> None:
    found = cache_points(tmp_path, levels, facts)
    assert [point.factors.get("l2") for point in found] == states


@pytest.mark.parametrize("levels", ["warm", "[hot, hot]", "{a: 1}", "[[hot]]", "3"])
def test_anything_else_is_refused_at_its_line(tmp_path: Path, levels: str) -> None:
    with pytest.raises(StudyError, match=r"study\.yaml:4: 'l2' is .*, but it takes hot, cold or"):
        cache_points(tmp_path, levels)
