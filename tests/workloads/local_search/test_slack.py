"""Rough changes stay within their slack, and choose no other move than exact ones would."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nqbench.devices.registry import open_device
from nqbench.plan import MultiLaunchPlan
from nqbench.point import Level
from nqbench.workloads.local_search import WORKLOAD
from nqbench.workloads.local_search.instance import ROOT_ERROR, slack
from nqbench.workloads.local_search.plans import SOURCE
from nqbench.workloads.local_search.searches import change
from tests.workloads.local_search.facts import Cities, given, root_error_plan

__all__ = ["given"]  # a fixture

SIM = open_device("sim:mini")
F = np.float32
Array = NDArray[Any]
ROOT = (
    'asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(__fmaf_rn(dx, dx, __fmul_rn(dy, dy))));'
)
WRONG_ROOT = (
    "root = __fsqrt_rn(__fmaf_rn(dx, dx, __fmul_rn(dy, dy)));"
    " root *= 1.0f + (__float_as_uint(dx) * 2654435761u >> 31 ? 0x1.8p-21f : -0x1.8p-21f) / 2;"
)
"""A root that is off by three quarters of what is assumed, up or down as its argument wants."""

Random = np.random.Generator
SHAPES: Mapping[str, Callable[[Random, int], Array]] = {
    "uniform": lambda r, n: r.random((n, 2)),
    "clusters": lambda r, n: r.integers(0, 3, (n, 2)) + 1e-5 * r.random((n, 2)),
    "far clusters": lambda r, n: 1e6 * r.integers(0, 2, (n, 2)) + r.random((n, 2)),
    "few places": lambda r, n: r.integers(0, 3, (n, 2)) / 4,
    "one place": lambda _, n: np.full((n, 2), 0.3),
    "collinear": lambda r, n: np.outer(r.integers(0, n // 2, n), [1 / 3, 0.7]),
    "grid": lambda r, n: r.integers(0, 8, (n, 2)).astype(float),
    "offset": lambda r, n: 1e4 + r.random((n, 2)),
    "huge": lambda r, n: 1e18 * (2 * r.random((n, 2)) - 1),
    "large": lambda r, n: 3e17 * r.random((n, 2)),
    "tiny": lambda r, n: 1e-22 * r.random((n, 2)),
    "circle": lambda _, n: np.exp(2j * np.pi * np.arange(n) / n).view(float).reshape(n, 2),
}


def cities_of(shape: str, n: int, seed: int = 5) -> NDArray[np.float32]:
    return np.asarray(SHAPES[shape](np.random.default_rng(seed), n), F)


def rough_distance(a: Array, b: Array, error: Array) -> Array:
    """As in ``tiled.cuh``, of a root that is off by ``error`` times what is assumed."""
    dx, dy = (a - b).T
    square: Array = (dx.astype(float) ** 2 + (dy * dy)).astype(F)  # one rounding: fused
    square[square < np.finfo(F).tiny] = 0
    root: Array = np.sqrt(square.astype(float)) * (1 + ROOT_ERROR * error)
    return root.astype(F)


def rough_changes(places: Array, x: Array, y: Array, draw: Callable[[], Array]) -> Array:
    """Rough changes in the order of the kernel's sums; ``draw`` gives errors from -1 to 1."""
    n = len(places)
    at = {k: places[(v) % n] for k, v in {"w": x - 1, "x": x, "z": x + 1}.items()}
    before, here, after = places[y - 1], places[y], places[(y + 1) % n]

    def far(a: Array, b: Array) -> Array:
        return rough_distance(a, b, draw())

    edge = far(at["x"], at["z"])
    taken = far(at["w"], at["x"]) + edge
    given = np.where(y == x + 1, edge, far(before, here)) + far(here, after)
    across = far(at["w"], here) + far(at["z"], here)
    along = far(at["x"], before) + far(at["x"], after)
    rough = (across + along) - taken
    rough = rough + np.where(y == x + 1, F(2) * edge, F(0))
    return np.asarray(rough.astype(float) - given)


@pytest.mark.parametrize("shape", sorted(set(SHAPES) - {"huge"}))
def test_changes_are_off_by_less_than_the_slack(shape: str) -> None:
    """Of all moves, with random roots and with those that all err one way."""
    n, worst = 60, 0.0
    for seed in range(3):
        places = cities_of(shape, n, seed)
        x, y = (np.concatenate(p) for p in zip(*_pairs(n), strict=True))
        tour = np.arange(n, dtype=np.uint32)
        moves = zip(x.tolist(), y.tolist(), strict=True)
        exact = np.array([change(tour, places, a, b) for a, b in moves])
        for draw in (partial(either, np.random.default_rng(seed), len(x)), one):
            off = np.abs(rough_changes(places, x, y, draw) - exact.astype(float)).max()
            worst = max(worst, float(off) / float(slack(places)))
    assert worst < 1
    if shape in ("uniform", "grid", "few places", "circle"):
        assert worst > 0.05  # the bound is no idle one


def either(random: Random, count: int) -> Array:
    return np.where(random.random(count) < 0.5, -1.0, 1.0)


def one() -> Array:
    return np.ones(1)


def _pairs(n: int) -> list[tuple[Array, Array]]:
    return [(np.full(n - 1 - x, x), np.arange(x + 1, n)) for x in range(1, n - 1)]


def test_slack_where_squares_might_overflow() -> None:
    assert np.isinf(slack(cities_of("huge", 9)))
    assert np.isfinite(slack(cities_of("large", 9)))
    assert np.isinf(slack(np.array([[0, np.nan], [1, 1]], F)))
    assert 0 < slack(cities_of("one place", 9)) < 1e-16


def test_the_simulated_root_is_within_what_is_assumed() -> None:
    """A real GPU's is looked at in ``tests/gpu``, for all numbers."""
    with SIM.prepare(root_error_plan(stride=99_991, blocks=2)) as prepared:
        prepared.launch()
        (worst,) = prepared.fetch()["worst"].view(np.float64)
    assert 2.0**-26 < worst < ROOT_ERROR


@pytest.fixture(scope="module")
def wrong_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels' source with another approximate root."""
    folder = tmp_path_factory.mktemp("sources") / "local_search"
    folder.mkdir()
    for file in SOURCE.parent.glob("*.cu*"):
        shutil.copy(file, folder)
    for header in SOURCE.parent.parent.glob("*.cuh"):
        shutil.copy(header, folder.parent)
    tiled = folder / "tiled.cuh"
    text = tiled.read_text()
    assert text.count(ROOT) == 1
    tiled.write_text(text.replace(ROOT, WRONG_ROOT))
    return folder / SOURCE.name


def same_moves(given: Mapping[str, Level], system: str, source: Path, trust: bool = False) -> bool:
    """Whether a search in the simulator ends with the reference's tour; ``trust``: no slack."""
    factors = WORKLOAD.resolve(given, system, SIM.facts).factors
    plan = WORKLOAD.plan(factors, system, SIM.facts)
    assert isinstance(plan, MultiLaunchPlan)
    kernels = {name: replace(kernel, source=source) for name, kernel in plan.kernels.items()}
    if trust:
        evaluation = kernels["evaluation"]
        margin = slack_of(evaluation.arguments)
        arguments = tuple(F(0) if a is margin else a for a in evaluation.arguments)
        kernels["evaluation"] = replace(evaluation, arguments=arguments)
    with SIM.prepare(replace(plan, kernels=kernels)) as prepared:
        prepared.launch()
        return WORKLOAD.answer(plan, prepared.fetch()) == WORKLOAD.expected(factors)


def slack_of(arguments: tuple[Any, ...]) -> np.float32:
    (margin,) = (a for a in arguments if isinstance(a, np.float32) and a > 0)
    return margin


@pytest.mark.parametrize(
    ("shape", "n"), [*((shape, 40) for shape in SHAPES), ("uniform", 5), ("few places", 300)]
)
def test_the_moves_of_the_reference(
    shape: str, n: int, given: Callable[[Cities], None], wrong_root: Path
) -> None:
    given(cities_of(shape, n))
    levels: dict[str, Level] = {"n": n, "iterations": 60 if n < 99 else 40}
    for system, tile in (("fused", (1, 15)), ("resident", (8, 33))):
        name, shaped = f"local_search.{system}", {"tile_x": tile[0], "tile_y": tile[1]}
        for source in (SOURCE, wrong_root):
            assert same_moves({**levels, **shaped}, name, source), source


def test_without_slack_moves_are_missed(given: Callable[[Cities], None], wrong_root: Path) -> None:
    """So that the test above can fail."""
    given(cities_of("few places", 300))
    levels: dict[str, Level] = {"n": 300, "iterations": 40}
    assert same_moves(levels, "local_search.fused", wrong_root)
    assert not same_moves(levels, "local_search.fused", wrong_root, trust=True)
