"""One comparison as it is asked for: runs with the first of them, or levels of a factor in one run.

Also what ``--fail-on`` means: which verdicts, from which size on, are a regression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nqbench.analysis.compare.devices import (
    RankCorrelation,
    Reversal,
    rank_correlations,
    reversals,
)
from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.runs import Comparison, compare_levels, compare_runs
from nqbench.analysis.compare.statistics import DEFAULT_MARGIN
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.quantities import CPU_TIME
from nqbench.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd

GATES: Final = {"slower": "time", "differs": "counter"}
"""What ``--fail-on`` takes, and the kind of quantity that it is about."""


@dataclass(frozen=True, slots=True)
class Findings:
    """All that one comparison found: each side against the reference, and between devices."""

    comparisons: tuple[Comparison, ...]
    ranks: tuple[RankCorrelation, ...]
    reversals: tuple[Reversal, ...]
    command: str
    several_devices: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the numbers, each sentence once."""
        notes = dict.fromkeys(note for c in self.comparisons for note in c.notes)
        return tuple(notes)

    def table(self) -> pd.DataFrame:
        """One row per comparison, quantity and point.

        ``ratio`` is the value of ``compared`` over that of ``reference``, with its 95% interval
        (NaN: none); ``p`` is corrected for all points.
        """
        import pandas as pd

        rows = []
        for comparison in self.comparisons:
            named = labels([row.pair.first for row in comparison.rows])
            reference, compared = comparison.names
            rows += [
                {
                    "reference": reference,
                    "compared": compared,
                    "point": named[row.pair.first],
                    "n": row.pair.first.n,
                    "quantity": row.quantity.name,
                    "verdict": row.verdict,
                    "ratio": row.ratio.value,
                    "low": row.ratio.low,
                    "high": row.ratio.high,
                    "p": row.p,
                    "reason": row.reason,
                }
                for row in comparison.rows
            ]
        return pd.DataFrame(rows)


def compare_datasets(
    runs: Sequence[Dataset],
    names: Sequence[str] = (),
    *,
    by: str | None = None,
    margin: float = DEFAULT_MARGIN,
    value: str | None = None,
    command: str = "",
) -> Findings:
    """Compare runs with the first of them, or, with ``by``, levels of a factor within one run.

    ``names`` name the runs if their devices are not all different; ``by`` is written
    ``FACTOR=REFERENCE,LEVEL...``; differences up to ``margin`` (a ratio minus 1) count as the same.
    Raises ``StudyError`` for an invalid request, ``AnalysisError`` for runs that cannot be
    compared.
    """
    if by is not None:
        if len(runs) != 1:
            raise StudyError(f"--by compares within one run, but {len(runs)} are given")
        factor, reference, others = parse_levels(by)
        within = [
            compare_levels(runs[0], factor, (reference, level), margin=margin, value=value)
            for level in others
        ]
        return Findings(tuple(within), (), (), command, several_devices=False)
    if len(runs) < 2:
        raise StudyError(
            "a comparison needs two runs, or one run and two levels of a factor:"
            " --by system=zhang2011.low_divergence,zhang2011.pool_distributed"
        )
    called = run_names(runs, names)
    found = [
        compare_runs(runs[0], run, (called[0], name), margin=margin, value=value)
        for run, name in zip(runs[1:], called[1:], strict=True)
    ]
    return _with_devices(runs, called, tuple(found), command)


def run_names(runs: Sequence[Dataset], names: Sequence[str]) -> list[str]:
    """What to call each run: its device if all devices differ, else its own name."""
    devices = [run.device_short for run in runs]
    if len(set(devices)) == len(devices):
        return devices
    return list(names) or [f"{device} ({i})" for i, device in enumerate(devices, 1)]


def _with_devices(
    runs: Sequence[Dataset], names: Sequence[str], found: tuple[Comparison, ...], command: str
) -> Findings:
    """Add the comparison of several devices with each other."""
    if len({run.device for run in runs}) < 2:
        return Findings(found, (), (), command, several_devices=False)
    # Ranks and reversals are of what GPUs do; their CPUs may differ too.
    shown = list(dict.fromkeys(b.quantity for c in found for b in c.sections))
    shown = [what for what in shown if what != CPU_TIME]
    ranks = [r for what in shown for r in rank_correlations(runs, names, what)]
    turned = [r for what in shown for r in reversals(runs, names, what)]
    return Findings(found, tuple(ranks), tuple(turned), command, several_devices=True)


def parse_levels(by: str) -> tuple[str, str, list[str]]:
    """``memory=global,shared`` as factor, reference, other levels. Raises ``StudyError``."""
    factor, _, text = by.partition("=")
    levels = [level.strip() for level in text.split(",") if level.strip()]
    if len(levels) < 2 or len(set(levels)) < len(levels):
        raise StudyError(
            f"--by {by!r} needs a factor and two levels or more, the reference first:"
            " --by memory=global,shared"
        )
    return factor.strip(), levels[0], levels[1:]


def parse_percentage(text: str, option: str) -> float:
    """``1%`` as 0.01. Raises ``StudyError``, also for a bare number: its unit would be a guess."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if not match:
        raise StudyError(f"{option} {text!r} is not a percentage; write 1% or 0.5%, for example")
    return float(match[1]) / 100


@dataclass(frozen=True, slots=True)
class Gate:
    """When a comparison fails: at a verdict whose ratio is off by at least ``threshold``."""

    verdict: str
    threshold: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Gate:
        """``slower``, ``slower:2%``, ``differs``, ``differs:1%``. Raises ``StudyError``."""
        verdict, colon, threshold = text.partition(":")
        if verdict not in GATES:
            known = " or ".join(GATES)
            raise StudyError(f"--fail-on {text!r} is not known; write {known}, e.g. slower:2%")
        if not colon:
            return cls(verdict)
        return cls(verdict, parse_percentage(threshold, f"--fail-on {verdict}:"))

    def hits(self, comparison: Comparison) -> int:
        """Points that break it. Raises ``StudyError`` where nothing could ever break it."""
        kind = GATES[self.verdict]
        rows = [row for row in comparison.rows if row.quantity.kind == kind]
        if not rows:
            other = "differs" if self.verdict == "slower" else "slower"
            what = "no times, only counts" if self.verdict == "slower" else "no counts, only times"
            raise StudyError(
                f"--fail-on {self.verdict}: {comparison.names[1]} and {comparison.names[0]} have"
                f" {what}; use --fail-on {other}"
            )
        return sum(row.verdict == self.verdict and self._far(row.ratio.value) for row in rows)

    def _far(self, ratio: float) -> bool:
        if self.verdict == "slower":
            return ratio >= 1 + self.threshold
        return abs(ratio - 1) >= self.threshold
