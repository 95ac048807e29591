"""The studies hold every point that the claims, tables and figures of their papers need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nqbench.analysis.claims import functions
from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.select import NotMeasured
from nqbench.errors import AnalysisError
from nqbench.facts import DeviceFacts
from nqbench.papers import load_paper, paper_folder
from nqbench.papers.check import RESOURCES
from nqbench.report.figures.style import styled
from nqbench.report.papers.reproduced import FIGURES as DRAW
from nqbench.report.papers.reproduced import reproduced_table as twin
from nqbench.report.papers.write import joint_source
from nqbench.study import expand, load_study
from nqbench.vocabulary import COUNTERS, PROFILER_COUNTERS, of_kernel
from nqbench.workloads import probe_counters
from tests.analysis.builder import H100, Builder
from tests.papers.runs import named

GPU = DeviceFacts("NVIDIA H100", "cuda", (9, 0), 132, shared_per_block_optin=232448)
OLD_CARDS = "cannot run kernels"
ALLOWED = {
    "brodtkorb_part1": {},
    "feinbube2010": {"contrary_effects": "give runs of 2"},
    "fitness_schemes": {},
    "tanaka2011": {"device_ranking": OLD_CARDS, "extrapolation_27": "nothing to judge"},
    "zhang2011": {"other_application": "without a test"},
}
"""Claims that one GPU's complete run leaves without a verdict, and what the reason says."""


def text(level: Any) -> Any:
    return f"{level['per_sm']}/SM" if isinstance(level, Mapping) else level


SEARCHED = {"evaluation_s": 0.9, "total_s": 1.0, "found": 1, "evaluations": 4000}
"""What a search records beside its time."""


MOVED = {"evaluation_s": 0.8e-3, "apply_s": 0.1e-3, "evaluations": 200, "moves_evaluated": 1e8,
         "operations_per_move": 55, "roots_per_move": 8, "final_solution_hash": 7}  # fmt: skip
"""What a local search records beside its time."""
ON_HOST = {"device": "cpu", "device_kind": "cpu"}
WRONG = ("quadratic", "rearranged")
"""Mappings that fail at 10,000 cities."""


MACHINE = {
    **H100,
    "host": {"name": "a processor", "cores": 16},
    "identity": {
        "name": "NVIDIA H100 PCIe",
        "compute_capability": "9.0",
        "max_sm_mhz": 1755,
    },
    "facts": {"name": "NVIDIA H100 PCIe", "multiprocessors": 132},
}


def expected_wrong(levels: Mapping[str, Any]) -> bool:
    """Points whose wrong answer the papers themselves tell of."""
    failing = levels.get("n") == 10_000 and levels.get("mapping") in WRONG
    return failing or levels.get("nesting") == 25


def invented_s(paper: str, n: int, i: int) -> float:
    """A time that grows as the paper's problem does, and differs between points."""
    squared = paper in ("fitness_schemes", "brodtkorb_part1")
    grown = (n / 1000) ** 2 if squared else 7.5 ** (n - 14)
    return 1e-3 * grown * (1 + i % 7 / 10)


def complete_run(paper: str) -> Observed:
    """The paper's study on an H100 as if every point had been measured."""
    builder = Builder(MACHINE, rounds=2, noise=0.001)
    study = load_study(paper_folder(paper) / "study.yaml")
    for i, point in enumerate(expand(study, GPU)):
        system = point.system or ""
        levels = {k: text(v) for k, v in point.factors.items()}
        if point.skip:
            builder.skip(point.sweep, levels, point.skip, system)
            continue
        if expected_wrong(levels):
            builder.fail(point.sweep, levels, "wrong", "answer 0, expected 660", system)
            continue
        builder.time(point.sweep, levels, invented_s(paper, point.n, i), system)
        if "max_evaluations" in levels:
            for row in builder.rows[-builder.rounds :]:
                row |= SEARCHED
        if paper == "brodtkorb_part1" and "part" not in levels:
            for row in builder.rows[-builder.rounds :]:
                row |= MOVED | (ON_HOST if ".cpu_" in system else {})
        if levels.get("probe", "none") not in ("none", "-"):
            counted = dict.fromkeys(probe_counters(), 2.0)
            builder.rows[-1] |= counted
        profile = dict(builder.rows[-1]) | {"round": -1}
        profile |= dict.fromkeys(COUNTERS, 1.0) if not system.startswith("cpu") else {}
        if point.sweep.startswith("counted"):
            both = {**COUNTERS, **PROFILER_COUNTERS}
            profile |= {of_kernel(c, k): 0.5 for c in both for k in ("evaluation", "apply")}
        builder.rows.append(profile)
    for row in builder.rows:
        row["threads"] = 132 * 160
        row |= {of_kernel(name, k): 64 for name in RESOURCES for k in ("evaluation", "apply")}
    return named(builder, paper)


@pytest.fixture(scope="module")
def runs() -> dict[str, Observed]:
    return {paper: complete_run(paper) for paper in ALLOWED}


@pytest.mark.parametrize("paper", ALLOWED)
def test_a_complete_run_answers_every_claim(
    paper: str, runs: dict[str, Observed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "count", lambda *a, **k: (7432, ""))
    found = {v.claim.id: v for v in judge(load_paper(paper), [runs[paper]])}
    silent = {name: v for name, v in found.items() if v.word == "not measured"}
    assert {name: v.reason for name, v in silent.items() if name not in ALLOWED[paper]} == {}
    for name, reason in ALLOWED[paper].items():
        assert reason in found[name].reason or reason in found[name].sizes[0].reason
    for verdict in found.values():
        assert not [s.reason for s in verdict.sizes if "unknown" in s.reason]


@pytest.mark.parametrize("paper", ALLOWED)
def test_a_complete_run_fills_every_table_and_figure(
    paper: str, runs: dict[str, Observed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "count", lambda *a, **k: (7432, ""))
    loaded, run = load_paper(paper), runs[paper]
    for table in loaded.tables:
        made = twin(loaded, table, run)
        assert made.rows
        assert not [note for note in made.notes if note.startswith("not measured")], table.id
    with styled():
        for figure in loaded.figures:
            if figure.draw != "none":
                assert DRAW[figure.draw](loaded, figure, [run], joint_source([run]))


SIMULATED = {name: {10, 11, 12, 13, 14} for name in ALLOWED} | {
    "fitness_schemes": {10, 33, 100},
    "brodtkorb_part1": {100, 1000, 2000, 10_000},
}


@pytest.mark.parametrize("paper", ALLOWED)
def test_the_studies_run_in_the_simulator(paper: str) -> None:
    facts = DeviceFacts("sim", "sim", (9, 0), 4, shared_per_block_optin=232448)
    points = expand(load_study(paper_folder(paper) / "study.yaml"), facts)
    sizes = {p.n for p in points if not p.skip}
    assert sizes == SIMULATED[paper]


def test_nothing_is_made_up_where_nothing_was_measured(runs: dict[str, Observed]) -> None:
    """The tables of one paper from another's run: refused, not filled."""
    paper = load_paper("zhang2011")
    for name in ("table_1", "table_7"):
        with pytest.raises(AnalysisError):
            twin(paper, paper.table(name), runs["tanaka2011"])
    with pytest.raises(NotMeasured):
        DRAW["pool"](paper, paper.figures[0], [runs["tanaka2011"]], joint_source([]))


def test_every_folder_is_complete() -> None:
    for paper in ALLOWED:
        names = {p.name for p in Path(paper_folder(paper)).iterdir()}
        assert {"README.md", "published.yaml", "study.yaml"} <= names
