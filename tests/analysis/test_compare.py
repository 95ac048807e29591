"""Comparisons of runs whose truth is known; their statistics against scipy; devices compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

from nqbench.analysis.compare.changes import SharedEffect, ranking
from nqbench.analysis.compare.match import distinguishing, labels, variants
from nqbench.analysis.compare.request import compare_datasets
from nqbench.analysis.compare.runs import Comparison, compare_levels, compare_runs, judge
from nqbench.analysis.compare.wording import reversal
from nqbench.analysis.data import estimate
from nqbench.errors import AnalysisError, StudyError
from tests.builders import H100, MINI, Builder, counters_of, factorial, interval, truth_s

NAMES = ("old", "new")


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
    old, new = factorial(seed=1).data(), factorial(seed=2, value=changed).data()
    found = compare_runs(old, new, NAMES)
    assert len([*found.rows]) == 48
    assert not found.missing
    assert verdict_of(found, loop="irrc", assignment="one_per_thread") == {"slower"}
    assert verdict_of(found, loop="irrc", assignment="block_pool") == {"faster"}
    same = verdict_of(found, loop="branchy", assignment="one_per_thread")
    assert not same & {"faster", "slower"}
    assert any("the two sessions" in note for note in found.notes)
    (order,) = ranking(found)
    assert [one.n for one, _ in order.best] == [16, 15], "the largest size first"
    low, _, high = interval(found.sections[0].overall)
    assert low < (1.05**0.5) * (0.9 ** (1 / 3)) < high


def test_a_phase_that_took_no_time_is_listed_as_not_compared() -> None:
    runs = []
    for seconds in ((0.0, 0.0, 0.2, 0.0), (0.1, 0.0, 0.1, math.nan)):  # the last has none at all
        run = Builder(rounds=2)
        for n, transfer_s in enumerate(seconds, 8):
            run.time("kernels", {"n": n}, 1.0, transfer_s=transfer_s)
        runs.append(run.data())
    found = compare_runs(runs[0], runs[1], NAMES, value="transfer")
    assert [row.pair.first.n for row in found.rows] == [10]
    said = [(m.label, m.where, m.reason) for m in found.missing]
    why = "its transfer time is 0 s"
    assert said == [("kernels N=8", "old", why), ("kernels N=9", "both", why)]


def test_levels_within_a_run_are_paired_by_round() -> None:
    found = compare_levels(factorial().data(), "loop", ("branchy", "irrc"))
    assert found.notes == ("Paired by round: what a round does to both sides cancels.",)
    assert found.sections[0].counts == {"faster": 24, "slower": 0, "same": 0, "unclear": 0}
    assert interval(found.sections[0].overall)[1] == pytest.approx(0.9, rel=2e-3)


Planned = tuple[str, int, str]
"""A sweep, a depth, and why the point failed (``STATUS: REASON``; empty: it was measured)."""


@pytest.mark.parametrize(
    ("first", "second", "matched", "missing"),
    [
        ([("s", 3, ""), ("s", 4, "")], [("s", 3, ""), ("s", 4, "")], ["s", "s"], []),
        ([("s", 3, ""), ("s", 4, "")], [("s", 3, "")], ["s"], [("new", "no such point")]),
        ([("s", 3, "crashed: signal 11")], [("s", 3, "")], [], [("old", "crashed: signal 11")]),
        # The same factors in two sweeps: matched by sweep, or in the first one that both have.
        ([("a", 3, ""), ("b", 3, "")], [("a", 3, ""), ("b", 3, "")], ["a", "b"], []),
        ([("a", 3, "")], [("a", 3, ""), ("b", 3, "")], ["a"],
         [("old", "no such point in sweep b")]),
        # What both sides lack is one point.
        ([("s", 3, "skipped: 48 s needed")], [("s", 3, "skipped: 31 s needed")], [],
         [("both", "skipped: 48 s needed (old); skipped: 31 s needed (new)")]),
        ([("s", 3, "skipped: too long")], [("s", 3, "skipped: too long")], [],
         [("both", "skipped: too long")]),
    ],
)  # fmt: skip
def test_points_are_matched_by_factors_and_gaps_are_listed(
    first: list[Planned], second: list[Planned], matched: list[str], missing: list[tuple[str, str]]
) -> None:
    sides = []
    for seed, points in enumerate((first, second)):
        builder = Builder(seed=seed)
        builder.points += [{"sweep": "", "system": None, "factors": {}}] * seed  # other keys
        builder.time("t", {"n": 15, "depth": 1}, 0.1)
        for sweep, depth, why in points:
            levels = {"n": 15, "depth": depth}
            if why:
                builder.fail(sweep, levels, *why.split(": "))
            else:
                builder.time(sweep, levels, 0.1)
        del builder.points[:seed]
        sides.append(builder.data())
    assert sides[0].points[0].key != sides[1].points[0].key
    found = compare_runs(sides[0], sides[1], NAMES)
    pairs = [row.pair for row in found.rows]
    assert all(pair.first.sweep == pair.second.sweep for pair in pairs)
    assert [pair.first.sweep for pair in pairs] == ["t", *matched]
    assert [(m.where, m.reason) for m in found.missing] == missing


def test_what_follows_a_system_does_not_separate_its_pairs() -> None:
    """What follows in one sweep may vary in another."""
    builder, systems = Builder(), ("tanaka2011.none", "tanaka2011.both")
    for block in (64, 128):
        for system, way in zip(systems, ("contiguous", "pool"), strict=True):
            own = {"n": 15, "assignment": way, "block_size": block}
            builder.time("ablation", own, 0.1, system)
        for way in ("contiguous", "strided"):
            own = {"n": 15, "assignment": way, "block_size": block}
            builder.time("share", own, 0.1, systems[0])
        builder.time("share", own | {"assignment": "contiguous"}, 0.1, systems[1])
    found = compare_levels(builder.data(), "system", systems)
    assert [row.pair.first.sweep for row in found.rows] == ["ablation"] * 2 + ["share"] * 2
    blocks = [[p.level("block_size") for p in row.pair] for row in found.rows]
    assert blocks == [[64, 64], [128, 128]] * 2
    assert len(found.missing) == 2


def test_counters_are_equal_or_differ_and_have_no_intervals() -> None:
    one, two = factorial(MINI, sizes=(10,)), factorial(MINI, sizes=(10,))
    two.rows[3]["warp_instructions"] += 0.25
    quiet = next(row for row in two.rows if row["bank_conflicts"] == 0)
    quiet["bank_conflicts"] = 7.0
    for recorded in (*one.rows, *two.rows):
        recorded["modelled_ms"] = 1.0
    found = compare_runs(one.data(), two.data(), NAMES)
    assert found.sections[0].quantity.name == "modelled_ms", "first, where a run was asked for it"
    by_name = {section.quantity.name: section for section in found.sections}
    assert by_name["warp_instructions"].counts == {"equal": 23, "better": 0, "worse": 1}
    assert by_name["lane_efficiency"].counts == {"equal": 24, "better": 0, "worse": 0}
    assert by_name["lane_efficiency"].equal_everywhere
    (row,) = [row for row in by_name["warp_instructions"].rows if row.verdict == "worse"]
    assert row.difference.verdict == "+0.25", "where a ratio would be 1.00"
    assert not any(row.ratio.bounded for row in found.rows)
    (row,) = [row for row in by_name["bank_conflicts"].rows if row.verdict == "worse"]
    assert (row.first.value, row.ratio.value) == (0, math.inf), "from zero there is no ratio"
    assert by_name["bank_conflicts"].overall is None


ONE = factorial(sizes=(15,)).data()


FAKE = {"spec": "fake:seed=1", "kind": "cuda", "facts": {"name": "fake"}}
REFUSED: tuple[tuple[Callable[[], object], str], ...] = (
    (lambda: compare_runs(ONE, factorial(FAKE).data(), NAMES), "synthetic"),
    (lambda: compare_runs(ONE, factorial(sizes=(17,)).data(), NAMES),
     r"no finished point in common; e.g. .* no such point"),
    (lambda: compare_runs(ONE, ONE, NAMES, value="bank_conflicts"),
     "no point of old and new has bank_conflicts on both sides; they have time, split"),
    (lambda: compare_levels(ONE, "colour", ("a", "b")),
     "varies no such factor; choose from sweep, memory"),
    (lambda: compare_levels(ONE, "memory", ("global", "locale")),
     "no level 'locale'; did you mean 'global'?"),
)  # fmt: skip


@pytest.mark.parametrize(("compare", "said"), REFUSED)
def test_what_cannot_be_compared(compare: Callable[[], object], said: str) -> None:
    with pytest.raises((StudyError, AnalysisError), match=said):
        compare()


def test_labels_leave_out_what_follows() -> None:
    builder = Builder()
    for memory, allocation in (("global", "-"), ("shared", "static")):
        builder.time("s", {"n": 15, "memory": memory, "allocation": allocation}, 0.1)
    assert distinguishing(builder.data().points) == ("memory",)
    for depth in (4, 5):
        builder.time("t", {"n": 15, "memory": "global", "depth": depth}, 0.1)
    wanted = {f"s N=15 memory={memory}" for memory in ("global", "shared")}
    assert {*labels(builder.data().points).values()} == wanted | {
        "t N=15 depth=4",
        "t N=15 depth=5",
    }


def test_points_that_only_their_sweep_tells_apart_are_called_by_it() -> None:
    builder = Builder(rounds=2)
    for sweep, n in (("kernels", 15), ("accesses", 15), ("kernels", 16)):
        builder.time(sweep, {"n": n, "depth": 4}, 1e-3, "zhang2011.low_divergence")
    builder.time("kernels", {"n": 15, "depth": 4}, 1e-3, "cpu.somers")
    both = compare_runs(builder.data(), builder.data(), NAMES)
    kernel, cpu = both.sections
    assert (kernel.quantity.label, cpu.quantity.label) == ("kernel time", "CPU time")
    of_kernel = {*labels([row.pair.first for row in kernel.rows]).values()}
    assert of_kernel == {f"zhang2011.low_divergence N={n}" for n in (
        "15 (kernels)", "15 (accesses)", "16"
    )}  # fmt: skip
    assert [*labels([row.pair.first for row in cpu.rows]).values()] == ["cpu.somers N=15"]
    of_sweeps = Builder(rounds=2)
    for sweep, depth in (("a", 4), ("a", 5), ("b", 4), ("b", 6)):
        of_sweeps.time(sweep, {"n": 15, "depth": depth}, 1e-3)
    called = [*variants(of_sweeps.data().points).values()]
    assert called == ["a, depth 4", "depth 5", "b, depth 4", "depth 6"]


A = {1: 1.00, 2: 1.02, 3: 0.99, 4: 1.01, 5: 1.03}
B = {1: 1.03, 2: 1.04, 3: 1.03, 4: 1.02, 5: 1.06}
WIDE = {1: 1.0, 2: 1.3, 3: 0.8, 4: 1.1, 5: 0.9}


def logs(values: dict[int, float]) -> Any:
    return np.log(list(values.values()))


WELCH = scipy.stats.ttest_ind(logs(WIDE), logs(A), equal_var=False)


@pytest.mark.parametrize(
    ("found", "truth"),
    [
        (estimate.paired(A, B), scipy.stats.ttest_rel(logs(B), logs(A))),
        (estimate.welch(A, WIDE), WELCH),
        (estimate.welch(WIDE, B), scipy.stats.ttest_ind(logs(B), logs(WIDE), equal_var=False)),
    ],
    ids=["paired", "welch", "welch the other way"],
)
def test_contrasts_are_scipys_t_tests_on_logarithms(found: estimate.Contrast, truth: Any) -> None:
    """With as many rounds on both sides: otherwise the interval is longer (test_truth.py)."""
    assert found.p_different() == pytest.approx(truth.pvalue)
    assert found.freedom == pytest.approx(truth.df)
    bounds = truth.confidence_interval(0.95)
    low, value, high = interval(found.estimate())
    assert (low, high) == pytest.approx((math.exp(bounds.low), math.exp(bounds.high)))
    assert value == pytest.approx(math.sqrt(low * high))


def test_the_p_of_an_estimate_is_that_of_a_t_test_against_1() -> None:
    for rounds in (B, {1: 1.1, 2: 1.3}):
        found = estimate.p_different(estimate.combine(list(rounds.values())))
        assert found == pytest.approx(scipy.stats.ttest_1samp(logs(rounds), 0).pvalue)
    assert math.isnan(estimate.p_different(estimate.combine([2.0])))


def test_pairing_goes_by_round_and_not_by_order() -> None:
    shuffled = {r: B[r] for r in (4, 2, 5, 1, 3)}
    assert estimate.paired(A, shuffled) == estimate.paired(A, B)
    for lost, rounds in (({3}, 4), (set(A), 0)):
        partial = {r + 10 * (r in lost): v for r, v in B.items()}
        assert estimate.paired(A, partial).rounds == rounds


@pytest.mark.parametrize(
    "found",
    [
        estimate.paired({1: 2.0}, {1: 3.0}),
        estimate.paired({1: 2.0, 2: 2.0}, {3: 3.0}),
        estimate.welch({1: 2.0}, {1: 3.0}),
        estimate.welch({1: 2.0}, dict.fromkeys(range(5), 3.0)),
    ],
)
def test_one_round_gives_a_ratio_and_no_interval(found: estimate.Contrast) -> None:
    assert found.estimate().value == pytest.approx(1.5)
    assert not found.estimate().bounded
    assert math.isnan(found.p_different())
    ((verdict, p),) = judge([found], 0.01)
    assert verdict == "unclear"
    assert math.isnan(p)


def test_p_outside_is_5_percent_exactly_where_the_interval_touches_the_margin() -> None:
    contrast = estimate.paired(A, {r: v * 1.001 for r, v in B.items()})
    high = contrast.estimate().high
    assert high is not None
    assert contrast.p_outside(high - 1) == pytest.approx(0.05)
    assert contrast.p_outside(high - 1 + 1e-3) < 0.05 < contrast.p_outside(high - 1 - 1e-3)


def test_a_clock_cannot_tell_less_than_its_step() -> None:
    """Every round one tick apart: without the clock's resolution that would be certain."""
    one = dict.fromkeys(range(1, 6), 100 * estimate.EVENT_STEP_S)
    two = dict.fromkeys(range(1, 6), 101 * estimate.EVENT_STEP_S)
    for test in (estimate.paired, estimate.welch):
        assert test(one, two).p_different() == 0.0
        assert test(one, two, step_s=estimate.EVENT_STEP_S).p_different() > 0.05
        short = test({1: 1e-15, 2: 1e-15}, {1: 2e-15, 2: 2e-15}, step_s=estimate.EVENT_STEP_S)
        assert not short.estimate().differs_from(1)
    some = (("cuda", "cuda", "contains 1"), ("cpu", "cuda", "contains 1"), ("cpu", "cpu", ""))
    for first, second, why in some:
        runs = [Builder({**H100, "spec": f"{on}:0"}, noise=0, rounds=2) for on in (first, second)]
        for run, ticks in zip(runs, (100, 101.5), strict=True):
            run.time("s", {"n": 15}, ticks * estimate.EVENT_STEP_S)
        (row,) = compare_runs(runs[0].data(), runs[1].data(), NAMES).rows
        assert (row.verdict, why in row.reason) == ("unclear" if why else "slower", True)


def test_adjusted_is_benjamini_hochberg_and_leaves_gaps_alone() -> None:
    # Sorted p times m / rank, made monotone from the largest down.
    p = [0.01, math.nan, 0.04, 0.03, 0.20]
    assert estimate.adjusted(p) == pytest.approx(
        [0.04, math.nan, 0.16 / 3, 0.16 / 3, 0.20], nan_ok=True
    )
    assert estimate.adjusted([]) == []


def _sure(log_ratio: float, error: float = 1e-4) -> estimate.Contrast:
    return estimate.Contrast(log_ratio, error, 4, 5, "paired")


FOUR = [*map(_sure, np.log([1.05, 0.95, 1.004])), _sure(math.log(1.02), 0.05)]
WEAK = _sure(0.02, 0.02 / 3.2)  # p = 0.033 with 4 degrees of freedom


@pytest.mark.parametrize(
    ("contrasts", "margin", "words"),
    [
        (FOUR, 0.01, ["slower", "faster", "same", "unclear"]),
        (FOUR, 0.0, ["slower", "faster", "slower", "unclear"]),
        ([WEAK], 0.001, ["slower"]),
        # Many points need more evidence than one.
        ([WEAK, *[_sure(0.0001, 0.02)] * 20], 0.001, ["unclear"] * 21),
    ],
)
def test_verdicts(contrasts: list[estimate.Contrast], margin: float, words: list[str]) -> None:
    assert [word for word, _ in judge(contrasts, margin)] == words


def test_overall_is_the_test_on_geometric_means_of_the_rounds() -> None:
    second = [{r: v * (1.02 + 0.001 * r) for r, v in A.items()}, dict(B)]
    found = estimate.overall([A, B], second, estimate.paired)
    assert found is not None
    means = [
        np.mean([math.log(s[r] / f[r]) for f, s in zip([A, B], second, strict=True)]) for r in A
    ]
    truth = scipy.stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert found.estimate().low == pytest.approx(math.exp(truth.low))
    assert estimate.overall([A, {9: 1.0}], [A, B], estimate.paired) is None


DEVICES = ("one", "two")
OTHER = {**H100, "identity": {"name": "Other"}}


def turned(*sides: Builder) -> list[SharedEffect]:
    """The effects that are better on one side and worse on another."""
    runs = [side.data() for side in sides]
    return [one for one in compare_datasets(runs, DEVICES).effects if one.turns]


def test_a_factor_that_helps_on_one_device_and_hurts_on_the_other() -> None:
    def slower(levels: Any) -> float:
        return truth_s(levels) * (1.5 if levels["layout"] == "interleaved" else 1.0)

    first = factorial(sizes=(15,))
    (found,) = turned(first, factorial(OTHER, sizes=(15,), value=slower, seed=2))
    ratios = [effect.ratio.value for effect in found.effects if effect]
    assert ratios == pytest.approx([0.8, 1.2], rel=0.01)
    said = "layout interleaved instead of per_thread (sweep factorial): 1.25x faster"
    assert reversal(found).startswith(said)
    assert reversal(found).endswith("1.20x slower ±0.1% on Other (N = 15).")
    assert turned(first, factorial(OTHER, sizes=(15,), seed=3)) == []


def test_counts_turn_round_exactly_and_small_changes_are_not_told() -> None:
    def counted(device: Any, shared: float) -> Builder:
        builder = Builder(device)
        for memory, factor in (("global", 1.0), ("shared", shared)):
            levels = {"n": 10, "memory": memory}
            slots = {"warp_instructions": 1000.0 * factor}
            builder.count("s", levels, counters_of(levels) | slots)
        return builder

    other = MINI | {"spec": "sim:gtx480"}
    (found,) = turned(counted(MINI, 0.5), counted(other, 1.5))
    assert [e.ratio.value for e in found.effects if e] == pytest.approx([0.5, 1.5])
    assert turned(counted(MINI, 0.995), counted(other, 1.5)) == []


@pytest.mark.parametrize(
    ("mhz", "cycles"),
    [
        ((1000, 1000), "all of 2 differences stand"),  # the clock explains nothing
        ((1000, 500), "2 of 2 differences do not stand"),  # half the clock takes twice as long
        ((1000, None), ""),  # nothing is known
    ],
)
@pytest.mark.parametrize("within", [False, True])
def test_a_difference_of_clocks_is_none_in_cycles(
    mhz: tuple[int, int | None], cycles: str, within: bool
) -> None:
    """Twice as slow, by truth or by its clock: as two runs, and as two levels of one."""
    runs = [Builder(seed=1), Builder(seed=1 if within else 2)]
    if within:
        runs[1] = runs[0]
    for run, clock, slow, loop in zip(runs, mhz, (1, 2), ("branchy", "irrc"), strict=True):
        for n in (15, 16):
            levels = {"n": n, "loop": loop if within else "branchy"}
            more = slow ** (n - 15)  # the larger differs more
            recorded: dict[str, Any] = {"sm_mhz": clock // more} if clock else {}
            run.time("factorial", levels, slow * more * 1e-3, **recorded)
    first, second = (run.data() for run in runs)
    if within:
        found = compare_levels(first, "loop", ("branchy", "irrc"))
    else:
        found = compare_runs(first, second, NAMES)
    assert verdict_of(found) == {"slower"}
    assert cycles in found.cycles
    assert bool(cycles) == bool(found.cycles)
    if "not" in cycles:
        assert "slower" in found.cycles.partition(" in time")[0]
        assert "at 1,000 and 250 MHz" in found.cycles
