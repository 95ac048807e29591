"""Findings: true sentences, with their basis, and none that the intervals do not carry."""

from __future__ import annotations

from typing import Any

import pytest

from nqbench.analysis.data.quantities import quantity
from nqbench.analysis.findings import REPORTED_COUNTERS, extremes, findings
from tests.builders import H100, MINI, SYSTEMS, Builder, ablation, factorial, truth_s


def test_measured_findings_name_factor_best_point_and_reversal() -> None:
    data = ablation().data()
    strongest, best, crossed = findings(data)
    assert "assignment. block_pool instead of one_per_thread is 1.4" in strongest
    assert "memory shared, layout per_thread, loop irrc, assignment block_pool" in best
    assert "cpu.multicore" in best
    assert "layout interleaved instead of per_thread" in crossed
    assert "reverses with memory" in crossed


@pytest.mark.parametrize("builder", [ablation(), ablation(MINI)], ids=["measured", "simulated"])
def test_every_finding_says_size_device_and_manner(builder: Builder) -> None:
    data = builder.data()
    for sentence in findings(data):
        assert "N=" in sentence
        assert data.device_short in sentence
        assert ("simulated" if data.simulated else "measured, 5 rounds") in sentence


def test_simulated_findings_speak_of_counters_only() -> None:
    told = findings(ablation(MINI).data())
    assert len(told) == 3
    assert any("brings the bank conflicts to 0" in s for s in told)
    assert not any(word in s for s in told for word in ("time", "fast", "slow", " ms", "cost"))


def test_noise_alone_is_not_a_finding() -> None:
    data = factorial(noise=0.02, seed=5, value=lambda levels: 0.01).data()
    told = findings(data)
    assert any("No factor clearly changes the kernel time" in s for s in told)
    assert not any("Strongest factor" in s or "reverses with" in s for s in told)


def test_identical_code_is_rarely_called_different() -> None:
    """With no true effect at most about one run in twenty may name a strongest factor."""
    false = sum(
        "Strongest"
        in findings(factorial(sizes=(15,), noise=0.01, seed=s, value=lambda lv: 0.01).data())[0]
        for s in range(40)
    )
    assert false <= 6  # binomial(40, 0.05): more than three standard deviations above 2


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


THREADS: dict[str, Any] = {"sweeps": [{"name": "s", "matrix": {"threads": []}}]}
CPU_ALONE = points(
    Builder(**THREADS), ({"threads": 1}, 1.0), ({"threads": 16}, 1 / 16), system="cpu.multicore"
)


@pytest.mark.parametrize(
    ("builder", "said"),
    [
        (factorial(rounds=1), "with one round no time has an interval"),
        (CPU_ALONE, "none of them is a kernel, and findings compare kernels only"),
        (alone(), "0 of 1 point finished."),
        (parts_per_thousand(), "none of their differences exceeds its interval"),
    ],
    ids=["one round", "CPU programs alone", "nothing finished", "parts per thousand"],
)
def test_a_run_without_a_finding_says_why(builder: Builder, said: str) -> None:
    (only,) = findings(builder.data())
    assert only.startswith("No finding")
    assert said in only


def test_failed_points_are_not_the_best() -> None:
    builder = factorial(sizes=(15,), value=truth_s)
    best = min(builder.rows[1:], key=lambda r: r.get("value_s") or 9)
    for row in builder.rows:
        if row["key"] == best["key"]:
            row["status"] = "wrong"
    assert "of 23 points" in best_of(builder)


def best_of(builder: Builder) -> str:
    (best,) = [s for s in findings(builder.data()) if s.startswith("Best")]
    return best


def test_systems_alone_are_ranked() -> None:
    builder = Builder(H100, sweeps=[{"name": "systems", "systems": list(SYSTEMS)}])
    for i, system in enumerate(SYSTEMS):
        builder.time("systems", {"n": 15}, 0.1 + i, system)
    best = best_of(builder)
    assert SYSTEMS[0] in best
    assert SYSTEMS[-1] in best


def test_the_runner_up_is_told_apart_or_not() -> None:
    tie = points(
        Builder(noise=0.01), ({"depth": 2}, 1.0), ({"depth": 3}, 1.0001), ({"depth": 4}, 3.0)
    )
    assert "not distinguishable from the next" in best_of(tie)
    best = best_of(points(Builder(noise=0.001), ({"depth": 4}, 2.0), ({"depth": 6}, 1.0)))
    assert "times as fast as the other (depth 4)" in best
    assert best.count("depth 4") == 1


def test_growth_from_nearly_nothing_is_not_the_strongest_factor() -> None:
    """Conflicts that a base level hardly has grow by any ratio; what removes them is told."""
    builder = Builder(MINI, sweeps=[{"name": "s", "matrix": {"memory": [], "layout": []}}])
    table = {("global", "per_thread"): 3, ("global", "interleaved"): 0}
    table |= {("shared", "per_thread"): 900000, ("shared", "interleaved"): 2}
    for (memory, layout), conflicts in table.items():
        counters = {"warp_instructions": 10, "lane_efficiency": 0.5, "bank_conflicts": conflicts}
        builder.count("s", {"n": 9, "memory": memory, "layout": layout}, counters)
    told = findings(builder.data())
    assert "layout. interleaved instead of per_thread removes 99.9998% of the bank" in told[0]


@pytest.mark.parametrize("noise", [False, True])
def test_a_direction_that_changes_with_the_size_is_said(noise: bool) -> None:
    """An effect that is lost in noise is not called opposite."""
    builder = factorial(sizes=(15, 16, 17), noise=0.001)
    for i, row in enumerate(builder.rows):
        if row["n"] == 15 and row["round"]:
            turned = row["value_s"] * (4 if row["memory"] == "shared" else 1)
            row["value_s"] = 1.0 + 0.3 * ((i * 2654435761) % 97) / 97 if noise else turned
    told = findings(builder.data())[0]
    assert ("without a clear effect at N=15" in told) == noise
    assert "same direction at N=16" in told or noise
    assert ("but in the opposite direction at N=15" in told) != noise


def test_of_a_counter_no_value_is_called_the_best() -> None:
    data = ablation(MINI).data()
    texts = [extremes(data, s, quantity(c)) for s in data.sweeps for c in REPORTED_COUNTERS]
    said = [text for text in texts if text]
    assert said
    for text in said:
        assert text.startswith(("Lowest ", "Highest "))
        assert "best" not in text.lower()


def test_a_seed_is_no_change_that_makes_anything_faster() -> None:
    builder = Builder(H100, sweeps=[{"name": "seeds", "matrix": {"seed": [1, 2], "depth": [3, 4]}}])
    for seed in (1, 2):
        for depth in (3, 4):
            builder.time("seeds", {"n": 15, "seed": seed, "depth": depth}, 0.1 * seed**3 * depth)
    (strongest,) = [s for s in findings(builder.data()) if s.startswith("Strongest")]
    assert "depth. 4 instead of 3" in strongest
