"""Reads ``experiments/PAPER/published.yaml``: digits as printed, mistakes with file:line."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from nqbench.errors import StudyError
from nqbench.papers.check import check
from nqbench.papers.data import with_data
from nqbench.papers.schema import Paper
from nqbench.study.packaged import papers_with
from nqbench.system.suggest import suggestion
from nqbench.system.yaml_marks import fit, read

PUBLISHED: Final = "published.yaml"


def paper_names() -> tuple[str, ...]:
    """Names of all papers: those in ``./experiments``, and those that come with nqbench."""
    return tuple(sorted(papers_with(PUBLISHED)))


def paper_folder(name: str) -> Path:
    """The folder of a paper. Raises ``StudyError`` with the nearest name for an unknown one."""
    found = papers_with(PUBLISHED)
    if name not in found:
        raise StudyError(f"there is no paper '{name}'; {suggestion(name, sorted(found))}")
    return found[name]


def load_paper(name: str) -> Paper:
    """A paper by name. Raises ``StudyError``: no such paper, or a mistake in its file."""
    file = paper_folder(name) / PUBLISHED
    changed = max(part.stat().st_mtime_ns for part in (file, *file.parent.glob("*.csv")))
    return _cached(file.resolve(), changed)


@lru_cache(maxsize=16)
def _cached(file: Path, modified_ns: int) -> Paper:  # noqa: ARG001 (an edited file is another one)
    return read_paper(file)


def read_paper(file: Path) -> Paper:
    """Read and check one file. Raises ``StudyError`` with file:line for the first mistake."""
    source = read(Path(file), "paper", as_text=True)
    paper = fit(source, Paper)
    check(paper, source)
    return with_data(paper, source)
