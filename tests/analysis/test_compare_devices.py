"""Between devices: rank correlations against scipy, and changes that turn round."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import pytest
import scipy.stats

from nqbench.analysis.compare.devices import rank_correlations, reversals
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.quantities import TIME, quantity
from tests.builders import H100, MINI, Builder, counters_of, factorial, truth_s

NAMES = ("one", "two")
OTHER = {**H100, "identity": {"name": "Other"}}
STEPS = ("base", "opt1_shared_stack", "opt2_shared_all", "opt3_shared_extern", "opt4_compact")


def run(builder: Builder) -> Dataset:
    return builder.data()


def systems(times_s: list[float], seed: int = 1) -> Builder:
    builder = Builder(H100, seed=seed)
    for name, time_s in zip(STEPS, times_s, strict=True):
        builder.time("systems", {"n": 15, "block_size": 64}, time_s, f"feinbube2010.{name}")
    return builder


def test_rank_correlation_is_scipys() -> None:
    ones, twos = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 3.0, 2.0, 5.0, 4.0]
    (found,) = rank_correlations([run(systems(ones)), run(systems(twos))], NAMES, TIME)
    assert found.spearman == pytest.approx(scipy.stats.spearmanr(ones, twos).statistic)
    assert found.kendall == pytest.approx(scipy.stats.kendalltau(ones, twos).statistic)
    assert (found.n, found.points, found.of) == (15, 5, "systems")


def test_four_points_in_one_order_may_be_so_by_chance() -> None:
    times = [1.0, 2.0, 3.0, 4.0, 5.0]
    (alike,) = rank_correlations([run(systems(times)), run(systems(times))], NAMES, TIME)
    assert alike.spearman_p == pytest.approx(2 / 120)  # Student's t says 0
    swapped = [1.0, 3.0, 2.0, 5.0, 4.0]
    (near,) = rank_correlations([run(systems(times)), run(systems(swapped))], NAMES, TIME)
    sums = [abs(scipy.stats.spearmanr(times, order).statistic) for order in permutations(range(5))]
    assert near.spearman_p == pytest.approx(sum(s >= near.spearman - 1e-9 for s in sums) / 120)


def test_many_points_in_one_order_are_no_certainty_either() -> None:
    builder = Builder(noise=0.0)
    for block in range(1, 11):
        builder.time("s", {"n": 15, "block_size": 32 * block}, 0.1 * block)
    (found,) = rank_correlations([run(builder), run(builder)], NAMES, TIME)
    assert found.spearman_p == pytest.approx(2 / math.factorial(10))


def test_too_few_points_are_not_ranked() -> None:
    builder = Builder()
    for block in (32, 64, 128):
        builder.time("s", {"n": 15, "block_size": block}, 0.1 * block)
    assert rank_correlations([run(builder), run(builder)], NAMES, TIME) == []


def test_a_factor_that_helps_on_one_device_and_hurts_on_the_other() -> None:
    def turned(levels: Any) -> float:
        return truth_s(levels) * (1.5 if levels["layout"] == "interleaved" else 1.0)

    ones = run(factorial(sizes=(15,)))
    twos = run(factorial(OTHER, sizes=(15,), value=turned, seed=2))
    (found,) = reversals([ones, twos], NAMES, TIME)
    assert found.change == "layout interleaved instead of per_thread (sweep factorial)"
    assert found.ratios[0].value == pytest.approx(0.8, rel=0.01)
    assert found.ratios[1].value == pytest.approx(1.2, rel=0.01)
    assert found.sentence().startswith(
        "layout interleaved instead of per_thread (sweep factorial): is 1.2"
    )
    assert "times as long on two (N=15)" in found.sentence()


def test_a_step_between_versions_of_a_paper_turns_round() -> None:
    ones = run(systems([5.0, 4.0, 3.0, 2.0, 1.0]))
    twos = run(systems([5.0, 4.0, 4.4, 2.0, 1.0], seed=2))
    (found,) = reversals([ones, twos], NAMES, TIME)
    assert found.change == (
        "feinbube2010.opt2_shared_all instead of opt1_shared_stack (sweep systems)"
    )


def test_noise_turns_nothing_round() -> None:
    assert reversals([run(factorial(seed=s)) for s in (1, 2)], NAMES, TIME) == []
    flat = [run(systems([1.0] * 5, seed=s)) for s in range(3, 9)]
    assert reversals(flat, [str(i) for i in range(6)], TIME) == []


def test_counts_turn_round_exactly_and_small_changes_are_not_told() -> None:
    def counted(shared: float) -> Dataset:
        builder = Builder(MINI)
        for memory, factor in (("global", 1.0), ("shared", shared)):
            levels = {"n": 10, "memory": memory}
            counters = counters_of(levels) | {"issue_slots": 1000.0 * factor}
            builder.count("s", levels, counters)
        return run(builder)

    what = quantity("issue_slots")
    (found,) = reversals([counted(0.5), counted(1.5)], NAMES, what)
    assert [e.value for e in found.ratios] == pytest.approx([0.5, 1.5])
    assert reversals([counted(0.995), counted(1.5)], NAMES, what) == []
