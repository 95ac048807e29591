"""A paper made again on a real GPU: points, instrumented kernels, tables and verdicts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.observed import Observed, observe
from nqbench.papers import load_paper, paper_folder
from nqbench.papers.schema import Paper
from nqbench.report.papers.tables import reproduced_table
from nqbench.study import load_study
from tests.toys import run_here

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

PAPER = "zhang2011"
JOBS_15 = 7432


@pytest.fixture(scope="module")
def run(device: CudaDevice, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """Zhang's kernels at N = 15 with two short rounds, and the instrumented ones."""
    folder = tmp_path_factory.mktemp("papers")
    text = yaml.safe_load((paper_folder(PAPER) / "study.yaml").read_text(encoding="utf-8"))
    for sized in (text, *(sweep for sweep in text["sweeps"] if "n" in sweep)):
        sized["n"] = sized["n"] | {"cuda": [15]}
    study_file = folder / "study.yaml"
    study_file.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
    study = load_study(study_file)
    measure = dataclasses.replace(study.measure, rounds=2, budget_s=1.0)
    study = dataclasses.replace(study, measure=measure)
    outcome = run_here(study, "cuda:0", folder / "run", isolate=True)
    assert not outcome.failures
    return observe(outcome.path)


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load_paper(PAPER)


def test_tables_have_our_numbers_beside_the_printed_ones(run: Observed, paper: Paper) -> None:
    for name in ("table_1", "table_3", "table_5", "table_7", "table_8"):
        made = reproduced_table(paper, paper.table(name), run)
        assert made.rows[0][3] is not None, name


def test_claims_at_15_get_a_verdict(run: Observed, paper: Paper) -> None:
    found = {v.claim.id: v for v in judge(paper, [run])}
    for name in ("l1_48_vs_16", "shared_vs_l1", "bank_conflict", "irrc_speedup", "overall_speedup"):
        assert found[name].sizes[0].word != "not measured", found[name].sizes[0].reason
    assert found["job_counts"].sizes[0].word == "holds"


def test_instrumented_kernels_count_the_jobs(run: Observed) -> None:
    jobs = {row["probed_jobs"] for row in run.probes if row.get("probe") == "iterations"}
    assert jobs == {JOBS_15}
    assert Path(run.path).is_dir()
