"""What larger boards would cost, of runs whose times follow a known law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.scale import scale_of
from nqbench.errors import AnalysisError
from nqbench.report.tables.scale import scale_tables, span
from nqbench.workloads.counting.border import allowed
from nqbench.workloads.counting.known import EIGHTH_NODES, SOLUTIONS, eighth_nodes, nodes, solutions
from tests.builders import MINI, Builder

FAST, SLOW, HALF = "frontier.lookahead", "frontier.predicated", "zhang2011.low_divergence"


def powered(data: Dataset, watts: float) -> Dataset:
    """The run with the energy of 100 launches in a round."""

    def row(row: Mapping[str, Any]) -> Mapping[str, Any]:
        sampled_s = 100 * row["value_s"]
        return {
            **row,
            "samples": 100,
            "sampled_s": sampled_s,
            "energy_mj": 1000 * watts * sampled_s,
        }

    points = [
        replace(p, measurements={r: row(old) for r, old in p.measurements.items()})
        for p in data.points
    ]
    return replace(data, points=tuple(points))


def measured(last: int = 20) -> Builder:
    """Ten billion nodes per second, the slower system half of that, on boards of 16 to ``last``."""
    builder = Builder(noise=0)
    for n in range(16, last + 1):
        seconds = eighth_nodes(n) / 1e10
        for depth, slow in ((6, 1.5), (7, 1.0)):
            levels = {"n": n, "symmetry": "full", "depth": depth}
            builder.time("large", levels, seconds * slow, FAST)
            builder.time("large", levels, 2 * seconds * slow, SLOW)
    builder.time("papers", {"n": 16, "symmetry": "mirror"}, 0.001, HALF)
    return builder


def test_times_grow_as_the_nodes_do() -> None:
    data = powered(measured().data(), 600)
    found = scale_of(data)
    assert found.system == FAST
    assert [cost.n for cost in found.costs] == [16, 17, 18, 19, 20]
    by_nodes, by_solutions = found.seconds(27)
    assert by_nodes == pytest.approx(eighth_nodes(27) / 1e10)
    assert by_solutions == pytest.approx(eighth_nodes(20) / 1e10 * SOLUTIONS[27] / SOLUTIONS[20])
    assert scale_of(data, SLOW).seconds(27)[0] == pytest.approx(2 * by_nodes)
    pairs = [(past.base, past.n) for past in found.past]
    assert pairs == [
        (16, 17),
        (16, 18),
        (16, 19),
        (17, 18),
        (17, 19),
        (17, 20),
        (18, 19),
        (18, 20),
        (19, 20),
    ]
    assert all(past.by_nodes_s == pytest.approx(past.measured_s) for past in found.past)
    assert found.watts == pytest.approx(600)
    assert found.watts_of == "of the whole GPU, recorded at N = 20"


def test_the_tables_say_what_the_numbers_are() -> None:
    costs, past = scale_tables(measured().data(), scale_of(measured().data(), watts=700))
    rows = {row[0]: row for row in costs.rows}
    assert list(rows) == [21, 22, 23, 24, 25, 26, 27, 28]
    seconds = eighth_nodes(25) / 1e10
    assert rows[25][3:6] == (span(seconds), span(seconds / 8), span(seconds / 1000))
    assert rows[25][7] == pytest.approx(700 * seconds / 3.6e6)
    assert "Energy of the GPUs: 700 W, as given" in costs.notes
    assert past.rows[0][4] == "+0.0%"
    without = Builder(noise=0)
    for n in (17, 18):
        without.time("large", {"n": n, "symmetry": "mirror"}, nodes(n) / 1e11, HALF)
    (costs, past) = scale_tables(without.data(), scale_of(without.data()))
    assert {row[7] for row in costs.rows} == {None}
    assert "Energy of the GPUs: not recorded; give --watts" in costs.notes
    assert past.rows[0][4] == "+0.0%"


def test_runs_that_say_nothing_about_larger_boards_are_refused() -> None:
    for builder in (Builder(), Builder(MINI), measured(16), Builder(workload="fitness")):
        with pytest.raises(AnalysisError, match="no times of one counting system on two boards"):
            scale_of(builder.data())
    with pytest.raises(
        AnalysisError, match=r"no times of tanaka on two boards; it has frontier\.l"
    ):
        scale_of(measured(17).data(), "tanaka")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123, "0.0123 s"),
        (119, "119 s"),
        (121, "2.02 min"),
        (1e6, "11.6 days"),
        (1e12, "31,688 years"),
    ],
)
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text


def walked(n: int, distance: int, row: int, columns: int, left: int, right: int) -> int:
    """Queens that the rule lets stand in ``row`` and below, by plain recursion."""
    total = 0
    for column in range(n):
        queen = 1 << column
        first = queen == 1 << distance if row == 0 else queen & allowed(n, distance, row)
        second = row == 1 and 2 * distance == n - 1 and queen > 1 << distance
        if first and not second and not queen & (columns | left | right):
            below = columns | queen, (left | queen) << 1, (right | queen) >> 1
            total += 1 + (walked(n, distance, row + 1, *below) if row < n - 1 else 0)
    return total


def test_nodes_of_one_eighth_of_the_tree() -> None:
    for n in range(5, 10):
        assert sum(walked(n, d, 0, 0, 0, 0) for d in range(1, (n + 1) // 2)) == EIGHTH_NODES[n]
    ratios = [eighth_nodes(n) / solutions(n) for n in range(14, 29, 2)]
    assert ratios == sorted(ratios)  # the trend goes on where the table ends
    growth = [solutions(n) / solutions(n - 1) for n in (26, 27, 28)]
    assert growth[2] - growth[1] == pytest.approx(growth[1] - growth[0])
