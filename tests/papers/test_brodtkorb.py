"""The paper on local search: its claims, table and figures from runs whose truth is known."""

from __future__ import annotations

import pytest

from nqbench.analysis.claims.judge import Verdict, judge
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.select import NotMeasured
from nqbench.analysis.limits.ceilings import device_number
from nqbench.errors import AnalysisError
from nqbench.papers import load_paper
from nqbench.papers.forms import Points
from nqbench.papers.schema import Paper
from nqbench.report.figures.style import styled
from nqbench.report.papers.cells import number, rows_of, systems_of
from nqbench.report.papers.tables import reproduced_table
from nqbench.report.papers.write import FIGURES
from tests.builders import MINI, Builder
from tests.papers.runs import MACHINE, SEARCH, V, gtx480, search_levels, value_of


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load_paper(SEARCH)


@pytest.fixture(scope="module")
def own() -> Dataset:
    return gtx480().data(SEARCH)


@pytest.fixture(scope="module")
def verdicts(paper: Paper, own: Dataset) -> dict[str, Verdict]:
    return {v.claim.id: v for v in judge(paper, [own])}


def test_every_claim_holds_on_a_device_like_the_papers(verdicts: dict[str, Verdict]) -> None:
    others = {name: v.word for name, v in verdicts.items() if v.word != "holds"}
    assert others == {"v8_seconds": "not measured"}  # a time of another GPU is not judged


def test_values_of_claims(verdicts: dict[str, Verdict]) -> None:
    assert value_of(verdicts["gpu_vs_cpu_1000"]) == pytest.approx(80, rel=1e-3)
    assert value_of(verdicts["evaluation_dominates"]) == pytest.approx(460 / 735, rel=1e-3)
    assert value_of(verdicts["transactions_per_request"]) == pytest.approx(10.23 / 14.75)
    # The paper's quotient, with sectors of 32 bytes in the place of transactions of 128.
    assert value_of(verdicts["instruction_byte_ratio"]) == pytest.approx(4 * 820.9, rel=1e-3)
    assert value_of(verdicts["apply_occupancy"]) == pytest.approx(100 * 0.33 / 132)
    assert value_of(verdicts["math_memory_method"]) == pytest.approx(0.9, rel=1e-3)
    assert value_of(verdicts["math_memory_sum"]) == pytest.approx(1 / 1.4, rel=1e-3)
    assert value_of(verdicts["apply_transactions"]) == pytest.approx(17)
    # Of 132 multiprocessors, 64 and 105 have a block.
    assert value_of(verdicts["v1_low_occupancy"]) == pytest.approx(33 * 64 / 132)
    assert value_of(verdicts["v2_occupancy"]) == pytest.approx(0.78 / 0.33 * 105 / 64)
    assert value_of(verdicts["flops_far_from_peak"]) == pytest.approx(
        141.84 / (2 * 128 * 132 * 1.755), rel=1e-3
    )


def test_a_failure_is_judged_without_rounds(paper: Paper) -> None:
    """That a program goes wrong is no matter of chance: one round, or none, tells it."""
    made = Builder(MINI)
    for version, mapping in ((6, "quadratic"), (7, "rearranged")):
        made.fail("mapping", search_levels(10_000, 1, mapping), "wrong", "moves", f"{V}{version}")
    made.count("mapping", search_levels(10_000, 1, "rectangle"), {"warp_instructions": 1}, f"{V}8")
    made.fail("processor", search_levels(10_000, 1), "wrong", "moves", f"{SEARCH}.cpu_mapped")
    found = {v.claim.id: v for v in judge(paper, [made.data(SEARCH)])}
    for name in ("mapping_fails_10000", "v7_still_fails", "v8_works"):
        assert (found[name].word, found[name].provenance) == ("holds", "simulated")
    assert "counts and does not time" in found["v5_apply_faster"].reason


def test_what_contradicts_the_paper_and_what_is_asked_of_a_profiler(paper: Paper) -> None:
    made = gtx480(rounds=2)
    for row in made.rows:
        if row["system"] == f"{SEARCH}.cpu_mapped" and row["n"] == 1000:
            row["final_solution_hash"] = 1
    works = Builder(MACHINE, rounds=1)
    works.time("versions", search_levels(10_000, 500, "rearranged"), 1.0, f"{V}7")
    works.fail("versions", search_levels(10_000, 500, "rectangle"), "wrong", "moves", f"{V}8")
    works.time("counted", search_levels(1000, 1), 1e-3, f"{V}1")
    tour, found = (
        {v.claim.id: v for v in judge(paper, [builder.data(SEARCH)])} for builder in (made, works)
    )
    assert tour["same_solution"].word == "fails"
    assert (found["v7_still_fails"].word, found["v8_works"].word) == ("fails", "fails")
    assert "by Nsight Compute alone" in found["replay_overhead"].reason
    assert "not known" not in found["replay_overhead"].reason


def test_a_simulated_run_knows_no_limits_and_makes_no_table(paper: Paper, own: Dataset) -> None:
    known = {"peak_gflops_single": 2 * 128 * 132 * 1.755, "multiprocessors": 132}
    known["ideal_instruction_byte_ratio"] = 128 * 132 * 1.755e9 / 2e12
    assert {name: device_number(own, name) for name in known} == pytest.approx(known)
    made = Builder(MINI)
    made.count("versions", search_levels(100, 5), {"branches": 10}, f"{V}1")
    simulated = made.data(SEARCH)
    for name in known:
        with pytest.raises(NotMeasured, match="is not known"):
            device_number(simulated, name)
    for name in ("table_1", "searches", "against_limits"):
        with pytest.raises(AnalysisError):
            reproduced_table(paper, paper.table(name), simulated)
    for figure in (f for f in paper.figures if f.draw != "none"):
        with styled(), pytest.raises(AnalysisError):
            FIGURES[figure.draw](paper, figure, [simulated])
    counted = {"global_sectors@evaluation": 30.0, "global_requests@evaluation": 4.0}
    made.count("versions", search_levels(100, 5), {"warp_instructions": 1, **counted}, f"{V}2")
    simulated = made.data(SEARCH)
    (bars,) = [f.bars for f in paper.figures if f.draw == "grid"]
    assert bars is not None
    rows = {row.system: row for row in rows_of(paper, simulated, bars.points, [100])}
    assert rows[f"{V}2"].value(bars.parts[0].value) == 7.5, "sectors of all requests"


def test_formulas_of_a_search(paper: Paper, own: Dataset) -> None:
    assert systems_of(paper, [own], ["kernels"]) == [f"{V}{i}" for i in range(1, 9)]
    row = next(row for row in rows_of(paper, own, Points(systems=["gpu_v1"]), [1000]))
    for formula, value, off in (
        ('rest("evaluation", "apply")', 2500 * 20e-6, 0.05),
        ("time()", 2500 * 755e-6, 1e-3),
        ("moves_evaluated / time()", 999 * 998 / 2 / 755e-6, 1e-3),
        ('moves_evaluated / phase("evaluation")', 999 * 998 / 2 / 460e-6, 1e-3),
        ('time("gpu_v8", alike="iterations") / time()', 398 / 755, 1e-3),
        ("8 / roots_per_move", 1, 1e-9),
    ):
        assert number(row.value(formula)) == pytest.approx(value, rel=off), formula
    for unknown in ("time() / time()", 'time("cpu_mapped", alike="iterations")', "bytes_per_move",
                    'counter("dram_bytes", "apply")', "least(unknown)", "1 / 0"):  # fmt: skip
        assert row.value(unknown) is None, unknown
    assert row.value('known(counter("dram_bytes", "apply"), 3)') == 3
