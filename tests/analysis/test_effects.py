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


def test_without_noise_the_ratio_is_exactly_the_truth() -> None:
    data = factorial(noise=0.0).data()
    for effect in effects(data, "factorial", TIME):
        assert effect.ratio.value == pytest.approx(TRUTH[str(effect.level)], rel=1e-12)


def test_round_effects_cancel_because_comparisons_are_paired_by_round() -> None:
    """A round that is 10% slower for everything must not widen the interval of a ratio."""
    builder = factorial(sizes=(15,), noise=0.001)
    for row in builder.rows:
        if row["round"] == 2:
            row["value_s"] *= 1.1
    effect = by_level(effects(builder.data(), "factorial", TIME), 15)["shared"]
    low, _, high = interval(effect.ratio)
    assert high / low < 1.005


def test_coverage_of_a_main_effect_with_round_and_process_noise() -> None:
    random = np.random.default_rng(11)
    names = ("a", "b")
    levels = tuple((a, b) for a in ("0", "1") for b in ("0", "1"))
    truth = np.log([1.0, 1.3, 0.7, 0.7 * 1.3])
    covered = 0
    for _ in range(400):
        logs = truth[:, None] + random.normal(0, 0.01, (1, 5)) + random.normal(0, 0.004, (4, 5))
        table = Cells(names, levels, np.exp(logs), exact=False)
        low, _, high = interval(main_effect(table, "a", "0", "1", TIME, 15).ratio)
        covered += low <= 0.7 <= high
    assert 367 <= covered <= 393  # binomial(400, 0.95): three standard deviations


def test_counters_give_exact_ratios() -> None:
    data = factorial(MINI, (10,)).data()
    found = by_level(effects(data, "factorial", quantity("warp_instructions")), 10)
    assert found["irrc"].ratio.value == pytest.approx(0.9)
    assert found["block_pool"].ratio.value == pytest.approx(0.5)
    assert all(e.ratio.exact and not e.ratio.bounded for e in found.values())


def test_zero_counts_are_compared_by_totals() -> None:
    data = factorial(MINI, (10,)).data()
    found = by_level(effects(data, "factorial", quantity("bank_conflicts")), 10)
    assert found["interleaved"].ratio.value == 0
    assert found["interleaved"].method == "totals"
    assert found["shared"].ratio.value == math.inf
    assert found["irrc"].ratio.value == pytest.approx(0.9)


def test_interaction_and_reversal_are_found() -> None:
    builder = factorial(noise=0.001, value=lambda lv: truth_s(lv, reversal=True))
    found = interactions(builder.data(), "factorial", TIME)
    crossed = [i for i in found if (i.factor, i.other, i.n) == ("memory", "layout", 15)]
    (pair,) = crossed
    assert pair.ratio.value == pytest.approx(REVERSAL, rel=0.003)
    assert pair.at_base.value == pytest.approx(TRUTH["shared"], rel=0.003)
    assert pair.at_level.value == pytest.approx(TRUTH["shared"] * REVERSAL, rel=0.003)
    assert pair.squares == 6
    assert "layout" in pair.reversed
    rest = [i for i in found if i is not pair and {i.factor, i.other} != {"memory", "layout"}]
    assert all(i.ratio.value == pytest.approx(1, abs=0.004) for i in rest)
    assert not any(i.reversed for i in rest)


def test_missing_combinations_are_compared_in_matched_pairs() -> None:
    builder = factorial(sizes=(15,), noise=0.0)
    victim = next(p for p in builder.points if p["factors"]["memory"] == "shared")
    for row in builder.rows:
        if row["key"] == victim["key"]:
            row |= {"status": "crashed", "value_s": None, "reason": "signal 9"}
    found = by_level(effects(builder.data(), "factorial", TIME), 15)
    assert found["shared"].pairs == 11
    assert found["shared"].method == "geometric mean"
    assert found["shared"].ratio.value == pytest.approx(TRUTH["shared"])


def fraction() -> Builder:
    """Half of a 2 x 2 x 2 design (a, b, c = a xor b): no pair differs in one factor only."""
    builder = Builder(rounds=4, noise=0.001, sweeps=[{"name": "s", "matrix": dict.fromkeys("abc")}])
    sizes = {"a1": 0.5, "b1": 0.8, "c1": 1.25}
    for a in range(2):
        for b in range(2):
            levels = {"n": 15, "a": f"a{a}", "b": f"b{b}", "c": f"c{a ^ b}"}
            value = math.prod(sizes.get(str(v), 1.0) for v in levels.values())
            builder.time("s", levels, value)
    return builder


def test_a_fractional_design_is_fitted_and_says_so() -> None:
    found = by_level(effects(fraction().data(), "s", TIME), 15)
    for level, truth in (("a1", 0.5), ("b1", 0.8), ("c1", 1.25)):
        assert found[level].method == "least squares"
        assert found[level].ratio.value == pytest.approx(truth, rel=0.005)
        assert found[level].ratio.bounded


def test_aliased_factors_are_refused() -> None:
    builder = Builder(rounds=2, sweeps=[{"name": "s", "matrix": {"a": [], "b": []}}])
    for level in "01":
        builder.time("s", {"n": 15, "a": f"a{level}", "b": f"b{level}"}, 1.0 + int(level))
    with pytest.raises(AnalysisError, match="cannot be separated"):
        effects(builder.data(), "s", TIME)


def small(**changes: Any) -> Dataset:
    builder = Builder(rounds=2)
    for memory in changes.get("memory", ["shared"]):
        builder.time("s", {"n": 15, "memory": memory}, 1.0)
    return builder.data()


def test_a_factor_with_one_level_has_no_effect() -> None:
    with pytest.raises(AnalysisError, match="varies no factor"):
        effects(small(), "s", TIME)
    with pytest.raises(AnalysisError, match="memory has only one level"):
        effects(small(), "s", TIME, factors=["memory"])


def test_one_factor_alone_has_an_effect_but_no_interaction() -> None:
    data = small(memory=["shared", "global"])
    assert len(effects(data, "s", TIME)) == 1
    with pytest.raises(AnalysisError, match="no interaction"):
        interactions(data, "s", TIME)


def test_an_unnamed_factor_that_varies_too_is_refused() -> None:
    data = factorial(sizes=(15,)).data()
    with pytest.raises(AnalysisError, match="another factor varies too"):
        effects(data, "factorial", TIME, factors=["memory"])


def test_nothing_finished() -> None:
    builder = Builder()
    for levels in combinations(FACTORIAL):
        builder.fail("s", {**levels, "n": 15}, "launch_error")
    with pytest.raises(AnalysisError, match="no finished point"):
        effects(builder.data(), "s", TIME)


def test_a_round_without_some_combination_is_dropped_for_all() -> None:
    builder = factorial(sizes=(15,), noise=0.001)
    lost = next(r for r in builder.rows if r["round"] == 3)
    lost |= {"status": "crashed", "value_s": None}
    found = effects(builder.data(), "factorial", TIME)
    assert {e.ratio.rounds for e in found} == {4}
    assert by_level(found, 15)["shared"].pairs == 12
