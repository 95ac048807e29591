"""Findings: true sentences, the most important first, and none that the intervals do not carry."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nqbench.analysis import wording
from nqbench.analysis.answer import Answer
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.findings import findings
from tests.builders import H100, MINI, SYSTEMS, TRUTH, Builder, ablation, factorial, truth_s

COUNT, SHARE = quantity("warp_instructions"), quantity("lane_efficiency")


@pytest.mark.parametrize(
    ("found", "what", "totals", "text", "mark"),
    [
        (Estimate(0.5, 0.498, 0.502, 5), TIME, None, "2.00x faster ±0.4%", "+"),
        (Estimate(1.234, 1.2, 1.27, 5), TIME, None, "1.23x slower ±2.9%", "-"),
        (Estimate(0.08, 0.06, 0.1, 3), TIME, None, "12.5x faster (10 to 16.7)", "+"),
        (Estimate(1.01, 0.99, 1.03, 5), TIME, None, "unclear ±2%", ""),
        (Estimate(1.0, 1.0, 1.0, 5), TIME, None, "same", ""),
        (Estimate(0.5), TIME, None, "2.00x faster", ""),
        (Estimate(1 / 2730, exact=True), COUNT, (9e6, 3300), "2,730x fewer", "+"),
        (Estimate(1 / 167123, exact=True), COUNT, None, "167,000x fewer", "+"),
        (Estimate(1.029, exact=True), COUNT, (1e6, 1.029e6), "2.9% more", "-"),
        (Estimate(1.002, exact=True), COUNT, (1e6, 1.002e6), "same", ""),
        (Estimate(float("inf"), exact=True), COUNT, (0, 60984), "0 -> 60,984", "-"),
        (Estimate(0.0, exact=True), COUNT, (60984, 0), "60,984 -> 0", "+"),
        (Estimate(60.0, exact=True), COUNT, (20, 1200), "20 -> 1,200", "-"),
        (Estimate(1.389, exact=True), SHARE, (0.3, 0.4), "+39%", "+"),
        (Estimate(0.97, exact=True), SHARE, (0.3, 0.29), "-3%", "-"),
        (Estimate(float("nan"), exact=True), COUNT, None, "-", ""),
    ],
)
def test_every_effect_has_one_notation(
    found: Estimate, what: Any, totals: Any, text: str, mark: str
) -> None:
    assert wording.effect(found, what, totals) == text
    assert wording.mark(found, what) == mark


def test_measured_findings() -> None:
    """The best point with its gain, the factors by size, the interaction that decides."""
    data = ablation().data()
    best, *factors, crossed = findings(Answer(data))
    worst = 1 / (TRUTH["shared"] * TRUTH["irrc"] * TRUTH["block_pool"])
    assert best.startswith("Fastest of 24 (N = 18, sweep factorial): memory shared, layout per_")
    assert f"{worst:.2f}"[:3] in best.partition(" s, ")[2]
    assert [sentence.partition(":")[0] for sentence in factors] == [
        "assignment",
        "memory",
        "layout",
    ]
    assert "block_pool instead of one_per_thread is 1.43x faster" in factors[0]
    assert "layout interleaved instead of per_thread depends on memory" in crossed
    assert "slower" in crossed
    assert "faster" in crossed


def test_simulated_findings_speak_of_counters_only() -> None:
    data = ablation(MINI).data()
    told = findings(Answer(data))
    assert len(told) == 5
    assert any("bank conflicts" in s and "-> 0" in s for s in told)
    assert not any(word in s for s in told for word in ("fast", "slow", " ms", "cost"))
    assert [best.what.name for best in Answer(data).best][:2] == [
        *("off_chip_sectors", "warp_instructions")
    ]


def points(builder: Builder, *chosen: tuple[dict[str, Any], float], system: str = "") -> Builder:
    for levels, value in chosen:
        builder.time("s", {"n": 15, **levels}, value, system)
    return builder


def alone() -> Builder:
    builder = Builder(H100)
    builder.fail("s", {"n": 15, "depth": 3}, "compile_error")
    return builder


def parts_per_thousand() -> Builder:
    builder = Builder(MINI, sweeps=[{"name": "s", "matrix": {"loop": [], "memory": []}}])
    for i, loop in enumerate(("branchy", "irrc")):
        for j, memory in enumerate(("global", "shared")):
            counters = {"warp_instructions": 10000 + i + j, "lane_efficiency": 0.5 + i * j / 1e4}
            builder.count("s", {"n": 9, "loop": loop, "memory": memory}, counters)
    return builder


def swept(factor: str, values: dict[Any, float], system: str = "", **options: Any) -> Builder:
    builder = Builder(sweeps=[{"name": "s", "matrix": {factor: []}}], **options)
    return points(builder, *(({factor: level}, s) for level, s in values.items()), system=system)


def programs(device: dict[str, Any], *, kernel: bool = False) -> Builder:
    builder = Builder(
        device, sweeps=[{"name": "s", "systems": [], "matrix": {"order": []}}], noise=0.015
    )
    for order in "up", "down":
        for system, value in (("cpu.slow", 3.0), ("cpu.fast", 1.0), ("cpu.like", 1.01)):
            points(builder, ({"order": order}, value), system=system)
    if kernel:
        builder.add("s", {"n": 15}, 0.05, {"warp_instructions": 70}, "own")
    return builder


def by_seed() -> Builder:
    builder = Builder(H100, sweeps=[{"name": "s", "matrix": {"seed": [1, 2], "depth": [3, 4]}}])
    chosen = [({"seed": s, "depth": d}, 0.1 * s**3 * d) for s in (1, 2) for d in (3, 4)]
    return points(builder, *chosen)


def by_system() -> Builder:
    builder = Builder(H100, sweeps=[{"name": "systems", "systems": list(SYSTEMS)}])
    for i, system in enumerate(SYSTEMS):
        builder.time("systems", {"n": 15}, 0.1 + i, system)
    return builder


def with_a_wrong_best() -> Builder:
    builder = factorial(sizes=(15,), value=truth_s)
    best = min(builder.rows[1:], key=lambda r: r.get("value_s") or 9)
    for row in builder.rows:
        if row["key"] == best["key"]:
            row["status"] = "wrong"
    return builder


def from_nearly_nothing() -> Builder:
    """Conflicts that a base level hardly has grow by any ratio; what removes them is told."""
    builder = Builder(MINI, sweeps=[{"name": "s", "matrix": {"memory": [], "layout": []}}])
    table = {("global", "per_thread"): 3, ("global", "interleaved"): 0}
    table |= {("shared", "per_thread"): 900000, ("shared", "interleaved"): 2}
    for (memory, layout), conflicts in table.items():
        counters = {"warp_instructions": 10, "lane_efficiency": 0.5, "bank_conflicts": conflicts}
        builder.count("s", {"n": 9, "memory": memory, "layout": layout}, counters)
    return builder


def turning(*slower: int, noise: bool = False) -> Builder:
    builder = factorial(sizes=(15, 16, 17, 18), noise=0.001)
    for i, row in enumerate(builder.rows):
        if row["n"] in slower and row["round"]:
            turned = row["value_s"] * (4 if row["memory"] == "shared" else 1)
            row["value_s"] = 1.0 + 0.3 * ((i * 2654435761) % 97) / 97 if noise else turned
    return builder


def with_equal_traffic(least: int = 500) -> Builder:
    """Two tiles move the same data; one of them issues fewer instructions."""
    builder = Builder(device=MINI)
    for tile, (sectors, instructions) in {1: (800, 90), 2: (least, 90), 4: (least, 60)}.items():
        counters = {"global_sectors": sectors, "warp_instructions": instructions}
        builder.count("s", {"n": 9, "tile": tile}, {"local_sectors": 0, **counters})
    return builder


def test_why_the_best_is_better_by_what_a_profiler_counted() -> None:
    """From none, or to none, there is no ratio."""
    for best, worst, said in (((40, 3), (100, 0), ["2.50x fewer instructions"]),
                              ((40, 0), (40, 3), [])):  # fmt: skip
        builder = Builder(noise=0)
        for i, (slots, conflicts) in enumerate((best, worst)):
            counters: dict[str, Any] = {"warp_instructions": slots, "bank_conflicts": conflicts}
            builder.time("s", {"n": 9, "depth": i}, 1.0 + i, **counters)
        assert Answer(builder.data()).reasons == said


def test_changes_come_by_the_largest_of_their_effects() -> None:
    """``memory`` moves much more data, ``loop`` needs twice of all, ``cache`` changes nothing."""
    builder = Builder(MINI)
    for cache, loop, memory in itertools.product((1, 2), (1, 2), (1, 20)):
        counters = {"global_sectors": 9e6 * loop * memory, "local_sectors": 0}
        counters["warp_instructions"] = 9e6 * loop * (1 + memory / 500)
        builder.count("s", {"n": 9, "cache": cache, "loop": loop, "memory": memory}, counters)
    changes = Answer(builder.data()).changes
    assert [change.factor for change in changes] == ["memory", "loop", "cache"]


@pytest.mark.parametrize(
    ("builder", "said", "unsaid"),
    [
        (lambda: factorial(rounds=1), "One round has no intervals", "No change matters"),
        (lambda: factorial(rounds=1), "Fastest of 24", "No variant is clearly best"),
        (alone, "No finding: 0 of 1 point finished", "Fastest"),
        (parts_per_thousand, "No change matters", "instead of"),
        (lambda: swept("threads", {1: 1.0, 16: 1 / 16}, "cpu.multicore"),
         "Fastest of 2 (N = 15): threads 16, 62.5 ms, 16.0x faster", "default "),
        (lambda: programs(MINI), "3.00x faster ±2.5% than cpu.slow", "The fastest kernel"),
        (lambda: programs(H100, kernel=True), "The fastest kernel is 19.8x faster", "cpu.fast is"),
        (lambda: programs(MINI, kernel=True), "the CPU: cpu.fast 998 ms, cpu.l", "faster"),
        (by_seed, "depth: 4 instead of 3 is 1.33x slower", "seed:"),
        (by_system, f"Fastest of {len(SYSTEMS)} (N = 15): {SYSTEMS[0]}, 100 ms", "instead of"),
        (with_a_wrong_best, "Fastest of 23 ", "of 24"),
        (lambda: swept("depth", {2: 1.0, 3: 1.0001, 4: 3.0}, noise=0.01),
         *("not distinguishable from depth 3", "distinguishable from depth 4")),
        (lambda: swept("depth", {2: 1.2, 3: 1.3, 4: 1.4}, noise=0.8, rounds=3),
         *("but the intervals of 3 points overlap; more rounds", "lie within")),
        (with_equal_traffic, "tile 4, 500, 38% less than the default and the worst; the same as",
         "No variant is best"),
        (lambda: with_equal_traffic(780), "Fewest instructions of 3 (N = 9): tile 4, 60", "Least"),
        (from_nearly_nothing, "layout: interleaved instead of per_thread is bank con", "x more"),
        (lambda: turning(15), "global is slower at N = 15, and faster from N = 16", "?"),
        (lambda: turning(15, 17), "slower at N = 15, 17, and faster from N = 18", "?"),
        (lambda: turning(15, noise=True), "memory: shared instead of global", "Not at every N"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_run(builder: Callable[[], Builder], said: str, unsaid: str) -> None:
    told = " ".join(findings(Answer(builder().data())))
    assert said in told
    assert unsaid not in told


def test_a_run_without_a_question_asks_what_it_varies() -> None:
    asked = Answer(ablation().data()).question
    assert asked == (
        "Which memory, layout, loop and assignment are best, and what is each change worth?"
    )
    named = Answer(by_system().data())
    assert named.question == "Which system is best?"
    assert [point.system for point in named.ranked] == [*SYSTEMS]
    assert Answer(alone().data()).question == ""
    told = alone().data()
    study = {**told.study, "about": "What is it\n worth?"}
    said = Answer(replace(told, manifest={**told.manifest, "study": study})).question
    assert said == "What is it worth?"


def test_throttled_rounds_are_named() -> None:
    """The points have other rounds, so nothing else tells."""
    run = factorial()
    assert not any("throttled" in sentence for sentence in findings(Answer(run.data())))
    reason = "the GPU slowed itself down (hw_slowdown; at 900 to 1200 MHz); see to its cooling"
    for row in [row for row in run.rows if row["round"] in (2, 4)][:7]:
        row |= {"status": "throttled", "reason": reason}
    said = findings(Answer(run.data()))[-1]
    assert said.startswith("Rounds 2 and 4 were throttled; 7 measurements left out: the GPU slowed")
    assert said.endswith("(hw_slowdown; at 900 to 1200 MHz).")
