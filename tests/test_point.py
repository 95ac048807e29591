"""Points: how they are told apart in words."""

from __future__ import annotations

from nqbench.point import Level, Point, distinguishing, labels


def _point(system: str | None, **factors: Level) -> Point:
    return Point("study", "sweep", "toy", system, {"n": 8, **factors})


def test_a_factor_in_which_a_system_is_varied_is_named() -> None:
    points = [_point("a.serial", threads="-"), *(_point("a.many", threads=t) for t in (1, 2))]
    assert labels(points) == ["a.serial N=8", "a.many N=8 threads=1", "a.many N=8 threads=2"]


def test_what_a_system_is_made_of_is_not_named() -> None:
    points = [_point("a.fast", layout="x"), _point("a.slow", layout="y")]
    assert labels(points) == ["a.fast N=8", "a.slow N=8"]


def test_the_launch_is_named_even_if_it_goes_with_the_system() -> None:
    points = [_point("a.fast", block_size=64), _point("a.slow", block_size=128)]
    assert labels(points, ["block_size"]) == [
        "a.fast N=8 block_size=64",
        "a.slow N=8 block_size=128",
    ]


def test_points_without_a_system() -> None:
    points = [_point(None, layout="x"), _point(None, layout="y")]
    assert labels(points) == ["sweep N=8 layout=x", "sweep N=8 layout=y"]


def test_a_factor_that_varies_within_a_system_is_told_though_it_is_no_launch_factor() -> None:
    points = [_point("a.fast", layout=layout, block_size=64) for layout in ("x", "y")]
    assert distinguishing(points, ["block_size"]) == ["layout"]
    other = [*points, _point("a.slow", layout="x", block_size=32)]
    assert distinguishing(other, ["block_size"]) == ["layout", "block_size"]
