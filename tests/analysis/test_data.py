"""Estimates, quantities, and how the measurements of a run become its points."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.quantities import SHOWN_COUNTERS, TIME, quantity
from nqbench.analysis.factorial.effects import swept_factors
from nqbench.errors import AnalysisError
from nqbench.study.report_items import values
from tests.builders import H100, MINI, Builder, ablation, factorial, interval


def test_interval_is_students_t_on_logarithms() -> None:
    values = [1.0, 1.1, 0.95, 1.02, 1.05]
    estimate = combine(values)
    logs = np.log(values)
    low, high = scipy.stats.t.interval(0.95, df=4, loc=logs.mean(), scale=scipy.stats.sem(logs))
    assert estimate.value == pytest.approx(scipy.stats.gmean(values))
    assert (estimate.low, estimate.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert estimate.rounds == 5
    assert not estimate.exact


def test_one_round_has_no_interval_and_claims_nothing() -> None:
    estimate = combine([2.0])
    assert not estimate.bounded
    assert not estimate.differs_from(1)


def test_exact_counts_have_no_interval_but_differ() -> None:
    estimate = combine([3.0, 3.0], exact=True)
    assert not estimate.bounded
    assert estimate.differs_from(1)
    assert not estimate.differs_from(3)


def test_undefined_ratio_differs_from_nothing() -> None:
    assert not Estimate(math.nan, exact=True).differs_from(1)


def test_more_comparisons_need_a_wider_gap() -> None:
    estimate = combine([1.01, 1.03, 1.02, 1.05, 1.02])
    assert estimate.differs_from(1)
    assert not estimate.differs_from(1, comparisons=100)


def test_bonferroni_uses_the_exact_quantile() -> None:
    """Just inside and just outside of the widened interval."""
    logs = np.array([-0.01, 0.0, 0.01])
    estimate = combine(list(np.exp(logs)))
    half = scipy.stats.t.ppf(1 - 0.05 / 4 / 2, 2) * scipy.stats.sem(logs)
    assert not estimate.differs_from(math.exp(half * 0.999), comparisons=4)
    assert estimate.differs_from(math.exp(half * 1.001), comparisons=4)


def test_inverse_swaps_the_bounds() -> None:
    estimate = Estimate(2.0, 1.6, 2.5, 5)
    assert estimate.inverse() == Estimate(0.5, 0.4, 0.625, 5)


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(1000):
        low, _, high = interval(combine(list(np.exp(random.normal(0.3, 0.02, 5)))))
        covered += low <= math.exp(0.3) <= high
    assert 930 <= covered <= 970  # binomial(1000, 0.95): three standard deviations


@pytest.mark.parametrize("name", [*values(), *SHOWN_COUNTERS])
def test_every_value_a_study_may_name_is_known(name: str) -> None:
    assert quantity(name).name == name


def test_off_chip_sectors_are_local_and_global() -> None:
    row = {"local_sectors": 3.0, "global_sectors": 4.0}
    assert quantity("off_chip_sectors").of(row) == 7.0


def test_a_value_not_recorded_is_nan_not_zero() -> None:
    assert math.isnan(quantity("bank_conflicts").of({}))


def test_times_and_counters_never_share_a_kind() -> None:
    assert quantity("kernel").kind == "time"
    assert quantity("issue_slots").kind == "counter"


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(AnalysisError, match="did you mean 'bank_conflicts'"):
        quantity("bank_conflict")


def one_point(**changes: Any) -> tuple[Builder, dict[str, Any]]:
    builder = Builder(H100, rounds=3)
    levels = {"n": 15, "memory": "shared"}
    builder.time("s", levels, 0.5)
    return builder, levels


def test_a_point_is_the_combination_of_its_rounds() -> None:
    builder, _ = one_point()
    (point,) = builder.data().points
    assert point.ok
    assert (point.n, point.levels) == (15, {"memory": "shared"})
    assert sorted(point.values(TIME)) == [1, 2, 3]
    values = [row["value_s"] for row in builder.rows[1:]]
    estimate = point.estimate(TIME)
    assert estimate is not None
    assert min(values) < estimate.value < max(values)


def test_one_wrong_answer_condemns_the_point() -> None:
    builder, _ = one_point()
    builder.rows[2] |= {"status": "wrong", "value_s": None, "answer": "1", "expected": "2"}
    (point,) = builder.data().points
    assert point.status == "wrong"
    assert "answer 1, expected 2" in point.reason
    assert point.estimate(TIME) is None


def test_a_crashed_round_is_said_but_costs_only_itself() -> None:
    builder, _ = one_point()
    builder.rows[2] |= {"status": "crashed", "reason": "signal 9", "value_s": None}
    (point,) = builder.data().points
    assert point.ok
    assert sorted(point.measurements) == [1, 3]
    assert "signal 9" in point.reason


def test_a_throttled_measurement_does_not_count() -> None:
    builder, _ = one_point()
    builder.rows[1] |= {"status": "throttled", "value_s": 9.0}
    (point,) = builder.data().points
    assert point.ok
    assert sorted(point.measurements) == [2, 3]
    assert point.reason == "1 measurement throttled and left out"


def test_verified_only_is_not_a_result() -> None:
    builder, _ = one_point()
    builder.rows = builder.rows[:1]
    (point,) = builder.data().points
    assert point.status == "unfinished"


def test_planned_but_skipped_or_never_reached() -> None:
    builder, _ = one_point()
    builder.skip("s", {"n": 15, "memory": "local"}, "too large")
    builder.skip("s", {"n": 16, "memory": "local"}, "")
    _, skipped, unreached = builder.data().points
    assert (skipped.status, skipped.reason) == ("skipped", "too large")
    assert unreached.status == "unfinished"


def test_measurements_of_an_older_key_do_not_count() -> None:
    builder, _ = one_point()
    for row in builder.rows[:2]:
        row["key"] = "old"
    (point,) = builder.data().points
    assert sorted(point.measurements) == [2, 3]


def test_the_order_of_lines_changes_nothing() -> None:
    builder = factorial(sizes=(15,))
    one = builder.data()
    random.Random(3).shuffle(builder.rows)
    two = builder.data()
    assert [p.levels for p in one.points] == [p.levels for p in two.points]
    assert [p.estimate(TIME) for p in one.points] == [p.estimate(TIME) for p in two.points]


def test_a_simulated_point_has_counters_and_no_time() -> None:
    data = factorial(MINI, (10,)).data()
    point = data.points[0]
    assert data.provenance == "simulated"
    assert point.estimate(TIME) is None
    estimate = point.estimate(quantity("warp_instructions"))
    assert estimate is not None
    assert estimate.exact


def test_cpu_baselines_of_a_simulated_run_have_times_and_no_counters() -> None:
    data = ablation(MINI).data()
    hosts = data.select("systems", cpu=True)
    assert {p.system for p in hosts} == {"cpu.somers", "cpu.multicore"}
    assert all(p.estimate(TIME) for p in hosts)
    assert not any(p.values(quantity("warp_instructions")) for p in hosts)


def test_factors_that_do_not_apply_are_left_out_whatever_their_form() -> None:
    builder = Builder(H100, rounds=2)
    builder.time("s", {"n": 15, "memory": "shared", "pool_size": 256}, 1.0)
    builder.time("s", {"n": 15, "memory": "local", "pool_size": "-"}, 1.0)
    builder.time("s", {"n": 15, "memory": "global", "blocks": {"per_sm": 2}}, 1.0)
    pooled, local, spread = builder.data().points
    assert pooled.levels["pool_size"] == 256
    assert "pool_size" not in local.levels
    assert spread.level("blocks") == "2/SM"


def test_a_factor_named_like_a_column_keeps_its_levels() -> None:
    builder = Builder(rounds=2)
    levels = {"order": "random", "status": "cold", "device": "left", "registers": 64, "round": 9}
    builder.time("s", {"n": 15, **levels}, 1.0)
    (point,) = builder.data().points
    assert point.ok
    assert point.levels == levels
    assert sorted(point.measurements) == [1, 2]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["/opt/venv/bin/nqbench", "run", "a b.yaml"], "nqbench run 'a b.yaml'"),
        (["/x/nqbench/__main__.py", "run", "c.yaml"], "nqbench run c.yaml"),
        (["nqbench", "run", "/x/c.yaml", "-o/tmp/a"], "nqbench run FOLDER/c.yaml -oFOLDER/a"),
        (["nqbench", "run", f"{Path.cwd()}/c", "--out=/tmp/a"], "nqbench run c --out=FOLDER/a"),
        ("nqbench run 'x", """nqbench run ''"'"'x'"""),
        ([], "nqbench run"),
    ],
)
def test_command_names_no_folder_of_a_computer(command: Any, shown: str) -> None:
    assert Dataset("x", {"command": command}, (), 0).command == shown


def test_the_fake_device_never_says_measured() -> None:
    data = Dataset("x", {"device": {"spec": "fake:seed=1", "kind": "cuda"}}, (), 5)
    assert "not measured" in data.provenance


def test_swept_factors_come_from_the_study() -> None:
    data = ablation().data()
    assert swept_factors(data, "factorial") == ("memory", "layout", "loop", "assignment")
    assert swept_factors(data, "systems") == ("system",)
    assert set(swept_factors(data, "launch")) == {"depth", "block_size"}


def test_a_factor_that_follows_another_is_not_swept() -> None:
    builder = Builder(H100, rounds=2)
    for memory, words in (("shared", 4), ("global", 1)):
        for loop in ("branchy", "irrc"):
            builder.time("s", {"n": 9, "memory": memory, "words": words, "loop": loop}, 1.0)
    found = swept_factors(builder.data(), "s")
    assert len(found) == 2
    assert "loop" in found


def test_levels_stand_in_the_order_of_the_study() -> None:
    data = factorial().data()
    assert data.order("factorial", "memory") == ["global", "shared"]
    assert data.order("factorial", "assignment")[0] == "one_per_thread"


def test_a_measurement_of_an_unfinished_round_does_not_lengthen_the_run() -> None:
    """A run stopped in its fourth round: one of its points has one more than the others."""
    builder = Builder(H100, rounds=3)
    for memory in ("shared", "global", "local"):
        builder.time("s", {"n": 15, "memory": memory}, 0.5)
    assert builder.data().rounds == 3
    builder.rows.append(builder.rows[-1] | {"round": 4})
    assert builder.data().rounds == 3
