"""The self-test finds good statistics good and bad ones bad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.selftest import SCENARIOS, tried
from nqbench.analysis.data import estimate
from nqbench.analysis.data.estimate import Contrast
from nqbench.selftest.device import judged
from tests.cli.call import call

RUNS = Path(__file__).parents[2] / "results" / "reference"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals four times too narrow, as of raw samples taken for replicates."""
    for honest in (estimate.paired, estimate.welch):

        def narrowed(
            *sides: Any, honest: Callable[..., Contrast] = honest, **options: Any
        ) -> Contrast:
            found = honest(*sides, **options)
            return replace(found, error=found.error / 4)

        monkeypatch.setattr(estimate, honest.__name__, narrowed)


def test_statistics_that_keep_their_word_pass() -> None:
    """Power and coverage under normal noise; few trials, so the false calls' bound is not asked."""
    kept = [f for f in tried(150, [SCENARIOS[0], SCENARIOS[6]]) if "upper bound" not in f.limit]
    assert kept
    assert all(0.91 <= f.value <= 1.0 for f in kept)


@pytest.mark.usefixtures("narrow")
def test_intervals_that_are_too_narrow_are_found_out() -> None:
    broken = {(f.design, f.what) for f in tried(100, SCENARIOS[:1]) if not f.holds}
    for design in ("paired", "welch"):
        assert (design, "p <= 0.05 though equal") in broken
        assert (design, "interval of the ratio holds the truth") in broken


def test_a_run_of_identical_points() -> None:
    """As its page says: two of 48 below 5%, one 2% missed, in both designs."""
    run = RUNS / "h100" / "selftest"
    found = {(f.design, f.what): (f.count, f.trials) for f in judged(run)}
    for design in ("paired", "welch"):
        assert found[design, "false faster or slower"] == (0, 48)
        assert found[design, "p <= 0.05 though equal"] == (2, 48)
        assert found[design, "true 2% called right"] == (47, 48)
    done = call("selftest", run)
    assert (done.code, "lower bound at most 6.5%  holds" in done.out) == (0, True), done.said


@pytest.mark.usefixtures("narrow")
def test_a_run_judged_with_too_narrow_intervals_fails() -> None:
    assert call("selftest", RUNS / "h100" / "selftest").code == 1


def test_the_command_measures(tmp_path: Path) -> None:
    done = call("selftest", "--device", "fake:base=1e-7", "--out", tmp_path)
    assert f"records: {tmp_path}" in done.err
    assert "true 2% called right" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "selftest needs a device to measure on"),
        ("--trials 100", "--trials is gone: it tried the statistics on made-up noise"),
        ("--device sim", "counts and does not time"),
        ("old --device fake", "--device has no effect here (old is judged as it was recorded)"),
        ("nothing", "nothing does not exist; give the folder"),
        (str(RUNS / "h100" / "ceilings"), "its points are not identical"),
    ],
)
def test_mistakes_end_with_exit_code_2(tmp_path: Path, words: str, said: str) -> None:
    done = call("selftest", *words.split(), cwd=tmp_path)
    assert (done.code, said in done.err) == (2, True), done.err
