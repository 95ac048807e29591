"""The kernels of examples/: right in the simulator, with counters that show what each is about, and
wrong when the kernel is. The C program has a test of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from nqbench.compiler.nvrtc import compiler_version
from nqbench.devices.registry import facts_for
from nqbench.facts import DeviceFacts
from nqbench.report.writer import report_problems
from nqbench.runs.frame import load
from nqbench.study import Study, expand, load_study
from nqbench.vocabulary import COUNTERS
from tests.study.fake import H100
from tests.toys import run_here

pytestmark = pytest.mark.usefixtures("undrawn")

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Case:
    """``less``     counter, levels with the smaller mean of it, levels with the larger one, and how
    many times as large that is at least
    ``mistake``  text of the .cu file, and what makes the kernel wrong in its place
    ``where``    levels of a point that the mistake is in
    ``seen``     part of what the check says then
    """

    less: list[tuple[str, str, str, float]]
    mistake: tuple[str, str]
    where: str
    seen: str


CASES = {
    "transpose": Case(
        [("bank_conflicts", "pad=1", "pad=0", 15)],
        ("= tile[threadIdx.x][threadIdx.y + i]", "= tile[threadIdx.y + i][threadIdx.x]"),
        "pad=0",
        "b[0, 1] is",
    ),
    "reduction": Case(
        [
            ("divergent_branches", "step=strided", "step=divergent", 4),
            ("bank_conflicts", "step=sequential", "step=strided", 1e9),
            ("barriers", "step=shuffle", "step=sequential", 8),
            ("warp_instructions", "items=8", "items=1", 4),
        ],
        ("if (at < n) sum", "if (at < n - 1) sum"),
        "step=shuffle",
        "total[0] is",
    ),
    "histogram": Case(
        [
            ("global_atomics", "counts_in=shared_atomics", "counts_in=global_atomics", 10),
            ("global_atomics", "counts_in=per_warp", "counts_in=global_atomics", 10),
            ("global_sectors", "counts_in=per_warp", "counts_in=global_atomics", 10),
            ("bank_conflicts", "distinct=256", "distinct=2", 5),
        ],
        ("atomicAdd(&mine[data[i]], 1u)", "++mine[data[i]]"),
        "counts_in=per_warp",
        "counts[",
    ),
    "matmul": Case(
        [
            ("global_sectors", "memory=shared", "memory=global", 4),
            ("global_sectors", "memory=global side=4", "memory=global side=1", 3),
            ("shared_requests", "memory=shared side=4", "memory=shared side=1", 3),
        ],
        ("first < n; first += edge", "first + edge < n; first += edge"),
        "memory=shared",
        "c[0, 0] is",
    ),
    "stencil": Case(
        [
            ("global_sectors", "memory=shared", "memory=global", 2.5),
            ("bank_conflicts", "memory=shared width=32", "memory=shared width=16", 9),
        ],
        ("tile[y + 2][x + 1]", "tile[y + 1][x + 1]"),
        "memory=shared",
        "b[0, 0] is",
    ),
    "spmv": Case(
        [
            ("lane_efficiency", "per_row=thread skew=2", "per_row=thread skew=1", 2),
            ("lane_efficiency", "per_row=thread", "per_row=warp", 1.5),
            ("warp_instructions", "per_row=thread mean=4", "per_row=warp mean=4", 10),
            ("global_sectors", "per_row=warp mean=32", "per_row=thread mean=32", 2),
        ],
        ("int step = 16", "int step = 8"),
        "per_row=warp mean=32",
        "y[",
    ),
    "nbody": Case(
        [
            ("global_sectors", "memory=shared", "memory=global", 4),
            ("warp_instructions", "per_thread=2", "per_thread=1", 1.05),
        ],
        ("sum.z += pull * dz", "sum.z += pull * dy"),
        "memory=global",
        "result[0, 2] is",
    ),
    "last_warp": Case(
        [("warp_instructions", "lanes=trusted", "lanes=wait", 1.1)],
        ("step > 32; step /= 2", "step > 64; step /= 2"),
        "block=256",
        "total[0] is",
    ),
    "signs": Case(
        [
            ("lane_efficiency", "bound=sum", "bound=none", 3),
            ("warp_instructions", "bound=sum", "bound=none", 1.03),
        ],
        ("if (next > largest) break;", "if (next >= largest) break;"),
        "bound=none",
        "the answer",
    ),
}


def levels_of(words: str) -> dict[str, str]:
    """``memory=shared side=4`` by factor."""
    return dict(word.split("=") for word in words.split())


def run(study: Study, out: Path, only: str = "") -> pd.DataFrame:
    """The records of a study in the simulator; of the first point with the levels ``only``."""
    points = expand(study, facts_for("sim:mini"))
    wanted = levels_of(only).items()
    found = [p for p in points if wanted <= {f: str(v) for f, v in p.factors.items()}.items()]
    run_here(study, "sim:mini", out, points=found[:1] if only else found)
    return load(out)


def mean(table: pd.DataFrame, counter: str, words: str) -> float:
    for factor, level in levels_of(words).items():
        table = table[table[factor].astype(str) == level]
    assert len(table)
    return float(table[counter].mean())


def test_every_example_is_tested() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders == {*CASES, "blur", "external_program"}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_kernel_and_a_program_in_one_sweep(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EXAMPLES / "blur", tmp_path / "blur"))
    subprocess.run(["cc", "-O3", "-o", "blur", "blur.c"], cwd=folder, check=True)
    study = folder / "blur.yaml"
    study.write_text(study.read_text().replace("budget: 1s", "budget: 100ms"))
    table = run(load_study(study), tmp_path / "run")
    assert set(table["status"]) == {"ok"}
    kernels, programs = table[table["system"] == "blur"], table[table["system"] == "blur.c"]
    assert len(kernels) == 2 * 3, "all levels of its factors"
    assert set(programs["variant"]) == {"-"}
    assert 0 < programs["value_s"].median() < 1e-3
    padded = [0, *(i % 7 for i in range(4096)), 0]
    assert set(programs["answer"]) == {str(sum(sum(padded[i : i + 3]) for i in range(4096)))}


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_are_right_and_the_counters_show_why(name: str, tmp_path: Path) -> None:
    study = load_study(EXAMPLES / name / f"{name}.yaml")
    table = run(study, tmp_path / "run")
    assert set(table["status"]) == {"ok"}
    assert len(table) == len(expand(study, facts_for("sim:mini")))
    for counter, low, high, times in CASES[name].less:
        small, large = (mean(table, counter, levels) for levels in (low, high))
        assert large > times * small, (counter, low, small, high, large)
    if f"NVRTC {'.'.join(compiler_version().split('.')[:2])}" in README:
        [said] = re.findall(rf"^- \*\*{name}\*\*.*?(?=^- |\Z)", README, re.M | re.S)
        counted = table[[*COUNTERS]].to_numpy()
        for number in re.findall(r"\d+,\d{3}", said):
            assert int(number.replace(",", "")) in counted


@pytest.mark.parametrize("facts", [facts_for("sim:mini"), H100], ids=lambda facts: facts.kind)
@pytest.mark.parametrize("name", CASES)
def test_every_point_can_run_and_every_figure_be_made(name: str, facts: DeviceFacts) -> None:
    study = load_study(EXAMPLES / name / f"{name}.yaml")
    points = expand(study, facts)
    assert points
    assert not [p.skip for p in points if p.skip]
    assert not report_problems(study.as_json(), points, facts)


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_in_the_kernel_is_seen(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    folder = Path(shutil.copytree(EXAMPLES / name, tmp_path / name))
    source = folder / f"{name}.cu"
    right = source.read_text(encoding="utf-8")
    assert right.count(case.mistake[0]) == 1
    source.write_text(right.replace(*case.mistake), encoding="utf-8")
    table = run(load_study(folder / f"{name}.yaml"), tmp_path / "run", case.where)
    assert set(table["status"]) == {"wrong"}
    assert case.seen in table["reason"].iloc[0]
