"""Self-test on a device: one run that contains every point twice.

tests/selftest tries the same statistics on noise whose truth is known. Here, what differs between
the two is chance, so that every ``faster`` and ``slower`` is a false one. The pairs are compared
within the run (paired by round), and between halves of its rounds as if they were two runs. A known
difference is put in by lengthening one side's times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from nqbench.analysis.compare.match import Matched
from nqbench.analysis.compare.runs import ComparedPoint, Comparison, compare_levels, compare_runs
from nqbench.analysis.data.dataset import Dataset, load_dataset
from nqbench.analysis.data.estimate import ALPHA, CONFIDENCE
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError, StudyError

if TYPE_CHECKING:
    from nqbench.study import Study

STUDY: Final = Path(__file__).with_name("study.yaml")
SIDES: Final = ("a", "b")
"""Sweeps of that study: the same points under two names."""
EFFECT: Final = 1.02
"""The difference put in: a small one that matters."""
MAX_FALSE: Final = 0.065
"""Largest rate of false calls (nominal: 5%) that the 95% bounds may still allow."""
HALVES: Final = ("odd rounds", "even rounds")

UNTIMED: Final = (
    "counts and does not time: its counters repeat exactly, so there are no statistics to test;"
    " give a GPU"
)


@dataclass(frozen=True, slots=True)
class JudgedRate:
    """In how many of its trials something happened, the limit of that rate in words (empty: it is
    only reported), and whether it holds."""

    scenario: str
    design: str
    what: str
    count: int
    trials: int
    limit: str = ""
    holds: bool = True

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
class SelfTest:
    """Everything that was found."""

    findings: tuple[JudgedRate, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every limit holds."""
        return all(f.holds for f in self.findings)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The verdict of ``compare`` on one pair, and the true ratio of the two."""

    truth: float
    row: ComparedPoint

    @property
    def right(self) -> bool:
        """Whether a true difference was given its direction."""
        return self.truth != 1 and self.row.verdict == ("slower" if self.truth > 1 else "faster")


def study() -> Study:
    """The A/A study."""
    from nqbench.study import load_study

    return load_study(STUDY)


def refuse_untimed(spec: str) -> None:
    """Raise ``StudyError`` for a device that counts, before 48 points are run for nothing."""
    if spec.partition(":")[0] == "sim":
        raise StudyError(f"{spec} {UNTIMED}")


def judge_run(run: Path) -> SelfTest:
    """What a run of the A/A study says.

    Raises ``AnalysisError`` for another study's run or one without a pair, ``StoreError`` if it is
    not a run.
    """
    data = load_dataset(run)
    if (data.name, data.sweeps) != (study().name, SIDES):
        raise AnalysisError(
            f"{run} holds the study {data.name}, not the self-test: its points are not identical,"
            " so their differences say nothing about the statistics; give a run that"
            " `nqbench selftest --device` wrote"
        )
    if data.simulated:
        raise AnalysisError(f"{data.device} {UNTIMED}")
    together = compare_levels(data, "sweep", SIDES, margin=0)
    pairs = [row.pair for row in together.rows]
    called = sum(row.verdict in ("faster", "slower") for row in together.rows)
    found = [JudgedRate(data.device, "paired", "false calls after correction", called, len(pairs))]
    for design in ("paired", "welch"):
        equal, longer = (
            [trial for pair in pairs for trial in _trials(data, pair, design, effect)]
            for effect in (1.0, EFFECT)
        )
        found += _findings(data.device, design, equal, longer)
    return SelfTest(tuple(found), _notes(data, together, pairs))


def _findings(
    device: str, design: str, equal: list[Trial], longer: list[Trial]
) -> Iterator[JudgedRate]:
    """Rates of one design; none if there are too few rounds for it."""
    equal = [t for t in equal if t.row.ratio.bounded]
    if not equal:
        return
    calls = sum(t.row.verdict in ("faster", "slower") for t in equal)
    false = sum(t.row.p <= ALPHA for t in equal)
    # A few dozen pairs cannot prove a rate of 5%; they can show that it is broken.
    limit = f"lower bound at most {MAX_FALSE:.1%}"
    said = {"false faster or slower": calls, f"p <= {ALPHA:g} though equal": false}
    for what, count in said.items():
        rate = JudgedRate(device, design, what, count, len(equal), limit)
        yield replace(rate, holds=rate.bounds()[0] <= MAX_FALSE)
    right = sum(t.right for t in longer)
    yield JudgedRate(device, design, f"true {EFFECT - 1:.0%} called right", right, len(longer))


def _trials(data: Dataset, pair: Matched, design: str, effect: float) -> list[Trial]:
    """One pair compared on its own, as if it were all that the run holds; or (``welch``) the odd
    rounds of one against the even rounds of the other, as if they were two runs.

    The times of the second are multiplied by ``effect``: what a slower kernel would have given.
    """
    rounds = pair.second.measurements.items()
    slower = {r: {**row, "value_s": row["value_s"] * effect} for r, row in rounds}
    second = replace(pair.second, measurements=slower)
    if design == "paired":
        alone = replace(data, points=(pair.first, second))
        return [Trial(effect, row) for row in compare_levels(alone, "sweep", SIDES).rows]
    runs = []
    for point, rest in ((pair.first, 1), (second, 0)):
        half = {r: row for r, row in point.measurements.items() if r % 2 == rest}
        if not half:
            return []
        runs.append(replace(data, points=(replace(point, measurements=half),)))
    return [Trial(effect, row) for row in compare_runs(runs[0], runs[1], HALVES).rows]


def _notes(data: Dataset, together: Comparison, pairs: list[Matched]) -> tuple[str, ...]:
    logs = [
        np.log(list(p.values(TIME).values())) for pair in pairs for p in (pair.first, pair.second)
    ]
    scatter = [float(x.std(ddof=1)) for x in logs if len(x) > 1]
    halves = [
        (row.ratio.high / row.ratio.low) ** 0.5 - 1
        for row in together.rows
        if row.ratio.low is not None and row.ratio.high is not None
    ]
    notes = [
        f"{len(pairs)} pairs of identical points in {data.rounds} rounds ({data.provenance})",
        f"the pairs share {data.rounds} rounds: the bounds of their rates are somewhat too narrow",
    ]
    if scatter and halves:
        notes.append(
            f"noise between rounds {np.median(scatter):.2%} (median), half-width of the paired"
            f" intervals {np.median(halves):.2%} (median), {max(halves):.2%} (largest)"
        )
    mean = together.sections[0].overall
    if mean is not None and mean.low is not None and mean.high is not None:
        notes.append(
            f"geometric mean of all ratios {mean.value:.5f} [{mean.low:.5f}, {mean.high:.5f}]"
        )
    return tuple(notes)
