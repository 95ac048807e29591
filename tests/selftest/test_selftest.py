"""The self-test finds good statistics good and bad ones bad."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from nqbench.analysis.data import estimate
from nqbench.analysis.data.estimate import Contrast
from nqbench.runs.reading import MANIFEST, read_manifest
from nqbench.selftest import device
from nqbench.selftest.device import MAX_FALSE, STUDY, judge_run, study
from tests.cli.call import call
from tests.selftest.trials import SCENARIOS, self_test
from tests.toys import run_here

FAKE = "fake:base=1e-7,anew=1,noise=0.004,round=0.004,block=0.004,seed=3"


def test_statistics_that_keep_their_word_pass() -> None:
    """Power and coverage under normal noise; few trials, so the false calls' bound is not asked."""
    result = self_test(150, scenarios=[SCENARIOS[0], SCENARIOS[6]])
    kept = [f for f in result.findings if "upper bound" not in f.limit]
    assert kept
    assert all(0.91 <= f.value <= 1.0 for f in kept)


def test_raw_samples_as_replicates_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interval four times too narrow breaks every limit: the test can fail."""
    for honest in (estimate.paired, estimate.welch):

        def narrow(
            *sides: Any, honest: Callable[..., Contrast] = honest, **options: Any
        ) -> Contrast:
            found = honest(*sides, **options)
            return replace(found, error=found.error / 4)

        monkeypatch.setattr(estimate, honest.__name__, narrow)
    result = self_test(100, scenarios=SCENARIOS[:1])
    broken = {(f.design, f.what) for f in result.findings if not f.holds}
    for design in ("paired", "welch"):
        assert (design, "p <= 0.05 though equal") in broken
        assert (design, "interval of the ratio holds the truth") in broken
    assert not result.passed


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selftest") / "aa"
    with mock.patch("secrets.randbits", return_value=1):  # one order of points, one verdict
        return run_here(study(), FAKE, folder).path


def test_a_run_of_identical_points(run: Path) -> None:
    done = call("selftest", run)
    assert (done.code, "every limit holds" in done.out) == (0, True), done.said
    result = judge_run(run)
    found = {(f.design, f.what): f for f in result.findings}
    assert found["paired", "p <= 0.05 though equal"].trials == 48
    assert found["welch", "p <= 0.05 though equal"].trials == 48
    assert found["paired", "true 2% called right"].value > 0.9
    assert found["paired", "p <= 0.05 though equal"].bounds()[0] <= MAX_FALSE
    assert result.passed
    assert result.notes[0].startswith("48 pairs of identical points in 6 rounds")


@pytest.mark.parametrize(
    ("key", "changed", "said"),
    [
        ("study", {"name": "mine"}, "holds the study mine, not the self-test"),
        ("device", {"kind": "sim"}, "counts and does not time"),
    ],
)
def test_a_run_of_something_else_is_not_judged(
    run: Path, tmp_path: Path, key: str, changed: dict[str, str], said: str
) -> None:
    """Points that differ would be called false alarms; counters have no statistics."""
    shutil.copytree(run, tmp_path / "other")
    manifest = read_manifest(run)
    manifest[key] |= changed
    (tmp_path / "other" / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    done = call("selftest", tmp_path / "other")
    assert (done.code, said in done.err) == (2, True), done.said


def test_the_command_measures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it measures is the study; a smaller one is as good here."""
    small = STUDY.read_text(encoding="utf-8").replace("rounds: 6", "rounds: 2")
    (tmp_path / "small.yaml").write_text(small, encoding="utf-8")
    monkeypatch.setattr(device, "STUDY", tmp_path / "small.yaml")
    done = call("selftest", "--device", FAKE, "--out", tmp_path / "run")
    assert f"records: {tmp_path / 'run'}" in done.err
    assert "in 2 rounds" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "selftest needs a device to measure on"),
        ("--trials 100", "--trials is gone: it tried the statistics on made-up noise"),
        ("--device sim", "counts and does not time"),
        ("--device fake --budget soon", "--budget: 'soon' is not a duration"),
        ("old --device fake", "--device has no effect here (old is judged as it was recorded)"),
        ("nothing", "nothing is not a run folder"),
    ],
)
def test_mistakes_end_with_exit_code_2(tmp_path: Path, words: str, said: str) -> None:
    done = call("selftest", *words.split(), cwd=tmp_path)
    assert (done.code, said in done.err) == (2, True), done.err
    assert not list(tmp_path.iterdir())
