"""The documentation builds without a warning, is no longer than it may be, and what scripts write
in it is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import nqbench
from nqbench.papers import load_paper
from scripts import outputs, paper_tables, reference
from tests.cli.call import Done, call
from tests.docs.pages import DOCS, PAGES, ROOT

MAX_WORDS = 26_600
MAX_WORDS_OF_A_PAGE = 3_500
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
NAMED = re.compile(r"`((?:nqbench|tests|scripts|configs|examples|experiments|results)/[\w./]*\w)`")
INSIDE = re.compile(r"`([a-z_]+/[\w./]*)`")
"""Files of nqbench, as the page for developers names them."""


def test_no_page_has_a_warning(tmp_path: Path) -> None:
    """Links between pages, their anchors, pages that the index does not link, code, tables."""
    words = ["-W", "--keep-going", "-q", "-b", "dummy", "-d", str(tmp_path / "read")]
    command = [sys.executable, "-m", "sphinx", *words, str(DOCS), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_the_program_writes_is_up_to_date() -> None:
    pages = reference.pages()
    assert {page.name for page in (DOCS / "reference").iterdir()} == set(pages)
    for name, text in pages.items():
        old = (DOCS / "reference" / name).read_text(encoding="utf-8")
        assert old == text, f"docs/reference/{name} is not up to date; run `make docs`"
    for page in paper_tables.PAGES:
        old = page.read_text(encoding="utf-8")
        assert old == paper_tables.written(page), f"{page} is not up to date; run `make docs`"


@pytest.mark.parametrize("page", outputs.PAGES, ids=lambda page: page.stem)
def test_the_outputs_shown_are_what_the_commands_print(page: Path, undrawn: None) -> None:
    def run(words: list[str], folder: Path) -> Done:
        return call(*words, cwd=folder, **outputs.TERMINAL)

    text = page.read_text(encoding="utf-8")
    assert text.count("\n$ nqbench") >= 4
    assert text == outputs.written(page, run), f"{page} is not up to date; run `make docs`"


def test_the_pages_are_no_longer_than_they_may_be() -> None:
    """What commands print is not counted."""
    own = {
        page: page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *DOCS.glob("*.md"))
    }
    words = {page.name: len(outputs.BLOCK.sub("", text).split()) for page, text in own.items()}
    assert sum(words.values()) <= MAX_WORDS
    assert max(words.values()) <= MAX_WORDS_OF_A_PAGE, words


@pytest.mark.parametrize("name", PAGES)
def test_links_and_paths_lead_somewhere_and_lines_fit(name: str) -> None:
    page = PAGES[name]
    text = page.read_text(encoding="utf-8")
    linked = [page.parent / t for t in LINK.findall(text) if "://" not in t]
    named = [ROOT / t for t in NAMED.findall(text) if not re.search("[A-Z]{4}/|/local", t)]
    assert [str(path) for path in (*linked, *named) if not path.exists()] == []
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE).splitlines()
    long = [line for line in prose if len(line) > 120 and not line.startswith(("|", "    ", "!"))]
    assert long == []


def test_anchors_of_other_pages_exist() -> None:
    """Sphinx checks those of docs/; these are of README, examples, experiments and results."""
    for name, page in PAGES.items():
        for target, anchor in re.findall(r"\]\(([^)#\s]+\.md)#([^)]+)\)", page.read_text("utf-8")):
            text = (page.parent / target).read_text(encoding="utf-8")
            heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in heads}
            assert anchor in slugs, f"{name}: {target}#{anchor}"


def test_the_rooms_and_papers_are_on_their_pages() -> None:
    page = (DOCS / "developing.md").read_text(encoding="utf-8")
    rooms = {
        path.stem
        for path in (ROOT / "nqbench").iterdir()
        if not path.name.startswith("_")
        and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    assert rooms <= set(re.findall(r"`(\w+)/?`", page))
    files = [name for name in INSIDE.findall(page) if not re.search("[A-Z]{4}", name)]
    there = [(ROOT / name).exists() or (ROOT / "nqbench" / name).exists() for name in files]
    assert [name for name, exists in zip(files, there, strict=True) if not exists] == []
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == nqbench.__version__
    folders = [file.parent.name for file in ROOT.glob("experiments/*/published.yaml")]
    papers = [load_paper(name) for name in folders]
    own = {(p.source.title, p.source.year, len(p.source.authors)) for p in papers}
    assert {(r["title"], r["year"], len(r["authors"])) for r in cited["references"]} == own
    assert all(name in (DOCS / "papers.md").read_text(encoding="utf-8") for name in folders)
