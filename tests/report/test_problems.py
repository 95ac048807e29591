"""Tables and figures that a dry run says cannot be made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nqbench.facts import DeviceKind
from nqbench.report.writer import report_problems
from nqbench.simulator.models import load_model
from nqbench.study import expand, load_study

STUDY = """\
name: s
n: {sim: [8], cuda: [8, 9], cpu: [8]}
sweeps:
  - {name: grid, matrix: {layout: [per_thread, interleaved], loop: [branchy, irrc]}}
  - {name: pool, systems: [zhang2011.low_divergence, cpu.somers], matrix: {block_size: ["-", 64]},
     where: (system == 'cpu.somers') == (block_size == '-')}
"""


def problems(folder: Path, report: str, kind: DeviceKind) -> list[tuple[int, str]]:
    file = folder / "study.yaml"
    file.write_text(f"{STUDY}report: {report}\n", encoding="utf-8")
    study, facts = load_study(file), replace(load_model("sm_90").facts, kind=kind)
    return report_problems(study.as_json(), expand(study, facts), facts)


@pytest.mark.parametrize(
    ("report", "kind", "said"),
    [
        ("[{table: effects, of: grid}, {table: results}]", "sim", {}),
        ("[]", "cpu", {}),
        ("[{figure: line, of: pool, x: block_size}]", "cuda", {}),
        ("[{table: results}, {table: interactions, of: pool}]", "sim", {1: "no two factors"}),
        ("[{figure: effects, of: grid, value: time}]", "sim", {0: "with a kernel time"}),
        ("[{figure: effects, of: grid, value: bank_conflicts}]", "cuda", {0: "bank conflicts"}),
        ("[{figure: heatmap, of: pool, x: layout, y: pool_size}]", "cuda", {0: "has both layout"}),
        ("[{figure: line, of: grid, x: block_size}]", "cuda", {0: "another factor varies too"}),
        ("[{table: effects, of: grid}]", "cpu", {0: "no finished point"}),
    ],
)
def test_problems(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report: str,
    kind: DeviceKind,
    said: dict[int, str],
) -> None:
    monkeypatch.setattr("nqbench.report.writer.styled", None)  # nothing is drawn
    found = dict(problems(tmp_path, report, kind))
    assert found.keys() == said.keys(), found
    assert all(part in found[entry] for entry, part in said.items()), found
