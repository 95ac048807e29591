"""The documentation builds without a warning, and its reference is what the program says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import nqbench
from nqbench.papers import load_paper

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def reference() -> Any:
    path = ROOT / "scripts" / "reference.py"
    spec = importlib.util.spec_from_file_location("nqbench_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_has_a_warning(tmp_path: Path) -> None:
    """Links between pages, their anchors, pages that the index does not link, code, tables."""
    words = ["-W", "--keep-going", "-q", "-b", "dummy", "-d", str(tmp_path / "read")]
    command = [sys.executable, "-m", "sphinx", *words, str(DOCS), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reference_is_up_to_date(reference: Any) -> None:
    pages = reference.pages()
    assert {page.name for page in (DOCS / "reference").iterdir()} == set(pages)
    for name, text in pages.items():
        written = (DOCS / "reference" / name).read_text(encoding="utf-8")
        assert written == text, f"docs/reference/{name} is not up to date; run `make docs`"


def test_the_citation_is_of_this_version_and_these_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == nqbench.__version__
    papers = [load_paper(file.parent.name) for file in ROOT.glob("experiments/*/published.yaml")]
    own = {(p.title, p.source.year, len(p.source.authors)) for p in papers}
    assert {(r["title"], r["year"], len(r["authors"])) for r in cited["references"]} == own
