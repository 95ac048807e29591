"""``nqbench bottleneck``: its table and files, and a run without a number."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.measure.events import RunOutcome
from tests.cli.call import call


def test_the_command(tmp_path: Path) -> None:
    words = ("ceilings.copy", "--n", "256", "-d", "sim:mini", "--out", tmp_path / "run")
    done = call("bottleneck", *words)
    assert done.code == 0, done.err
    assert "memory_only" in done.out
    assert (tmp_path / "run" / "report" / "table-bottleneck.md").exists()


def test_nothing_measured_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = RunOutcome(tmp_path, {"skipped": 3}, (), {"a": "does not fit"}, 0.1, False)
    monkeypatch.setattr("nqbench.measure.runner.run_study", lambda *_, **__: outcome)
    done = call("bottleneck", "ceilings.copy", "-d", "sim:mini")
    assert done.code == 1
    assert "done: 3 skipped" in done.out
