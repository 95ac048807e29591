"""docs/own-kernel.md: its files are those of examples/transpose, its table and its messages are
those that they give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nqbench.analysis.data.collect import load_dataset
from nqbench.cli.show.progress import failure_text
from nqbench.devices.registry import facts_for
from nqbench.errors import StudyError
from nqbench.report.tables.results import results
from nqbench.runs.reading import read_records
from nqbench.study import ReportItem, expand, load_study
from tests.toys import run_here

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own-kernel.md").read_text(encoding="utf-8")
FILES = {
    match[1]: match[2]
    for match in re.finditer(r"^```\w+\n(?://|#) (\S+\.\w+)\n(.*?)^```", PAGE, re.DOTALL | re.M)
}
STUDY, SOURCE = "transpose.yaml", "transpose.cu"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path) -> Any:
    study = load_study(folder / STUDY)
    return run_here(study, "sim:mini", folder / "run")


def test_its_files_are_the_example_and_short() -> None:
    assert set(FILES) == {STUDY, SOURCE}
    for name, text in FILES.items():
        assert (ROOT / "examples" / "transpose" / name).read_text() == text
    assert len(FILES[STUDY].splitlines()) <= 30


def test_its_table_is_that_of_the_run(folder: Path) -> None:
    assert run(folder).counts == {"ok": 12}
    (table,) = results(load_dataset(folder / "run"), ReportItem("table", "results"))
    lines = re.findall(r"^\| (\w+ \|.*) \|$", PAGE.partition("Four lines")[2], re.M)[:5]
    heads, *rows = ([cell.strip() for cell in line.split("|")] for line in lines)
    made = [dict(zip([c.heading for c in table.columns], r, strict=True)) for r in table.texts()]
    assert len(rows) == 4
    for row in rows:
        assert row in [[one[head] for head in heads] for one in made]


def test_a_wrong_kernel_gets_the_reason_on_the_page(folder: Path) -> None:
    right = "= tile[threadIdx.x][threadIdx.y + i]"
    assert right in FILES[SOURCE]
    wrong = FILES[SOURCE].replace(right, "= tile[threadIdx.y + i][threadIdx.x]")
    (folder / SOURCE).write_text(wrong)
    assert run(folder).counts == {"wrong": 12}
    said = {failure_text(record) for record in read_records(folder / "run").records}
    (shown,) = re.findall(r"^    (wrong: .*\n    .*)\n", PAGE, re.M)
    assert " ".join(shown.split()) in said


def test_the_mistakes_are_those_on_the_page(folder: Path) -> None:
    changes = {"ceil(n / tile), ceil": "ceil(n / tlie), ceil", "[tile, tile // rows]": "2048"}
    shown = re.findall(r"^    transpose.yaml(:\d+: .*)$", PAGE, re.M)
    for (before, after), said in zip(changes.items(), shown, strict=True):
        (folder / STUDY).write_text(FILES[STUDY].replace(before, after, 1))
        with pytest.raises(StudyError) as caught:
            expand(load_study(folder / STUDY), facts_for("sim:mini"))
        assert str(caught.value).startswith(str(folder / STUDY) + said.partition(" (...)")[0])
