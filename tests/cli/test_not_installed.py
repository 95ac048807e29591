"""From a source folder on the import path, without installation: ``PYTHONPATH=... -m nqbench``."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import nqbench

ROOT = Path(nqbench.__file__).parent.parent
SEVERAL = """\
import contextlib, sys
from nqbench.cli import app
from nqbench.system.versions import installed
print(installed("nqbench"), installed("numba") is None)
for words in ("--version", "--help", "devices", "kernels", "init --schema"):
    sys.argv = ["nqbench", *words.split()]
    with contextlib.suppress(SystemExit):
        app.main()
"""


def test_lists_versions_and_the_doctor(tmp_path: Path) -> None:
    """A Python that has every package of this one but nqbench: no metadata, no path to it."""
    venv.EnvBuilder(symlinks=True).create(tmp_path / "python")
    packages = next(tmp_path.glob("python/lib/python3*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "nqbench" not in entry.name:
            (packages / entry.name).symlink_to(entry)

    def bare(*words: str) -> str:
        command = [str(tmp_path / "python/bin/python"), *words]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout

    said = bare("-c", SEVERAL)
    metadata, version, *_ = said.splitlines()
    assert metadata == "None False", "the rest relies on it"
    assert version == f"nqbench {nqbench.__version__}"
    for part in ("Usage: nqbench", "sim:mini", "workload: counting", "nqbench.schema.json"):
        assert part in said
    rows = json.loads(bare("-m", "nqbench", "doctor", "-d", "cpu", "--json"))["rows"]
    (row,) = [row for row in rows if row["name"] == "Python packages"]
    assert (row["state"], "not installed here" in row["found"]) == ("warning", True)
