"""The self-test finds good statistics good and bad ones bad."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nqbench.analysis.data.quantities import TIME
from nqbench.cli.app import app
from nqbench.errors import AnalysisError, StudyError
from nqbench.selftest.device import STUDY, judge_run, study
from nqbench.selftest.statistics import MAX_FALSE, Rate, self_test
from nqbench.selftest.trials import NOISE, SCENARIOS, Scenario, run_scenario
from nqbench.study import load_study
from tests.toys import run_here

FAKE = "fake:base=1e-7,anew=1,noise=0.004,round=0.004,block=0.004,seed=3"


def test_clopper_pearson_against_its_definition() -> None:
    """The bounds are where the binomial tail is 2.5%."""
    from scipy.stats import binom

    low, high = Rate(7, 100).bounds()
    assert binom.sf(6, 100, low) == pytest.approx(0.025)
    assert binom.cdf(7, 100, high) == pytest.approx(0.025)


def test_trials_have_the_noise_that_their_scenario_says() -> None:
    outcome = run_scenario(Scenario("x", NOISE), 150)
    logs = [list(np.log(list(t.row.pair.first.values(TIME).values()))) for t in outcome.paired]
    # Round and measurement effect, and the error of a median of ten or so samples.
    expected = np.sqrt(2 * 0.004**2 + (1.25 * 0.004) ** 2 / 10)
    assert np.std(logs, axis=1, ddof=1).mean() == pytest.approx(expected, rel=0.1)
    within = Counter(t.row.ratio.rounds for t in outcome.paired)
    assert within == {5: 150}


def test_a_true_difference_is_there_and_only_where_it_is_said_to_be() -> None:
    scenario = Scenario("x", NOISE, effect=1.05, family=20, share=0.5)
    outcome = run_scenario(scenario, 20)
    truths = [t.truth for t in outcome.paired]
    assert truths.count(1.05) == truths.count(1.0) == 10
    for trial in (*outcome.paired, *outcome.welch):
        assert trial.row.ratio.value == pytest.approx(trial.truth, rel=0.025)


def test_statistics_that_keep_their_word_pass() -> None:
    """Power and coverage under normal noise; few trials, so the false calls' bound is not asked."""
    result = self_test(300, scenarios=[SCENARIOS[0], SCENARIOS[6]])
    kept = [f for f in result.findings if "upper bound" not in f.limit]
    assert kept
    assert all(0.91 <= f.rate.value <= 1.0 for f in kept)


def test_raw_samples_as_replicates_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interval four times too narrow breaks every limit: the test can fail."""
    from nqbench.analysis.data import statistics as compare_stats

    honest = compare_stats.contrast

    def narrow(*sides: object, **options: object) -> object:
        found = honest(*sides, **options)  # type: ignore[arg-type]
        return replace(found, error=found.error / 4)

    monkeypatch.setattr(compare_stats, "contrast", narrow)
    result = self_test(100, scenarios=SCENARIOS[:1])
    broken = {(f.design, f.what) for f in result.findings if not f.holds}
    for design in ("paired", "welch"):
        assert (design, "p <= 0.05 though equal") in broken
        assert (design, "interval of the ratio holds the truth") in broken
    assert not result.passed


def test_too_few_trials_are_refused() -> None:
    with pytest.raises(StudyError, match="--trials 5 is too few"):
        self_test(5)


def test_a_run_of_identical_points(tmp_path: Path) -> None:
    run = run_here(study(), FAKE, tmp_path / "aa").path
    result = judge_run(run)
    found = {(f.design, f.what): f for f in result.findings}
    assert found["paired", "p <= 0.05 though equal"].rate.trials == 48
    assert found["welch", "p <= 0.05 though equal"].rate.trials == 48
    assert found["paired", "true 2% called right"].rate.value > 0.9
    assert found["paired", "p <= 0.05 though equal"].rate.bounds()[0] <= MAX_FALSE
    assert result.passed
    assert result.notes[0].startswith("48 pairs of identical points in 6 rounds")


def test_a_simulated_run_has_no_statistics(tmp_path: Path) -> None:
    run = run_here(study(), "fake:deterministic=1", tmp_path / "aa").path
    with pytest.raises(AnalysisError, match="counts and does not time"):
        judge_run(run)


def test_a_run_of_something_else_is_not_judged(tmp_path: Path) -> None:
    """Points that differ would be called false alarms."""
    other = tmp_path / "other.yaml"
    other.write_text(STUDY.read_text(encoding="utf-8").replace("name: selftest", "name: mine"))
    run = run_here(load_study(other), FAKE, tmp_path / "mine").path
    with pytest.raises(AnalysisError, match="holds the study mine, not the self-test"):
        judge_run(run)


def test_a_simulator_is_refused_before_it_runs(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["selftest", "--device", "sim", "--out", str(tmp_path / "run")])
    assert isinstance(done.exception, StudyError)
    assert "counts and does not time" in str(done.exception)
    assert not (tmp_path / "run").exists()
