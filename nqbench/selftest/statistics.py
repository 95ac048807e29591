"""Self-test of the statistics: are the verdicts of ``compare`` as reliable as stated?

On the test device, whose truth is known, identical code is compared with itself thousands of times
under several kinds of noise. The trials run through the same code as users' runs.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import numpy as np

from nqbench.analysis.data.estimate import CONFIDENCE, Estimate
from nqbench.analysis.data.statistics import ALPHA, DEFAULT_MARGIN
from nqbench.errors import StudyError
from nqbench.selftest.trials import SCENARIOS, Outcome, Scenario, Trial, run_scenario

TRIALS: Final = 4000
"""The nominal 5% is then known to +-0.7%: enough to distinguish 5% from the limit."""
MAX_FALSE: Final = 0.065
"""Limit of the Clopper-Pearson upper bound of the rate of false calls (nominal: 5%)."""
COVERAGE_NORMAL: Final = (0.93, 0.97)
COVERAGE_SKEW: Final = (0.90, 1.0)
MIN_POWER: Final = 0.90
"""Share of single comparisons in which a true 2% has to be called right."""
MIN_TRIALS: Final = 20
"""Below this the bounds are so wide that every limit would be broken by any device."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of trials, and how many of them it happened in."""

    count: int
    trials: int

    @property
    def value(self) -> float:
        """The share; NaN of no trials."""
        return self.count / self.trials if self.trials else math.nan

    def bounds(self) -> tuple[float, float]:
        """Clopper-Pearson 95% interval of the share; NaN of no trials."""
        if not self.trials:
            return math.nan, math.nan
        from scipy.stats import binomtest

        interval = binomtest(self.count, self.trials).proportion_ci(CONFIDENCE, method="exact")
        return float(interval.low), float(interval.high)


@dataclass(frozen=True, slots=True)
class Finding:
    """One rate, its limit in words (empty: it is only reported), and whether that holds."""

    scenario: str
    design: str
    what: str
    rate: Rate
    limit: str = ""
    holds: bool = True


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Everything that was found."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every limit holds."""
        return all(f.holds for f in self.findings)


def self_test(
    trials: int = TRIALS,
    *,
    scenarios: Sequence[Scenario] = SCENARIOS,
    processes: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> SelfTest:
    """Run every scenario on the test device, in several processes if asked for.

    ``progress`` is called with the name of each when it is done. Raises ``StudyError`` for too few
    trials.
    """
    if trials < MIN_TRIALS:
        raise StudyError(
            f"--trials {trials} is too few: with less than {MIN_TRIALS} no rate differs clearly"
            f" from its limit; {TRIALS} are the default"
        )
    # Two seeds each: a scenario has two runs.
    tasks = [(s, trials, 1 + 2 * i) for i, s in enumerate(scenarios)]
    found: list[Finding] = []
    with _pool(processes) as pool:
        mapped = pool.map(_scenario, tasks) if pool else map(_scenario, tasks)
        for scenario, findings in zip(scenarios, mapped, strict=True):
            progress(scenario.name)
            found += findings
    notes = (
        f"faster and slower: as compare says at a margin of {DEFAULT_MARGIN:.0%}; p <= {ALPHA:g}"
        " counts every interval that excludes 1, also those within the margin",
        "paired: both kernels in one run; welch: in two runs",
    )
    return SelfTest(tuple(found), notes)


def _pool(processes: int) -> AbstractContextManager[ProcessPoolExecutor | None]:
    if processes < 2:
        return nullcontext()
    # Not forked: the parent may hold threads of numerical libraries.
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))


def _scenario(task: tuple[Scenario, int, int]) -> list[Finding]:
    scenario, trials, seed = task
    outcome = run_scenario(scenario, trials, seed=seed)
    found = [
        *findings_of(scenario, "paired", outcome.paired),
        *findings_of(scenario, "welch", outcome.welch),
    ]
    if scenario.family == 1:
        found.append(_point_coverage(outcome))
    return found


def findings_of(scenario: Scenario, design: str, trials: Sequence[Trial]) -> list[Finding]:
    """What the trials of one design amount to, against the limits that apply."""
    name = scenario.name
    null = [t for t in trials if t.truth == 1]
    real = [t for t in trials if t.truth != 1]
    found = []
    if null:
        called = Rate(sum(t.row.verdict in ("faster", "slower") for t in null), len(null))
        significant = Rate(sum(t.row.p <= ALPHA for t in null), len(null))
        found.append(_at_most(name, design, "false faster or slower", called))
        if scenario.family == 1:
            found.append(_at_most(name, design, f"p <= {ALPHA:g} though equal", significant))
    if scenario.family > 1:
        calls = [t for t in trials if t.row.verdict in ("faster", "slower")]
        wrong = Rate(sum(not right(t) for t in calls), len(calls))
        if calls:
            found.append(Finding(name, design, "wrong among the calls made", wrong))
    if real:
        power = Rate(sum(right(t) for t in real), len(real))
        single = scenario.family == 1
        limit = f"at least {MIN_POWER:.0%}" if single else ""
        holds = not single or power.value >= MIN_POWER
        found.append(Finding(name, design, "true difference called right", power, limit, holds))
    if scenario.family == 1:  # the points of a family share their rounds: too few are independent
        held = Rate(sum(_covers(t.row.ratio, t.truth) for t in trials), len(trials))
        found.append(_coverage(scenario, design, "interval of the ratio holds the truth", held))
    return found


def right(trial: Trial) -> bool:
    """Whether a trial with a true difference was given its direction."""
    if trial.truth == 1:
        return False
    return trial.row.verdict == ("slower" if trial.truth > 1 else "faster")


def _point_coverage(outcome: Outcome) -> Finding:
    """How often the interval of one point contains what its rounds scatter around."""
    estimates = [t.row.first for t in outcome.paired]
    # The truth is the mean over all trials: its own error is less than a sixtieth of an interval.
    truth = math.exp(float(np.mean([math.log(e.value) for e in estimates])))
    held = Rate(sum(_covers(e, truth) for e in estimates), len(estimates))
    return _coverage(outcome.scenario, "point", "interval of a point holds the truth", held)


def _covers(estimate: Estimate, truth: float) -> bool:
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.low <= truth <= estimate.high


def _at_most(name: str, design: str, what: str, rate: Rate) -> Finding:
    high = rate.bounds()[1]
    limit = f"upper bound at most {MAX_FALSE:.1%}"
    return Finding(name, design, what, rate, limit, high <= MAX_FALSE)


def _coverage(scenario: Scenario, design: str, what: str, rate: Rate) -> Finding:
    model = scenario.model
    disturbed = model.outliers or model.rho or model.drift
    skewed = model.skew or model.block_skew
    if disturbed and not skewed:
        return Finding(scenario.name, design, what, rate)
    low, high = COVERAGE_SKEW if skewed else COVERAGE_NORMAL
    words = f"at least {low:.0%}" if skewed else f"{low:.0%} to {high:.0%}"
    return Finding(scenario.name, design, what, rate, words, low <= rate.value <= high)
