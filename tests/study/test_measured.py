"""Hot and cold L2 as points of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Point, labels
from tests.study.fake import CUDA, SIM, points_of

TEXT = """\
name: s
n: {cuda: [12], sim: [12], cpu: [10]}
systems: [beta2011.pool, cpu.plain]
measure: {l2: LEVELS}
"""


def points(tmp_path: Path, levels: str, facts: DeviceFacts = CUDA) -> list[Point]:
    return points_of(tmp_path, TEXT.replace("LEVELS", levels), facts)


def test_both_double_the_points_of_the_gpu_and_leave_the_baseline_alone(tmp_path: Path) -> None:
    found = points(tmp_path, "[hot, cold]")
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


@pytest.mark.parametrize("levels", ["cold", "[cold]"])
def test_cold_alone(tmp_path: Path, levels: str) -> None:
    assert [p.factors["l2"] for p in points(tmp_path, levels)] == ["cold", "-"]


@pytest.mark.parametrize(
    ("levels", "facts"), [("hot", CUDA), ("[hot]", CUDA), ("[hot, cold]", SIM)]
)
def test_hot_is_what_every_study_measures_and_a_simulator_has_no_choice(
    tmp_path: Path, levels: str, facts: DeviceFacts
) -> None:
    assert all("l2" not in point.factors for point in points(tmp_path, levels, facts))


@pytest.mark.parametrize("levels", ["warm", "[hot, hot]", "{a: 1}", "[[hot]]", "3"])
def test_anything_else_is_refused_at_its_line(tmp_path: Path, levels: str) -> None:
    with pytest.raises(StudyError, match=r"study\.yaml:4: 'l2' is hot, cold or \[hot, cold\]"):
        points(tmp_path, levels)
