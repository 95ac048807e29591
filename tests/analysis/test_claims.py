"""Verdicts against truths that are known."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nqbench.analysis.claims.bootstrap import RESAMPLES, resampled, widening
from nqbench.analysis.claims.judge import FAILS, HOLDS, Printed, Verdict, judge
from nqbench.analysis.claims.robust import by_chance, robust
from nqbench.analysis.data import for_papers
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.expressions import parse
from nqbench.papers import load_paper
from nqbench.papers.formula import CLAIMS, with_limits
from nqbench.report.papers.cells import PointRow
from tests.builders import MINI, Builder, counters_of, device, interval
from tests.papers.runs import SIZES, STEPS, levels, tiny_paper, value_of, zhang

RATIO = 'time("naive_l1_16k") / time("naive_l1_48k")'
AT_15: dict[str, Any] = {"sizes": (15,), "pools": ()}
GREATER: dict[str, Any] = {"expr": RATIO, "expect": "value > 1"}
WITHIN = [1.002, 0.998, 1.001]
"""Rounds of a ratio whose whole interval lies within 1% of 1."""


def verdict(claim: dict[str, Any], *runs: Dataset) -> Verdict:
    (found,) = judge(tiny_paper(claim), runs)
    return found


def two(first_s: float, second_s: float, **options: Any) -> Dataset:
    steps = {"naive_l1_16k": first_s, "naive_l1_48k": second_s}
    return zhang(steps=steps, **AT_15 | options).data("zhang2011")


def rows(builder: Builder, system: str, values: list[float]) -> None:
    """Fix the times of the rounds of a system."""
    chosen = [r for r in builder.rows if r["system"] == f"zhang2011.{system}" and r["round"]]
    for row, value in zip(chosen, values, strict=True):
        row["value_s"] = value


def fixed(first: list[float], second: list[float]) -> Dataset:
    steps = {"naive_l1_16k": 1.0, "naive_l1_48k": 1.0}
    builder = zhang(steps=steps, rounds=len(first), **AT_15)
    rows(builder, "naive_l1_16k", first)
    rows(builder, "naive_l1_48k", second)
    return builder.data("zhang2011")


def test_rounds_are_drawn_jointly() -> None:
    """A round that is slow for both systems says nothing about their ratio."""
    found = verdict(GREATER, fixed([1.01, 10.1, 101.0], [1.0, 10.0, 100.0]))
    assert found.word == "holds"
    assert interval(found.sizes[0].value) == pytest.approx((1.01, 1.01, 1.01))


@pytest.mark.parametrize("rounds", [3, 5, 8])
def test_equal_systems_are_rarely_told_apart(rounds: int) -> None:
    """5% is meant; resampled plainly, three rounds would decide in 25% of the cases."""
    random = np.random.default_rng(5)
    weights = random.multinomial(rounds, [1 / rounds] * rounds, RESAMPLES).astype(float)
    decided = plain = 0
    cases = 1000
    for logs in random.normal(size=(cases, rounds)):
        share = float((resampled(logs, weights, widening(rounds)) > 0).mean())
        decided += not FAILS < share < HOLDS
        share = float((weights @ logs > 0).mean())
        plain += not FAILS < share < HOLDS
    assert 0.03 < decided / cases < 0.07
    assert plain > 1.5 * decided or rounds > 5


@pytest.mark.parametrize(
    ("at_16", "expect", "words", "reason"),
    [
        ([1.2] * 3, "value > 1", ["holds", "holds"], ""),
        ([1.2, 0.6, 1.2], "value > 1", ["holds", "unclear"], "unclear at N=16"),
        ([1.2] * 3, "value > (1 if N == 15 else 2)", ["holds", "fails"], "fails at N=16"),
        (WITHIN, "value > 1", ["holds", "no effect"], "no effect at N=16 (within 1% of 1)"),
    ],
)
def test_over_several_sizes_all_must_hold(
    at_16: list[float], expect: str, words: list[str], reason: str
) -> None:
    """No effect at one size contradicts an effect at every size."""
    builder = zhang(steps=dict.fromkeys(("naive_l1_16k", "naive_l1_48k"), 1.0), sizes=(15, 16),
                    rounds=3)  # fmt: skip
    rows(builder, "naive_l1_16k", [1.2] * 3 + at_16)
    rows(builder, "naive_l1_48k", [1.0] * 6)
    claim = {"expr": RATIO, "expect": expect, "n": ["15", "16"]}
    found = verdict(claim, builder.data("zhang2011"))
    assert [size.word for size in found.sizes] == words
    assert found.word == {"no effect": "fails"}.get(words[1], words[1])
    assert found.reason == reason


OLD = 'time("low_divergence", hw="gtx275") / time("low_divergence", hw="gtx480")'
NOWHERE = 'time("naive_l1_16k", sweep="nowhere")'
BRANCHES = 'counter("naive_l1_16k", "branches")'
AGAIN = "`nqbench reproduce zhang2011` measures it"
ON_GPU = "`nqbench reproduce zhang2011 --device cuda:0` measures it"


def skipped() -> Dataset:
    builder = zhang(steps={"naive_l1_48k": 1.0}, sizes=(15,))
    builder.skip("kernels", levels(15), "takes 200 s", "zhang2011.naive_l1_16k")
    return builder.data("zhang2011")


def of_configurations() -> Dataset:
    """Two timed configurations, one too slow to be timed, the same point in another sweep, and one
    that splits the work in another way. A block fills the GPU by its size."""
    made = Builder(rounds=3, noise=0.0)
    name = "zhang2011.naive_l1_16k"
    for sweep, block, kernel_s, split_s in (
        ("kernels", 32, 1.0, 5.0),
        ("kernels", 64, 2.0, 0.0),
        ("again", 32, 4.0, 0.0),
        ("filled", 128, 0.5, 0.0),
    ):
        total = {"split_s": split_s, "total_s": kernel_s + split_s}
        own = levels(15, block_size=block)
        made.time(sweep, own, kernel_s, name, **total, kernel_s=kernel_s, occupancy=block / 128)
    made.fail("kernels", levels(15, block_size=1), "skipped", "one launch takes 9 s", name)
    made.rows[-1]["first_launch_s"] = 9.0
    return made.data("zhang2011")


def another_study() -> Dataset:
    steps = {"naive_l1_16k": 1.2, "naive_l1_48k": 1.0}
    return zhang(steps=steps, sizes=(15,)).data("ablation")


@pytest.mark.parametrize(
    ("claim", "run", "word", "said"),
    [
        ({}, two(2.0, 1.0, rounds=1), "unclear", ["only one round"]),
        ({"n": ["15", "16"]}, two(1.2, 1.0, sizes=(15,)), "unclear", ["N=16", "_l1_16k", AGAIN]),
        ({}, skipped(), "not measured", ["takes 200 s"]),
        ({"expr": 'max(sizes_of("naive_l1_16k", least=16))'}, of_configurations(), "not measured",
         ["no size of 16 or more has times of zhang2011.naive_l1_16k", AGAIN]),
        ({"expr": 'counter("naive_l1_16k", "nothing", block_size=64)'}, of_configurations(),
         "not measured", ["the run has no nothing of zhang2011.naive_l1_16k N=15"]),
        ({}, of_configurations(), "not measured", [": say which block_size, or take best(...)"]),
        ({"expr": 'fails("naive_l1_16k")'}, skipped(), "not measured", ["takes 200 s"]),
        ({"expr": OLD}, two(1.0, 1.0), "not measured", ["GTX 275", "cannot run"]),
        ({"expr": NOWHERE}, two(1.0, 1.0), "not measured", ["sweep=nowhere", AGAIN]),
        ({"n": ["16"]}, another_study(), "not measured", [ON_GPU]),
        ({"expr": BRANCHES}, another_study(), "not measured", ["reproduce zhang2011 --device sim"]),
        # No paper has that program alone.
        ({"expr": 'time("cpu.somers")'}, another_study(), "not measured", ["(sizes: none)"]),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_with_the_command(
    claim: dict[str, Any], run: Dataset, word: str, said: list[str]
) -> None:
    found = verdict(GREATER | claim, run)
    assert found.word == word
    assert all(text in found.reason for text in said)
    commands = any("measures it" in text for text in said)
    assert ("measures it" in found.reason) == commands  # a skipped point would be skipped again


def test_truth_values_and_lists() -> None:
    run = zhang().data("zhang2011")
    order = [f'time("{name}")' for name in reversed(STEPS)]
    claim = {"kind": "ranking", "expr": " < ".join(order), "expect": "value"}
    assert verdict(claim, run).word == "holds"
    assert verdict(claim | {"expr": " < ".join(reversed(order))}, run).word == "fails"
    assert verdict(claim, run).sizes[0].value == "yes (in 100% of the resamples)"
    at_15 = 'time("naive_l1_16k", N=15) / time("naive_l1_48k", N=15)'  # 1.2, whatever is asked
    found = verdict({"expr": at_15, "expect": "value > N - 14.5", "n": []}, run)
    assert [size.word for size in found.sizes] == ["holds", *["fails"] * 4]
    for sizes in (["16"], None):
        found = verdict({"expr": "0", "expect": "value", "today": GREATER | {"n": sizes}}, run)
        assert [size.n for size in found.sizes] == [16 if sizes else 15]
    listed = 'times("pool_distributed", block_size=32)'
    found = verdict({"expr": listed, "expect": "max(value) > 1.5 * min(value)"}, run)
    assert found.word == "holds"
    assert str(found.sizes[0].value).count(", ") == 7
    named = '[time(s) < time("naive_l1_48k") for s in ("naive_l1_16k", "shared_conflict")]'
    found = verdict({"expr": named, "expect": "value == [1 < 0, 0 < 1]"}, run)
    assert (found.word, found.sizes[0].value) == ("holds", "naive_l1_16k: no, shared_conflict: yes")


def test_the_best_configuration() -> None:
    run = zhang().data("zhang2011")
    claim = {"expr": 'argbest("pool_distributed", "block_size")', "expect": "value == 128"}
    assert verdict(claim, run).word == "holds"
    one = {"expr": 'argbest("naive_l1_16k", "block_size")', "expect": "value == 128"}
    assert "one block_size only" in verdict(one, run).reason
    builder = Builder()
    for encoding, took_s in (("masks", 1.0), ("rows", 2.0)):
        builder.time("all", levels(15, encoding=encoding), took_s, "zhang2011.low_divergence")
    asked = {"kind": "optimum", "expr": 'argbest("low_divergence", "encoding")'}
    found = verdict(asked | {"expect": "value != N"}, builder.data("zhang2011"))
    assert (found.word, found.sizes[0].value) == ("holds", "masks (in 100% of the resamples)")


def test_the_best_time_is_that_of_one_configuration() -> None:
    """Twenty equal configurations: a minimum in each resample would lie below the truth."""
    builder = Builder(rounds=5, noise=0.02)
    for i in range(20):
        own = levels(15, block_size=32, pool_size=64 * (i + 1))
        builder.time("pool", own, 1.0, "zhang2011.pool_distributed")
    builder.time("kernels", levels(15), 1.0, "zhang2011.low_divergence")
    ratio = 'best("pool_distributed") / time("low_divergence")'
    found = verdict({"expr": ratio, "expect": "value < 1"}, builder.data("zhang2011"))
    low, value, high = interval(found.sizes[0].value)
    assert low < value < high
    least = 'min(times("pool_distributed")) / time("low_divergence")'
    other = verdict({"expr": least, "expect": "value < 1"}, builder.data("zhang2011"))
    assert interval(other.sizes[0].value)[2] < high


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        ('best("naive_l1_16k")', 2.0),  # of totals
        ('best("naive_l1_16k", phase="kernel")', 1.0),
        ('max(times("naive_l1_16k", phase="kernel"))', 2.0),
        ('max(times("naive_l1_16k", phase="kernel", skipped=1))', 9.0),
        ('time("naive_l1_16k", block_size=32, sweep="again")', 4.0),
        ('time("naive_l1_16k", block_size=32, sweep="kernels")', 6.0),
        ('best("naive_l1_16k", sweep="filled")', 0.5),
        ('phase("naive_l1_16k", "kernel", config="fastest")', 2.0),
        ('counter("naive_l1_16k", "occupancy", config="highest_occupancy")', 0.5),
        ('min(recorded("naive_l1_16k", "occupancy"))', 0.25),
        ('argbest("naive_l1_16k", "block_size")', 64),
        ('10 * min(levels("naive_l1_16k", "block_size")) + max(levels("naive_l1_16k", "depth"))',
         320 + levels(15)["depth"]),
        ('max(sizes_of("naive_l1_16k", least=15))', 15),
        ('1 if fails("naive_l1_16k") else 2', 2),
    ],
)  # fmt: skip
def test_a_claim_says_which_part_of_a_run_it_means(expr: str, value: float) -> None:
    paper = tiny_paper({"expr": expr, "expect": "value > 0"}).model_copy(update={"timed": "total"})
    (found,) = judge(paper, [of_configurations()])
    assert value_of(found) == pytest.approx(value)


def counted() -> Dataset:
    builder, own = Builder(MINI), levels(12, memory="shared")
    builder.count("kernels", own, counters_of(own), "zhang2011.shared_conflict")
    return builder.data("zhang2011")


SLOW = dict(STEPS) | {"shared_no_conflict": 4.0}
H100, H200, B200, ALIKE = (
    zhang(dev=device(f"NVIDIA {name}", capability=(major, 0)), steps=steps, **AT_15).data(
        "zhang2011"
    )
    for name, major, steps in (
        *(("H100", 9, STEPS), ("H200", 9, SLOW)),
        *(("B200", 10, SLOW), ("B200", 10, STEPS)),
    )
)
BOTH = "NVIDIA H100 (cuda:0); NVIDIA B200 (cuda:0)"


@pytest.mark.parametrize(
    ("runs", "word", "said"),
    [
        ((H100, B200), "holds", ""),
        ((H100, ALIKE), "fails", ""),
        ((H100,), "not measured", "it compares 2 generations"),
        ((H100, H200), "not measured", "compute capability 9.0 alone"),
        # A simulated run beside them has no times: it neither spoils nor makes up a pair.
        ((H100, B200, counted()), "holds", ""),
        ((counted(), H100, B200), "holds", ""),
        ((H100, counted()), "not measured", "it compares 2 generations"),
    ],
)
def test_a_claim_between_devices_takes_several_runs(
    runs: tuple[Dataset, ...], word: str, said: str
) -> None:
    effect = 'time("shared_conflict", hw=d) / time("shared_no_conflict", hw=d)'
    expr, expect = f"[{effect} for d in devices]", "min(value) < 1 < max(value)"
    today = {"expr": expr, "expect": expect, "devices": "2"}
    found = verdict({"expr": "0", "expect": "value", "today": today}, *runs)
    assert found.word == word
    assert said in found.reason
    assert found.device == BOTH or word != "holds"


def test_the_simulator_does_not_judge_times_but_counters() -> None:
    builder = Builder(MINI)
    for n in (12, 13):
        for name in ("shared_conflict", "shared_no_conflict"):
            layout = "per_thread" if name == "shared_conflict" else "interleaved"
            own = levels(n, memory="shared", layout=layout)
            builder.count("kernels", own, counters_of(own), f"zhang2011.{name}")
    run = builder.data("zhang2011")
    assert run.hardware(load_paper("zhang2011")) == "simmini", "none of the paper's"
    timed = {"expr": 'time("shared_conflict")', "expect": "value > 1", "n": ["15"]}
    assert "counts and does not time" in verdict(timed, run).reason
    beside = verdict(timed, run, zhang(sizes=(15,)).data("zhang2011"))
    assert beside.provenance != "simulated", "the simulated run has no row of its own"
    free = 'counter("shared_no_conflict", "bank_conflicts")'
    found = verdict({"expr": free, "expect": "value == 0", "n": ["18"]}, run)
    assert (found.word, found.provenance) == ("holds", "simulated")
    assert "simulated at N=13, while the paper has N=18" in found.reason
    assert isinstance(found.sizes[0].value, Estimate)
    assert found.sizes[0].value.exact


def test_counters_of_a_gpu_come_from_a_profiler() -> None:
    builder = zhang(sizes=(15,), steps={"low_divergence": 1.0})
    claim = {"expr": 'counter("low_divergence", "bank_conflicts")', "expect": "value == 0"}
    assert "Nsight Compute" in verdict(claim, builder.data("zhang2011")).reason
    replays = claim | {"expr": 'counter("low_divergence", "replay_overhead_percent")'}
    assert "by Nsight Compute alone" in verdict(replays, builder.data("zhang2011")).reason
    timed = next(r for r in builder.rows if r["system"] == "zhang2011.low_divergence")
    builder.rows.append(timed | {"round": -1, "bank_conflicts": 0.0})
    assert len(builder.data("zhang2011").profiles) == 1
    builder.time("kernels", levels(16), 1.0, "zhang2011.low_divergence")  # not profiled
    for sizes, word in (([], "holds"), (["15", "16"], "unclear")):
        assert verdict(claim | {"n": sizes}, builder.data("zhang2011")).word == word


def test_counts_need_no_run() -> None:
    claim = {"expr": 'count("jobs", depth=N-11, encoding="masks")', "expect": "value == 7432"}
    found = verdict(claim, zhang().data("zhang2011"))
    assert (found.word, found.provenance) == ("holds", "exact")
    assert found.device == "enumerated on the CPU"


@pytest.mark.usefixtures("no_walks")
def test_a_long_count_comes_from_an_instrumented_kernel() -> None:
    builder = zhang(sizes=(18,))
    count = 'count("iterations_total", N=18, system="zhang2011.low_divergence")'
    claim = {"expr": count, "expect": "value == 48243000000"}
    assert "a run of the study on a GPU does" in verdict(claim, builder.data("zhang2011")).reason
    own = levels(18, probe="iterations", encoding="masks", symmetry="mirror")
    builder.count("work", own, {"iterations_total": 7.0}, "zhang2011.shared_conflict")
    builder.count("work", own, {"iterations_total": 48243000000.0}, "zhang2011.low_divergence")
    found = verdict(claim, builder.data("zhang2011"))
    assert found.word == "holds"
    assert "instrumented kernel" in found.reason
    counter = claim | {"expr": 'counter("low_divergence", "iterations_total")', "n": ["18"]}
    assert verdict(counter, builder.data("zhang2011")).word == "holds"


def as_printed(name: str, **launch: Any) -> Dataset:
    """The times of a paper's tables, as if a GPU had taken them today; with their phases."""
    paper, builder = load_paper(name), Builder(device("NVIDIA H100", capability=(9, 0)), noise=1e-4)
    parts = {"transfer": "transfer", "split": "split", "kernel": "compute"}
    for n in SIZES:
        phases = {}
        if name == "tanaka2011":
            told = paper.table("table_7")
            phases = {f"{phase}_s": float(told.printed(of, n)) for phase, of in parts.items()}
            of_cpu = paper.table("table_5").printed("Intel Core i3, paper (s)", n)
            builder.time("cpu", {"n": n}, float(of_cpu), "cpu.somers")
        for table in reversed(paper.tables):
            for series in table.series:
                printed = table.printed(series.label, n)
                if series.quantity != "time" or series.ours or not printed:
                    continue
                asked = {k: int(v) if v.isdigit() else v for k, v in series.levels.items()}
                pool = {"pool_size": 512} if series.system.endswith("distributed") else {}
                own = levels(n, **pool) if name == "zhang2011" else {"n": n} | launch | asked
                total = {"total_s": float(printed)} if phases else {}
                builder.time(table.id, own, float(printed), series.system, **phases, **total)
    return builder.data(name)


@pytest.mark.usefixtures("no_walks")
def test_every_claim_of_the_papers_has_a_row() -> None:
    """Zhang's own numbers, as if measured today: every claim on a time must come out as he says."""
    paper = load_paper("zhang2011")
    found = {v.claim.id: v for v in judge(paper, [as_printed("zhang2011")])}
    assert set(found) == {claim.id for claim in paper.claims}
    for claim in paper.claims:
        if claim.kind == "ratio" and claim.id != "distributed_scales_better":
            assert (found[claim.id].word, found[claim.id].size) == ("holds", "as large"), claim.id
    for name in ("pool_gain_grows", "final_ranking", "monolithic_equal_15"):
        assert found[name].word == "holds", name
    assert found["distributed_scales_better"].word == "fails", "a forecast for other devices"
    assert found["other_application"].word == "not measured"
    assert found["l1_48_vs_16"].asked_of == "compute capability 9.0"
    assert value_of(found["shared_vs_global_average"]) == pytest.approx(6.34, abs=0.01)
    assert all(v.reason for v in found.values() if v.word == "not measured")


TANAKA = {
    "holds": "speedup_grows speedup_saturates small_n_lower_speedup m5_optimal m_u_shape"
    " split_does_not_matter dynamic_beats_conflict_free transfer_constant",
    "holds, as large": "conflict_free_alone conflict_free_with_dynamic dynamic_alone"
    " dynamic_with_conflict_free both_vs_none optimizations_reinforce compute_dominates"
    " compute_half_15 growth_factors",
}
"""What his own numbers say to his sentences."""


@pytest.mark.usefixtures("no_walks")
def test_tanakas_sentences_hold_of_his_own_numbers() -> None:
    run = as_printed("tanaka2011", depth=5, block_size=160, blocks="1/SM")
    found = {v.claim.id: v for v in judge(load_paper("tanaka2011"), [run])}
    said = {name: f"{v.word}, {v.size}".removesuffix(", ") for name, v in found.items()}
    for word, names in TANAKA.items():
        assert {name: said[name] for name in names.split()} == dict.fromkeys(names.split(), word)


def test_a_misprint_is_found_among_all_numbers_of_a_table() -> None:
    paper = load_paper("tanaka2011")
    claims = [claim for claim in paper.claims if claim.id == "task_counts"]
    (found,) = judge(paper.model_copy(update={"claims": claims}), [])
    assert [size.word for size in found.sizes] == ["holds"] * 4 + ["fails"]
    assert found.sizes[-1].value == "3: 2072, 4: 23866, 5: 232174, 6: 1916187"
    assert "table1_n19_m3" in found.reason


def test_phases_and_host_programs_stay_what_they_are() -> None:
    builder = Builder(rounds=3)
    builder.time("s", {"n": 15}, 1e-4, "tanaka2011.both")
    builder.time("s", {"n": 15}, 1.0, "cpu.somers")
    paper, kernel_paper = load_paper("tanaka2011"), load_paper("zhang2011")
    assert (for_papers.time_of(paper), for_papers.time_of(kernel_paper)) == (for_papers.TOTAL, TIME)
    run = builder.data()
    kernel, host = run.points
    whole, same = for_papers.in_times_of(paper, run).points
    assert whole.values(TIME) == kernel.values(quantity("total")) != kernel.values(TIME)
    assert whole.values(quantity("kernel")) == kernel.values(quantity("kernel"))
    assert same is host
    assert for_papers.in_times_of(kernel_paper, run) is run
    both = [replace(run, name=paper.id) for paper in (kernel_paper, paper)]
    assert for_papers.papers_of(both, None) == [paper, kernel_paper]
    for row in builder.rows:
        row.pop("total_s", None)
    without, _ = for_papers.in_times_of(paper, builder.data()).points
    assert without.estimate(TIME) is None


@pytest.mark.parametrize(
    ("measured", "printed", "claim", "word", "size", "share"),
    [
        (1.013, "1.19", {}, "holds", "weaker", 0.013 / 0.19),
        (1.77, "7", {}, "holds", "weaker", 0.77 / 6),
        (1.19, "1.19", {}, "holds", "as large", 1.0),
        (1.50, "1.19", {}, "holds", "stronger", 0.50 / 0.19),
        (1.09, "1.19", {"size": "value"}, "holds", "as large", 1.09 / 1.19),
        (1.04, "1.05", {}, "holds", "as large", 0.8),  # printed 1.045 to 1.055 when rounded
        (1.034, "1.05", {}, "holds", "weaker", 0.68),
        (1.19, "1.19", {"size": "none"}, "holds", "", None),
        (1.19, "about a fifth", {}, "holds", "", None),
        (1.19, "1.00", {}, "holds", "", None),  # printed as no effect
        (13.0, "2E+1", {}, "holds", "as large", 12 / 19),  # printed 15 to 25 when rounded
        (0.90, "0.90", {"expect": "value < 1"}, "holds", "as large", 1.0),
        (0.95, "0.83", {"expect": "value < 1"}, "holds", "weaker", 0.05 / 0.17),
        (0.90, "1.19", {}, "fails", "", -0.10 / 0.19),
        (2.00, {"gtx275": "1.5", "gtx480": "2.5"}, {}, "holds", "as large", 1.0),
        (1.20, {"gtx275": "1.5", "gtx480": "2.5"}, {}, "holds", "weaker", 0.2 / 0.5),
        (4.00, {"gtx275": "1.5", "gtx480": "2.5"}, {}, "holds", "stronger", 3 / 1.5),
        (1.08, {"15": "1.08", "16": "1.16"}, {}, "holds", "as large", 1.0),
    ],
)
def test_the_second_word(
    measured: float, printed: Any, claim: dict[str, Any], word: str, size: str, share: float | None
) -> None:
    asked = GREATER | {"paper_value": printed} | claim
    found = verdict(asked, two(measured, 1.0, noise=1e-6))
    effect = found.sizes[0].effect
    assert (found.word, found.size) == (word, size)
    assert (effect.value if effect else None) == (share and pytest.approx(share, rel=1e-3))


def test_a_size_is_unclear_where_the_interval_straddles_a_limit() -> None:
    run = fixed([1.10, 1.20, 1.12], [1.0, 1.0, 1.0])
    found = verdict(GREATER | {"paper_value": "1.19"}, run)
    assert (found.word, found.size) == ("holds", "size unclear")


def test_sizes_that_differ_are_mixed() -> None:
    steps = {"naive_l1_16k": 1.2, "naive_l1_48k": 1.0}
    run = zhang(steps=steps, sizes=(15, 16), noise=1e-6).data("zhang2011")
    printed = {"15": "1.2", "16": "3"}
    found = verdict(GREATER | {"n": ["15", "16"], "paper_value": printed}, run)
    assert (found.word, found.size) == ("holds", "mixed sizes")
    assert [size.size for size in found.sizes] == ["as large", "weaker"]


@pytest.mark.parametrize(
    ("rounds", "claim", "word"),
    [
        ([1.202, 1.198, 1.2], {}, "holds"),
        ([0.802, 0.798, 0.8], {}, "fails"),
        ([1.202, 1.198, 1.2], {"expect": "0.9 < value < 1.1"}, "fails"),
        (WITHIN, {"expect": "0.95 < value < 1.05"}, "holds"),
        ([1.202, 1.198, 1.2], {"expect": "value > 1 and best('naive_l1_48k') < 2"}, "holds"),
        (WITHIN, {}, "no effect"),
        (WITHIN, {"expect": "value < 1"}, "no effect"),
        (WITHIN, {"expect": "value > 1.001"}, "unclear"),  # not about an effect
        (WITHIN, {"kind": "share"}, "no effect"),
        (WITHIN, {"expect": "0.8 < value < 1"}, "no effect"),
        ([0.902, 0.898, 0.901], {"expect": "0.8 < value < 1"}, "holds"),
        ([1.1, 1.2, 1.15], {"expect": "0.8 < value < 1"}, "fails"),
        ([1.5, 0.5, 1.0], {"expect": "0.99 <= value <= 0.995"}, "unclear"),  # lies on both sides
        ([1.04, 0.96, 1.02], {}, "unclear"),
        ([1.005, 1.004, 1.006], {}, "no effect"),  # asked before whether it is above 1
        ([1.005, 1.004, 1.006], {"kind": "ranking"}, "no effect"),
        ([1.015, 1.014, 1.016], {}, "holds"),
        ([0.99452, 0.99562], {}, "unclear"),  # from 0.99004: the limit is 1 / 1.01, not 0.99
        ([0.99465, 0.99575], {}, "no effect"),  # from 0.9902
    ],
)
def test_the_word_of_a_ratio(rounds: list[float], claim: dict[str, Any], word: str) -> None:
    found = verdict(GREATER | claim, fixed(rounds, [1.0] * len(rounds)))
    assert found.word == word
    low, value, high = interval(found.sizes[0].value)
    assert low <= value <= high
    assert value == pytest.approx(np.exp(np.mean(np.log(rounds))))


@pytest.mark.parametrize(
    ("best", "least", "word"),
    [
        (64, 64, "unclear"),
        (128, 64, "fails"),
        (256, 64, "holds"),
        (512, 64, "unclear"),
        (1, 1, "fails"),  # nothing lies below
    ],
)
def test_an_optimum_at_the_edge_of_the_sweep_refutes_nothing(
    best: int, least: int, word: str
) -> None:
    builder = Builder()
    for size in (least, 128, 256, 512):
        took_s = 1.0 if size == best else 2.0
        builder.time("sizes", levels(15, block_size=size), took_s, "zhang2011.low_divergence")
    asked = {"kind": "optimum", "expect": "value == 256"}
    asked["expr"] = 'argbest("low_divergence", "block_size")'
    found = verdict(asked, builder.data("zhang2011"))
    assert found.word == word
    assert ("at the edge of the sweep" in found.reason) == (word == "unclear")
    faster = Builder(noise=0.5)
    for size in (64, 256):
        faster.time("sizes", levels(15, block_size=size), 1.0, "zhang2011.low_divergence")
    unsure = verdict(asked, faster.data("zhang2011"))
    assert (unsure.word, "at the edge" in unsure.reason) == ("unclear", False)
    measured = 'levels("low_divergence", "block_size")'
    inside = asked | {"expect": f"min({measured}) < value < max({measured})"}
    expected = word if best in (least, 512) else "holds"
    assert verdict(inside, builder.data("zhang2011")).word == expected


@pytest.mark.parametrize(
    ("expr", "word", "reason"),
    [
        ('phase("naive_l1_16k", "split") / time("naive_l1_16k")', "holds", ""),
        ('time("naive_l1_16k") / phase("naive_l1_16k", "split")', "not measured", "division by"),
        (f"4 * 2.0**1023 * {RATIO}", "not measured", "no finite value"),
        (f"4 * 2.0**1023 * {RATIO} - 4 * 2.0**1023", "not measured", "no finite value"),
    ],
)
def test_zeros_and_infinities(expr: str, word: str, reason: str) -> None:
    builder = zhang(steps={"naive_l1_16k": 1.2, "naive_l1_48k": 1.0}, sizes=(15,))
    for row in builder.rows:
        row["split_s"] = 0.0
    asked = {"kind": "share", "expr": expr, "expect": "value < 0.1"}
    found = verdict(asked, builder.data("zhang2011"))
    assert found.word == word
    assert reason in found.reason


def test_a_claim_about_another_architecture_says_what_it_was_asked_of() -> None:
    """Of a GPU that it names it is not asked so, nor where it holds of any."""
    hopper = two(1.2, 1.0, dev=device("NVIDIA H100", capability=(9, 0)))
    own = two(0.8, 1.0, dev=device("NVIDIA GeForce GTX 275", capability=(1, 3)))
    for claim, said in (
        ({"hardware": ["gtx275"]}, ["compute capability 9.0", ""]),
        ({"hardware": ["gtx275"], "architecture_dependent": "false"}, ["", ""]),
        ({}, ["", ""]),
    ):
        found = judge(tiny_paper(GREATER | claim), [hopper, own])
        assert [(v.word, v.asked_of) for v in found] == [("holds", said[0]), ("fails", said[1])]


def with_cpu(gpu: list[float], cpu: list[float], sizes: tuple[int, ...] = (15,)) -> Dataset:
    """A GPU's run with these rounds at N=15 and 16; the CPU's come from a baseline of ``sizes``."""
    host = {"name": "Xeon", "cores": 64}
    builder, base = Builder(rounds=len(gpu)), Builder({**MINI, "host": host}, rounds=len(cpu))
    for n in (15, 16):
        builder.time("all", levels(n), 1.0, "zhang2011.low_divergence")
        for program in ("somers", "multicore"):
            builder.time("all", levels(n), 5.0, f"cpu.{program}")
    for n in sizes:
        base.time("somers", levels(n), 1.0, "cpu.somers")
    rows(builder, "low_divergence", gpu * 2)
    for row, value in zip([r for r in base.rows if r["round"]], cpu * len(sizes), strict=True):
        row["value_s"] = value
    return for_papers.with_baseline(builder.data("zhang2011"), base.data("zhang2011"))


OVER_CPU = {"expr": 'time("cpu.somers") / time("low_divergence")', "expect": "value > 1"}


def test_the_rounds_of_a_baseline_are_no_rounds_of_the_run() -> None:
    """All of them are part of its value and of the interval, which is that of Student's t where the
    run itself does not vary; a run of one round has no verdict on a time."""
    once = verdict(OVER_CPU, with_cpu([1.0], [8.0, 9.0, 10.0]))
    assert once.word == "unclear"
    assert "only one round" in once.sizes[0].reason
    of_gpu = {"expr": 'time("low_divergence")', "expect": "value < 2"}
    assert verdict(of_gpu, with_cpu([1.0], [8.0, 9.0, 10.0])).word == "unclear"
    cpu = [8.0, 8.0, 8.0, 27.0, 27.0, 27.0]
    more = verdict(OVER_CPU, with_cpu([1.0, 1.0], cpu))
    low, value, high = interval(more.sizes[0].value)
    assert isinstance(more.sizes[0].value, Estimate)
    assert more.sizes[0].value.rounds == 2, "the fewer of the two"
    assert value == pytest.approx((8 * 27) ** 0.5)
    half = 2.571 * (6 / 5) ** 0.5 * np.log(27 / 8) / 2 / 6**0.5  # t of five degrees of freedom
    ends = (value / np.exp(half), value * np.exp(half))
    assert (low, high) == pytest.approx(ends, rel=0.15)
    row = PointRow(load_paper("zhang2011"), with_cpu([1.0] * 2, cpu), "", 15)
    in_a_table = row.value('time("cpu.somers") / time("low_divergence")')
    assert interval(in_a_table) == pytest.approx((ends[0], value, ends[1]), rel=1e-3)


def on_gpus(*gpus: list[float]) -> Dataset:
    """A GPU's run with these ratios of two systems by round, and those of others of its model."""
    first, *again = (fixed(gpu, [1.0] * len(gpu)) for gpu in gpus)
    return replace(first, again=tuple(again))


@pytest.mark.parametrize(
    ("gpus", "word", "size"),
    [
        ([[2.0, 2.1, 2.05], [2.0, 2.05, 2.1]], "holds", "as large"),
        ([[2.0, 2.1, 2.05], [1.2, 1.21, 1.22]], "holds", "size unclear"),
        ([[2.0] * 3, [2.25] * 3], "holds", "as large"),
        ([[2.0, 2.1, 2.05], [0.7, 0.71, 0.69]], "unclear", ""),
        ([[2.0, 2.1, 2.05], [1.0, 1.001, 0.999]], "unclear", ""),
        ([[0.7, 0.71, 0.69], [0.7, 0.72, 0.71], [0.7, 0.7, 0.71]], "fails", ""),
        ([[0.7, 0.71, 0.69], [0.7, 0.72, 0.71], [2.0, 2.1, 2.05]], "unclear", ""),
    ],
)
def test_a_word_stands_if_every_gpu_of_a_model_has_it(
    gpus: list[list[float]], word: str, size: str
) -> None:
    claim = GREATER | {"paper_value": "2.0", "n": ["15"]}
    found = verdict(claim, on_gpus(*gpus))
    assert (found.word, found.size) == (word, size)
    low, value, high = interval(found.sizes[0].value)
    alone = [interval(verdict(claim, on_gpus(gpu)).sizes[0].value) for gpu in gpus]
    assert (low, value) == (min(ends[0] for ends in alone), alone[0][1])
    assert high == max(ends[2] for ends in alone)
    assert ("of the same model" in found.reason) == (word == "unclear")


def test_of_another_gpu_a_size_counts_only_with_the_first_sweep_of_the_run() -> None:
    """A launch of another sweep would stand in the place of the main one, if it has no name."""
    mine, theirs = Builder(rounds=2), Builder(rounds=2)
    for n, sweep in ((15, "main"), (16, "main"), (16, "more")):
        mine.time(sweep, levels(n), 1.0, "zhang2011.low_divergence")
    for n, sweep in ((15, "main"), (15, "more"), (16, "more"), (16, "scaled_2")):
        theirs.time(sweep, levels(n), 1.0, "zhang2011.low_divergence")
    (kept,) = for_papers.with_others(mine.data("zhang2011"), [theirs.data("zhang2011")]).again
    assert [(p.n, p.sweep) for p in kept.points] == [(15, "main"), (15, "more"), (16, "scaled_2")]


HIGHEST = 'counter("pool_distributed", "pool_size", config="highest_occupancy")'


@pytest.mark.parametrize(
    ("expr", "least"), [('argbest("pool_distributed", "pool_size")', 64), (HIGHEST, 512)]
)
def test_another_gpu_with_fewer_points_is_not_asked_for_their_best(expr: str, least: int) -> None:
    many, few = zhang(rounds=2), zhang(rounds=2, pools=(64,))
    for row in (*many.rows, *few.rows):
        row["occupancy"] = row.get("pool_size")
    run = replace(many.data("zhang2011"), again=(few.data("zhang2011"),))
    alone = replace(run, again=())
    claim = {"expr": expr, "n": ["18"], "expect": f"value > {least}"}
    assert verdict(claim, run) == verdict(claim, alone)
    slowest = {"expr": 'max(times("pool_distributed"))', "expect": "value > 0", "n": ["18"]}
    assert verdict(slowest, run) == verdict(slowest, alone)
    full = replace(run, again=(zhang(rounds=2, noise=0.05).data("zhang2011"),))
    assert verdict(slowest, full) != verdict(slowest, alone)


def test_a_size_that_a_baseline_lacks_is_said_of_the_baseline() -> None:
    found = verdict(OVER_CPU | {"n": ["16"]}, with_cpu([1.0, 1.0], [8.0, 8.0]))
    assert found.word == "not measured"
    assert found.reason.startswith("the baseline of the CPU programs has no cpu.somers N=16")
    assert "measures it" not in found.reason  # another run of the GPU would not


def test_a_baseline_stands_in_the_place_of_the_runs_own_cpu_times() -> None:
    """The run's own CPU takes 5 s; the baseline was measured once. The GPU's rounds vary."""
    run = with_cpu([1.0, 1.1, 0.9], [100.0], sizes=(15, 16))
    assert len(run.points) == 6 + 2, "each once"
    found = verdict(OVER_CPU | {"expect": "value > 90", "n": ["15", "16"]}, run)
    low, value, high = interval(found.sizes[0].value)
    assert value == pytest.approx(100 / (1.1 * 0.9) ** (1 / 3))
    assert low < value < high
    own = OVER_CPU["expr"].replace("somers", 'somers", sweep="all')
    (on_its_host,) = verdict(OVER_CPU | {"expr": own}, run).sizes
    assert interval(on_its_host.value)[1] == pytest.approx(value / 20, rel=1e-3)
    row = PointRow(load_paper("zhang2011"), run, "", 15)
    ratios = [
        row.value(f'time("cpu.{s}") / time("low_divergence")') for s in ("somers", "multicore")
    ]
    widths = [high / low for low, _, high in map(interval, ratios)]
    assert widths[0] == pytest.approx(widths[1], rel=0.05), "the GPU's rounds, paired"
    found = verdict(OVER_CPU | {"expr": 'time("cpu.multicore") / time("cpu.somers")'}, run)
    said = "cpu.multicore on host CPU (cpu); cpu.somers on Xeon (cpu), 64 logical cores"
    assert found.reason == said


@pytest.mark.parametrize(
    ("expect", "kind", "unit", "doubled"),
    [
        ("value > 1", "ratio", "", "value > 1.0"),  # no limit of ours
        ("value > 1.5", "ratio", "", "value > 2.0"),
        ("value < 0.5", "share", "", "value < 1.0"),
        ("value > 0.4", "share", "", "value > 0.8"),
        ("value > 0.97", "share", "", "value > 0.94"),
        ("value >= 99", "counter", "percent", "value >= 98.0"),
        ("0.9 <= value <= 1.15", "counter", "", "0.8 <= value <= 1.3"),
        ("45 <= value <= 65", "counter", "percent", "35.0 <= value <= 75.0"),
        ("value > 3", "count", "", "value > 6"),
        ("value == 5", "optimum", "", "value == 5"),
        ("abs(value - 0.3) <= 0.2", "count", "", "abs(value - 0.3) <= 0.4"),
        ("value < 2 if N == 15 else N", "ratio", "", "value < 3.0 if N == 15 else N"),
    ],
)  # fmt: skip
def test_limits_move_away_from_no_effect(expect: str, kind: str, unit: str, doubled: str) -> None:
    moved = with_limits(parse(expect, CLAIMS), 2.0, kind, unit).tree
    wanted = ast.parse(doubled, mode="eval")
    numbers, others = (
        [float(str(n.value)) for n in ast.walk(tree) if isinstance(n, ast.Constant)]
        for tree in (moved, wanted)
    )
    assert numbers == pytest.approx(others)


@pytest.mark.parametrize(
    ("rounds", "expect", "ways", "lost"),
    [
        ([1.7, 1.71, 1.69], "value > 1.5", 6,
         ["fails with limits doubled", "fails by total times"]),
        ([1.015, 1.0151, 1.0149], "value > 1", 6,
         ["no effect with limits doubled", "no effect by total times"]),
        ([1.03, 1.0301, 1.0299], "value > 1", 6, ["no effect by total times"]),
        ([1.4, 1.41, 1.39], "value > 1.5", 6, ["holds with limits halved"]),
        ([3.0, 3.01], "value > 1", 3, ["unclear by total times"]),  # each of two is needed
        ([1.05, 1.2, 1.01], "value > 1.1", 0, []),  # unclear: nothing to lose
    ],
)  # fmt: skip
def test_a_word_is_judged_again_in_other_ways(
    rounds: list[float], expect: str, ways: int, lost: list[str]
) -> None:
    """Two limits, three rounds left out, and totals, which are equal here."""
    paper, run = tiny_paper(GREATER | {"expect": expect}), fixed(rounds, [1.0] * len(rounds))
    found = robust(paper, run, judge(paper, [run]), "H100").get("claim_0", [])
    assert (len(found), [*filter(None, found)]) == (ways, [f"{said} (H100)" for said in lost])


def test_words_that_chance_makes_wrong_are_counted_and_corrected() -> None:
    """Three decided words on times: two far from their limits, one just beyond it."""
    claims = [GREATER | {"expect": f"value > {limit}"} for limit in (1, 1.1, 1.187)]
    claims.append(GREATER | {"expr": "2"})
    paper, run = tiny_paper(*claims), fixed([1.2, 1.204, 1.196], [1.0] * 3)
    found = judge(paper, [run])
    assert [v.word for v in found] == ["holds"] * 4
    (said,) = by_chance(paper, [run], found)
    assert "of 3 decided words on times chance makes at most 0.075 wrong" in said
    assert "; 2 of them stand at the level corrected for all of them" in said


def test_a_cpu_program_timed_beside_the_simulator_is_measured() -> None:
    """Its row names the CPU; clocks of simulated kernels are not judged."""
    builder = Builder(MINI, rounds=3)
    for name, took_s in (("cpu.somers", 2.0), ("cpu.multicore", 1.0)):
        builder.time("all", levels(15), took_s, name, device="cpu")
    builder.count("all", levels(15), {"warp_instructions": 1}, "zhang2011.low_divergence")
    own = levels(15, probe="clocks", encoding="masks", symmetry="mirror")
    counts = {"cycles_per_job_mean": 5.0, "warp_utilization_mean": 0.5}
    builder.count("threads", own, counts, "zhang2011.low_divergence")
    of_cpu = GREATER | {"expr": 'time("cpu.somers") / time("cpu.multicore")'}
    ratio = verdict(of_cpu, builder.data("zhang2011"))
    assert (ratio.word, ratio.provenance) == ("holds", "measured, 3 rounds")
    assert ratio.device.endswith("(timed beside the simulator)")
    for said in ('"cycles_per_job_mean"', '"warp_utilization_mean", probe="clocks"'):
        cycles = {"expr": f'counter("low_divergence", {said})', "expect": "value > 0"}
        assert "counts issued instructions" in verdict(cycles, builder.data("zhang2011")).reason


def modelled_run(card: str, ms: dict[str, float]) -> Dataset:
    """A run on a model of a GPU with these modelled times, and a CPU program timed beside it."""
    identity = {"name": f"model of GeForce {card.upper()}"}
    builder = Builder(MINI | {"spec": f"sim:{card}:cache:time", "identity": identity})
    for name, time_ms in ms.items():
        counts = counters_of({"n": 10}) | {"modelled_ms": time_ms, "bank_conflicts": 7.0}
        builder.count("kernels", levels(15), counts, f"zhang2011.{name}")
    builder.time("kernels", levels(15), 5.0, "cpu.somers", device="cpu")
    return for_papers.modelled(builder.data("zhang2011"))


TODAY = {"expr": RATIO, "expect": "value > 2"}
ON_OWN = modelled_run("gtx480", {"naive_l1_16k": 1.3, "naive_l1_48k": 1.0})
HARDLY = modelled_run("gtx480", {"naive_l1_16k": 1.04, "naive_l1_48k": 1.0})
OLDER = modelled_run("gtx275", {"naive_l1_16k": 0.7, "naive_l1_48k": 1.0})


@pytest.mark.parametrize(
    ("claim", "run", "word", "said"),
    [
        ({}, ON_OWN, "holds", ""),
        ({"today": TODAY}, ON_OWN, "holds", ""),  # the paper's form, as it is the paper's GPU
        ({"today": TODAY, "hardware": []}, OLDER, "fails", ""),
        ({}, HARDLY, "unclear", "the model does not tell effects below 5% apart"),
        ({"n": ["15", "16"]}, ON_OWN, "holds", "asked at N=15 alone"),
        ({"n": ["19"]}, ON_OWN, "holds", "simulated at N=15, while the paper has N=19"),
        ({"n": ["18", "19"]}, ON_OWN, "not measured", "N=18, 19"),
        ({"expr": 'time("cpu.somers") / time("naive_l1_48k")'}, ON_OWN, "not measured", ""),
        ({"expr": 'counter("naive_l1_48k", "bank_conflicts")'}, ON_OWN, "holds", ""),
    ],
)
def test_modelled_times_are_judged_in_the_papers_own_form(
    claim: dict[str, Any], run: Dataset, word: str, said: str
) -> None:
    """Times of a model are exact and marked; nothing measured is set against them."""
    own = {"hardware": ["gtx480"], "architecture_dependent": "false"} | GREATER | claim
    found = verdict(own, run)
    assert (found.word, said in found.reason) == (word, True)
    timed = "counter" not in found.asked.expr and word != "not measured"
    assert found.provenance == ("modelled" if timed else "simulated")
    moved = claim.get("n") == ["19"]
    assert not moved or not found.size, "a printed number of another size is no measure"


def test_each_gpu_of_a_paper_is_asked_what_the_paper_says_of_it() -> None:
    """And a sentence that compares two of them is asked of both together."""
    of_one = GREATER | {"hardware": ["gtx480"]}
    both = 'time("naive_l1_16k", hw="gtx480") > time("naive_l1_16k", hw="gtx275")'
    of_two = {"expr": both, "expect": "value", "hardware": ["gtx480", "gtx275"]}
    found = judge(tiny_paper(of_one, of_two), [OLDER, ON_OWN])
    assert [(v.claim.id, v.word, v.provenance) for v in found] == [
        ("claim_0", "holds", "modelled"),
        ("claim_1", "holds", "modelled"),
    ]
    assert "gtx480" in found[0].device


@pytest.mark.parametrize(
    ("value", "word", "share"),
    [
        (1 + 7.9, "weaker", 0.79),
        (1 + 8.0, "as large", 0.8),
        (1 + 15.0, "as large", 1.0),
        (1 + 25.0, "as large", 1.25),
        (1 + 26.0, "stronger", 1.3),
    ],
)
def test_an_effect_is_as_large_within_a_quarter(value: float, word: str, share: float) -> None:
    """Of one device it is printed as 10, of another as 20 more."""
    printed = Printed(1.0, 10.0, 20.0, 10.0, 20.0)
    assert printed.word(value) == word
    assert printed.share(value) == pytest.approx(share)
