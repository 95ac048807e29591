"""Run folders, caches and locks that somebody else made: they are data, and never more."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nqbench.runs.reading import MANIFEST, RECORDS
from tests.cli.call import call
from tests.toys import FAKE, STUDY

EVIL = "from pathlib import Path\n\nPath('imported').touch()\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a module and a run whose manifest names it as its workload."""
    (tmp_path / "study.yaml").write_text(STUDY)
    words = ("--device", FAKE, "--out", tmp_path / "r", "--no-report")
    assert call("run", tmp_path / "study.yaml", *words).code == 0
    (tmp_path / "evil.py").write_text(EVIL)
    data = json.loads((tmp_path / "r" / MANIFEST).read_text())
    for naming in (data["study"], *data["points"]):
        naming["workload"] = "evil:WORKLOAD"
    lines = (tmp_path / "r" / RECORDS).read_bytes().splitlines(keepends=True)
    folder = tmp_path / "runs" / "evil"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text(json.dumps(data))
    (folder / RECORDS).write_bytes(lines[-1])  # of the others: CPU or GPU?
    return tmp_path


@pytest.mark.parametrize("command", ["report", "report --site", "compare", "claims", "run"])
def test_a_manifest_cannot_have_a_module_imported(
    command: str, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(hostile)  # as `python -m nqbench` does with the current folder
    run, words = hostile / "runs" / "evil", [*command.split()]
    words += {"run": ["study.yaml", "--device", FAKE]}.get(command, [str(run)])
    words += {"compare": [str(hostile / "r")], "claims": ["--paper", "zhang2011"]}.get(command, [])
    done = call(*words, "--out", run if command == "run" else hostile / "plots", cwd=hostile)
    sys.modules.pop("evil", None)
    assert "Traceback" not in done.said
    assert not (hostile / "imported").exists(), done.said
