"""The tutorial's workload: taken from the page, installed, tested with its own test, and run."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nqbench.workloads
from nqbench import load
from nqbench.devices.registry import facts_for
from nqbench.errors import StudyError
from nqbench.study import expand, load_study
from nqbench.study.schema import schema
from nqbench.workloads import launch_factors
from nqbench.workloads.counting.factors import FACTORS
from tests.toys import run_here

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "adding-a-kernel.md").read_text(encoding="utf-8")
FILES = {
    match[1]: match[2]
    for match in re.finditer(r"^```\w+\n(?://|#) (\S+/\S+)\n(.*?)^```", TEXT, re.DOTALL | re.M)
}
STUDIES = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.DOTALL | re.M)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The tutorial's files, as if they were in nqbench."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    folder = str(tmp_path / "nqbench" / "workloads")
    monkeypatch.setattr(nqbench.workloads, "__path__", [*nqbench.workloads.__path__, folder])
    yield tmp_path
    nqbench.workloads._get.cache_clear()
    sys.modules.pop("nqbench.workloads.signs", None)


def test_its_own_test_passes(installed: Path) -> None:
    module = runpy.run_path(str(installed / "tests/workloads/signs/test_signs.py"))
    test: Callable[..., None] = module["test_known_counts"]
    marks: list[Any] = test.pytestmark  # type: ignore[attr-defined]
    (cases,) = (mark.args[1] for mark in marks if mark.args[0] == ("n", "known"))
    assert len(cases) >= 5
    for n, known in cases:
        for bound in ("none", "sum"):
            test(n, known, bound)


def test_its_study_runs_and_tells_what_the_bound_does(installed: Path) -> None:
    study = installed / "study.yaml"
    study.write_text(STUDIES[1], encoding="utf-8")
    outcome = run_here(load_study(study), "sim:mini", installed / "run")
    assert outcome.counts == {"ok": 8}
    table = load(installed / "run")
    assert (table["answer"] == table["expected"]).all()
    chosen = table[(table["n"] == 16) & (table["block_size"] == 128)].set_index("bound")
    instructions, lanes = chosen["warp_instructions"], chosen["lane_efficiency"]
    saved = 1 - float(instructions["sum"]) / float(instructions["none"])
    said = "saves 6% of the warp instructions and brings the lane efficiency from 1.00 down to 0.21"
    assert " ".join(said.split()) in " ".join(TEXT.split())
    assert saved == pytest.approx(0.06, abs=0.005)
    assert (float(lanes["none"]), float(lanes["sum"])) == pytest.approx((1.0, 0.21), abs=0.005)


def test_its_folder_is_all_it_takes(installed: Path) -> None:
    """Names, JSON schema, phases and counters are found without an edit of any other file."""
    assert set(FILES) == {
        "nqbench/workloads/signs/signs.cu",
        "nqbench/workloads/signs/__init__.py",
        "tests/workloads/signs/test_signs.py",
    }
    assert set(FILES) == {str(f.relative_to(installed)) for f in installed.rglob("*.*")}
    assert "signs" in nqbench.workloads.names()
    form = schema()
    assert "signs" in form["else"]["properties"]["workload"]["enum"]
    assert "when a branch is given up" in str(form["properties"]["matrix"])
    assert "signs.bounded" in str(form["properties"]["matrix"])
    assert launch_factors("signs")[:2] == ("depth", "block_size")


def test_without_its_folder_only_the_first_study_expands(tmp_path: Path) -> None:
    file, facts = tmp_path / "study.yaml", facts_for("sim:mini")
    file.write_text(STUDIES[0], encoding="utf-8")
    points = expand(load_study(file), facts)
    assert {point.factors["layout"] for point in points} == {"interleaved", "padded"}
    file.write_text(STUDIES[1], encoding="utf-8")
    with pytest.raises(StudyError, match="no workload 'signs'"):
        expand(load_study(file), facts)


def test_places_named_on_the_page_exist() -> None:
    counting = ROOT / "nqbench" / "workloads" / "counting"
    for file, name in (
        ("systems.py", "_COMMON"),
        ("factors.py", "RESERVED_WORDS"),
        ("config.cuh", "enum class Assignment { one_per_thread,"),
        ("jobs.cuh", "struct Feed<C, Assignment::strided>"),
        ("resolve.py", "_GRIDS"),
        ("resolve.py", "def _senseless"),
        ("configuration.py", "class Configuration"),
        ("configuration.py", "def result_words"),
    ):
        assert name in (counting / file).read_text(encoding="utf-8"), f"{name} in {file}"
        assert file in TEXT
    assert "one_per_thread" in FACTORS["assignment"].levels
