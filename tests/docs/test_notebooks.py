"""The notebooks give what they are committed with, and state numbers that they show."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pandas
import pytest

from benchmarks.in_process import in_process
from tests.docs.pages import DOCS

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
MAX_BYTES = 200_000


def texts(notebook: Any) -> list[str]:
    """What the cells show, line by line; of figures only that there is one."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    return lines(out.get("text") or out["data"]["text/plain"] for out in outputs)


def lines(parts: Iterable[str]) -> list[str]:
    """Without empty ones."""
    return [line for part in parts for line in part.splitlines() if line.strip()]


def executed(notebook: Any) -> list[str]:
    """The same when the cells run now, in this process: a kernel of Jupyter's starts slowly."""
    names: dict[str, Any] = {}
    shown: list[str] = []
    pandas.set_option("display.max_columns", 20)  # as where there is no terminal
    for cell in (cell.source for cell in notebook.cells if cell.cell_type == "code"):
        body = ast.parse(cell).body
        quiet = cell.rstrip().endswith(";") or not isinstance(body[-1], ast.Expr)
        last = [] if quiet else [body.pop()]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), "cell", "exec"), names)
            value = eval(ast.unparse(last[0]), names) if last else None
        shown += [text for text in (printed.getvalue(),) if text]
        shown += [repr(plt.figure(number)) for number in plt.get_fignums()]
        plt.close("all")
        shown += [repr(value)] if value is not None else []
    return lines(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_gives_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(plt, "show", lambda: None)
    notebook = nbformat.read(path, as_version=4)
    wide = pandas.option_context("display.max_columns", None, "display.max_colwidth", 50)
    with in_process(), wide:
        now = executed(notebook)
    assert now == texts(notebook), "make docs executes it again"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_prose_states_numbers_that_it_shows_and_no_place(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    prose = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    stated = re.findall(r"\*\*(\d[\d.]*)\*\*", prose)
    everything = "\n".join(texts(notebook))
    assert len(stated) >= 5
    assert [n for n in stated if not re.search(rf"(?<![\d.]){re.escape(n)}", everything)] == []
    text = path.read_text(encoding="utf-8")
    assert len(text) < MAX_BYTES
    assert not re.search(r"/home/|/root/|/tmp/|/work/|iopub|\.venv", text)
