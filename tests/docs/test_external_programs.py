"""The C program of examples/external_program and its study; the page shows the same study."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nqbench.devices.cpu import CpuDevice
from nqbench.runs.frame import load
from nqbench.study import expand, load_study
from tests.toys import run_here

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "external_program"
PAGE = (ROOT / "docs" / "external-programs.md").read_text(encoding="utf-8")
COMPILER = shutil.which("cc")


def test_the_page_shows_the_study(tmp_path: Path) -> None:
    shown, free = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.M)
    (tmp_path / "study.yaml").write_text(shown, encoding="utf-8")
    facts = CpuDevice().facts
    on_page, own = (expand(load_study(f / "study.yaml"), facts) for f in (tmp_path, EXAMPLE))
    assert [p.label() for p in on_page] == [p.label() for p in own]
    assert [p.program and p.program.as_json() for p in on_page] == [
        p.program and p.program.as_json() for p in own
    ]
    (tmp_path / "study.yaml").write_text(free, encoding="utf-8")
    assert len(expand(load_study(tmp_path / "study.yaml"), facts)) == 6


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc) on this machine")
def test_the_program_is_right_and_timed_by_both_clocks(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("queens"))
    folder = tmp_path / "example"
    build = [str(COMPILER), "-O3", "-Wall", "-Wextra", "-Werror", "-o", "queens", "queens.c"]
    subprocess.run(build, cwd=folder, check=True)
    text = (folder / "study.yaml").read_text(encoding="utf-8")
    quick = text.replace("rounds: 5, budget: 2s", "rounds: 2, budget: 200ms")
    assert quick != text
    (folder / "study.yaml").write_text(quick, encoding="utf-8")
    study = load_study(folder / "study.yaml")
    outcome = run_here(study, "cpu", tmp_path / "run")
    assert outcome.counts == {"ok": 9}
    own = load(tmp_path / "run").query("round > 0 and system == 'queens.c'")
    assert (own["kernel_s"] < own["total_s"]).all()
