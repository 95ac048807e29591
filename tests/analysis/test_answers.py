"""What a comparison says in words, on runs whose truth is known and against the records of two."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import shutil
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from nqbench.analysis.compare.devices import changes
from nqbench.analysis.compare.rates import ENERGY_S, energies
from nqbench.analysis.compare.request import Findings, Gate, compare_datasets
from nqbench.analysis.compare.runs import compare_runs
from nqbench.analysis.compare.wording import sentences
from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.data.statistics import welch
from nqbench.errors import StudyError
from nqbench.vocabulary import BETTER, CACHE_COUNTERS, COUNTERS, TIME_COUNTERS
from tests.builders import MINI, Builder, counters_of

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
H100 = REFERENCE / "h100" / "zhang2011"
H200 = REFERENCE / "h200" / "zhang2011"
TIMES = {"none": 5.0, "conflict_free": 4.0, "dynamic": 3.0, "both": 2.0}


def device(name: str, units: int, capability: str) -> dict[str, Any]:
    identity = {"name": name, "compute_capability": capability}
    facts = {"name": name, "multiprocessors": units}
    return {"spec": "cuda:0", "kind": "cuda", "identity": identity, "facts": facts}


def run(
    name: str = "A", seed: int = 1, units: int = 132, capability: str = "9.0", **changed: Any
) -> Builder:
    """The four systems of a paper; ``changed`` gives times, or what was recorded, by system."""
    builder = Builder(device(name, units, capability), seed=seed)
    every = {"sm_mhz": 1980, "occupancy": 0.5, "threads": 264 * 64, "memory": "shared"}
    for system, time_s in TIMES.items():
        own = {**every, **changed.get("all", {}), **changed.get(system, {})}
        levels = {"n": 15, "block_size": 64, "memory": own.pop("memory")}
        builder.time("ablation", levels, own.pop("s", time_s), f"tanaka2011.{system}", **own)
    return builder


def said(one: Builder, two: Builder) -> str:
    return "\n".join(sentences(compare_datasets([one.data(), two.data()])))


SLOWER: dict[str, Any] = {system: {"s": 1.1 * time_s} for system, time_s in TIMES.items()}
HBM3, HBM3E = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
CASES = {
    "the same": (
        (run(), run("B", 2)),
        (
            "Fastest of 4 variants at N=15 on both: tanaka2011.both, 1.999 s on A",
            "the next, tanaka2011.dynamic, takes 1.500 [1.497, 1.503] and 1.501",
            "The order clearly changes in none of 6 pairs of variants.",
            "No effect of 3 clearly differs by 2% or more",
        ),
        ("consistent with",),
    ),
    "another order": (
        (run(), run("B", 2, both={"s": 3.5})),
        (
            "Fastest of 4 variants at N=15: tanaka2011.both on A (1.999 s)",
            "but tanaka2011.dynamic on B (3.0",
            "The order clearly changes in 1 of 6 pairs of variants; most of all,",
            "compared: tanaka2011.both instead of dynamic (sweep ablation), N=15: is 1.5",
            "is consistent with no recorded fact. Equal on both: SM clock (1980 MHz)",
        ),
        ("is consistent with bandwidth",),
    ),
    "bandwidth": (
        (
            run(HBM3, none={"memory": "global"}),
            run(HBM3E, 2, none={"memory": "global", "s": 4.5}),
        ),
        (
            "compared: tanaka2011.conflict_free instead of none",
            "That difference of the effects is consistent with bandwidth of device memory",
            "3.35 TB/s on NVIDIA H100 80GB HBM3, 4.80 TB/s on NVIDIA H200",
            "at most a factor of 1.43, seen is 1.11)",
            "global 0.8987 [0.8935, 0.9038] (faster)",
            "shared 1.000 [0.9987, 1.002] (same)",
        ),
        ("only a factor",),
    ),
    "bandwidth that points the other way": (
        (run(HBM3, none={"memory": "global"}), run(HBM3E, 2, none={"memory": "global", "s": 5.5})),
        (
            "is consistent with no recorded fact. What does differ",
            "points the other way: bandwidth",
        ),
        (),
    ),
    "clock": (
        (run(), run("B", 2, all={"sm_mhz": 1800}, **SLOWER)),
        (
            "The ratio of all points is consistent with SM clock 1980 MHz on A, 1800 MHz on B",
            "at most a factor of 1.1, seen is 1.1)",
            "Per multiprocessor and GHz, B does 1.00",
        ),
        (),
    ),
    "a clock that explains a part only": (
        (run(), run("B", 2, all={"sm_mhz": 1940}, **SLOWER)),
        ("consistent with SM clock", "only a factor of 1.02, seen is 1.1)"),
        (),
    ),
    "a clock that explains nothing": (
        (run(), run("B", 2, all={"sm_mhz": 2100}, **SLOWER)),
        (
            "is consistent with no recorded fact. What does differ",
            "SM clock 1980 MHz on A, 2100 MHz",
        ),
        (),
    ),
    "multiprocessors": (
        (run(), run("B", 2, 120, **SLOWER)),
        ("consistent with multiprocessors 132 on A, 120 on B", "at most a factor of 1.1,"),
        (),
    ),
    "multiprocessors without a block each": (
        (run(all={"threads": 64}), run("B", 2, 120, all={"threads": 64}, **SLOWER)),
        ("is consistent with no recorded fact",),
        (),
    ),
    "occupancy": (
        (
            run(all={"occupancy_limiter": "warps"}),
            run("B", 2, all={"occupancy_limiter": "registers"}, both={"s": 2.5, "occupancy": 0.25}),
        ),
        (
            "compared: tanaka2011.both instead of dynamic",
            "is consistent with occupancy 0.5, limited by warps on A, 0.25 and 0.5, limited by"
            " registers on B (alone this would make at most a factor of 2, seen is 1.25)",
        ),
        (),
    ),
    "another architecture": (
        (run(), run("B", 2, capability="8.0", both={"s": 2.5})),
        (
            "is consistent with no recorded fact. What does differ says nothing about the",
            "compute capability 9.0 on A, 8.0 on B: the SASS differs.",
        ),
        (),
    ),
    "registers have no direction": (
        (run(), run("B", 2, both={"s": 2.5, "registers": 64})),
        (
            "is consistent with no recorded fact. What does differ",
            "registers per thread 32 on A, 64 and 32 on B",
        ),
        (),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_in_words(case: str) -> None:
    (one, two), expected, never = CASES[case]
    text = said(one, two)
    for part in expected:
        assert part in text, text
    for part in never:
        assert part not in text, text


def test_answers_come_first() -> None:
    told = sentences(compare_datasets([run().data(), run("B", 2).data()]))
    assert told[0].startswith("Fastest of 4 variants")
    assert told[-1] == "No optimization clearly helps on one device and hurts on another."


def test_two_that_are_alike_are_not_told_apart() -> None:
    text = said(run(both={"s": 3.001}), run("B", 2, both={"s": 3.001}))
    assert "not distinguishable from the next" in text


@pytest.mark.parametrize(
    ("noise", "doubt"), [(1.0, "on both."), (3.0, "on both, without a clear lead on either.")]
)
def test_one_size_may_have_several_answers(noise: float, doubt: str) -> None:
    """Searches of several lengths: the fastest of the short ones differs, of the long ones not."""
    sides = [run(), run("B", 2)]
    for builder, times in zip(sides, ((1.0, 1.5), (1.5, 1.0)), strict=True):
        for system, time_s in zip(("none", "both"), times, strict=True):
            levels = {"n": 15, "block_size": 32, "memory": "shared"}
            builder.time("short", levels, time_s, f"tanaka2011.{system}", answer="7")
        for row in [r for r in builder.rows if r["sweep"] == "short" and r["round"]][::2]:
            row["value_s"] *= noise
    text = said(*sides)
    assert "Fastest of 4 variants at N=15 on both" in text
    assert f"At N=15 (of those with another answer) the fastest is not the same {doubt}" in text


def counted(**counters: float) -> Builder:
    builder = Builder(MINI)
    for block in (32, 64, 96, 128):
        levels = {"n": 10, "block_size": block}
        builder.count("s", levels, {**counters_of(levels), **counters})
    return builder


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


def test_the_effect_on_a_counter_that_differs_most() -> None:
    sides = []
    for spec, gain in (("sim:mini", 0.9), ("sim:other", 0.7)):
        builder = Builder({**MINI, "spec": spec})
        for memory, factor in (("global", 1.0), ("shared", gain)):
            levels = {"n": 10, "memory": memory}
            builder.count("s", levels, counters_of(levels) | {"issue_slots": 1000 * factor})
        sides.append(builder.data())
    text = "\n".join(sentences(compare_datasets(sides)))
    assert (
        "The effect that differs most, of 1 compared: memory shared instead of global (sweep s),"
        " N=10: multiplies the issue slots by 0.9000 on sim:mini and multiplies the issue slots by"
        " 0.7000 on sim:other; ratio of the two ratios 0.7778."
    ) in text


def test_nothing_recorded_is_no_cause() -> None:
    """A file of another program has times and nothing else."""
    sides = [run(), run("B", 2, both={"s": 3.5})]
    for builder in sides:
        builder.device = {
            "spec": "nvbench",
            "kind": "cuda",
            "identity": {"name": builder.device["identity"]["name"]},
        }
        for row in builder.rows:
            for name in ("registers", "occupancy", "sm_mhz", "threads"):
                row.pop(name, None)
    assert "consistent with" not in said(*sides)


def test_effects_are_those_of_the_points_that_both_have() -> None:
    """``shared`` is twice as fast at one depth and no faster at the other, which one run lacks."""
    sides = []
    for seed, depths in ((1, (3, 4)), (2, (3,))):
        builder = Builder(device("AB"[seed - 1], 132, "9.0"), seed=seed)
        for memory in ("global", "shared"):
            for depth in depths:
                time_s = 0.1 / (2 if (memory, depth) == ("shared", 3) else 1)
                builder.time("s", {"n": 15, "memory": memory, "depth": depth}, time_s)
        sides.append(builder)
    assert "No effect of 1 clearly differs" in said(*sides)


def test_points_without_an_answer_are_no_variants_of_each_other() -> None:
    sides = [run(), run("B", 2)]
    for builder in sides:
        for row in builder.rows:
            row["answer"] = row["expected"] = None
    text = said(*sides)
    assert "Fastest" not in text
    assert "order clearly changes" not in text


def test_directions_are_those_of_counters() -> None:
    assert set(BETTER) <= {*COUNTERS, *CACHE_COUNTERS, *TIME_COUNTERS}
    assert quantity("warp_instructions@apply").better == "lower"
    assert quantity("barriers").better == ""


def test_nothing_is_tested_where_counts_are_equal_everywhere() -> None:
    other = {**MINI, "spec": "sim:other"}
    two = counted()
    two.device = other
    found = compare_datasets([counted().data(), two.data()])
    assert found.several_devices
    assert found.ranks == ()
    assert "bank conflicts of 4 points: equal everywhere." in "\n".join(sentences(found))


def test_means_by_system_and_memory() -> None:
    off_chip = {"memory": "global"}
    one = run(none=off_chip, dynamic=off_chip)
    two = run("B", 2, none={**off_chip, "s": 4.0}, dynamic=off_chip)
    found = compare_datasets([one.data(), two.data()])
    (section,) = found.comparisons[0].sections
    means = {(g.factor, g.level): g for g in section.groups}
    assert means["memory", "global"].ratio is not None
    assert means["memory", "global"].ratio.value == pytest.approx(math.sqrt(0.8), rel=0.01)
    assert (means["memory", "global"].points, means["memory", "global"].verdict) == (2, "faster")
    assert means["system", "tanaka2011.none"].ratio is not None
    assert means["system", "tanaka2011.none"].ratio.value == pytest.approx(0.8, rel=0.01)
    assert len(means) == 6


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


@pytest.mark.parametrize(
    ("one", "gate", "message"),
    [
        (
            run(),
            "worse",
            "--fail-on worse needs a counter of which one direction is better, but B"
            " and A are compared by kernel time; use --fail-on slower",
        ),
        (run(), "differs:1%", "--fail-on differs needs a counter, but"),
        (counted(), "slower", "--fail-on slower needs a time, but"),
    ],
)
def test_a_gate_that_nothing_can_hit(one: Builder, gate: str, message: str) -> None:
    two = counted() if one.simulated else run("B", 2)
    found = compare_datasets([one.data(), two.data()], ["one", "two"])
    with pytest.raises(StudyError, match=message):
        Gate.parse(gate).check(found)


def test_a_gate_on_worse_counts() -> None:
    one, two = counted(warp_instructions=100).data(), counted(warp_instructions=103).data()
    found = compare_datasets([one, two], ["one", "two"])
    hits = {g: Gate.parse(g).hits(found.comparisons[0]) for g in ("worse", "worse:5%", "differs")}
    assert hits == {"worse": 4, "worse:5%": 0, "differs": 4}
    (better,) = compare_datasets([two, one], ["one", "two"]).comparisons
    assert Gate.parse("worse").hits(better) == 0
    plain = compare_datasets([one, two], ["one", "two"], value="barriers")
    with pytest.raises(StudyError, match="compared by barriers; use --fail-on differs"):
        Gate.parse("worse").check(plain)


@pytest.mark.parametrize(
    ("sampled_s", "launches", "energy_mj", "joules", "why"),
    [
        (2.0, 10, 500_000, 50.0, ""),
        (ENERGY_S, 5, 400_000, 80.0, ""),
        (0.5, 3, 200_000, None, "a round lasts under 1 s"),
        (0.02, 6, 0, None, "a round lasts under 1 s"),
        (4.0, 10, 500_000, None, "kernels took only 50% of the measurement"),
        (2.0, 10, None, None, "no energy was read"),
        (None, 10, 500_000, None, "no energy was read"),
    ],
)
def test_energy_of_a_launch(
    sampled_s: float | None, launches: int, energy_mj: int | None, joules: float | None, why: str
) -> None:
    row = {"value_s": 0.2, "samples": launches, "energy_mj": energy_mj, "sampled_s": sampled_s}
    point = PointResult("s", "a", 15, {}, False, True, "ok", "", {1: row, 2: row})
    found, reason = energies(point)
    assert reason == why
    assert found == ({} if joules is None else {1: joules, 2: joules})


# The records themselves, read without nqbench.


def records(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Timed rounds of each kernel, by sweep, system and factors; of a repeated round the later."""
    found: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for line in gzip.decompress((folder / "records.jsonl.gz").read_bytes()).splitlines():
        record = json.loads(line)
        timed = record["round"] > 0 and record["value_s"] and record["status"] == "ok"
        if timed and record["device"] != "cpu":
            point = record["point"]
            place = [point["sweep"], point["system"], point["factors"]]
            found[json.dumps(place, sort_keys=True)][record["round"]] = record
    return {place: list(rounds.values()) for place, rounds in found.items()}


def mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


@pytest.fixture(scope="module")
def zhang() -> Findings:
    runs = [load_dataset(folder) for folder in (H100, H200)]
    return compare_datasets(runs, paths=(H100, H200))


@pytest.fixture(scope="module")
def raw() -> list[dict[str, list[dict[str, Any]]]]:
    both = [records(folder) for folder in (H100, H200)]
    return [{place: side[place] for place in both[0] if place in both[1]} for side in both]


Raw = list[dict[str, list[dict[str, Any]]]]


def test_the_best_variants_are_those_of_the_records(zhang: Findings, raw: Raw) -> None:
    for best in zhang.answers[0].best:
        for side, leader in zip(raw, best.leaders, strict=True):
            times = {
                place: mean([r["value_s"] for r in rounds])
                for place, rounds in side.items()
                if json.loads(place)[2]["n"] == best.n
            }
            place = min(times, key=lambda p: times[p])
            assert json.loads(place)[1] == leader.point.system
            assert times[place] == pytest.approx(leader.value.value)


def test_the_order_is_that_of_the_records(zhang: Findings, raw: Raw) -> None:
    """Which pairs of one sweep and size change places, by the means of their rounds."""
    groups: dict[tuple[str, int], list[list[float]]] = defaultdict(list)
    for place in raw[0]:
        sweep, _, factors = json.loads(place)
        times = [mean([r["value_s"] for r in side[place]]) for side in raw]
        groups[sweep, factors["n"]].append(times)
    pairs = [p for group in groups.values() for p in itertools.combinations(group, 2)]
    changing = [(a, b) for a, b in pairs if (a[0] - b[0]) * (a[1] - b[1]) < 0]
    order = zhang.answers[0].order
    assert order.pairs == len(pairs)
    assert len(order.swaps) + order.unsure == len(changing)


def test_the_steps_between_systems_are_those_of_the_records(zhang: Findings) -> None:
    """And the largest clear difference of an effect is the ratio of its two ratios."""
    largest = zhang.answers[0].differing
    assert largest is not None
    for folder, ratio in zip((H100, H200), largest.ratios, strict=True):
        times: dict[tuple[Any, ...], dict[int, float]] = {}
        for place, rounds in records(folder).items():
            sweep, system, factors = json.loads(place)
            times[sweep, factors["n"], system] = {r["round"]: r["value_s"] for r in rounds}
        found = dict(changes(load_dataset(folder), TIME))
        steps = {c: r for c, r in found.items() if c.factor == "system"}
        assert len(steps) >= 20
        for step, effect in steps.items():
            base, level = (times[step.sweep, step.n, s] for s in (step.base, step.level))
            assert effect.value == pytest.approx(mean([level[r] / base[r] for r in base]))
        assert found[largest.change] == ratio
    assert largest.clear
    assert largest.ratio.value == pytest.approx(largest.ratios[1].value / largest.ratios[0].value)


def test_rates_and_energies_are_those_of_the_records(zhang: Findings, raw: Raw) -> None:
    (rated,) = zhang.rated
    assert rated.unit == "solutions"
    seen = 0
    for pair, both in rated.rows:
        for side, point, rates in zip(raw, (pair.first, pair.second), both, strict=True):
            (rounds,) = (
                rounds
                for rounds in side.values()
                if rounds[0]["key"] == point.detail("key")
                and rounds[0]["point"]["sweep"] == point.sweep
            )
            per_s = mean([int(r["answer"]) / r["value_s"] for r in rounds])
            assert rates.per_s is not None
            assert rates.per_s.value == pytest.approx(per_s)
            clock = rounds[0]["telemetry"]["sm_mhz"]["median"] / 1000
            assert rates.per_clock is not None
            assert rates.per_clock.value == pytest.approx(per_s / 132 / clock)
            long = all(r["spent_s"]["sample"] >= ENERGY_S for r in rounds)
            assert (rates.energy_j is not None) == long
            if rates.energy_j is not None:
                joules = [r["telemetry"]["energy_mj"] / 1000 / len(r["samples_s"]) for r in rounds]
                assert rates.energy_j.value == pytest.approx(mean(joules))
                seen += 1
    assert seen >= 20


def test_the_share_of_the_roof_is_that_of_the_data_sheet(tmp_path: Path) -> None:
    """Without measured ceilings beside both runs; by hand for kernels that do no arithmetic but on
    integers: 64 additions per clock and multiprocessor on compute capability 9.0.
    """
    folders = [tmp_path / device / "tanaka2011" for device in ("h100", "h200")]
    for folder in folders:
        shutil.copytree(REFERENCE / folder.parent.name / "tanaka2011", folder)
    found = compare_datasets([load_dataset(folder) for folder in folders], paths=folders)
    (rated,) = found.rated
    assert rated.roofs == "data sheets"
    shares = {
        side: {
            (pair.first.system, pair.first.n): both[side].share
            for pair, both in rated.rows
            if pair.first.sweep == "counted"
        }
        for side in (0, 1)
    }
    for side, folder in enumerate(folders):
        lines = gzip.decompress((folder / "records.jsonl.gz").read_bytes()).splitlines()
        profiled = [r for r in map(json.loads, lines) if r["round"] == -1]
        for record in profiled:
            system, n = record["point"]["system"], record["point"]["factors"]["n"]
            additions = record["counters"]["integer_thread_instructions"]
            least_s = additions / (64 * 132 * 1.98e9)
            times = [
                r["value_s"]
                for r in map(json.loads, lines)
                if r["key"] == record["key"] and r["round"] > 0
            ]
            if (system, n) not in shares[side]:
                continue  # profiled in one of the runs alone
            share = shares[side][system, n]
            assert share == pytest.approx(least_s / mean(times), rel=0.02)
    assert all(shares[0].values())
