"""Write what commands print into the pages that show it (part of `make docs`).

    python scripts/outputs.py

A block of the language `console` holds commands after `$ ` and what each prints on a terminal of
100 columns. They run one after the other, in a folder like a checkout without results of its own.
The time that a run took and the folder are masked. A test holds the pages equal to what this
writes.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = (ROOT / "README.md", ROOT / "docs" / "answers.md")
BLOCK: Final = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
COLUMNS: Final = 100
TERMINAL: Final = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "PYTHONPATH": str(ROOT)}
MASKED: Final = {
    r"\x1b\[[0-9;]*m": "",
    r"(configurations?), [\d.]+ m?s\)": r"\1, ... s)",
    r"file://\S*?/(?=plots/)": "file:///.../",
    r"[ \t]+$": "",
}
"""What differs from time to time, and what stands in its place."""
HEADLINE: Final = re.compile(r"^(.*?) +(\d+ of \d+ points right), .*$", re.MULTILINE)
"""With the time, which stands at the right edge."""
LINKED: Final = ("configs", "experiments", "results/reference")
CODES: Final = (0, 1)
"""Exit codes of commands that did their work; 1: a kernel is wrong, which a page may show."""


def main() -> int:
    """Write the pages; list those that changed."""
    for page in PAGES:
        if (text := written(page)) != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            sys.stderr.write(f"outputs: {page.relative_to(ROOT)} has changed\n")
    return 0


def as_process(words: list[str], folder: Path) -> tuple[int, str, str]:
    """Exit code, output and errors of ``nqbench WORDS``, run in the folder."""
    done = subprocess.run(
        [sys.executable, "-m", "nqbench", *words],
        env={**os.environ, **TERMINAL},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def written(page: Path, run: Callable[[list[str], Path], tuple[int, str, str]] = as_process) -> str:
    """The page's text with what its commands print now. Raises ``RuntimeError`` if one fails."""

    def shown(block: re.Match[str]) -> str:
        commands = re.findall(r"^\$ nqbench (.*)$", block[1], re.MULTILINE)
        return "".join(
            f"$ nqbench {one}\n{_printed(*run(shlex.split(one, comments=True), folder))}"
            for one in commands
        )

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for linked in LINKED:
            (folder / linked).parent.mkdir(exist_ok=True)
            (folder / linked).symlink_to(ROOT / linked)
        shutil.copytree(ROOT / "examples", folder / "examples")
        return BLOCK.sub(shown, page.read_text(encoding="utf-8"))


def _printed(code: int, text: str, errors: str) -> str:
    """What a command printed on standard output, masked."""
    if code not in CODES:
        raise RuntimeError(f"a command ends with {code}: {errors}")
    for form, instead in MASKED.items():
        text = re.sub(form, instead, text, flags=re.MULTILINE)
    return HEADLINE.sub(
        lambda line: f"{line[1]}{line[2] + ', ... s':>{COLUMNS - len(line[1])}}", text
    )


if __name__ == "__main__":
    sys.exit(main())
