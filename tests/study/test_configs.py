"""The studies that come with nqbench, on every kind of device."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench import workloads
from nqbench.analysis.limits.ceilings import CEILINGS
from nqbench.facts import DeviceFacts
from nqbench.point import Point
from nqbench.study import REPORT_KINDS, expand, load_study
from nqbench.workloads.counting.factors import FRONTIER_LOOPS
from tests.study.fake import CPU, H100, TURING

FOLDER = Path(__file__).parents[2] / "configs"


def points(name: str, facts: DeviceFacts) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for point in expand(load_study(FOLDER / f"{name}.yaml"), facts):
        found.setdefault(point.sweep, []).append(point)
    return found


@pytest.mark.parametrize("facts", [TURING, H100], ids=lambda facts: facts.kind)
def test_ablation(facts: DeviceFacts) -> None:
    sweeps = points("ablation", facts)
    sizes = {"sim": [10, 12, 13], "cuda": [15, 16, 17, 18]}[facts.kind]
    assert len(sweeps["factorial"]) == 24 * len(sizes)
    assert not any(p.skip for p in sweeps["factorial"])
    assert {p.factors["depth"] for p in sweeps["factorial"]} == {max(4, n - 11) for n in sizes}
    assert len(sweeps["launch"]) == 5 * 13
    ours = {s for s in workloads.get("counting").systems if "frontier" in s}  # frontier.yaml
    systems = set(workloads.get("counting").systems) - ours
    # Zhang's rule leaves too few jobs at N = 13: the simulator compares systems on smaller boards.
    compared = {"sim": [9, 10, 11, 12], "cuda": [15, 16, 17, 18]}[facts.kind]
    expected = {(s, n) for s in systems for n in compared}
    assert {(p.system, p.n) for p in sweeps["systems"]} == expected
    assert len(systems) == 18
    reference, *pools = sweeps["pool"]
    assert (reference.system, reference.factors["pool_size"]) == ("zhang2011.low_divergence", "-")
    assert {p.system for p in pools} == {"zhang2011.pool_distributed"}
    assert len(pools) >= 7
    for pool in pools:
        sizes_ = (pool.factors["block_size"], pool.factors["pool_size"], pool.derived["jobs"])
        block, size, jobs = (int(str(number)) for number in sizes_)
        assert block < size < jobs, "a pool matters only between a block and all jobs"


def test_launch_sweep_lists_what_does_not_fit() -> None:
    skipped = [p for p in points("ablation", TURING)["launch"] if p.skip]
    assert {p.factors["block_size"] for p in skipped} == {448, 512}
    assert all("65536" in p.skip for p in skipped)


def test_cpu_programs_run_on_a_cpu() -> None:
    for name in ("ablation", "scaling"):
        left = [p for group in points(name, CPU).values() for p in group if not p.skip]
        assert {p.system for p in left} == {"cpu.somers", "cpu.multicore"}


def test_the_ablation_draws_everything_there_is() -> None:
    report = load_study(FOLDER / "ablation.yaml").report
    others = {"bottleneck"}  # of runs that a command makes, without a study's file
    kinds = {(k.form, k.name) for k in REPORT_KINDS if k.name not in others}
    assert {(i.form, i.name) for i in report} == kinds


@pytest.mark.parametrize("facts", [TURING, H100], ids=lambda facts: facts.kind)
def test_ceilings(facts: DeviceFacts) -> None:
    """Every operation that a roofline knows is measured."""
    found = [p for group in points("ceilings", facts).values() for p in group]
    assert {p.factors["operation"] for p in found} == set(CEILINGS)
    assert not any(p.skip for p in found)


@pytest.mark.parametrize("facts", [TURING, H100], ids=lambda facts: facts.kind)
def test_frontier(facts: DeviceFacts) -> None:
    sweeps = points("frontier", facts)
    loops = {p.factors["loop"] for p in sweeps["loops"]}
    assert loops == set(FRONTIER_LOOPS)
    assert {p.factors["symmetry"] for p in sweeps["symmetry"]} == {"none", "mirror", "full"}
    skipped = [p for group in sweeps.values() for p in group if p.skip]
    assert all(p.sweep in ("launch", "depths") for p in skipped)


@pytest.mark.parametrize("name", ["quick", "scaling"])
def test_others(name: str) -> None:
    for facts in (TURING, H100):
        found = points(name, facts)
        assert not any(p.skip for group in found.values() for p in group)
        assert load_study(FOLDER / f"{name}.yaml").report


@pytest.mark.parametrize("facts", [TURING, H100], ids=lambda facts: facts.kind)
def test_tiles_of_the_local_search(facts: DeviceFacts) -> None:
    sweeps = points("local_search_tiles", facts)
    assert not any(p.skip for found in sweeps.values() for p in found)
    tiles = {
        (p.n, p.factors["tile_x"], p.factors["tile_y"], p.factors["block_size"])
        for p in sweeps["tiles"]
    }
    chosen = [
        p
        for p in sweeps["auto"]
        if p.system == "local_search.fused" and p.n in {n for n, *_ in tiles}
    ]
    assert chosen
    for point in chosen:
        factors = point.factors
        assert (point.n, factors["tile_x"], factors["tile_y"], factors["block_size"]) in tiles
    assert 64 in {p.factors["check_every"] for p in sweeps["looks"]} or facts.kind == "sim"
