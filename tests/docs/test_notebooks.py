"""The notebooks run, give what they are committed with, and state numbers that they show."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
MAX_BYTES = 200_000


def scripts_notebooks() -> Any:
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "scripts" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(notebook: Any) -> list[str]:
    """What the cells show, as text; of figures only that there is one."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    return [out.get("text") or out["data"]["text/plain"] for out in outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of newer Pythons, in Jupyter's client
def test_it_runs_and_gives_what_it_shows(path: Path) -> None:
    shown = nbformat.read(path, as_version=4)
    assert texts(scripts_notebooks().executed(path)) == texts(shown), "make docs executes it again"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_prose_states_numbers_that_it_shows(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    prose = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    stated = re.findall(r"\*\*(\d[\d.]*)\*\*", prose)
    everything = "\n".join(texts(notebook))
    assert len(stated) >= 5
    assert [n for n in stated if not re.search(rf"(?<![\d.]){re.escape(n)}", everything)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_small_and_the_same_on_every_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < MAX_BYTES
    assert not re.search(r"/home/|/root/|/tmp/|/work/|iopub|\.venv", text)
