"""The matrix of effects as people see it: page, tables, figure, command."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from matplotlib.container import ErrorbarContainer

from nqbench.analysis.matrix import Matrix, effects_matrix
from nqbench.report.figures.style import styled
from nqbench.report.matrix import effects_figure, matrix_table
from nqbench.report.table import EMPTY, Source
from tests.builders import H100, MINI, device, factorial
from tests.cli.call import call
from tests.papers.runs import zhang
from tests.report.papers.test_reproduced import feinbube
from tests.report.test_figures import check_texts

SOURCE = Source("a GPU", "measured", "nqbench effects")


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    runs = [
        zhang(rounds=3).data("zhang2011"),
        zhang(dev=device("NVIDIA H200"), rounds=3).data("zhang2011"),
        feinbube().data("feinbube2010"),
        factorial(H100, (18,)).data(),
    ]
    return effects_matrix(runs)


def test_a_row_says_at_a_glance_who_found_what(matrix: Matrix) -> None:
    table = matrix_table(matrix, SOURCE)
    assert [c.heading for c in table.columns] == [
        *("source", "change", "N", "printed", "H100 PCIe", "H200", "against print")
    ]
    rows = {(row[0], row[1]): row for row in table.texts()}
    shared = rows["Zhang 2011", "work space in shared memory, not L1"]
    assert shared[2:4] == ["18", "4.38x faster (GTX 480)"]
    assert shared[4].startswith("3.3")
    assert "x faster ±" in shared[4]
    step = rows["Feinbube 2010", "stack in shared memory, not local"]
    assert step[3] == "faster (GTX 275, GTX 295), slower (8600M GS, NVS 295)"
    assert rows["ablation", "memory: global → shared"][5] == EMPTY
    notes = " ".join(table.notes)
    assert "Feinbube 2010: total times, the CPU's part included" in notes


def test_published_points_are_hollow_and_measured_ones_filled(matrix: Matrix) -> None:
    with styled():
        drawing = effects_figure(matrix, SOURCE)
        check_texts(drawing.figure)
    panel, *_ = drawing.figure.axes
    bars = [c for c in panel.containers if isinstance(c, ErrorbarContainer)]
    looks = {str(bar.get_label()): bar.lines[0] for bar in bars}
    assert list(looks) == ["H100 PCIe, measured", "H200, measured"]
    faces = [line.get_markerfacecolor() for line in looks.values()]
    assert faces[0] != faces[1]
    assert len({line.get_marker() for line in looks.values()}) == 2
    (hollow,) = [line for line in panel.lines if line.get_label() == "printed, the paper's GPU"]
    assert hollow.get_markerfacecolor() == "white"
    xs: Any = hollow.get_xdata()
    assert 4.38 in list(xs)


def test_the_command_shows_recorded_runs_and_writes_them(tmp_path: Path) -> None:
    done = call("claims", "--matrix", cwd=tmp_path)
    assert done.code == 2
    assert "there is no run of a paper or of the ablation under results" in done.err
    builder = zhang(rounds=3)
    builder.study = "zhang2011"
    run = builder.write(tmp_path / "results" / "local" / "cuda-0" / "zhang2011")
    shown = call("claims", "--matrix", "--format", "csv", cwd=tmp_path)
    assert shown.code == 0, shown.err
    assert "work space in shared memory, not L1" in shown.out
    out = tmp_path / "plots" / "local" / "effects"
    assert {p.name for p in out.iterdir()} == {
        *("effects.md", "table-effects.csv", "table-effects-cells.csv"),
        "figure-effects.svg",
    }
    text = (out / "table-effects.csv").read_text(encoding="utf-8")
    (row,) = [r for r in csv.DictReader(io.StringIO(text)) if r["change"].startswith("tail")]
    assert 1 < float(row["H100_PCIe_times_as_fast_low"]) < float(row["H100_PCIe_times_as_fast"])
    assert row["command"] == "nqbench claims --matrix --format csv"
    words = ("claims", "--matrix", str(run), "--out", str(tmp_path / "own"), "--json")
    given = call(*words, cwd=tmp_path)
    assert given.code == 0, given.err
    assert {cell["device"] for cell in json.loads(given.out)} == {"GTX 480", "H100 PCIe"}
    assert (tmp_path / "own" / "effects.md").exists()
    zhang(dev=MINI).write(tmp_path / "results" / "reference" / "sim-mini" / "zhang2011")
    assert call("claims", "--matrix", cwd=tmp_path).code == 0, (
        "a kind of runs without an effect is left out"
    )
    shutil.rmtree(tmp_path / "results" / "local")
    assert "no effect can be computed from" in call("claims", "--matrix", cwd=tmp_path).err
    wrong = call("claims", "--matrix", str(tmp_path / "none"), cwd=tmp_path)
    assert wrong.code != 0
    assert len(wrong.err.strip().splitlines()) == 1
