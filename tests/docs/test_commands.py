"""Every command in the documentation parses, every link leads somewhere."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from nqbench.cli.app import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROSE = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    ROOT / "examples" / "README.md",
    *PAGES,
    *sorted((ROOT / "experiments").glob("*/README.md")),
]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def shell_lines(page: Path) -> Iterator[str]:
    """Lines of shell blocks, and of indented blocks that begin with a known program."""
    text = page.read_text(encoding="utf-8")
    for language, body in BLOCK.findall(text):
        if language in ("sh", "shell", "bash", "console"):
            yield from (line for line in body.splitlines() if line.strip())
    outside = BLOCK.sub("", text)
    yield from re.findall(r"^ {4}(?=nqbench |make |python -m )(.*)$", outside, re.MULTILINE)


COMMANDS = [
    pytest.param(line, id=f"{page.name}: {line[:60]}")
    for page in [*PAGES, ROOT / "README.md"]
    for line in dict.fromkeys(shell_lines(page))
]


@pytest.mark.parametrize("line", COMMANDS)
def test_command_parses(line: str) -> None:
    words = shlex.split(line, comments=True)
    if words[0].endswith("nqbench"):
        check(words[1:])
    elif words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    elif words[:2] == ["python", "-m"] and words[2].startswith("benchmarks."):
        assert importlib.util.find_spec(words[2]) is not None


def check(words: list[str]) -> None:
    """Parse without running. Raises as the command line would."""
    if words[0].startswith("--"):
        return
    group: Any = typer.main.get_command(app)
    name, command, rest = group.resolve_command(typer.Context(group), words)
    command.make_context(name, rest)
    for name in words[1:]:
        if name.startswith(("configs/", "experiments/")):
            assert (ROOT / name).exists(), name


def test_there_are_commands_of_every_kind() -> None:
    lines = [str(parameter.values[0]) for parameter in COMMANDS]
    for start in ("nqbench run", "nqbench doctor", "make ablation", "python -m benchmarks."):
        assert any(line.startswith(start) for line in lines), start


def test_a_wrong_option_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        check(["run", "configs/quick.yaml", "--devise", "sim"])
    with pytest.raises(Exception, match="No such command"):
        check(["rum", "configs/quick.yaml"])


def test_links_lead_somewhere() -> None:
    for page in PROSE:
        targets = LINK.findall(page.read_text(encoding="utf-8"))
        broken = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
        assert broken == [], page


def test_every_command_and_paper_is_in_the_guides() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in [*PAGES, ROOT / "README.md"])
    group: Any = typer.main.get_command(app)
    named = set(re.findall(r"nqbench ([a-z]+)", text))
    assert named >= set(group.commands), set(group.commands) - named
    papers = (ROOT / "Makefile").read_text(encoding="utf-8").partition("PAPERS := ")[2]
    folders = {file.parent.name for file in ROOT.glob("experiments/*/published.yaml")}
    assert set(papers.splitlines()[0].split()) == folders


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_fit_120_characters(page: Path) -> None:
    text = re.sub(
        r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    prose = (line for line in text.splitlines() if not line.startswith(("|", "    ", "!")))
    assert [line for line in prose if len(line) > 120] == []
