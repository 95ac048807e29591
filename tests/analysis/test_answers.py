"""What a comparison says in words, on runs whose truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

from nqbench.analysis.compare.request import Gate, compare_datasets
from nqbench.analysis.compare.runs import compare_runs
from nqbench.analysis.compare.wording import sentences
from nqbench.analysis.data.estimate import welch
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import StudyError
from tests.builders import H100, MINI, Builder, counters_of

TIMES = {"none": 5.0, "conflict_free": 4.0, "dynamic": 3.0, "both": 2.0}


def run(name: str = "A", seed: int = 1, scale: float = 1.0, **changed: Any) -> Builder:
    """The four systems of a paper; ``changed`` gives times and classes of memory, by system."""
    builder = Builder({**H100, "identity": {"name": name}}, seed=seed)
    for system, time_s in TIMES.items():
        own = {"memory": "shared", "s": time_s, **changed.get(system, {})}
        levels = {"n": 15, "block_size": 64, "memory": own["memory"]}
        builder.time("ablation", levels, scale * own["s"], f"tanaka2011.{system}")
    return builder


def said(one: Builder, two: Builder) -> str:
    return "\n".join(sentences(compare_datasets([one.data(), two.data()])))


SAME = "of 4 variants the same is fastest on both: tanaka2011.both (N = 15)."
CASES = {
    "the same": (
        ([run(), run("B", 2)], None),
        (
            f"B is as fast as A (4 points: 4 same); {SAME}",
            "The order clearly changes in none of 6 pairs of variants.",
        ),
    ),
    "another order": (
        ([run(), run("B", 2, both={"s": 3.5}, none={"s": 2.97})], None),
        (
            "A is 1.009x faster ±0.2% than B (4 points: 1 faster, 1 slower, 2 same); of 4 variants"
            " another is fastest on each: tanaka2011.both on A and tanaka2011.none on B (N = 15).",
            "The order clearly changes in 3 of 6 pairs of variants; most of all, tanaka2011.conf",
        ),
    ),
    "two that are alike": (
        ([run(both={"s": 3.001}), run("B", 2, both={"s": 3.001})], None),
        ("of 4 variants none is clearly fastest on either (N = 15)",),
    ),
    "the fastest of three first": (
        ([run("A", 1, 2.0), run("B", 2), run("C", 3, 4.0)], None),
        ("B is 2.00x faster ±0.2% than A (4 points: 4 faster) and 4.00x faster ±0.2% than C",),
    ),
    "systems, the reference slowest": (
        ([run()], "system=tanaka2011.none,tanaka2011.both,tanaka2011.dynamic"),
        (
            "tanaka2011.both is 1.50x faster ±0.2% than tanaka2011.dynamic (1 point: 1 faster) and"
            " 2.50x faster ±",
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_in_words(case: str) -> None:
    (builders, by), expected = CASES[case]
    runs = [one.data() for one in builders]
    found = compare_datasets(runs, by=by)
    assert [a.data.device for a in found.answers][: len(runs)] == [one.device for one in runs]
    told = sentences(found)
    assert expected[0] in told[0]
    for part in expected:
        assert part in "\n".join(told), told


ROUNDS_S = np.array([1.0, 1.01, 0.99, 1.02, 0.98])


@pytest.mark.parametrize(
    ("first_s", "second_s", "others", "swaps"),
    [
        (1.1 * ROUNDS_S, ROUNDS_S / 1.1, 0, 1),
        (1.01 * ROUNDS_S, ROUNDS_S / 1.1, 0, 0),  # too little on one side
        (1.1 * np.array([1.0, 1.3, 0.8, 1.3, 0.8]), ROUNDS_S / 1.1, 0, 0),  # unsure on one side
        (1.1 * np.array([1.0, 1.06, 0.95, 1.06, 0.96]), ROUNDS_S / 1.1, 0, 1),
        # The same pair, one of 66 of which each could have changed its order.
        (1.1 * np.array([1.0, 1.06, 0.95, 1.06, 0.96]), ROUNDS_S / 1.1, 10, 0),
    ],
)
def test_an_order_changes_if_both_sides_are_sure_of_it(
    first_s: Any, second_s: Any, others: int, swaps: int
) -> None:
    """Against scipy: the larger p of the two t tests, times the number of pairs."""
    sides = []
    for seed, times in ((1, first_s), (2, second_s)):
        builder = Builder(H100 | {"identity": {"name": str(seed)}}, noise=0.0)
        builder.time("s", {"n": 15, "block_size": 32}, 1.0)
        builder.time("s", {"n": 15, "block_size": 64}, 1.0)
        for row, time_s in zip(builder.rows[-5:], times, strict=True):
            row["value_s"] = float(time_s)
        for i in range(others):
            builder.time("s", {"n": 15, "block_size": 96 + i}, 10.0 + i // 2)  # pairs are equal
        sides.append(builder.data())
    order = compare_datasets(sides).rankings[0]
    assert order.pairs == math.comb(others + 2, 2)
    assert len(order.swaps) == swaps
    p = max(scipy.stats.ttest_1samp(np.log(times), 0).pvalue for times in (first_s, second_s))
    large = min(abs(np.log(times).mean()) for times in (first_s, second_s)) > math.log(1.02)
    assert bool(swaps) == (large and p * order.pairs <= 0.05)


def test_the_best_is_of_all_sweeps_and_the_order_of_each() -> None:
    """A configuration that stands in two sweeps is one variant."""
    sides = []
    for seed in (1, 2):
        builder = Builder(H100 | {"identity": {"name": str(seed)}}, seed=seed)
        for sweep, depths in (("a", (2, 3)), ("b", (3, 4, 5))):
            for depth in depths:
                builder.time(sweep, {"n": 15, "depth": depth}, 1.0 / depth)
        sides.append(builder.data())
    (order,) = compare_datasets(sides).rankings
    assert (order.pairs, order.best[0][0].of) == (1 + 3, 4)


def test_one_size_may_have_several_answers() -> None:
    """Searches of several lengths: the fastest of the short ones differs, of the long ones not."""
    sides = [run(), run("B", 2)]
    for builder, times in zip(sides, ((1.0, 1.5), (1.5, 1.0)), strict=True):
        for system, time_s in zip(("none", "both"), times, strict=True):
            levels = {"n": 15, "block_size": 32, "memory": "shared"}
            builder.time("short", levels, time_s, f"tanaka2011.{system}", answer="7")
    assert SAME in said(*sides)
    (order,) = compare_datasets([builder.data() for builder in sides]).rankings
    fastest = [{best.name for best in pair} for pair in order.best if pair[0].n == 15]
    assert sorted(map(len, fastest)) == [1, 2]


def counted(model: str = "mini", /, **counters: float) -> Builder:
    memory = {"rules": "lines" if model == "v100" else "sectors"}
    identity = {"model": model, "memory": memory}
    builder = Builder({**MINI, "spec": f"sim:{model}", "identity": identity})
    for block in (32, 64, 96, 128):
        levels = {"n": 10, "block_size": block}
        builder.count("s", levels, {**counters_of(levels), **counters})
    return builder


@pytest.mark.parametrize(
    ("models", "counters", "wanted"),
    [
        (("mini", "a100"), {},
         "sim:a100 counts exactly as sim:mini in every one of 4 points: a model counts by its"
         " rules of memory, and these are the same. Their caches and modelled times differ: ask"
         " sim:a100:cache or sim:a100:time."),
        (("mini", "v100"), {}, "no point meets a rule in which the models differ"),
        (("mini", "mini"), {}, "two counts exactly as one in every one of 4 points."),
        (("mini", "a100"), {"warp_instructions": 1000, "bank_conflicts": 576},
         "sim:a100 against sim:mini, mean of 4 points: better: 9.00x fewer instructions; worse:"
         " bank conflicts 0 -> 576; within 2%: "),
    ],
)  # fmt: skip
def test_equal_counts_say_why(models: tuple[str, ...], counters: Any, wanted: str) -> None:
    one = counted(models[0], warp_instructions=9000, bank_conflicts=0)
    two = counted(models[1], **({"warp_instructions": 9000, "bank_conflicts": 0} | counters))
    told = sentences(compare_datasets([one.data(), two.data()], ["one", "two"]))
    assert wanted in told[0]


@pytest.mark.parametrize(
    ("name", "values", "verdict"),
    [
        ("warp_instructions", (10, 9), "better"),
        ("warp_instructions", (10, 11), "worse"),
        ("lane_efficiency", (0.4, 0.5), "better"),
        ("lane_efficiency", (0.5, 0.4), "worse"),
        ("shared_requests", (10, 11), "more"),
        ("shared_requests", (10, 9), "fewer"),
        ("bank_conflicts", (0, 9), "worse"),
        ("off_chip_sectors", (7, 7), "equal"),
    ],
)
def test_counters_have_a_direction(name: str, values: tuple[float, float], verdict: str) -> None:
    column = "global_sectors" if name == "off_chip_sectors" else name
    one, two = (counted(**{column: value}).data() for value in values)
    (section,) = compare_runs(one, two, ("one", "two"), value=name).sections
    assert {row.verdict for row in section.rows} == {verdict}
    assert section.equal_everywhere == (verdict == "equal")


def test_points_without_an_answer_are_no_variants_of_each_other() -> None:
    sides = [run(), run(seed=2)]
    for builder in sides:
        for row in builder.rows:
            row["answer"] = row["expected"] = None
    text = said(*sides)
    assert "fastest" not in text
    assert "order clearly changes" not in text
    assert "No change" not in text, "of one device"


def test_cpu_programs_are_a_family_of_their_own() -> None:
    """A difference of a CPU program is not corrected for the number of kernels."""
    sides = []
    for seed, cpu_s in ((1, 1.0), (2, 1.012)):
        builder = Builder(seed=seed, noise=0.004)
        for block in range(1, 40):
            builder.time("s", {"n": 15, "block_size": block}, 0.1, "tanaka2011.both")
        builder.time("s", {"n": 15}, cpu_s, "cpu.somers")
        sides.append(builder.data())
    kernels, cpu = compare_runs(sides[0], sides[1], ("one", "two"), margin=0.001).sections
    (row,) = cpu.rows
    alone = welch(row.pair.first.values(TIME), row.pair.second.values(TIME))
    assert len(kernels.rows) == 39
    assert row.p == alone.p_different() < 0.05
    assert row.verdict == "slower"


def test_a_gate_on_worse_counts() -> None:
    one, two = counted(warp_instructions=100).data(), counted(warp_instructions=103).data()
    found = compare_datasets([one, two], ["one", "two"])
    hits = {
        g: len(Gate.parse(g).broken(found.comparisons[0])) for g in ("worse", "worse:5%", "differs")
    }
    assert hits == {"worse": 4, "worse:5%": 0, "differs": 4}
    (better,) = compare_datasets([two, one], ["one", "two"]).comparisons
    assert not Gate.parse("worse").broken(better)
    plain = compare_datasets([one, two], ["one", "two"], value="barriers")
    with pytest.raises(StudyError, match="compared by barriers; use --fail-on differs"):
        Gate.parse("worse").judge(plain)
