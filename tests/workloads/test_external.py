"""Workloads that are no part of nqbench: of a study's folder, and of modules."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nqbench import workloads
from nqbench.devices.registry import facts_for
from nqbench.errors import StudyError
from nqbench.runs.reading import read_records
from nqbench.study import expand, load_study
from tests.toys import run_here

pytestmark = pytest.mark.usefixtures("undrawn")

SIGNS = Path(__file__).parents[2] / "examples" / "signs"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The example's workload as a file beside a study."""
    before, path = set(sys.modules), [*sys.path]
    known = workloads._registered.copy(), workloads._external.copy()
    shutil.copy(SIGNS / "signs.cu", tmp_path)
    module = (SIGNS / "signs.py").read_text(encoding="utf-8")
    (tmp_path / "own_signs.py").write_text(module + "\nimport own_helper\n")
    (tmp_path / "own_helper.py").write_text("")
    (tmp_path / "own_broken.py").write_text("import math\n\nX = math.sqrt(-1)\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    sys.path[:] = path
    workloads._get.cache_clear()
    workloads._registered, workloads._external = known


def study(folder: Path, workload: str) -> Path:
    path = folder / "study.yaml"
    text = (SIGNS / "signs.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("./signs.py:WORKLOAD", workload))
    return path


@pytest.mark.parametrize(
    ("workload", "edits"), [("./own_signs.py:WORKLOAD", 1), ("own_signs:WORKLOAD", 0)]
)
def test_workers_too_find_it_beside_the_study(folder: Path, workload: str, edits: int) -> None:
    for edited in range(edits + 1):
        if edited:
            (folder / "own_helper.py").write_text("\n")
        loaded = load_study(study(folder, workload))
        outcome = run_here(loaded, "sim:mini", folder / "run", isolate=True)
        assert outcome.counts == {"ok": 8}
        records = read_records(folder / "run").records
        assert len(records) == (16 if edited else 8), "an edited file is measured again"
        assert {record.point["workload"] for record in records} == {workload}
    written = "".join(p.read_text() for p in (folder / "run").iterdir() if p.is_file())
    assert str(folder) not in written


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("./own_sings.py:WORKLOAD", "no Python file own_sings.py; did you mean own_signs.py?"),
        ("./own_signs.py:WORKLOD", "own_signs.py has no object 'WORKLOD'; did you mean 'WORKLOAD'"),
        ("own_sgns:WORKLOAD", "ModuleNotFoundError: No module named 'own_sgns'"),
        ("./own_broken.py:X", "cannot be loaded: own_broken.py:3: ValueError: math domain error"),
        ("own_broken:X", "cannot be loaded: own_broken.py:3: ValueError: math domain error"),
        ("own_signs:Path", "not a Workload; let its class inherit from"),
        ("./own_signs.py", "name its object too"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(folder: Path, workload: str, said: str) -> None:
    path = study(folder, workload)
    with pytest.raises(StudyError) as caught:
        expand(load_study(path), facts_for("sim:mini"))
    assert str(caught.value).startswith(f"{path}:4: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
