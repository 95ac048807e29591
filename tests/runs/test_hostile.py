"""Run folders, caches and locks that somebody else made: they are data, and never more."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nqbench.runs.reading import MANIFEST, PACKED, RECORDS, SUMS, line_of, read_records
from tests.cli.call import call
from tests.toys import FAKE, STUDY
from tests.verify.test_checks import manifest, record

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
def test_control_characters_of_a_run_reach_no_terminal_or_file(command: str, hostile: Path) -> None:
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


def become(make: Callable[[Path], object], name: str = RECORDS) -> Callable[[Path], object]:
    """A file is something else."""
    return lambda run: (run / name).rename(run / "aside") and make(run / name)


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda run: (run / name).write_bytes(content)


def pack(content: bytes) -> Callable[[Path], object]:
    """Packed records in the place of the others."""
    return become(lambda p: p.with_name(PACKED).write_bytes(content))


OUT = "../../../owned"
FORMULA = {"metrics": {"x": "open('owned', 'w')"}}
FOLDERS: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "a pipe for records": (become(os.mkfifo), 1, "records.jsonl cannot be read: it is a pipe"),
    "a pipe for a manifest": (become(os.mkfifo, MANIFEST), 1, "cannot be read: it is a pipe"),
    "a device": (become(lambda p: p.symlink_to("/dev/zero")), 1, "it is a pipe or a device"),
    "a link to itself": (become(lambda p: p.symlink_to(p.name)), 1, "Too many levels of symbolic"),
    "a file of the system": (become(lambda p: p.symlink_to("/etc/passwd")), 0, "not JSON"),
    "a folder": (become(Path.mkdir), 1, "cannot be read: Is a directory"),
    "a bomb": (pack(gzip.compress(bytes(1 << 20))), 1, "records.jsonl.gz holds more than"),
    "no archive": (pack(b"PK"), 1, "records.jsonl.gz is damaged"),
    "sums of others": (write(SUMS, b"0  ../../etc/passwd\n"), 1, "is not the file that SHA256SUMS"),
    "no sums": (write(SUMS, b"\xff\x00" * 99), 1, "is not the file that SHA256SUMS"),
    "brackets": (write(MANIFEST, b"[" * 10**6), 1, "is not JSON"),
    "brackets in a line": (write(RECORDS, b"[" * 10**6 + b"\n"), 0, "not JSON"),
    "a long number": (write(RECORDS, b'{"x": 1' + b"0" * 5000 + b"}\n"), 0, "not JSON"),
    "two bytes a letter": (write(RECORDS, "{}\n".encode("utf-16")), 0, "left out"),
    "no time": (record(lambda r: r.update(wall_s=math.inf)), 0, "which should be less"),
    "a long answer": (record(lambda r: r.update(answer="9" * 10**5)), 0, ""),
    "a folder above": (manifest(lambda m: [p.update(sweep=OUT) for p in m["points"]]), 0, ""),
    "a study above": (manifest(lambda m: m["study"].update(name=OUT)), 0, ""),
    "a huge size": (manifest(lambda m: m["points"][0]["factors"].update(n=2**63)), 1, "from 0 to"),
    "a huge seed": (manifest(lambda m: m.update(seed=10**300)), 1, "no number up to 1e100"),
    "two versions": (
        write(MANIFEST, b'{"version": 1, "version": 1}'),
        1,
        "the key 'version' twice",
    ),
    "a formula": (manifest(lambda m: m["study"].update(kernel=FORMULA)), 2, "calls open(), which"),
    "a program": (manifest(lambda m: m["study"].update(text="!!python/name:os.system")), 0, ""),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_hostile_run_is_data(name: str, hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage, code, said = FOLDERS[name]
    monkeypatch.setattr("nqbench.runs.reading.MAX_BYTES", 1 << 19)
    damage(hostile / "r")
    before = {path.name for path in hostile.iterdir()}
    done = call("report", hostile / "r", "--csv", "--out", hostile / "all.csv", cwd=hostile)
    assert (done.code, said in done.err) == (code, True), done.said
    assert {path.name for path in hostile.iterdir()} <= {*before, "all.csv"}
    assert not list(hostile.parent.glob("owned*"))
