"""The scorecard of a paper: its main claims in numbers of one notation, and what runs agree on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nqbench.analysis.claims.judge import ENUMERATED, SizeVerdict, Verdict
from nqbench.analysis.claims.scorecard import SAID, Score, scorecard
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.for_papers import load_all
from nqbench.papers import load_paper, paper_names
from nqbench.papers.schema import Claim, Headline
from tests.builders import device
from tests.papers.runs import tiny_paper, zhang
from tests.report.papers.test_reproduced import simulated

pytestmark = pytest.mark.usefixtures("undrawn")

REFERENCE = Path(__file__).parents[2] / "results" / "reference"


@pytest.mark.parametrize("name", paper_names())
def test_each_paper_has_main_claims_and_two_figures(name: str) -> None:
    paper = load_paper(name)
    labels = [claim.headline.label for claim in paper.claims if claim.headline]
    assert 5 <= len(labels) == len(set(labels)) <= 9
    assert all(len(label) <= 50 for label in labels)
    assert sum(figure.headline and figure.draw != "none" for figure in paper.figures) == 2
    quoted = [c.id for c in paper.claims if "abstract" in c.section and not c.headline]
    assert not quoted, "claims of the abstract"


def test_recorded_runs_of_a_paper() -> None:
    """Two GPUs, one of them measured on two cards: an interval spans both."""
    folders = ("h100/tanaka2011", "h200/tanaka2011", "h100/tanaka2011_again")
    cpu = REFERENCE / "cpu" / "cpu_baseline"
    h100, h200, again = load_all([REFERENCE / folder for folder in folders], cpu)
    card = scorecard(load_paper("tanaka2011"), [replace(h100, again=(again,)), h200])
    rows = {row.claim.id: row for row in card.rows}
    counter = rows["dynamic_alone"]
    assert (counter.printed, counter.chips, counter.n) == ("1.41x faster", "GTX 560 Ti", 19)
    assert counter.here() == "1.57x faster ±0.4% (H100); 1.57x faster ±0.7% (H200), N = 19"
    assert counter.here(spread=False) == "1.57x faster, N = 19"
    assert counter.kept.startswith("robust: ")
    assert counter.verdict == "holds, stronger"
    growth = rows["growth_factors"]
    assert growth.n is None
    assert growth.printed == "6.3x at N = 17; 7.7x at N = 19"
    assert growth.here().endswith(" at N = 19 (H200)")
    assert growth.verdict == "unclear (H100); holds, as large (H200)"
    words = [list(SAID).index(row.word) for row in card.rows]
    assert words == sorted(words), "those that hold first"
    assert card.outcome.startswith("On H100 and H200, of 7 main claims 4 hold (stronger: ")
    (missing,) = card.missing
    assert missing.startswith("not measured: 1 of 7 main claims: 27 queens")


def test_own_runs_stand_beside_recorded_ones() -> None:
    paper = load_paper("zhang2011")
    paper = paper.model_copy(update={"claims": [paper.claim("overall_speedup")]})
    runs = [zhang(dev=device(f"NVIDIA {name}"), rounds=3) for name in ("H100", "H200")]
    first, second = (run.data("zhang2011") for run in runs)
    elsewhere = replace(first, path=Path("elsewhere"))
    for own, beside, names in (
        ([first], [second], ("H200", "H100")),
        ([elsewhere], [first, second], ("H100", "H200", "H100 here")),
        ([first, elsewhere], [], (f"H100 ({first.path})", "H100 (elsewhere)")),
    ):
        assert scorecard(paper, own, beside).names == names
    counted = simulated().data("zhang2011")
    assert scorecard(paper, [counted], [first]).names == ("H100",)
    assert "counts and does not time" in scorecard(paper, [counted]).missing[0]
    old = {"expr": 'time("low_divergence", hw="gtx275")', "expect": "value > 1"}
    claims = ({"expr": "2", "expect": "value > 1"}, old, old)
    made = tiny_paper(*({**c, "headline": {"label": f"{i}"}} for i, c in enumerate(claims)))
    card = scorecard(made, [first, second])
    assert card.rows[0].verdicts.keys() == {"H100"}, "of no run: with the first"
    (missing,) = card.missing
    assert missing.startswith("not measured: 2 of 3 main claims: 1 (it is about")


def score(value: Estimate | str, printed: str, kind: str, reads: str, unit: str = "") -> Score:
    given = {"unit": unit, "expr": "1", "expect": "value > 0", "kind": kind, "paper_value": printed}
    paper = tiny_paper(given)
    claim: Claim = paper.claims[0]
    size = SizeVerdict(15, "holds", value)
    verdict = Verdict(claim, "H100", "measured", "holds", (size,))
    headline = Headline.model_validate({"label": "x", "reads": reads})
    return Score(paper, claim, headline, {"H100": verdict}, "")


@pytest.mark.parametrize(
    ("value", "printed", "kind", "reads", "unit", "said"),
    [
        (Estimate(1.5, 1.4, 1.6, 3), "1.4", "ratio", "", "", ("1.4x faster", "1.50x faster ±6.9%")),
        (Estimate(0.5), "0.80", "ratio", "", "", ("1.25x slower", "2.00x slower")),
        (Estimate(0.5), "1.71", "ratio", "slower", "", ("1.71x slower", "2.00x faster")),
        (Estimate(0.5, 0.2, 0.8), "2", "ratio", "", "", ("2x faster", "2.00x slower (1.25 to 5)")),
        (Estimate(0.0), "", "ratio", "", "", ("faster", "0")),
        (Estimate(1.0), "1", "ratio", "", "", ("1x faster", "1.000x faster")),
        (Estimate(0.96, 0.9, 1, 3), "", "bound", "times", "", ("in words", "0.96x (0.9 to 1)")),
        (Estimate(7.21), "7.7", "ratio", "times", "", ("7.7x", "7.21x")),
        (Estimate(0.99967), "0.9993", "share", "", "", ("99.93%", "99.97%")),
        (Estimate(24.47, exact=True), "22.6", "counter", "", "percent", ("22.6%", "24.47%")),
        (Estimate(23.0), "529.5", "extrapolation", "", "years", ("529.5 years", "23 years")),
        ("yes", "more than 0.99", "count", "", "", ("more than 0.99", "yes")),
    ],
)  # fmt: skip
def test_numbers_in_one_notation(
    value: Estimate | str, printed: str, kind: str, reads: str, unit: str, said: tuple[str, str]
) -> None:
    row = score(value, printed, kind, reads, unit)
    assert (row.printed, row.here()) == (said[0], f"{said[1]}, N = 15")
    paper = tiny_paper({"n": ["14", "16"], "paper_value": {"14": "2", "16": "3"}, "expr": "1"})
    elsewhere = replace(row, paper=paper, claim=paper.claims[0])
    assert elsewhere.printed.endswith(" at N = 16"), "the last size where ours is none of them"
    counted = {"H100": replace(row.verdicts["H100"], device=ENUMERATED)}
    assert replace(row, verdicts=counted).kept == "exact count"
