"""The matrix of effects: the verdicts' numbers, what the records say, who has which cell."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import gmean

from nqbench.analysis.data.dataset import chip, load_dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.matrix import Matrix, MatrixCell, MatrixRow, effects_matrix
from nqbench.errors import AnalysisError
from nqbench.papers import paper_names
from nqbench.papers.schema import DIRECTIONS
from nqbench.runs.reading import recorded_runs
from tests.builders import H100, MINI, TRUTH, Builder, counters_of, device, factorial
from tests.papers.runs import STEPS, levels, zhang

ROOT = Path(__file__).parents[2]
Points = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def recorded() -> Matrix:
    """The matrix of every run of the project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        names = (*paper_names(), "ablation")
        paths = [run for name in names for run in recorded_runs(name, "reference")]
        return effects_matrix([load_dataset(path) for path in paths])


def row_of(matrix: Matrix, group: str, name: str, n: int) -> MatrixRow:
    (row,) = [r for r in matrix.rows if (r.group, r.name, r.n) == (group, name, n)]
    return row


def measured(row: MatrixRow) -> list[MatrixCell]:
    return [cell for cell in row.cells if cell.provenance == "measured"]


def value_of(row: MatrixRow, device: str) -> Estimate:
    cell = row.cell(device)
    assert cell is not None
    assert cell.value is not None
    return cell.value


def test_cells_of_the_ablation_are_means_over_pairs_of_recorded_times(recorded: Matrix) -> None:
    for _, run in recorded.runs:
        if run.name != "ablation" or run.simulated:
            continue
        pairs: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
        for records in by_key(ROOT / run.path).values():
            for record in records:
                factors = dict(record["point"]["factors"])
                if record["point"]["sweep"] == "factorial" and factors["n"] == 18:
                    same = [factors[name] for name in ("layout", "loop", "assignment")]
                    pairs[record["round"], *same][factors["memory"]] = record["value_s"]
        assert len(pairs) == 12 * run.rounds
        ratio = gmean([pair["global"] / pair["shared"] for pair in pairs.values()])
        found = value_of(row_of(recorded, "ablation", "memory_shared", 18), run.chip)
        assert found.value == pytest.approx(ratio, rel=1e-12)


def by_key(folder: Path) -> Points:
    """The measurements of a run by point, read without nqbench."""
    found: Points = defaultdict(list)
    for line in gzip.decompress((folder / "records.jsonl.gz").read_bytes()).splitlines():
        record = json.loads(line)
        if record["status"] == "ok" and record["round"] > 0 and record["value_s"]:
            found[record["key"]].append(record)
    return found


def test_old_and_new_devices_stand_in_one_row() -> None:
    runs = [
        zhang(dev=device("NVIDIA H200"), rounds=3).data("zhang2011"),
        zhang(dev=device("NVIDIA H100 80GB HBM3"), rounds=3).data("zhang2011"),
        factorial(H100 | {"identity": {"name": "NVIDIA H100 80GB HBM3"}}, (17, 18)).data(),
    ]
    matrix = effects_matrix(runs)
    assert matrix.devices == ("H100", "H200")
    row = row_of(matrix, "Zhang 2011", "shared_for_l1", 18)
    assert [(c.device, c.provenance, c.printed) for c in row.cells] == [
        ("GTX 480", "printed", "4.38"),
        ("H200", "measured", ""),
        ("H100", "measured", ""),
    ]
    for name in ("H100", "H200"):
        found = value_of(row, name)
        truth = STEPS["naive_l1_48k"] / STEPS["shared_conflict"]
        assert found.value == pytest.approx(truth, rel=0.01)
        assert found.bounded
    loop = row_of(matrix, "ablation", "loop_irrc", 18)
    assert loop.label == "loop: branchy → irrc"
    assert value_of(loop, "H100").value == pytest.approx(1 / TRUTH["irrc"], rel=0.01)
    assert loop.cell("H200") is None


def test_what_is_modelled_stands_with_the_gpu_that_printed_it() -> None:
    """At the size that was modelled, and under no device that was measured."""
    model = MINI | {"spec": "sim:gtx480:cache:time", "identity": {"name": "model of GTX 480"}}
    builder = Builder(model)
    for name, step in STEPS.items():
        counts = counters_of({"n": 10}) | {"modelled_ms": step}
        builder.count("kernels", levels(15), counts, f"zhang2011.{name}")
    measured = zhang(dev=device("NVIDIA H200"), rounds=3).data("zhang2011")
    matrix = effects_matrix([builder.data("zhang2011"), measured])
    assert matrix.devices == ("H200",)
    row = row_of(matrix, "Zhang 2011", "shared_for_l1", 18)
    assert [(c.device, c.provenance, c.n) for c in row.cells] == [
        ("GTX 480", "printed", 18),
        ("GTX 480", "modelled", 15),
        ("H200", "measured", 18),
    ]
    (found,) = row.of("modelled")
    truth = STEPS["naive_l1_48k"] / STEPS["shared_conflict"]
    assert found.value is not None
    assert found.value.value == pytest.approx(truth)


def test_a_timed_ablation_is_shown_where_all_devices_have_it() -> None:
    other = device("NVIDIA H200")
    runs = [factorial(H100, (15, 17)).data(), factorial(other, (15, 18)).data()]
    assert {row.n for row in effects_matrix(runs).rows} == {15}
    apart = [factorial(H100, (15, 17)).data(), factorial(other, (16, 18)).data()]
    matrix = effects_matrix(apart)
    assert {row.n for row in matrix.rows} == {17, 18}
    assert all(len(row.cells) == 1 for row in matrix.rows)


def test_what_no_run_measured_has_no_cell() -> None:
    few, all_sizes = zhang(sizes=(15,)), zhang(dev=device("NVIDIA H200"), rounds=3)
    runs = [builder.data("zhang2011") for builder in (few, all_sizes)]
    row = row_of(effects_matrix(runs), "Zhang 2011", "tail_check", 18)
    assert [cell.device for cell in row.cells] == ["GTX 480", "H200"]
    bare = zhang(sizes=(), dev=MINI).data("zhang2011", Path("simulated"))
    counted = factorial(MINI, (10, 12)).data()  # counts are no times
    with pytest.raises(AnalysisError, match="no effect can be computed from simulated"):
        effects_matrix([bare, counted])


def test_a_second_run_on_a_gpu_has_a_column_of_its_own() -> None:
    paths = [Path("results/local") / part / "zhang2011" for part in ("cuda-0", "cuda-1", "cuda-1")]
    speeds = [STEPS, dict(STEPS) | {"shared_conflict": 5.0}, STEPS]
    runs = [
        zhang(rounds=3, steps=steps).data("zhang2011", path)
        for path, steps in zip(paths, speeds, strict=True)
    ]
    matrix = effects_matrix(runs)
    assert matrix.devices == ("H100 PCIe", "H100 PCIe (cuda-1)", "H100 PCIe (zhang2011)")
    row = row_of(matrix, "Zhang 2011", "shared_for_l1", 18)
    values = [cell.value.value for cell in measured(row) if cell.value]
    assert values == pytest.approx([10 / 3, 2, 10 / 3], rel=0.01)


@pytest.mark.parametrize(
    ("printed", "low", "value", "high", "word"),
    [
        ("2.0 3.0", 2.1, 2.2, 2.3, "agrees"),  # between those of two GPUs
        ("2.0 0.9", 3.0, 3.2, 3.4, "stronger"),
        ("1.08", 1.016, 1.018, 1.020, "weaker"),
        ("0.1", 0.02, 0.02, 0.02, "stronger"),  # 50 times slower, not 10
        ("faster", 1.2, 1.3, 1.4, "agrees"),
        ("slower", 1.2, 1.3, 1.4, "reversed"),
        ("1.5", 0.9, 1.1, 1.3, "unclear"),
        ("as fast", 0.5, 0.6, 0.7, "stronger"),
        ("", 1.2, 1.3, 1.4, ""),
    ],
)
def test_what_is_measured_agrees_with_print_or_not(
    printed: str, low: float, value: float, high: float, word: str
) -> None:
    texts = [printed] if printed in DIRECTIONS else printed.split()
    cells = [
        MatrixCell("GTX", "printed", None if t in DIRECTIONS else Estimate(float(t)), 16, t)
        for t in texts
    ]
    found = MatrixCell("H100", "measured", Estimate(value, low, high, 3), 16)
    row = MatrixRow("Paper 2011", "step", "a step", 16, (*cells, found))
    assert (row.against_print("H100"), row.against_print("H200")) == (word, "")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("NVIDIA GeForce GTX480", "GTX 480"),
        ("Gainward GeForce GTX 275", "GTX 275"),
        ("Nvidia Quadro NVS 295", "NVS 295"),
        ("Nvidia Tesla K80", "K80"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA", "NVIDIA"),
    ],
)
def test_chips_have_short_names(name: str, wanted: str) -> None:
    assert chip(name) == wanted
