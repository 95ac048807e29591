"""The fitness paper: its authors' own numbers judged, mistakes in its data files, its figures, and
what its page adds: searches over seeds, and limits."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nqbench.analysis.claims.judge import Verdict, judge
from nqbench.analysis.data.dataset import Dataset, load_dataset
from nqbench.analysis.limits.ceilings import MOVED, ceilings_beside, peaks
from nqbench.papers import load_paper, paper_folder
from nqbench.papers.schema import Paper
from nqbench.report.papers.tables import reproduced_table
from tests.builders import Builder
from tests.papers.runs import FITNESS, fitness, fitness_levels, published, value_of

COUNTED = "atomics_equal_conflicts fine2_divergence cdp_launches_once cdp_same_work"
NOT_IN_THE_FILES = {
    "forkjoin_threshold": "was timed with one threshold only",
    "cdp_always_slower": "the run has no fitness_schemes.gpu_cdp",
    "sa_seconds": "reported by the paper without a test",
    **dict.fromkeys(("coarse_blocks_small", *COUNTED.split()), ""),
}
"""Claims that the authors' files say nothing about."""
CDP = "fitness_schemes.gpu_cdp"
CONTRADICTED = {
    "fine_slower_than_cpu": "fails at N=1000; see caveat repository_fine1",
    "fine1_transfer_dominates": "fails at N=1000, 10000",  # they do not tell phases apart
}
"""Claims that the authors' own numbers do not bear out."""


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load_paper("fitness_schemes")


@pytest.fixture(scope="module")
def own() -> Dataset:
    return fitness().data("fitness_schemes")


@pytest.fixture(scope="module")
def verdicts(paper: Paper, own: Dataset) -> dict[str, Verdict]:
    return {v.claim.id: v for v in judge(paper, [own])}


def test_the_authors_numbers_bear_out_their_claims(verdicts: dict[str, Verdict]) -> None:
    others = {**NOT_IN_THE_FILES, **CONTRADICTED}
    words = {name: v.word for name, v in verdicts.items() if name not in others}
    assert words == dict.fromkeys(words, "holds")
    for name, reason in NOT_IN_THE_FILES.items():
        assert verdicts[name].word == "not measured"
        assert reason in verdicts[name].reason
    for name, reason in CONTRADICTED.items():
        assert (verdicts[name].word, verdicts[name].reason) == ("fails", reason)


def test_values_of_claims(verdicts: dict[str, Verdict]) -> None:
    (size,) = verdicts["coarse_max_speedup"].sizes
    assert size.n is None, "a maximum over all sizes is asked once"
    assert value_of(verdicts["coarse_max_speedup"]) == pytest.approx(2683 / 8.966, rel=1e-3)
    assert value_of(verdicts["coarse_crossover"]) == 10_000
    assert len(verdicts["best_thread_number"].sizes) == 3
    slower = [0.03 / 2**i for i in range(5)]  # boards of one sweep: the first took half as long
    assert value_of(verdicts["stability"]) == pytest.approx(np.mean(slower), abs=1e-4)
    assert value_of(verdicts["stability_with_n"]) == pytest.approx(0.03 * 15 / 16, abs=1e-4)
    assert value_of(verdicts["sa_success"]) == pytest.approx(19 / 20)
    assert verdicts["random_conflicts"].device == "enumerated on the CPU"
    assert value_of(verdicts["fine1_memory"]) == 50_000 * 49_999 / 2 / 2**30


def judged(paper: Paper, made: Builder) -> dict[str, Verdict]:
    return {v.claim.id: v for v in judge(paper, [made.data(FITNESS)])}


def test_sizes_are_those_at_which_all_were_timed(paper: Paper) -> None:
    made = Builder(rounds=3)
    small = ((n, name) for n in (10, 100) for name in ("cpu_serial", "gpu_coarse", "cpu_forkjoin"))
    for n, system in (*small, (20000, "cpu_serial"), (20000, "gpu_coarse")):
        made.time("schemes", fitness_levels(n, system), 1.0, f"fitness_schemes.{system}")
    found = judged(paper, made)
    assert value_of(found["coarse_max_speedup"]) == pytest.approx(1.0, rel=0.02)
    assert found["coarse_max_speedup"].word == "no effect"
    assert found["cpu_max_order"].word == "not measured"
    assert "no size of 10,000 or more has times of" in found["cpu_max_order"].reason


def test_a_changed_data_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "experiments" / "fitness_schemes"
    shutil.copytree(paper_folder("fitness_schemes"), folder)
    monkeypatch.chdir(tmp_path)
    before = len(load_paper("fitness_schemes").series("times").rows)
    lines = (folder / "times.csv").read_text(encoding="utf-8").splitlines()
    (folder / "times.csv").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    assert len(load_paper("fitness_schemes").series("times").rows) == before - 1


PRINTED = {"gpu_coarse": "307", "cpu_threads": "22.04", "cpu_tbb": "20.71", "cpu_forkjoin": "29.18"}


@pytest.mark.parametrize("short", PRINTED)
def test_the_files_give_the_largest_speedups_of_the_text(short: str) -> None:
    """An independent check of the transcription: they are printed in the paper itself."""
    serial, own = (published(f"fitness_schemes.{name}") for name in ("cpu_serial", short))
    decimals = len(PRINTED[short].partition(".")[2])
    assert f"{max(serial[n] / own[n] for n in own):.{decimals}f}" == PRINTED[short]


RECORDED = Path(__file__).parents[2] / "results/reference/h100/fitness_schemes"


def test_a_search_that_was_cut_short_is_predicted(paper: Paper, own: Dataset) -> None:
    """At N = 3000 half a thousand evaluations were timed of some 700,000."""
    rows = reproduced_table(paper, paper.table("annealing"), own).rows
    found = {(row[0], row[1], row[2]): row for row in rows}
    cut, whole = (found["fitness_schemes.sa_cpu", "uniform", n] for n in (3000, 100))
    assert (cut[11], whole[11]) == ("predicted", "measured")
    assert 300_000 * 0.027 < float(str(cut[7])) < 1_500_000 * 0.027
    assert cut[12] == "9443"
    assert found["fitness.sa_delta", "uniform", 3000][3:5] == (20, "19 of 20")


def test_measured_ceilings_beside_a_run_take_the_place_of_the_makers(
    paper: Paper, own: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them or none: a table that mixed both would call the maker's figures measured."""
    assert ceilings_beside(replace(own, path=RECORDED)) is None  # that is of another GPU
    found = ceilings_beside(load_dataset(RECORDED))
    assert found is not None
    assert 2.5e12 < found.found["copy"].per_s.value < 3.35e12
    measured = {name: found.found[of].per_s.value for name, of in MOVED.items()}
    part = replace(found, found={"copy": found.found["copy"]})
    for beside, known, told in (
        (found, measured, "measured (configs/ceilings.yaml"),
        (part, {}, "from the data sheet"),
    ):
        monkeypatch.setattr(
            "nqbench.analysis.limits.ceilings.ceilings_beside", lambda *_, it=beside: it
        )
        peaks.cache_clear()
        assert peaks(own)[0] == (known or {"copy_per_s": 2.0e12})
        assert told in peaks(own)[1]
        assert told in reproduced_table(paper, paper.table("limits_table"), own).notes[0]
