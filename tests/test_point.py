"""Points: how they are told apart in words."""

from __future__ import annotations

import pytest

from nqbench.point import Level, Point, distinguishing, labels
from nqbench.vocabulary import COUNTERS, STATUSES
from nqbench.workloads import phases


def _point(system: str | None, **factors: Level) -> Point:
    return Point("study", "sweep", "toy", system, {"n": 8, **factors})


@pytest.mark.parametrize(
    ("points", "launch", "expected"),
    [
        pytest.param(
            [_point("a.serial", threads="-"), *(_point("a.many", threads=t) for t in (1, 2))],
            [],
            ["a.serial N=8", "a.many N=8 threads=1", "a.many N=8 threads=2"],
            id="a factor in which a system is varied is named",
        ),
        pytest.param(
            [_point("a.fast", layout="x"), _point("a.slow", layout="y")],
            [],
            ["a.fast N=8", "a.slow N=8"],
            id="what a system is made of is not named",
        ),
        pytest.param(
            [_point("a.fast", block_size=64), _point("a.slow", block_size=128)],
            ["block_size"],
            ["a.fast N=8 block_size=64", "a.slow N=8 block_size=128"],
            id="the launch is named even if it goes with the system",
        ),
        pytest.param(
            [_point(None, layout="x"), _point(None, layout="y")],
            [],
            ["sweep N=8 layout=x", "sweep N=8 layout=y"],
            id="points without a system",
        ),
    ],
)
def test_labels(points: list[Point], launch: list[str], expected: list[str]) -> None:
    assert labels(points, launch) == expected


def test_a_factor_that_varies_within_a_system_is_told_though_it_is_no_launch_factor() -> None:
    points = [_point("a.fast", layout=layout, block_size=64) for layout in ("x", "y")]
    assert distinguishing(points, ["block_size"]) == ["layout"]
    other = [*points, _point("a.slow", layout="x", block_size=32)]
    assert distinguishing(other, ["block_size"]) == ["layout", "block_size"]


def test_no_word_has_two_meanings() -> None:
    assert not set(phases()) & set(COUNTERS)
    assert not set(STATUSES) & set(COUNTERS)
