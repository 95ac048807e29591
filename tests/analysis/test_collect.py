"""From measurements to points: which of them count, what a failed point is, the order of points."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.factorial.design import swept_factors
from tests.builders import H100, MINI, Builder, ablation, factorial


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


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["/opt/venv/bin/nqbench", "run", "a b.yaml"], "nqbench run 'a b.yaml'"),
        (["/x/nqbench/__main__.py", "run", "c.yaml"], "nqbench run c.yaml"),
        ([], "nqbench run"),
    ],
)
def test_command_names_no_folder_of_the_program(command: list[str], shown: str) -> None:
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
