"""The whole way with the real parts: a study file, the simulator, the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench import load
from nqbench.measure.runner import run_study
from nqbench.study import load_study
from nqbench.workloads import get

STUDY = """
name: whole-way
n: [6, 7]
sweeps:
  - name: layouts
    fixed: {memory: shared, loop: irrc, block_size: 32}
    matrix: {layout: [per_thread, interleaved]}
  - name: baselines
    matrix: {system: [cpu.somers, zhang2011.low_divergence]}
measure: {rounds: 2, budget: 1s}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study in the simulator, with real workers."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "study.yaml").write_text(STUDY)
    outcome = run_study(load_study(folder / "study.yaml"), "sim:mini", folder / "run")
    assert outcome.counts == {"ok": 8}
    return folder / "run"


def test_every_answer_is_the_known_one(run: Path) -> None:
    table = load(run)
    assert (table["answer"] == table["expected"]).all()
    known = get("counting").expected({"n": 7})
    assert set(table.query("n == 7")["answer"]) == {str(known)} == {"40"}


def test_kernels_are_counted_and_baselines_timed(run: Path) -> None:
    table = load(run)
    kernels, baselines = table[table["simulated"]], table[~table["simulated"]]
    assert len(kernels) == 6
    assert kernels["warp_instructions"].gt(0).all()
    assert kernels["value_s"].isna().all()
    assert set(baselines["system"]) == {"cpu.somers"}
    assert sorted(baselines["round"]) == [0, 0, 1, 1, 2, 2]
    assert baselines.query("round > 0")["value_s"].gt(0).all()


def test_factors_derived_numbers_and_resources_are_columns(run: Path) -> None:
    table = load(run).query("sweep == 'layouts'")
    assert set(table["layout"]) == {"per_thread", "interleaved"}
    assert table["jobs"].gt(0).all()
    assert table["shared_bytes"].gt(0).all()
