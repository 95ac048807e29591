"""Everything for a paper in one folder: page, tables, figures, verdicts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.analysis.claims.judge import SizeVerdict, Verdict, judge
from nqbench.analysis.data.estimate import Estimate
from nqbench.papers import load_paper
from nqbench.report.figures.style import Drawing, styled
from nqbench.report.papers.tables import (
    COMPARE_RATIOS,
    claims_table,
    counted,
    details_table,
    measured_text,
)
from nqbench.report.papers.write import FIGURES, joint_source, write_paper
from tests.builders import Builder, device
from tests.papers.runs import tiny_paper, zhang
from tests.report.papers.test_reproduced import feinbube, simulated

pytestmark = pytest.mark.usefixtures("no_walks")


def test_three_runs_in_one_folder(tmp_path: Path) -> None:
    """Two GPUs and the simulator: each says what it has, and once what is true of all."""
    runs = [
        zhang(dev=device(name), rounds=3).data("zhang2011")
        for name in ("NVIDIA H100", "NVIDIA H200")
    ]
    runs.append(simulated().data("zhang2011"))
    report = write_paper(load_paper("zhang2011"), runs, tmp_path, ("md", "csv"))
    text = (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert all(path.exists() for path in report.paths)
    names = {path.name for path in report.paths}
    assert {"figure-paper-figure-6.svg", "figure-paper-figure-7.svg"} <= names
    assert {f"table-paper-table-3-{gpu}cuda0.csv" for gpu in ("h100", "h200")} <= names
    assert text.count("table 3: improved kernel using shared memory") == 3, "one is not made"
    judged = [v.claim.id for v in report.verdicts]
    assert judged.count("irrc_speedup") == 2
    assert judged.count("job_counts") == 1
    figures = [line for line in text.splitlines() if line.startswith("![")]
    assert len(figures) == 2
    assert all("measured, 3 rounds" in line for line in figures)
    assert not any("simulated" in line for line in figures), "it is in no figure"
    tables = [path.read_text(encoding="utf-8") for path in tmp_path.glob("table-*.md")]
    assert sum(COMPARE_RATIOS in table for table in tables) > 3, "each file stands alone"
    assert text.count(COMPARE_RATIOS) == 2, "once for each GPU"


def test_two_runs_of_one_device_are_told_apart(tmp_path: Path) -> None:
    """And what tells nothing of a device is shown once."""
    run = feinbube().data("feinbube2010")
    runs = [replace(run, path=Path(f"run{i}")) for i in (1, 2)]
    report = write_paper(load_paper("feinbube2010"), runs, tmp_path, ("md",))
    devices = {v.device for v in report.verdicts if v.claim.id == "cc13_final_vs_base"}
    assert len(devices) == 2
    text = (tmp_path / "paper.md").read_text(encoding="utf-8")
    for device_name in devices:
        assert device_name.endswith((", run1", ", run2"))
        assert f"## Tables, {device_name}" in text.replace("\\", "")
    assert text.count("| texture memory |") == 1
    assert "| here, H100 PCIe (run1) and H100 PCIe (run2) |" in text.replace("\\", "")


def test_what_is_not_made_is_said_once(tmp_path: Path) -> None:
    papers = [load_paper(name) for name in ("zhang2011", "fitness_schemes")]
    for paper in papers:
        write_paper(paper, [simulated().data("zhang2011")], tmp_path / paper.id, ("md",))
    text, other = ((tmp_path / paper.id / "paper.md").read_text("utf-8") for paper in papers)
    assert text.count("table 1: results of the naive kernel (sim:mini); table 2:") == 1
    assert "this needs a GPU: nqbench reproduce zhang2011 --device cuda:0" in text
    assert "Table 1: parameters of simulated annealing: the cells are lost" in other


def draw(paper_id: str, name: str, *builders: Builder) -> Drawing:
    """A figure of a paper from runs of the builders."""
    paper = load_paper(paper_id)
    figure = next(f for f in paper.figures if f.id == name)
    runs = [builder.data(paper_id) for builder in builders]
    with styled():
        (drawing,) = FIGURES[figure.draw](paper, figure, runs)
    return drawing


def drawn(figure: Any) -> list[str]:
    """All texts of a figure."""
    axes = figure.figure.axes
    texts = [t.get_text() for ax in axes for t in ax.texts]
    for ax in axes:
        texts += [ax.get_title(loc=where) for where in ("left", "center", "right")]
        texts += ax.get_legend_handles_labels()[1]
    return texts


def test_bars_have_a_panel_per_gpu_and_mark_what_is_published() -> None:
    figure = draw("feinbube2010", "figure_4", feinbube())
    shown = [ax for ax in figure.figure.axes if ax.get_visible()]
    assert len(shown) == 3
    texts = drawn(figure)
    assert {"2.9 s", "1.1 s", "3.3 s", "1.6 s"} <= set(texts)
    assert texts.count("?") == 6  # three versions without a printed time on two cards
    assert texts.count("not\ntimed") == 3
    hatched = [p for ax in shown for p in ax.patches if p.get_hatch()]
    assert len(hatched) == 4
    assert sum("(published)" in t for t in texts) == 2


def test_curves_mark_what_is_published() -> None:
    all_kernels = draw("zhang2011", "figure_7", zhang(rounds=3))
    pools = draw("zhang2011", "figure_6", zhang(rounds=3))
    left, right = all_kernels.figure.axes
    assert len(left.lines) == 7
    assert (left.get_xlim(), left.get_ylim()) == (right.get_xlim(), right.get_ylim())
    assert np.asarray(left.lines[0].get_ydata())[-1] == 664.13
    assert "GTX480 (published)" in "".join(drawn(all_kernels))
    assert np.asarray(right.lines[0].get_ydata())[0] == pytest.approx(0.012, rel=0.01)
    assert {"published: pays from 64 to 5120", "published: does not pay from 10240 on"} <= set(
        drawn(pools)
    )
    assert {ax.get_yscale() for ax in pools.figure.axes} == {"log"}
    assert all(ax.get_ylabel() for ax in (*pools.figure.axes, *all_kernels.figure.axes))
    published = [ln for ln in pools.figure.axes[1].lines if "table 7" in str(ln.get_label())]
    assert np.asarray(published[0].get_ydata())[0] == pytest.approx(1 / 1.48)


def test_tables_of_verdicts() -> None:
    paper = load_paper("zhang2011")
    run = zhang(rounds=3).data("zhang2011")
    verdicts = judge(paper, [run])
    source = joint_source([run])
    table = claims_table(paper, verdicts, source)
    assert len(table.rows) == len(verdicts)
    counts = [note.partition("; of those that hold: ") for note in counted(verdicts)]
    found = [re.findall(r"(\d+) (?:holds|fails|unclear|no|not)", total) for total, _, _ in counts]
    assert sum(int(number) for numbers in found for number in numbers) == len(verdicts)
    assert any(re.search(r"\d+ stronger", of_sizes) for _, _, of_sizes in counts)
    assert counted(verdicts) == table.notes[: len(counts)]
    names = [column.name for column in table.columns]
    (row,) = (dict(zip(names, row, strict=True)) for row in table.rows if row[0] == "irrc_speedup")
    assert (row["verdict"], row["tested"]) == ("holds", "value > 1")
    assert "N=17: 1.34" in str(row["paper"])
    sizes = details_table(paper, verdicts, source)
    assert sum(row[0] == "irrc_speedup" for row in sizes.rows) == 5


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (Estimate(6.0, 5.0, 6.0, 3), "", "6 [5, 6]"),
        (Estimate(5.0, 5.0, 5.0, 3), "queens", "5 queens"),
        (Estimate(1.25, 1.25, 1.25, 3), "", "1.250"),
        (Estimate(1.25, 1.0, 1.5, 3), "%", "1.250 [1.000, 1.500] %"),
        (Estimate(12.5, exact=True), "%", "12.50 %"),
        ("yes", "", "yes"),
    ],
)
def test_a_value_in_words(value: Estimate | str, unit: str, text: str) -> None:
    (claim,) = tiny_paper({"unit": unit, "expr": "1", "expect": "value > 0"}).claims
    size = SizeVerdict(15, "holds", value)
    verdict = Verdict(claim, "H100", "measured", "holds", (size,))
    assert measured_text(verdict) == text
