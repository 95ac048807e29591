"""What a study from somewhere else would run is said before it runs, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench import workloads
from tests.cli.call import call

PYTHON = "name: s\nworkload: ./own.py:WORKLOAD\nn: 8\n"
COMMAND = Path(__file__).with_name("command.yaml").read_text(encoding="utf-8")
CHECK = Path(__file__).with_name("outside.yaml").read_text(encoding="utf-8")
PLAIN = "name: s\nworkload: counting\nn: 8\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (PYTHON, "./own.py:WORKLOAD"),
        (COMMAND, "./solver {n}"),
        (CHECK, "check.py:right"),
        (PLAIN, ""),
    ],
)
@pytest.mark.parametrize("command", ["run --dry-run", "check", "static", "explain"])
def test_a_study_from_elsewhere_says_once_what_it_runs(
    text: str, code: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(workloads, "_registered", workloads._registered.copy())
    monkeypatch.setattr(workloads, "_external", workloads._external.copy())
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
        (folder / "s.yaml").write_text(text)
        (folder / "own.py").write_text("import math\nX = math.sqrt(-1)\n")
    first, *more = command.split()

    def said(study: Path) -> list[str]:
        done = call(first, study, *more, cwd=here)
        return [line for line in done.err.splitlines() if "a study is a program" in line]

    assert not said(here / "s.yaml")
    lines = said(elsewhere / "s.yaml")
    assert len(lines) == bool(code)
    assert all(f"it runs {code};" in line for line in lines)
    assert not said(elsewhere / "s.yaml")
    (elsewhere / "s.yaml").write_text(f"{text}# changed\n")
    assert len(said(elsewhere / "s.yaml")) == bool(code)
    (here / ".git").mkdir()
    assert not said(here / "s.yaml")
