"""From a source folder on the import path, without installation: ``PYTHONPATH=... -m nqbench``."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import nqbench

ROOT = Path(nqbench.__file__).parent.parent
SEVERAL = """\
import contextlib, sys
from nqbench.cli import app
from nqbench.system.versions import installed
print(installed("nqbench"), installed("numba") is None)
for words in ("--version", "--help", "devices", "kernels", "init --schema --json"):
    sys.argv = ["nqbench", *words.split()]
    with contextlib.suppress(SystemExit):
        app.main()
"""

Bare = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """A Python, in an empty folder, that has every package of this one but nqbench: no metadata,
    no path to it."""
    folder, work = tmp_path_factory.mktemp("python"), tmp_path_factory.mktemp("work")
    venv.EnvBuilder(symlinks=True).create(folder)
    packages = next(folder.glob("lib/python3*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "nqbench" not in entry.name:
            (packages / entry.name).symlink_to(entry)

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        command = [str(folder / "bin" / "python"), *map(str, words)]
        around = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=work, env=around, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    return call


def test_lists_and_versions(bare: Bare) -> None:
    done = bare("-c", SEVERAL)
    assert done.stderr == ""
    metadata, version, *_ = done.stdout.splitlines()
    assert metadata == "None False", "the other tests rely on it"
    assert version == f"nqbench {nqbench.__version__}"
    for part in ("Usage: nqbench", "sim:mini", "workload: counting", '"properties"'):
        assert part in done.stdout
    rows = json.loads(bare("-m", "nqbench", "doctor", "-d", "cpu", "--json").stdout)["rows"]
    (row,) = [row for row in rows if row["name"] == "Python packages"]
    assert (row["state"], "not installed here" in row["found"]) == ("warning", True)
