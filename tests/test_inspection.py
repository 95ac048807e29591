"""Counters by source line add up to those of the launch, and name the lines that cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nqbench.devices.registry import SimDevice, open_simulator
from nqbench.errors import NqbenchError
from nqbench.inspection import explain_points, side_by_side
from nqbench.measure.variants import workload_of
from nqbench.report.explain import Pair, whole
from nqbench.simulator.tally import SOURCE_COUNTS
from nqbench.study.asked import chosen_points, sides
from tests.cli.call import call

EXAMPLES = Path(__file__).parents[1] / "examples"
SYSTEM = "zhang2011.shared_conflict"


@pytest.mark.parametrize(
    ("subject", "spec"),
    [
        (SYSTEM, "sim:mini"),
        (SYSTEM, "sim:gtx280"),
        ("fitness.histogram", "sim:mini"),
        (SYSTEM, "sim:mini:ptxas"),  # merged accesses and predicated branches
    ],
)
def test_lines_add_up_to_the_counters_of_the_launch(subject: str, spec: str) -> None:
    device = open_simulator(f"{spec}:expand")
    points = chosen_points(subject, device.facts)
    ((found,),) = explain_points(points, spec)
    (point,) = points
    plan = workload_of(point).plan(point.configuration, point.system, device.facts)
    with device.prepare(plan) as prepared:
        counters = prepared.launch().counters
    assert counters is not None
    sums = {name: sum(line.counts[name] for line in found.lines) for name in SOURCE_COUNTS}
    assert sums == {name: counters[name] for name in SOURCE_COUNTS}


def test_the_dear_line_is_the_one_that_the_example_is_about() -> None:
    study = str(EXAMPLES / "transpose" / "transpose.yaml")
    points = chosen_points(study, SimDevice().facts, ["pad=0", "rows=1"])
    for (one,) in explain_points(points, "sim:mini"):
        dearest = max(one.lines, key=lambda line: line.counts["bank_conflicts"])
        assert "tile[threadIdx.x]" in dearest.text


def test_lines_of_two_points_side_by_side() -> None:
    """A line that only one has costs the other nothing; the sums are those of the launches."""
    study = str(EXAMPLES / "transpose" / "transpose.yaml")
    points = chosen_points(study, SimDevice().facts, ["rows=1"])
    (a, b), why = side_by_side([points], "sim:mini")
    assert why.startswith(f"A is the worst and B the best of {len(points)} by ")
    of_a, of_b = explain_points([a, b], "sim:mini")
    pair = Pair(whole(of_a), whole(of_b))
    for side, one in enumerate((pair.a, pair.b)):
        slots = [lines[side].counts["issue_slots"] for lines in pair.lines]
        assert sum(slots) == one.counters["issue_slots"]
    gaps = [abs(x.counts["issue_slots"] - y.counts["issue_slots"]) for x, y in pair.lines]
    assert gaps == sorted(gaps, reverse=True)
    assert side_by_side([[a], [b]], "sim:mini") == ([a, b], "")
    best, why = side_by_side([points[:2], points[2:]], "sim:mini")
    assert best[0] in points[:2]
    assert why.startswith("A and B are the best")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", [""]),
        ("a=1 b=2", ["a=1 b=2"]),
        ("a=1 a=2", ["a=1", "a=2"]),
        ("a=1 b=2 a=3 b=4", ["a=1 b=2", "a=3 b=4"]),
        ("c=0 a=1 a=2", ["c=0 a=1", "c=0 a=2"]),
        ("a=1 a=2 c=0", ["a=1 c=0", "a=2 c=0"]),
    ],
)
def test_the_second_level_of_a_factor_begins_the_second_point(words: str, found: list[str]) -> None:
    assert list(map(sorted, sides(words.split()))) == [sorted(one.split()) for one in found]


def test_the_command() -> None:
    data = json.loads(call("explain", SYSTEM, "--n", 8, "--json").out)
    assert data[0]["lines"][0]["lane_efficiency"] <= 1
    stencil = EXAMPLES / "stencil" / "stencil.yaml"
    assert "A is the worst and B the best of" in call("explain", stencil).out
    other = SYSTEM.replace("conflict", "no_conflict")
    assert f"A  {SYSTEM} N=8\nB  {other} N=8" in call("explain", SYSTEM, other, "--n", 8).out
    for words, said in (
        ([EXAMPLES / "external_program" / "study.yaml"], "runs on the CPU"),
        ([SYSTEM, other, SYSTEM], "name two subjects"),
        ([SYSTEM, *("--point layout=padded " * 3).split()], "two points stand side by side"),
    ):
        done = call("explain", *words)
        assert (done.code, said in done.err) == (2, True), done.err


def test_points_of_a_system() -> None:
    """At the smallest size that its levels allow."""
    facts = SimDevice().facts
    sizes = [chosen_points("tanaka2011.both", facts, c)[0].n for c in ([], ["depth=8"])]
    assert sizes == [8, 12]
    for subject, conditions, said in (
        ("feinbube2010.opt3_shared_extern", (), "over the limit of 16368"),  # N = 8, not 4096
        (SYSTEM, ["n=x"], "--point n=x: a size is a whole number"),
        (SYSTEM, ["n"], "write FACTOR=LEVEL"),
        (SYSTEM, ["blok_size=3"], "did you mean 'block_size'"),
        (SYSTEM, ["layout=padde"], "did you mean 'padded'"),
    ):
        with pytest.raises(NqbenchError, match=said):
            chosen_points(subject, SimDevice("gf8600m_gs").facts, conditions)
