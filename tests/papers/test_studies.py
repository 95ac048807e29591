"""The studies hold every point that the claims, tables and figures of their papers need."""

from __future__ import annotations

import pytest

from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.dataset import Dataset
from nqbench.facts import DeviceFacts
from nqbench.papers import load_paper, paper_folder
from nqbench.report.figures.style import styled
from nqbench.report.papers.tables import reproduced_table
from nqbench.report.papers.write import FIGURES
from nqbench.study import expand, load_study
from nqbench.workloads.counting import counts
from tests.papers.runs import complete_run

pytestmark = pytest.mark.usefixtures("undrawn")

OLD_CARDS = "cannot run kernels"
ON_CARDS = "card_order_base card_order_final coalescing_penalty_cc11 same_host_base same_host_final"
ALLOWED = {
    "brodtkorb_part1": {"v8_seconds": "nothing to judge"},
    "feinbube2010": {
        "contrary_effects": "it compares 2 generations",
        **dict.fromkeys(ON_CARDS.split(), OLD_CARDS),
    },
    "fitness_schemes": {"sa_seconds": "without a test"},
    "tanaka2011": {
        **dict.fromkeys(("device_ranking", "gtx275_like_gtx280"), OLD_CARDS),
        "extrapolation_27": "nothing to judge",
    },
    "zhang2011": {
        "other_application": "without a test",
        "latencies": "without a test",
        "partition_n_minus_11": "nothing to judge",
    },
}
"""Claims that one GPU's complete run leaves without a verdict, and what the reason says."""


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks of large trees take minutes, and these tests are not about them."""
    monkeypatch.setattr(counts, "count", lambda *a, **k: 7432)


@pytest.fixture(scope="module")
def runs() -> dict[str, Dataset]:
    return {paper: complete_run(paper) for paper in ALLOWED}


@pytest.mark.parametrize("paper", ALLOWED)
def test_a_complete_run_answers_every_claim(paper: str, runs: dict[str, Dataset]) -> None:
    found = {v.claim.id: v for v in judge(load_paper(paper), [runs[paper]])}
    silent = {name: v for name, v in found.items() if v.word == "not measured"}
    assert {name: v.reason for name, v in silent.items() if name not in ALLOWED[paper]} == {}
    for name, reason in ALLOWED[paper].items():
        assert reason in found[name].reason or reason in found[name].sizes[0].reason
    for verdict in found.values():
        assert not [s.reason for s in verdict.sizes if "unknown" in s.reason]


@pytest.mark.parametrize("paper", ALLOWED)
def test_a_complete_run_fills_every_table_and_figure(paper: str, runs: dict[str, Dataset]) -> None:
    loaded, run = load_paper(paper), runs[paper]
    for table in (t for t in loaded.tables if t.reproduce != "none"):
        made = reproduced_table(loaded, table, run)
        assert made.rows
        assert not [note for note in made.notes if note.startswith("not measured")], table.id
    with styled():
        for figure in loaded.figures:
            if figure.draw != "none":
                (drawing,) = FIGURES[figure.draw](loaded, figure, [run])
                axes = drawing.figure.axes
                said = [label for ax in axes for label in ax.get_legend_handles_labels()[1]]
                said += [ax.get_title(loc="left") for ax in axes]
                stated = figure.known or figure.data
                assert not stated or any("published" in text for text in said), figure.id


SIMULATED = {name: {10, 11, 12, 13, 14} for name in ALLOWED} | {
    "fitness_schemes": {10, 33, 100},
    "brodtkorb_part1": {100, 1000, 2000, 10_000},
}


@pytest.mark.parametrize("paper", ALLOWED)
def test_the_studies_run_in_the_simulator(paper: str) -> None:
    facts = DeviceFacts("sim", "sim", (9, 0), 4, shared_per_block_optin=232448)
    points = expand(load_study(paper_folder(paper) / "study.yaml"), facts)
    sizes = {p.n for p in points if not p.skip}
    assert sizes == SIMULATED[paper]
