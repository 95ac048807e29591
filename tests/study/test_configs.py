"""The studies that come with nqbench, and the examples of their documentation, on every kind of
device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nqbench import workloads
from nqbench.analysis.limits.ceilings import CEILINGS
from nqbench.facts import DeviceFacts
from nqbench.point import Point
from nqbench.study import REPORT_KINDS, Measure, expand, load_study
from nqbench.workloads.counting.factors import FRONTIER_LOOPS
from tests.study.fake import CPU, H100, TURING, study_of

FOLDER = Path(__file__).parents[2] / "configs"
TEXT = (Path(__file__).parents[2] / "docs" / "study-format.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
MAY_NOT_FIT = {"ablation": {"launch"}, "frontier": {"launch", "depths"}}
"""Sweeps that list what does not fit as skipped."""
both = pytest.mark.parametrize("facts", [TURING, H100], ids=lambda facts: facts.kind)


def points(name: str, facts: DeviceFacts) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for point in expand(load_study(FOLDER / f"{name}.yaml"), facts):
        found.setdefault(point.sweep, []).append(point)
    return found


@both
@pytest.mark.parametrize(
    "name", ["ablation", "ceilings", "frontier", "quick", "scaling", "local_search_tiles"]
)
def test_points_run_and_are_reported(name: str, facts: DeviceFacts) -> None:
    skipping = {sweep for sweep, found in points(name, facts).items() if any(p.skip for p in found)}
    assert skipping <= MAY_NOT_FIT.get(name, set())
    assert load_study(FOLDER / f"{name}.yaml").report or name == "ceilings"


def test_every_study_asks_a_question() -> None:
    root = FOLDER.parent
    files = [*FOLDER.glob("*.yaml"), *root.glob("examples/*/*.yaml")]
    files += root.glob("experiments/*/study.yaml")
    assert len(files) > 20
    assert [file for file in files if not load_study(file).about.endswith("?")] == []


@both
def test_ablation(facts: DeviceFacts) -> None:
    sweeps = points("ablation", facts)
    sizes = {"sim": [10, 12, 13], "cuda": [15, 16, 17, 18]}[facts.kind]
    assert len(sweeps["factorial"]) == 24 * len(sizes)
    assert {p.factors["depth"] for p in sweeps["factorial"]} == {max(4, n - 11) for n in sizes}
    assert len(sweeps["launch"]) == 5 * 13
    # frontier.yaml and middle.yaml
    ours = {s for s in workloads.get("counting").systems if "frontier" in s or "middle" in s}
    systems = set(workloads.get("counting").systems) - ours
    # Zhang's rule leaves too few jobs at N = 13: the simulator compares systems on smaller boards.
    compared = {"sim": [9, 10, 11, 12], "cuda": [15, 16, 17, 18]}[facts.kind]
    expected = {(s, n) for s in systems for n in compared}
    assert {(p.system, p.n) for p in sweeps["systems"]} == expected
    reference, *pools = sweeps["pool"]
    assert (reference.system, reference.factors["pool_size"]) == ("zhang2011.low_divergence", "-")
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


def test_studies_have_all_that_they_are_about() -> None:
    report = load_study(FOLDER / "ablation.yaml").report
    others = {"bottleneck", "resources"}  # of runs that a command makes; of GPUs alone
    kinds = {(k.form, k.name) for k in REPORT_KINDS if k.name not in others}
    assert {(i.form, i.name) for i in report} == kinds
    found = [p for group in points("ceilings", H100).values() for p in group]
    assert {p.factors["operation"] for p in found} == set(CEILINGS), "what a roofline knows"
    frontier = points("frontier", H100)
    assert {p.factors["loop"] for p in frontier["loops"]} == set(FRONTIER_LOOPS)
    assert {p.factors["symmetry"] for p in frontier["symmetry"]} == {"none", "mirror", "full"}


@both
def test_chosen_tiles_of_the_local_search_are_measured(facts: DeviceFacts) -> None:
    sweeps = points("local_search_tiles", facts)
    names = ("tile_x", "tile_y", "block_size")
    tiles = {(p.n, *(p.factors[name] for name in names)) for p in sweeps["tiles"]}
    sizes = {n for n, *_ in tiles}
    auto = [p for p in sweeps["auto"] if p.system == "local_search.fused" and p.n in sizes]
    assert auto
    assert {(p.n, *(p.factors[name] for name in names)) for p in auto} <= tiles


def complete(example: str) -> str:
    """A fragment of a study, with what it leaves out."""
    if example.startswith("name:"):
        return example
    if not re.search(r"^ *n:", example, flags=re.MULTILINE):
        example = f"n: [12]\n{example}"
    if not re.search(r"^(system|systems|fixed|matrix|zip|sweeps):", example, flags=re.MULTILINE):
        example = f"system: zhang2011.low_divergence\n{example}"
    return f"name: example\n{example}"


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
@both
def test_example(number: int, facts: DeviceFacts, tmp_path: Path) -> None:
    points = expand(study_of(tmp_path, complete(EXAMPLES[number])), facts)
    assert any(not point.skip for point in points)


def test_measure_example_shows_the_defaults(tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 10
    example = next(text for text in EXAMPLES if text.startswith("measure:"))
    assert study_of(tmp_path, complete(example)).measure == Measure()
