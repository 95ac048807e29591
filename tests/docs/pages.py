"""What a page of the documentation holds that can be run: its files and its commands.

A fenced block whose first line is a comment with a file name (``# study.yaml``, ``// kernel.cu``)
is that file. Commands are the lines of shell blocks, and indented lines that begin with a program.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PAGES: Final = {
    path.stem if path.parent in (DOCS, ROOT) else str(path.parent.relative_to(ROOT)): path
    for path in (
        *sorted(DOCS.glob("*.md")),
        ROOT / "README.md",
        ROOT / "examples" / "README.md",
        ROOT / "nqbench" / "simulator" / "README.md",
        *sorted(ROOT.glob("experiments/*/README.md")),
        *sorted(ROOT.glob("results/**/README.md")),
    )
}
FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED: Final = re.compile(r"(?://|#) ([\w-]+\.\w+)(?::.*)?\n")
COMMAND: Final = re.compile(r"^ {4}((?:nqbench|make|cd|git|python -m|cc) .*)$", re.MULTILINE)
SHELLS: Final = ("sh", "bash")

SKIPPED: Final = {
    "a form with words to replace": r"\b[A-Z]{3,}\b(?![_=.])|\bN\b|nvbench\.json|before\.json",
    "needs a GPU": r"cuda|--gpus|bottleneck |--roofline|run ceilings",
    "needs other computers or a network": r"^(git|dask|openssl|export|pip|python3)\b|--scheduler"
    r"|--cluster|nqbench worker|/configure",
    "installs": r"^(make|cd|\.) |--install-completion",
    "takes minutes": r"^python -m benchmarks|run (ablation|cpu_baseline|local_search|configs/)"
    r"|reproduce|count (1[5-9]|2\d)(?! --est)|claims --matrix|--site|h[12]00/ablation",
}
"""Why a command is not run, and how one looks: everything else is."""


@dataclass(frozen=True)
class Command:
    """A line of a page, without its comment."""

    line: str

    @property
    def words(self) -> list[str]:
        """As the shell splits them, up to a pipe or a redirection."""
        words = shlex.split(self.line)
        ends = [words.index(mark) for mark in ("|", ">") if mark in words]
        return words[: min(ends, default=None)]

    @property
    def skipped(self) -> str:
        """Why it is not run; empty if it is."""
        return next((why for why, form in SKIPPED.items() if re.search(form, self.line)), "")


def files(page: Path) -> dict[str, str]:
    """Contents of the files that a page shows, by name."""
    bodies = (body for _, body in FENCED.findall(page.read_text(encoding="utf-8")))
    return {named[1]: body for body in bodies if (named := NAMED.match(body))}


def commands(page: Path) -> list[Command]:
    """The commands of a page in its order, each once."""
    return list(dict.fromkeys(Command(line) for line in _lines(page) if line))


def _lines(page: Path) -> Iterator[str]:
    text = re.sub(r"\\\n *", "", page.read_text(encoding="utf-8"))  # lines that go on
    at = 0
    for block in (*FENCED.finditer(text), None):
        yield from map(_plain, COMMAND.findall(text[at : block.start() if block else None]))
        if block and block[1] in SHELLS:
            yield from map(_plain, block[2].splitlines())
        at = block.end() if block else at


def _plain(line: str) -> str:
    """Without the comment behind it."""
    return shlex.join(shlex.split(line, comments=True)) if "#" in line else line.strip()
