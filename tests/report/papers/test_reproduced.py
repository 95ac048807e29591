"""Reproduced tables: the printed cells, the fresh ones, and quotients with quotients."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.for_papers import in_times_of, load_all
from nqbench.analysis.wording import grouped
from nqbench.errors import AnalysisError
from nqbench.papers import load_paper, paper_names
from nqbench.report.exporters import comma_separated
from nqbench.report.papers.tables import reproduced_table
from nqbench.report.table import Table, slug
from tests.builders import MINI, Builder, counters_of
from tests.papers.runs import STEPS, column, levels, zhang

ROOT = Path(__file__).parents[3]
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


def cells(text: str) -> tuple[list[str], list[float]]:
    """The cells of a CSV file in turn: its words, and its numbers."""
    every = [cell for row in csv.reader(text.splitlines()) for cell in row]
    numbers = [float(cell) for cell in every if NUMBER.fullmatch(cell)]
    return [cell for cell in every if not NUMBER.fullmatch(cell)], numbers


@pytest.mark.parametrize("name", paper_names())
def test_recorded_runs_give_every_cell_of_the_tables_in_the_repository(name: str) -> None:
    paper, found = load_paper(name), dict[str, str]()
    runs = sorted((ROOT / "results" / "reference").glob(f"*/{name}"))
    for run in load_all(runs, ROOT / "results" / "reference" / "cpu" / "cpu_baseline"):
        for table in (table for table in paper.tables if table.reproduce != "none"):
            with suppress(AnalysisError):
                own = reproduced_table(paper, table, in_times_of(paper, run))
                found[f"table-{own.name}-{slug(run.device_id)}.csv"] = comma_separated(own)
    kept = list((ROOT / "plots" / "reference" / "papers" / name).glob("table-paper-*.csv"))
    assert len(kept) >= 7
    for file in kept:
        words, numbers = cells(file.read_text(encoding="utf-8"))
        own_words, own_numbers = cells(found[file.name])
        assert own_words == words, file.name
        assert own_numbers == pytest.approx(numbers, rel=1e-9), file.name


def made(paper: str, table: str, builder: Builder) -> Table:
    loaded = load_paper(paper)
    run = in_times_of(loaded, builder.data(paper))
    return reproduced_table(loaded, loaded.table(table), run)


def test_times_beside_times_and_ratios_beside_ratios() -> None:
    table = made("zhang2011", "table_3", zhang(noise=1e-6))
    assert column(table, "paper") == ["0.08", "0.27", "2.13", "15.51", "134.23"]
    assert column(table, "speed-up, paper") == ["4.63", "4.67", "4.48", "4.38", "4.29"]
    truth = STEPS["naive_l1_48k"] / STEPS["shared_conflict"]
    for ratio in column(table, "speed-up, here"):
        assert isinstance(ratio, Estimate)
        assert ratio.value == pytest.approx(truth, rel=1e-4)
        assert ratio.bounded
    assert "speed-up, here" not in [c.name for c in made("zhang2011", "table_1", zhang()).columns]


def test_missing_sizes_are_said_with_the_command() -> None:
    table = made("zhang2011", "table_4", zhang(sizes=(15, 16)))
    assert [v is None for v in column(table, "here")] == [False, False, True, True, True]
    notes = " ".join(table.notes)
    assert "zhang2011.shared_no_conflict N=17" in notes
    assert "`nqbench reproduce zhang2011` resumes and measures what is missing" in notes
    with pytest.raises(AnalysisError, match="nqbench reproduce zhang2011"):
        made("zhang2011", "table_4", zhang(sizes=(12,)))


def simulated() -> Builder:
    builder = Builder(MINI)
    own = levels(12, memory="shared", layout="per_thread")
    builder.count("kernels", own, counters_of(own), "zhang2011.shared_conflict")
    return builder


@pytest.mark.parametrize(
    ("paper", "table", "run", "said"),
    [
        ("zhang2011", "table_3", simulated, "counts and does not time"),
        ("tanaka2011", "scaled", simulated, "counts and does not time"),
        ("tanaka2011", "scaled", zhang, "no point of the sweep scaled"),
        ("tanaka2011", "profile", zhang, "no point of the sweep counted"),
        ("zhang2011", "divergence", zhang, "Nsight Compute"),
        ("tanaka2011", "table_3", zhang, "tanaka2011.both"),
    ],
)
def test_what_a_run_lacks_for_a_table(
    paper: str, table: str, run: Callable[[], Builder], said: str
) -> None:
    with pytest.raises(AnalysisError, match=said):
        made(paper, table, run())


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["a N=1: late", "a N=2: late"], ["a N=1, 2: late"]),
        (["a N=1: takes 3 s", "b N=1: takes 4 s"],
         ["a N=1; b N=1: takes 3 s (the numbers are the first one's)"]),
        (["no a N=1 (sizes: 5)", "no a N=2 (sizes: 5)"], ["no a N=1, 2 (sizes: 5)"]),
        (["a: x", "b: y", "a: x"], ["a: x", "b: y"]),
        (["no run"], ["no run"]),
        ([], []),
    ],
)  # fmt: skip
def test_reasons_are_said_once(reasons: list[str], said: list[str]) -> None:
    assert grouped(reasons) == said


def feinbube() -> Builder:
    builder = Builder(noise=1e-6)
    for system, best in (("base", 2.0), ("opt4_compact", 1.0)):
        for depth in (4, 5):
            for block in (32, 64):
                own = {"n": 16, "depth": depth, "block_size": block}
                value = best * (1 if (depth, block) == (5, 64) else 10)
                builder.time("configurations", own, value, f"feinbube2010.{system}")
                builder.rows[-1]["occupancy"] = block / 64
    for row in builder.rows:
        row["occupancy"] = 0.25 if row["block_size"] == 64 else 1.0
    own = {"n": 16, "depth": 5, "block_size": 512}
    builder.skip("configurations", own, "too many", "feinbube2010.opt4_compact")
    return builder


def test_work_per_thread() -> None:
    builder = zhang(sizes=(18,))
    own = levels(18, probe="iterations", encoding="masks", symmetry="mirror")
    work = {"min": 2, "max": 47495, "mean": 6511.3, "variance": 1.453e7, "sd": 3812}
    counted = {f"iterations_per_job_{name}": value for name, value in work.items()}
    builder.count("work", own, counted, "zhang2011.low_divergence")
    table = made("zhang2011", "table_6", builder)
    assert table.rows[1][1:4] == (2, 47495, 6511.3)
    assert any("no instrumented kernel counted cycles_per_job_min" in note for note in table.notes)
