"""The kernels of examples/: right in the simulator, with counters that show what each is about, and
wrong when the kernel is. The C program has a test of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from nqbench.analysis.data.dataset import load_dataset
from nqbench.compiler.nvrtc import compiler_version
from nqbench.devices.registry import facts_for
from nqbench.report.items import items_of
from nqbench.report.writer import prepare
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
    name: Case(**case)
    for name, case in tomllib.loads(
        Path(__file__).with_name("cases.toml").read_text(encoding="utf-8")
    ).items()
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
    kernels, programs = table[table["system"] == "blur"], table[table["system"] == "blur.c"]
    assert (set(kernels["status"]), set(programs["status"])) == ({"ok"}, {"unchecked"})
    assert len(kernels) == 2 * 3, "all levels of its factors"
    assert set(programs["variant"]) == {"-"}
    assert 0 < programs["value_s"].median() < 1e-3
    padded = [0, *(i % 7 for i in range(4096)), 0]
    assert set(programs["answer"]) == {str(sum(sum(padded[i : i + 3]) for i in range(4096)))}


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_are_right_and_the_counters_show_why(name: str, tmp_path: Path) -> None:
    study = load_study(EXAMPLES / name / f"{name}.yaml")
    assert not any(p.skip for p in expand(study, H100))
    table = run(study, tmp_path / "run")
    assert set(table["status"]) == {"ok"}
    assert len(table) == len(expand(study, facts_for("sim:mini")))
    data = load_dataset(tmp_path / "run")
    assert all(prepare(data, item) for item in items_of(data)), "every table and figure"
    for counter, low, high, times in CASES[name].less:
        small, large = (mean(table, counter, levels) for levels in (low, high))
        assert large > times * small, (counter, low, small, high, large)
    if f"NVRTC {'.'.join(compiler_version().split('.')[:2])}" in README:
        [said] = re.findall(rf"^- \*\*{name}\*\*.*?(?=^- |\Z)", README, re.M | re.S)
        counted = table[[*COUNTERS]].to_numpy()
        for number in re.findall(r"\d+,\d{3}", said):
            assert int(number.replace(",", "")) in counted


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
