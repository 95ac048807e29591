"""`measure.apart`: a sweep's kernels become three points each."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import PART, Point
from nqbench.study import expand, load_study
from nqbench.workloads.base import VARIANTS

GPU = DeviceFacts("GPU", "cuda", (9, 0), 132, shared_per_block_optin=232448)
CPU = DeviceFacts("CPU", "cpu", (0, 0), 1)
STUDY = """\
name: waiting
workload: local_search
n: [100]
sweeps:
  - {name: whole, systems: [brodtkorb_part1.gpu_v1]}
  - name: parts
    systems: [brodtkorb_part1.gpu_v1, local_search.resident, brodtkorb_part1.cpu_mapped]
    fixed: {iterations: 1}
measure:
  apart: [parts]
"""


def points(folder: Path, text: str = STUDY, facts: DeviceFacts = GPU) -> list[Point]:
    file = folder / "study.yaml"
    file.write_text(text, encoding="utf-8")
    return expand(load_study(file), facts)


def test_each_point_of_the_sweep_becomes_three(tmp_path: Path) -> None:
    found = points(tmp_path)
    whole = [p for p in found if p.sweep == "whole"]
    assert [p.factors.get(PART) for p in whole] == [None]
    taken = [p for p in found if p.system == "brodtkorb_part1.gpu_v1" and p.sweep == "parts"]
    assert [p.factors[PART] for p in taken] == list(VARIANTS)
    assert len({str(p.configuration) for p in taken}) == 1
    assert not any(p.skip for p in taken)


def test_what_cannot_be_taken_apart_is_skipped_with_the_reason(tmp_path: Path) -> None:
    reasons = {p.system: p.skip for p in points(tmp_path) if p.skip}
    assert "local_search.resident applies the move" in reasons["local_search.resident"]
    assert "runs on the processor" in reasons["brodtkorb_part1.cpu_mapped"]


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
        "no kernel of workload counting can be taken apart",
    ),
    "sweep": (STUDY.replace("[parts]", "[part]"), "there is no sweep 'part'; did you mean"),
    "form": (STUDY.replace("apart: [parts]", "apart: parts"), "'apart' is a list of sweeps"),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_a_mistake_is_said_with_its_line(which: str, tmp_path: Path) -> None:
    text, said = REFUSED[which]
    with pytest.raises(StudyError, match=r"study\.yaml:\d+: ") as caught:
        points(tmp_path, text)
    assert said in str(caught.value)
