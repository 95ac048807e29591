"""Comparison of runs whose truth is known: what matches, what is said, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from nqbench.analysis.compare.match import labels, telling
from nqbench.analysis.compare.request import Findings
from nqbench.analysis.compare.runs import Comparison, compare_levels, compare_runs
from nqbench.analysis.data.dataset import Dataset
from nqbench.errors import AnalysisError, StudyError
from nqbench.report.comparison import point_label, quantity_label, tables_of
from tests.builders import MINI, Builder, factorial, truth_s

NAMES = ("old", "new")


def run(builder: Builder) -> Dataset:
    return builder.data("run")


def changed(levels: Any) -> float:
    """Everything as before, but irrc 5% slower and block_pool 5% faster."""
    value = truth_s(levels)
    value *= 1.05 if levels["loop"] == "irrc" else 1.0
    return value * (0.9 if levels["assignment"] == "block_pool" else 1.0)


def verdict_of(comparison: Comparison, **levels: Any) -> set[str]:
    return {
        row.verdict
        for row in comparison.rows
        if all(row.pair.first.level(f) == level for f, level in levels.items())
    }


def test_two_runs_of_a_changed_program() -> None:
    old, new = run(factorial(seed=1)), run(factorial(seed=2, value=changed))
    found = compare_runs(old, new, NAMES)
    assert found.matched == 48
    assert not found.missing
    assert verdict_of(found, loop="irrc", assignment="one_per_thread") == {"slower"}
    assert verdict_of(found, loop="irrc", assignment="block_pool") == {"faster"}
    same = verdict_of(found, loop="branchy", assignment="one_per_thread")
    assert not same & {"faster", "slower"}
    assert found.design == "welch"
    assert any("the two sessions" in note for note in found.notes)
    mean = found.sections[0].overall
    assert mean is not None
    truth = (1.05**0.5) * (0.9 ** (1 / 3))
    assert mean.low is not None
    assert mean.high is not None
    assert mean.low < truth < mean.high


def test_levels_within_a_run_are_paired_by_round() -> None:
    found = compare_levels(run(factorial()), "loop", ("branchy", "irrc"))
    assert found.design == "paired"
    assert found.sections[0].counts == {"faster": 24, "slower": 0, "same": 0, "unclear": 0}
    mean = found.sections[0].overall
    assert mean is not None
    assert mean.value == pytest.approx(0.9, rel=2e-3)


def test_points_are_matched_by_factors_and_gaps_are_listed() -> None:
    one, two = factorial(sizes=(15,)), factorial(sizes=(15,), seed=2)
    for row in two.rows:
        row["key"] = "other-" + row["key"]
    for point in two.points:
        point["key"] = "other-" + point["key"]
    lost = two.points.pop()
    one.fail("factorial", {**lost["factors"], "n": 16}, "crashed", "signal 11")
    two.time("factorial", {**lost["factors"], "n": 16}, 0.1)
    found = compare_runs(run(one), run(two), NAMES)
    assert found.matched == 23
    listed = {(m.where, m.reason) for m in found.missing}
    assert listed == {("new", "no such point"), ("old", "crashed: signal 11")}
    assert found.unmatched == 2


def test_a_point_that_both_sides_lack_is_counted_once() -> None:
    sides = [factorial(sizes=(15,)), factorial(sizes=(15,), seed=2)]
    for builder, reason in zip(sides, ("48 s needed", "31 s needed"), strict=True):
        builder.fail("factorial", {"n": 17, "depth": 3}, "skipped", reason)
    found = compare_runs(run(sides[0]), run(sides[1]), NAMES)
    assert len(found.missing) == 2
    assert found.unmatched == 1


def test_programs_of_the_host_are_no_part_of_what_the_gpus_differ_by() -> None:
    sides = [Builder(seed=1), Builder(seed=2)]
    for builder, host_s in zip(sides, (1.0, 0.5), strict=True):
        for block in (32, 64):
            builder.time("s", {"n": 15, "block_size": block}, 0.1, "zhang2011.low_divergence")
        builder.time("s", {"n": 15}, host_s, "cpu.somers")
    found = compare_runs(run(sides[0]), run(sides[1]), NAMES)
    kernels, host = found.sections
    assert (kernels.quantity.label, len(kernels.rows)) == ("kernel time", 2)
    assert (host.quantity.label, len(host.rows)) == ("CPU time", 1)
    assert kernels.overall is not None
    assert host.overall is not None
    assert kernels.overall.value == pytest.approx(1, rel=0.01)
    assert host.overall.value == pytest.approx(0.5, rel=0.02)
    said = Findings((found,), (), (), "compare", several_devices=False)
    assert [t.name for t in tables_of(said)] == ["summary", "points-time", "points-cpu-time"]


def test_a_point_in_two_sweeps_is_matched_by_sweep() -> None:
    def twice(seed: int) -> Builder:
        builder = Builder(seed=seed)
        for sweep, value in (("one", 0.1), ("two", 0.1)):
            builder.time(sweep, {"n": 15, "memory": "shared"}, value)
        return builder

    found = compare_runs(run(twice(1)), run(twice(2)), NAMES)
    assert [row.pair.first.sweep for row in found.rows] == ["one", "two"]
    assert [row.pair.second.sweep for row in found.rows] == ["one", "two"]


def test_what_follows_a_system_does_not_separate_its_pairs() -> None:
    builder = Builder()
    for n in (15, 16):
        for block in (64, 128):
            for system, memory in (("zhang2011.a", "global"), ("zhang2011.b", "shared")):
                levels = {"n": n, "memory": memory, "block_size": block}
                builder.time("systems", levels, 0.1, system)
    found = compare_levels(run(builder), "system", ("zhang2011.a", "zhang2011.b"))
    assert found.matched == 4
    assert all(
        row.pair.first.level("block_size") == row.pair.second.level("block_size")
        for row in found.rows
    )


def test_counters_are_equal_or_differ_and_have_no_intervals() -> None:
    one, two = factorial(MINI, sizes=(10,)), factorial(MINI, sizes=(10,))
    two.rows[3]["warp_instructions"] += 1
    found = compare_runs(run(one), run(two), NAMES)
    blocks = {block.quantity.name: block for block in found.sections}
    assert blocks["warp_instructions"].counts == {"equal": 23, "differs": 1}
    assert blocks["lane_efficiency"].counts == {"equal": 24, "differs": 0}
    assert not any(row.ratio.bounded for row in found.rows)


def test_a_count_from_zero_differs_without_a_ratio() -> None:
    one, two = factorial(MINI, sizes=(10,)), factorial(MINI, sizes=(10,))
    quiet = next(row for row in two.rows if row["bank_conflicts"] == 0)
    quiet["bank_conflicts"] = 7.0
    found = compare_runs(run(one), run(two), NAMES, value="bank_conflicts")
    row = next(row for row in found.rows if row.verdict == "differs")
    assert row.first.value == 0
    assert row.ratio.value == float("inf")
    assert found.sections[0].overall is None


def test_times_and_counts_never_share_a_column() -> None:
    with pytest.raises(StudyError, match=r"old is measured .* new is simulated .* never share"):
        compare_runs(run(factorial()), run(factorial(MINI)), NAMES)


def test_invented_times_stand_apart_from_measured_ones() -> None:
    fake = {"spec": "fake:seed=1", "kind": "cuda", "facts": {"name": "fake"}}
    with pytest.raises(StudyError, match="synthetic"):
        compare_runs(run(factorial()), run(factorial(fake)), NAMES)


@pytest.mark.parametrize(
    ("factor", "levels", "message"),
    [
        ("colour", ("a", "b"), "varies no such factor; it has sweep, memory"),
        ("memory", ("global", "locale"), "no level 'locale'; it has global, shared"),
    ],
)
def test_unknown_factors_and_levels(factor: str, levels: tuple[str, str], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        compare_levels(run(factorial()), factor, levels)


def test_nothing_in_common_is_said_with_an_example() -> None:
    with pytest.raises(AnalysisError, match=r"no finished point in common; e.g. .* no such point"):
        compare_runs(run(factorial(sizes=(15,))), run(factorial(sizes=(16,))), NAMES)


def test_one_round_is_unclear_with_its_reason() -> None:
    found = compare_runs(run(factorial(rounds=1)), run(factorial(rounds=1, seed=2)), NAMES)
    assert {row.verdict for row in found.rows} == {"unclear"}
    assert {row.reason for row in found.rows} == {"fewer than two rounds on a side"}


def test_labels_leave_out_what_follows() -> None:
    builder = Builder()
    for memory, allocation in (("global", "-"), ("shared", "static")):
        builder.time("s", {"n": 15, "memory": memory, "allocation": allocation}, 0.1)
    assert telling(run(builder).points) == ("memory",)


def test_points_that_only_their_sweep_tells_apart_are_called_by_it() -> None:
    builder = Builder(rounds=2)
    for sweep, n in (("kernels", 15), ("accesses", 15), ("kernels", 16)):
        builder.time(sweep, {"n": n, "depth": 4}, 1e-3, "zhang2011.low_divergence")
    builder.time("kernels", {"n": 15, "depth": 4}, 1e-3, "cpu.somers")
    both = compare_runs(run(builder), run(builder), NAMES)
    assert set(labels([row.pair.first for row in both.rows]).values()) == {
        "zhang2011.low_divergence N=15 (kernels)",
        "zhang2011.low_divergence N=15 (accesses)",
        "zhang2011.low_divergence N=16",
        "cpu.somers N=15",
    }
    told = {point_label(both, row): quantity_label(row) for row in both.rows}
    assert told["cpu.somers N=15"] == "CPU time"
    assert told["zhang2011.low_divergence N=16"] == "kernel time"
