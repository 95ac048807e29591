"""Run folders, caches and locks that somebody else made: they are data, and never more."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nqbench.runs.reading import MANIFEST, RECORDS, line_of, read_records
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


ESCAPES = "\x1b]0;owned\x07\x1b[2J\r\\input{secrets}\x9b2J\u2028\u202e"


@pytest.mark.parametrize("command", ["report", "report --csv -", "compare", "compare --json"])
def test_control_characters_of_a_run_reach_neither_terminal_nor_file(
    command: str, hostile: Path
) -> None:
    run = hostile / "r"
    data = json.loads((run / MANIFEST).read_text())
    data["command"] = ["nqbench", "run", f"study{ESCAPES}.yaml"]
    data["study"]["about"] = data["study"]["name"] = f"about {ESCAPES}"
    data["device"]["facts"]["name"] = data["device"]["identity"]["name"] = f"GPU {ESCAPES}"
    for point in data["points"]:
        point["label"] = point["sweep"] = f"sweep {ESCAPES}"
    (run / MANIFEST).write_text(json.dumps(data))
    records = read_records(run).records
    failed = {"status": "crashed", "reason": f"it said {ESCAPES}", "value_s": None}
    changed: Any = {**failed, "samples_s": ()}
    lines = [*map(line_of, records[:-1]), line_of(replace(records[-1], **changed))]
    (run / RECORDS).write_bytes(b"".join(lines))
    made = ["md", "tex", "csv"] if command == "report" else []
    words = [str(run), *(word for kind in made for word in ("--format", kind))]
    words += ["--out", str(hostile / "plots")] if "-" not in command else []
    other = [shutil.copytree(run, hostile / "again")] if "compare" in command else []
    first, *more = command.split()
    done = call(first, *words, *other, *more, cwd=hostile)
    files = [
        path.read_bytes().decode()
        for path in (hostile / "plots").rglob("*.[hmtc]*")
        if path.is_file()
    ]
    assert bool(files) == ("-" not in command), done.said
    for text in (done.said, *files):
        assert not {c for c in text if c in "\x1b\x07\r\x9b\u2028\u202e"}, text
