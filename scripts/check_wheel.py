"""Build the wheel, install it in an empty environment, and run it in an empty folder.

What it runs there is what a user without a GPU runs first: a count, a study and a paper, by name.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
COMMANDS: Final = (
    (0, "count 8 --device sim:mini", "a(8) = 92"),
    (0, "run quick --device sim:mini", "report.html"),
    (0, "init my-study", "my-study.yaml"),
    (0, "run my-study.yaml --device sim:mini --dry-run", ""),
    (0, "reproduce zhang2011 --device sim:mini", "holds"),
)
"""Exit code, command, and what the output must contain."""


def main() -> int:
    """Exit code 0 if every command does what it should; 1 with the first that does not."""
    with tempfile.TemporaryDirectory(prefix="nqbench-wheel-") as folder:
        command = install(build(ROOT / "dist"), Path(folder) / "venv")
        empty = Path(folder) / "empty"
        empty.mkdir()
        return 0 if all(run(command, empty, *expected) for expected in COMMANDS) else 1


def build(into: Path) -> Path:
    """The wheel of this checkout."""
    call(sys.executable, "-m", "build", "--wheel", "--outdir", str(into), str(ROOT))
    wheel = max(into.glob("*.whl"), key=lambda file: file.stat().st_mtime)
    say(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    return wheel


def install(wheel: Path, environment: Path) -> Path:
    """The ``nqbench`` command of a new environment that holds the wheel and what it requires."""
    venv.create(environment, with_pip=True)
    flags = ("--quiet", "--disable-pip-version-check", "--no-input")
    call(str(environment / "bin" / "python"), "-m", "pip", "install", *flags, str(wheel))
    return environment / "bin" / "nqbench"


def run(command: Path, folder: Path, code: int, words: str, wanted: str) -> bool:
    """Run one command in ``folder``; whether it ended and said what it should."""
    started = time.monotonic()
    done = subprocess.run(
        [str(command), *words.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    right = done.returncode == code and wanted in said
    say(f"nqbench {words}: exit {done.returncode}, {time.monotonic() - started:.1f} s")
    if not right:
        say(f"expected exit {code} and {wanted!r}; it said:\n{said}")
    return right


def call(*command: str) -> None:
    """Run a tool; its output is shown only if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        say(done.stdout + done.stderr)
        raise SystemExit(f"check_wheel: {command[0]} ended with exit code {done.returncode}")


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stderr.write(f"wheel: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
