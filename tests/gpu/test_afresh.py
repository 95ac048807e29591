"""Tests after a fault run in a fresh process, and no fault hides another."""

from __future__ import annotations

import subprocess
import sys
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

def test_wrong(lost):
    assert lost, "a failure of its own"

def test_ends(lost):
    os._exit(7)

def test_last(lost):
    pytest.skip("for a reason")
"""


def test_every_test_after_a_fault_gets_its_own_result(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu: a GPU\n", encoding="utf-8")
    code = "import sys, pytest; sys.path.insert(0, sys.argv[1]); pytest.main(['-rA', '-v'])"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, timeout=60,
        cwd=tmp_path, env={"PYTHONPATH": str(root)},
    )  # fmt: skip
    said = done.stdout
    assert "4 failed, 2 passed, 1 skipped" in said, said
    for words in ("fault 1", "fault 2", "a failure of its own", "ended with 7", "for a reason"):
        assert words in said, (words, said)
    assert "AssertionError: hidden by the fault before" not in said
