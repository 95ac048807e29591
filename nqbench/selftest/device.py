"""Self-test on a device: one run that contains every point twice.

What differs between the two is chance, so that every ``faster`` and ``slower`` is a false one. The
pairs are compared within the run (paired by round), and between halves of its rounds as if they
were two runs. A known difference is put in by lengthening one side's times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nqbench.analysis.compare.match import Matched
from nqbench.analysis.compare.runs import ComparedPoint, compare_levels, compare_runs
from nqbench.analysis.data.dataset import Dataset, load_dataset
from nqbench.analysis.data.estimate import ALPHA, CONFIDENCE
from nqbench.errors import StudyError

STUDY: Final = Path(__file__).with_name("study.yaml")
SIDES: Final = ("a", "b")
"""Sweeps of that study: the same points under two names."""
EFFECT: Final = 1.02
"""The difference put in: a small one that matters."""
MAX_FALSE: Final = 0.065
"""Largest rate of false calls (nominal: 5%) that the 95% bounds may still allow."""
UNTIMED: Final = "counts and does not time: its counters repeat exactly; give a GPU"
HEADS: Final = ("noise", "design", "what", "rate", "95% bounds", "of", "limit", "")


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

    def cells(self) -> list[str]:
        """What ``HEADS`` name."""
        low, high = self.bounds()
        verdict = "" if not self.limit else "holds" if self.holds else "BROKEN"
        shares = [f"{self.value:.2%}", f"{low:.2%} to {high:.2%}", str(self.trials)]
        return [self.scenario, self.design, self.what, *shares, self.limit, verdict]


def judged(run: Path) -> Iterator[JudgedRate]:
    """What a run of the study says.

    Raises ``StudyError`` if the run is not a self-test or has no times, ``StoreError`` if the
    folder is not a run.
    """
    data = load_dataset(run)
    if (data.name, data.sweeps) != ("selftest", SIDES):
        raise StudyError(f"{run} holds the study {data.name}: its points are not identical")
    if data.simulated:
        raise StudyError(f"{data.device} {UNTIMED}")
    pairs = [row.pair for row in compare_levels(data, "sweep", SIDES, margin=0).rows]
    for design in ("paired", "welch"):
        equal, longer = (
            [row for pair in pairs for row in _of_pair(data, pair, design, effect)]
            for effect in (1.0, EFFECT)
        )
        # A few dozen pairs cannot prove a rate of 5%; they can show that it is broken.
        equal = [row for row in equal if row.ratio.bounded]
        calls = {
            "false faster or slower": sum(row.verdict in ("faster", "slower") for row in equal),
            f"p <= {ALPHA:g} though equal": sum(row.p <= ALPHA for row in equal),
        }
        for what, count in calls.items():
            limit = f"lower bound at most {MAX_FALSE:.1%}"
            rate = JudgedRate(data.device, design, what, count, len(equal), limit)
            yield replace(rate, holds=not equal or rate.bounds()[0] <= MAX_FALSE)
        right = sum(row.verdict == "slower" for row in longer)
        yield JudgedRate(data.device, design, "true 2% called right", right, len(longer))


def _of_pair(data: Dataset, pair: Matched, design: str, effect: float) -> list[ComparedPoint]:
    """One pair compared on its own, as if it were all that the run holds; or (``welch``) the odd
    rounds of one against the even rounds of the other, as if they were two runs.

    The times of the second are multiplied by ``effect``: what a slower kernel would have given.
    """
    rounds = pair.second.measurements.items()
    slower = {r: {**row, "value_s": row["value_s"] * effect} for r, row in rounds}
    second = replace(pair.second, measurements=slower)
    if design == "paired":
        return list(compare_levels(replace(data, points=(pair.first, second)), "sweep", SIDES).rows)
    runs = []
    for point, rest in ((pair.first, 1), (second, 0)):
        half = {r: row for r, row in point.measurements.items() if r % 2 == rest}
        if not half:
            return []
        runs.append(replace(data, points=(replace(point, measurements=half),)))
    return list(compare_runs(runs[0], runs[1], ("odd rounds", "even rounds")).rows)
