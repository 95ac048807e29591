"""Effects and interactions against truths that were put in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.factorial.effects import (
    Cells,
    FactorEffect,
    effects,
    interactions,
    main_effect,
    strongest,
)
from nqbench.errors import AnalysisError
from tests.builders import (
    FACTORIAL,
    MINI,
    REVERSAL,
    TRUTH,
    Builder,
    combinations,
    factorial,
    interval,
    truth_s,
)


def by_level(found: list[FactorEffect], n: int) -> dict[Any, FactorEffect]:
    return {e.level: e for e in found if e.n == n}


def test_main_effects_recover_the_factors_that_made_the_times() -> None:
    data = factorial(noise=0.002, seed=4).data()
    for n in (15, 16):
        found = by_level(effects(data, "factorial", TIME), n)
        assert set(found) == set(TRUTH)
        for level, truth in TRUTH.items():
            low, value, high = interval(found[level].ratio)
            assert value == pytest.approx(truth, rel=0.005)
            assert low < value < high
            assert found[level].ratio.rounds == 5
    assert found["shared"].pairs == 12
    assert found["block_pool"].pairs == 8


def test_counters_give_exact_ratios_and_zero_counts_are_compared_by_totals() -> None:
    data = factorial(MINI, (10,)).data()
    found = by_level(effects(data, "factorial", quantity("warp_instructions")), 10)
    assert found["irrc"].ratio.value == pytest.approx(0.9)
    assert found["block_pool"].ratio.value == pytest.approx(0.5)
    assert all(e.ratio.exact and not e.ratio.bounded for e in found.values())
    found = by_level(effects(data, "factorial", quantity("bank_conflicts")), 10)
    assert found["interleaved"].ratio.value == 0
    assert found["interleaved"].method == "totals"
    assert found["shared"].ratio.value == math.inf
    assert found["irrc"].ratio.value == pytest.approx(0.9)


def test_interaction_and_reversal_are_found() -> None:
    builder = factorial(noise=0.001, value=lambda lv: truth_s(lv, reversal=True))
    found = interactions(builder.data(), "factorial", [TIME])
    crossed = [i for i in found if (i.factor, i.other, i.n) == ("memory", "layout", 15)]
    (pair,) = crossed
    assert pair.ratio.value == pytest.approx(REVERSAL, rel=0.003)
    assert pair.at_base.value == pytest.approx(TRUTH["shared"], rel=0.003)
    assert pair.at_level.value == pytest.approx(TRUTH["shared"] * REVERSAL, rel=0.003)
    assert pair.pairs == 6
    assert "layout" in pair.reversed
    rest = [i for i in found if i is not pair and {i.factor, i.other} != {"memory", "layout"}]
    assert all(i.ratio.value == pytest.approx(1, abs=0.004) for i in rest)
    assert not any(i.reversed for i in rest)


@pytest.mark.parametrize("sides", [(0.5, 1.3), (0.5, 1.002), (0.998, 2.0)])
def test_an_effect_turns_round_only_where_both_sides_are_clear(sides: tuple[float, float]) -> None:
    """The strongest of those at the largest size come first, before them what turns round."""

    def value(levels: Any) -> float:
        turned = sides[levels["memory"] == "shared"] if levels["layout"] == "interleaved" else 1.0
        return turned * (
            9.0 if (levels["loop"], levels["assignment"]) == ("irrc", "block_pool") else 1.0
        )

    found = interactions(factorial(noise=0.02, seed=2, value=value).data(), "factorial", [TIME])
    names = [(i.factor, i.other, i.reversed, i.n) for i in strongest(found)[:2]]
    turns = sides == (0.5, 1.3)
    wanted = ("memory", "layout", ("layout",) * turns, 16), ("loop", "assignment", (), 16)
    assert names == [*wanted[:: 1 if turns else -1]]


def fraction() -> Builder:
    """Half of a 2 x 2 x 2 design (a, b, c = a xor b): no pair differs in one factor only."""
    matrix = {"a": ["a1", "a0"], "b": [], "c": []}  # the first level is not the first measured
    builder = Builder(rounds=4, noise=0.001, sweeps=[{"name": "s", "matrix": matrix}])
    sizes = {"a1": 0.5, "b1": 0.8, "c1": 1.25}
    for a in range(2):
        for b in range(2):
            levels = {"n": 15, "a": f"a{a}", "b": f"b{b}", "c": f"c{a ^ b}"}
            value = math.prod(sizes.get(str(v), 1.0) for v in levels.values())
            builder.time("s", levels, value)
    return builder


def test_a_fractional_design_is_fitted_and_says_so() -> None:
    found = by_level(effects(fraction().data(), "s", TIME), 15)
    for level, truth in (("a0", 2.0), ("b1", 0.8), ("c1", 1.25)):
        assert found[level].method == "least squares"
        assert found[level].ratio.value == pytest.approx(truth, rel=0.005)
        assert found[level].ratio.bounded


def of(points: list[dict[str, Any]], factors: str = "") -> Dataset:
    """A sweep of these points, whose study lists some factors."""
    builder = Builder(rounds=2, sweeps=[{"name": "s", "matrix": dict.fromkeys(factors.split())}])
    for levels in points:
        builder.time("s", {"n": 15, **levels}, 1.0)
    return builder.data()


def nothing_finished() -> Dataset:
    builder = Builder()
    for levels in combinations(FACTORIAL):
        builder.fail("s", {**levels, "n": 15}, "launch_error")
    return builder.data()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (of([{"a": "a0", "b": "b0"}, {"a": "a1", "b": "b1"}], "a b"), "cannot be separated"),
        (of([{"memory": "shared"}]), "varies no factor"),
        (of(combinations({"a": ["a0", "a1"], "b": ["b0", "b1"]}), "a"), "another factor varies"),
        (nothing_finished(), "no finished point"),
    ],
)
def test_what_has_no_effect_is_refused(data: Dataset, message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        effects(data, "s", TIME)
    alone = of([{"memory": "shared"}, {"memory": "global"}])
    assert len(effects(alone, "s", TIME)) == 1
    with pytest.raises(AnalysisError, match="no interaction"):
        interactions(alone, "s", [TIME])


@pytest.mark.parametrize(("missing", "method"), [(2, "geometric mean"), (3, "least squares")])
def test_half_of_the_pairs_stand_for_the_design(missing: int, method: str) -> None:
    """Four pairs of ``a``; without one partner each, two pairs of four points are just enough."""
    levels = combinations({"a": ["a0", "a1"], "b": ["b0", "b1"], "c": ["c0", "c1"]})
    kept = [lv for lv in levels if lv["a"] == "a0" or levels.index(lv) >= 4 + missing]
    (found,) = [e for e in effects(of(kept, "a b c"), "s", TIME) if e.factor == "a"]
    assert (found.pairs, found.method) == (4 - missing, method)


@pytest.mark.parametrize(("lacking", "pairs", "rounds"), [(1, 2, 3), (2, 1, 4)])
def test_a_point_of_half_the_rounds_costs_no_others(lacking: int, pairs: int, rounds: int) -> None:
    """One with more than half of them counts, and only the rounds that it has."""
    builder = Builder(rounds=4)
    for levels in combinations({"a": ["a0", "a1"], "b": ["b0", "b1"]}):
        builder.time("s", {"n": 15, **levels}, 1.0)
    for row in builder.rows[-lacking:]:
        row |= {"status": "crashed", "value_s": None}
    (found, _) = effects(builder.data(), "s", TIME)
    assert (found.pairs, found.ratio.rounds) == (pairs, rounds)


@pytest.mark.parametrize(
    ("zeros", "value"),
    [
        (((1, 0), (1, 1)), 0.0),
        (((0, 0), (0, 1), (1, 0)), math.inf),
        (((0, 0), (0, 1), (1, 0), (1, 1)), math.nan),
    ],
)
def test_totals_of_counts_that_may_be_zero(zeros: Any, value: float) -> None:
    table = {(a, b): 0.0 if (a, b) in zeros else 5.0 for a in (0, 1) for b in (0, 1)}
    values = np.array([[v] for v in table.values()])
    cells = Cells(quantity("branches"), 15, ("a", "b"), tuple(table), values)
    ratio = main_effect(cells, ("a", 0, 1)).ratio
    assert ratio.value == pytest.approx(value, nan_ok=True)
    # Of an interaction both products above the line must be there.
    square = cells.ratio(cells.pairs(("a", 0, 1), ("b", 0, 1)), (1, -1, -1, 1))[0].value
    above, below = table[0, 0] * table[1, 1], table[1, 0] * table[0, 1]
    expected = above / below if below else math.inf if above else math.nan
    assert square == pytest.approx(expected, nan_ok=True)
