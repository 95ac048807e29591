"""Tests after a fault run in a fresh process, and no fault hides another."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

CONFTEST = """
from pathlib import Path
import pytest
from tests.gpu.afresh import Afresh

LOST = []

def pytest_collection_modifyitems(config, items):
    for item in items:
        item.add_marker(pytest.mark.gpu)
    config.pluginmanager.register(Afresh(config, Path(config.rootpath), lambda: bool(LOST)))

@pytest.fixture
def lost():
    return LOST
"""
TESTS = """
import os
import time
import pytest

def test_first(lost):
    assert not lost

@pytest.mark.parametrize("again", [1, 2])
def test_fault(lost, again):
    assert not lost, "hidden by the fault before"
    lost.append(again)
    raise RuntimeError(f"fault {again}")

def test_after(lost):
    assert not lost

def test_slow(lost):
    time.sleep(float(os.environ["SLOW_S"]))

def test_wrong(lost):
    assert lost, "a failure of its own"

def test_ends(lost):
    os._exit(7)

def test_last(lost):
    pytest.skip("for a reason")
"""


def session(folder: Path, *options: str, slow_s: float = 0.1) -> str:
    """What a session of the tests above says; ``test_slow`` lasts ``slow_s``."""
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_some.py").write_text(TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gpu: a GPU\n", encoding="utf-8")
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", *options], capture_output=True, text=True,
        timeout=60, cwd=folder, env={"PYTHONPATH": root, "SLOW_S": str(slow_s)},
    )  # fmt: skip
    return done.stdout


def working_in(folder: Path) -> list[Path]:
    """Processes whose working directory this is."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # it ended, or belongs to somebody else
            if place.readlink() == folder.resolve():
                found.append(place.parent)
    return found


def test_every_test_after_a_fault_gets_its_own_result(tmp_path: Path) -> None:
    said = session(tmp_path)
    assert "4 failed, 3 passed, 1 skipped" in said, said
    for words in ("fault 1", "fault 2", "a failure of its own", "ended with 7", "for a reason"):
        assert words in said, (words, said)
    assert "AssertionError: hidden by the fault before" not in said


def test_a_session_that_ends_early_leaves_no_process(tmp_path: Path) -> None:
    said = session(tmp_path, "--maxfail=2", slow_s=30.0)
    assert "2 failed, 1 passed" in said, said
    assert not working_in(tmp_path)
    lines = [
        line for file in tmp_path.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()
    ]
    reports = [json.loads(line) for line in lines]
    assert reports
    # Its set-up may be reported before the session ends; its call takes 30 seconds.
    assert not any("test_slow" in r["nodeid"] and r["when"] == "call" for r in reports)
