"""The paper on local search made again on a real GPU, with short searches."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
import yaml

from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.observed import Observed, observe
from nqbench.analysis.limits.bottleneck import bottlenecks
from nqbench.papers import load_paper, paper_folder
from nqbench.papers.forms import Points
from nqbench.report.figures.style import styled
from nqbench.report.papers.cells import number, rows_of
from nqbench.report.papers.tables import reproduced_table
from nqbench.report.papers.write import FIGURES, joint_source
from nqbench.study import load_study
from tests.toys import run_here

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

PAPER = "brodtkorb_part1"
SIZES = {"n": [1000, 2000, 10_000], "iterations": [100, 100, 5]}
LAUNCH = {"n": {"cuda": [1000]}, "matrix": {"blocks": [64, 264], "block_size": [128]}}


@pytest.fixture(scope="module")
def run(device: CudaDevice, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """Two short rounds of short searches, and of the kernels' parts."""
    folder = tmp_path_factory.mktemp("local_search")
    study = yaml.safe_load((paper_folder(PAPER) / "study.yaml").read_text(encoding="utf-8"))
    kept = [
        s
        for s in study["sweeps"]
        if not s["name"].startswith(("counted", "mapping", "parts_", "scaled"))
    ]
    for sweep in kept:
        if sweep["name"] == "versions":
            sweep["zip"] = SIZES
        elif sweep["name"] == "processor":
            sweep["zip"] = {"n": SIZES["n"], "iterations": [20, 5, 1]}
        elif sweep["name"] == "launch":
            sweep |= LAUNCH
    # `long`: an iteration of one core at 10,000 cities takes more than a round's share of 1 s.
    long = ["versions", "processor"]
    measure = {"rounds": 2, "budget": "1s", "long": long, "apart": ["parts"]}
    study |= {"sweeps": kept, "measure": measure, "report": [{"table": "results"}]}
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    loaded = load_study(file)
    loaded = dataclasses.replace(loaded, measure=dataclasses.replace(loaded.measure, samples=5))
    outcome = run_here(loaded, "cuda:0", folder / "run", isolate=True)
    failed = {(r.point["system"], r.point["factors"]["n"], r.status) for r in outcome.failures}
    versions = [f"{PAPER}.gpu_v{i}" for i in range(1, 8)]
    assert failed == {(s, 10_000, "wrong") for s in [*versions, f"{PAPER}.cpu_mapped"]}
    return observe(outcome.path)


def test_tables_and_figures(run: Observed) -> None:
    paper = load_paper(PAPER)
    assert reproduced_table(paper, paper.table("searches"), run).rows
    assert (
        len(reproduced_table(paper, paper.table("against_limits"), run).rows) == 3 * 3
    )  # version 8, ours
    with styled():
        for figure in paper.figures:
            if figure.draw not in ("none", "grid"):  # a grid takes a profiler
                assert FIGURES[figure.draw](paper, figure, [run], joint_source([run])), figure.id


def test_failures_at_10000_are_found(run: Observed) -> None:
    found = {v.claim.id: v for v in judge(load_paper(PAPER), [run])}
    for name in ("mapping_fails_10000", "v7_still_fails", "v8_works"):
        assert found[name].word == "holds", found[name].reason


def test_claims_on_times_get_a_verdict(run: Observed) -> None:
    found = {v.claim.id: v for v in judge(load_paper(PAPER), [run])}
    for name in ("evaluation_dominates", "v2_evaluation_faster", "v5_apply_faster", "v6_marginal",
                 "considerable_total", "cpu_two_loops_faster", "math_memory_method"):  # fmt: skip
        assert found[name].word != "not measured", found[name].reason


def test_parts_of_a_search_fit_into_it(run: Observed) -> None:
    """Evaluation and application are inside the search, and other is what is left."""
    for row in rows_of(load_paper(PAPER), run, Points(systems=["kernels"]), [2000]):
        assert number(row.value('phase("evaluation")')), row.system
        applied = number(row.value('phase("apply")'))
        assert bool(applied) == (row.system != "local_search.resident")


def test_every_evaluation_kernel_has_its_parts(run: Observed) -> None:
    found = bottlenecks(run.data)
    assert len(found) == 2 * 9  # two sizes; resident evaluates with the kernel of fused
    assert not [b.judged.reason for b in found if b.math is None or b.memory is None]
