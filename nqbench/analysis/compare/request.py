"""One comparison as it is asked for: runs with the first of them, or levels of a factor in one run.

Also what ``--fail-on`` means: which verdicts, from which size on, are a regression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nqbench.analysis.compare.answer import Answer, answer
from nqbench.analysis.compare.devices import (
    Differing,
    RankCorrelation,
    Reversal,
    most_differing,
    rank_correlations,
    reversals,
)
from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.rates import Rated, rated
from nqbench.analysis.compare.runs import (
    Compared,
    Comparison,
    Section,
    compare_levels,
    compare_runs,
)
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.observed import Observed, observe
from nqbench.analysis.data.quantities import CPU_TIME
from nqbench.analysis.data.statistics import DEFAULT_MARGIN
from nqbench.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd

GATES: Final = {"slower": "time", "worse": "counter", "differs": "counter"}
"""What ``--fail-on`` takes, and the kind of quantity that it is about."""


@dataclass(frozen=True, slots=True)
class Findings:
    """All that one comparison found: each side against the reference, and between devices.

    ``answers``, ``rated``  what the times of each pair of runs say, and their normalised rates
    ``effects``  of two simulated devices, the effect on each counter that differs most
    """

    comparisons: tuple[Comparison, ...]
    ranks: tuple[RankCorrelation, ...]
    reversals: tuple[Reversal, ...]
    command: str
    several_devices: bool
    answers: tuple[Answer, ...] = ()
    rated: tuple[Rated, ...] = ()
    effects: tuple[tuple[tuple[str, str], Differing], ...] = ()

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
    paths: Sequence[Path] = (),
) -> Findings:
    """Compare runs with the first of them, or, with ``by``, levels of a factor within one run.

    ``names`` name the runs if their devices are not all different; ``by`` is written
    ``FACTOR=REFERENCE,LEVEL...``; differences up to ``margin`` (a ratio minus 1) count as the same.
    ``paths`` are the folders of the runs: with them, what a profiler counted gives shares of roofs.
    Raises ``StudyError`` for an invalid request, ``AnalysisError`` for runs that cannot be
    compared.
    """
    if by is not None:
        if len(runs) != 1:
            raise StudyError(
                f"levels of a factor (by {by!r}) are compared within one run, but {len(runs)} are"
                " given; name one"
            )
        factor, reference, others = parse_levels(by)
        within = [
            compare_levels(runs[0], factor, (reference, level), margin=margin, value=value)
            for level in others
        ]
        return Findings(tuple(within), (), (), command, several_devices=False)
    if len(runs) < 2:
        raise StudyError(
            "a comparison needs two runs, or one run and, with `by`, two levels of a factor:"
            " system=zhang2011.low_divergence,zhang2011.pool_distributed"
        )
    called = run_names(runs, names)
    found = [
        compare_runs(runs[0], run, (called[0], name), margin=margin, value=value)
        for run, name in zip(runs[1:], called[1:], strict=True)
    ]
    profiled = [_profiled(run, path) for run, path in zip(runs, paths, strict=False)]
    profiled += [None] * (len(runs) - len(profiled))
    rates = [rated(c, (profiled[0], run)) for c, run in zip(found, profiled[1:], strict=True)]
    return replace(
        _with_devices(runs, called, tuple(found), command),
        answers=tuple(one for one in map(answer, found) if one is not None),
        rated=tuple(one for one in rates if one is not None),
    )


def _profiled(run: Dataset, path: Path) -> Observed | None:
    """The run with what a profiler counted, where one was asked for."""
    measure = run.study.get("measure") or {}
    return observe(path) if measure.get("counters", "none") != "none" else None


def run_names(runs: Sequence[Dataset], names: Sequence[str]) -> list[str]:
    """What to call each run: its device if all devices differ, else its own name."""
    devices = [run.device_short for run in runs]
    chips = [run.device_short.removesuffix(f" ({run.spec})") for run in runs]
    for called in (chips, devices):
        if len(set(called)) == len(called):
            return called
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
    effects = [
        (c.names, effect)
        for c in found
        for section in c.sections
        if section.quantity.kind == "counter" and not section.equal_everywhere
        if (effect := _effect(c, section)) is not None and effect.clear
    ]
    return Findings(
        *(found, tuple(ranks), tuple(turned), command),
        several_devices=True,
        effects=tuple(effects),
    )


def _effect(comparison: Comparison, section: Section) -> Differing | None:
    pairs = [row.pair for row in section.rows]
    return most_differing(comparison.sides, pairs, section.quantity)


def parse_levels(by: str) -> tuple[str, str, list[str]]:
    """``memory=global,shared`` as factor, reference, other levels. Raises ``StudyError``."""
    factor, _, text = by.partition("=")
    levels = [level.strip() for level in text.split(",") if level.strip()]
    if len(levels) < 2 or len(set(levels)) < len(levels):
        raise StudyError(
            f"by {by!r}: needs a factor and two different levels or more, the reference first:"
            " memory=global,shared"
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
        """``slower``, ``slower:2%``, ``worse``, ``differs:1%``. Raises ``StudyError``."""
        verdict, colon, threshold = text.partition(":")
        if verdict not in GATES:
            known = ", ".join(GATES)
            raise StudyError(f"--fail-on {text!r} is not known; write {known}, or e.g. slower:2%")
        if not colon:
            return cls(verdict)
        return cls(verdict, parse_percentage(threshold, f"--fail-on {verdict}:"))

    def check(self, findings: Findings) -> None:
        """Raises ``StudyError`` where nothing could ever hit it, with what could."""
        for comparison in findings.comparisons:
            possible = {g: self._concerned(comparison, g) for g in GATES}
            if possible[self.verdict]:
                continue
            others = " or ".join(f"--fail-on {g}" for g, rows in possible.items() if rows)
            shown = ", ".join(s.quantity.label for s in comparison.sections)
            needs = {
                "slower": "a time",
                "worse": "a counter of which one direction is better",
                "differs": "a counter",
            }
            raise StudyError(
                f"--fail-on {self.verdict} needs {needs[self.verdict]}, but {comparison.names[1]}"
                f" and {comparison.names[0]} are compared by {shown}; use {others}"
            )

    def hits(self, comparison: Comparison) -> int:
        """Points that break it."""
        rows = self._concerned(comparison, self.verdict)
        return sum(self._bad(row) and self._far(row.ratio.value) for row in rows)

    @staticmethod
    def _concerned(comparison: Comparison, verdict: str) -> list[Compared]:
        rows = [row for row in comparison.rows if row.quantity.kind == GATES[verdict]]
        return [row for row in rows if row.quantity.better] if verdict == "worse" else rows

    def _bad(self, row: Compared) -> bool:
        return row.verdict != "equal" if self.verdict == "differs" else row.verdict == self.verdict

    def _far(self, ratio: float) -> bool:
        if self.verdict == "slower":
            return ratio >= 1 + self.threshold
        return abs(ratio - 1) >= self.threshold
