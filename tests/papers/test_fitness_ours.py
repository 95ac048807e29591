"""What stands on the fitness paper's page and not in the paper: searches over seeds, and limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.limits.ceilings import ceilings_beside
from nqbench.papers.schema import Paper
from nqbench.report.figures.style import styled
from nqbench.report.papers.annealing import searches_of
from nqbench.report.papers.limits import CEILINGS_OF, measured_peaks, peaks
from nqbench.report.papers.reproduced import FIGURES as DRAW
from nqbench.report.papers.reproduced import reproduced_table as twin
from nqbench.report.papers.write import joint_source
from tests.builders import Builder
from tests.papers.runs import FITNESS, column, fitness_levels

GAIN = "speed-up over the coarse scheme"
RECORDED = Path(__file__).parents[2] / "results/reference/h100/fitness_schemes"
H100_HBM3 = "NVIDIA H100 80GB HBM3 (cuda:0)"


def test_a_search_that_was_cut_short_is_predicted(paper: Paper, own: Observed) -> None:
    """At N = 3000 half a thousand evaluations were timed of some 700,000."""
    found = searches_of(own)
    (cut,) = [s for s in found["fitness_schemes.sa_cpu", "uniform"] if s.n == 3000]
    assert cut.cut
    assert 300_000 * 0.027 < cut.whole_s < 1_500_000 * 0.027
    (whole,) = [s for s in found["fitness_schemes.sa_cpu", "uniform"] if s.n == 100]
    assert not whole.cut
    assert len(found["fitness.sa_delta", "uniform"]) == 20


def test_limits_of_a_device_are_known_or_left_out(own: Observed) -> None:
    assert set(peaks(own)) == {"bytes_moved"}
    assert peaks(own)["bytes_moved"] == 2.0e12


def test_the_distribution_over_seeds_is_told_and_drawn(paper: Paper, own: Observed) -> None:
    """Twenty seeds of 0.1 s and up by a fortieth each, one of which found nothing."""
    table = twin(paper, paper.table("annealing"), own)
    rows = {(row[0], row[2]): row for row in table.rows}
    row = rows["fitness.sa_delta", 3000]
    assert row[3:5] == (20, "19 of 20")
    expected = [0.1 * (1 + k / 40) for k in (1, 5.75, 10.5, 15.25, 20)]
    assert row[5:10] == pytest.approx(expected, rel=1e-3)
    cut = rows["fitness_schemes.sa_cpu", 3000]
    assert cut[-2:] == ("predicted", "9443")
    assert cut[4] == "1 of 1", "the whole walk finds a board, its beginning does not"
    assert rows["fitness_schemes.sa_cpu", 100][-2:] == ("measured", "")
    figure = next(f for f in paper.figures if f.draw == "distribution")
    with styled():
        (drawing,) = DRAW["distribution"](paper, figure, [own], joint_source([own]))
    strip, spread = drawing.figure.axes
    assert "sa_delta (20 seeds)" in [t.get_text() for t in strip.get_yticklabels()]
    assert np.max(np.asarray(spread.lines[0].get_ydata())) == pytest.approx(95), (
        "a seed that found nothing never counts"
    )


def test_schemes_stand_beside_the_limits_of_the_device(paper: Paper) -> None:
    """Half a second for 2e12 bytes and 2e12 operations; a histogram a thousand times faster."""
    made = Builder(rounds=3, noise=1e-5)
    for system, seconds in (("fitness_schemes.gpu_coarse", 0.5), ("fitness.histogram", 5e-4)):
        found = {"kernel_s": seconds, "bytes_moved": 2e12, "operations": 2e12}
        own = fitness_levels(10**6, system.partition(".")[2])
        made.time("largest", own, 2 * seconds, system, **found)
    table = twin(paper, paper.table("limits_table"), made.observed(FITNESS))
    gains = dict(zip(column(table, "system"), column(table, GAIN), strict=True))
    assert gains["fitness_schemes.gpu_coarse"] is None
    gain = gains["fitness.histogram"]
    assert isinstance(gain, Estimate)
    assert gain.value == pytest.approx(1000, rel=1e-3)
    assert column(table, "moved")[0] == pytest.approx(4000, rel=1e-3)
    assert column(table, "of memory bandwidth")[0] == pytest.approx(200, rel=1e-3)
    assert "from the data sheet" in table.notes[0]


def test_measured_ceilings_beside_a_run_take_the_place_of_the_makers(
    paper: Paper, own: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them or none: a table that mixed both would call the maker's figures measured."""
    found = ceilings_beside(RECORDED, H100_HBM3)
    assert found is not None
    assert 2.5e12 < found.found["copy"].per_s.value < 3.35e12
    measured = {name: found.found[of].per_s.value for name, of in CEILINGS_OF.items()}
    part = replace(found, found={"copy": found.found["copy"]})
    for beside, known, told in (
        (found, measured, "measured (configs/ceilings.yaml"),
        (part, {}, "from the data sheet"),
    ):
        monkeypatch.setattr(
            "nqbench.report.papers.limits.ceilings_beside", lambda *_, it=beside: it
        )
        assert measured_peaks(own) == known
        assert peaks(own) == (known or {"bytes_moved": 2.0e12})
        assert told in twin(paper, paper.table("limits_table"), own).notes[0]


def test_ceilings_of_another_device_or_none_are_not_used(tmp_path: Path) -> None:
    assert ceilings_beside(tmp_path / "fitness_schemes", "any") is None
    assert ceilings_beside(RECORDED, "another GPU") is None
