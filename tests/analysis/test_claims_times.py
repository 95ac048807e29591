"""A paper that times the whole computation is set against whole computations."""

from __future__ import annotations

import pytest

from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import TOTAL, Observed, in_times_of, time_of
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.papers import load_paper
from nqbench.papers.schema import Paper
from tests.builders import Builder
from tests.papers.runs import SIZES, tiny_paper

SHORT_S = 1e-4
HOST_S = 4e-4
"""What the builder adds to each time for split, transfer and reduction."""


def short() -> Observed:
    """Kernels so short that the host's part outweighs them: 0.1 and 0.2 ms beside 0.4 ms."""
    builder = Builder(rounds=5)
    for n in SIZES:
        builder.time("kernels", {"n": n}, 2 * SHORT_S, "zhang2011.naive_l1_16k")
        builder.time("kernels", {"n": n}, SHORT_S, "zhang2011.naive_l1_48k")
    return builder.observed("zhang2011")


@pytest.mark.parametrize(
    ("timed", "ratio"),
    [("kernel", 2.0), ("total", (2 * SHORT_S + HOST_S) / (SHORT_S + HOST_S))],
)
def test_claims_read_the_time_that_the_paper_prints(timed: str, ratio: float) -> None:
    claim = {"expr": 'time("naive_l1_16k") / time("naive_l1_48k")', "expect": "value > 1.5"}
    paper = Paper.model_validate(tiny_paper(claim).model_dump(by_alias=True) | {"timed": timed})
    (found,) = judge(paper, [short()])
    value = found.sizes[0].value
    assert isinstance(value, Estimate)
    assert value.value == pytest.approx(ratio, rel=0.02)
    assert found.word == ("holds" if timed == "kernel" else "fails")


def test_phases_and_host_programs_stay_what_they_are() -> None:
    builder = Builder(rounds=3)
    builder.time("s", {"n": 15}, SHORT_S, "tanaka2011.both")
    builder.time("s", {"n": 15}, 1.0, "cpu.somers")
    paper = load_paper("tanaka2011")
    run = builder.observed()
    kernel, host = run.data.points
    whole, same = in_times_of(paper, run).data.points
    assert whole.values(TIME) == kernel.values(quantity("total")) != kernel.values(TIME)
    assert whole.values(quantity("kernel")) == kernel.values(quantity("kernel"))
    assert same is host
    assert in_times_of(load_paper("zhang2011"), run) is run


def test_a_block_without_a_total_has_no_time_of_the_paper() -> None:
    builder = Builder(rounds=2)
    builder.time("s", {"n": 15}, SHORT_S, "tanaka2011.both")
    for row in builder.rows:
        row.pop("total_s", None)
    (point,) = in_times_of(load_paper("tanaka2011"), builder.observed()).data.points
    assert point.estimate(TIME) is None


def test_the_papers_say_which() -> None:
    assert {time_of(load_paper(name)) for name in ("tanaka2011", "feinbube2010")} == {TOTAL}
    assert time_of(load_paper("zhang2011")) == TIME
