"""One comparison as it is asked for: runs with the first of them, or levels of a factor in one run.

Also what ``--fail-on`` means: which verdicts, from which size on, are a regression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.answer import Answer
from nqbench.analysis.compare import changes
from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.runs import ComparedPoint, Comparison, compare_levels, compare_runs
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import DEFAULT_MARGIN
from nqbench.errors import AnalysisError, StudyError
from nqbench.system.suggest import many

if TYPE_CHECKING:
    import pandas as pd

GATES: Final = {
    "slower": ("time", "a time"),
    "worse": ("counter", "a counter of which one direction is better"),
    "differs": ("counter", "a counter"),
}
"""What ``--fail-on`` takes: the kind of quantity that it is about, and what it needs in words."""


@dataclass(frozen=True, slots=True)
class Findings:
    """All that one comparison found: each side against the reference, and between devices.

    ``answers``   what each side says by itself, of the points that all have
    ``standings`` who is faster overall, where times are compared: the second side of each, which of
                  alternatives is the fastest of all
    ``rankings``  what the times of each pair of runs say
    ``effects``   what each change does on each side, where the sides are not versions of one
    """

    comparisons: tuple[Comparison, ...]
    command: str
    answers: tuple[Answer, ...]
    standings: tuple[Comparison, ...]
    rankings: tuple[changes.Ranking, ...]
    effects: tuple[changes.SharedEffect, ...]
    several_devices: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What the sides are called, the reference first."""
        return (self.comparisons[0].names[0], *(c.names[1] for c in self.comparisons))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the numbers, each sentence once."""
        return tuple(dict.fromkeys(note for c in self.comparisons for note in c.notes))

    def table(self) -> pd.DataFrame:
        """One row per comparison, quantity and point.

        ``compared_over_reference`` is the ratio of their values, with its 95% interval (NaN: none);
        ``p`` is corrected for all points.
        """
        import pandas as pd

        columns = ["reference", "compared", "point", "n", "quantity", "verdict"]
        columns += ["compared_over_reference", "low", "high", "p", "reason"]
        rows: list[tuple[Any, ...]] = []
        for comparison in self.comparisons:
            named = labels([row.pair.first for row in comparison.rows])
            for row in comparison.rows:
                point, ratio = row.pair.first, row.ratio
                what = (named[point], point.n, row.quantity.name, row.verdict)
                numbers = (ratio.value, ratio.low, ratio.high, row.p)
                rows.append((*comparison.names, *what, *numbers, row.reason))
        return pd.DataFrame(rows, columns=columns)


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
    if by is not None and len(runs) != 1:
        raise StudyError(
            f"levels of a factor (--by {by!r}) are compared within one run, but {len(runs)} are"
            " given; name one"
        )
    if by is None and len(runs) < 2:
        raise StudyError(
            "a comparison needs two runs, or one run and, with --by, two levels of a factor:"
            " --by memory=global,shared"
        )
    factor, _, text = (by or "").partition("=")
    levels = [level.strip() for level in text.split(",") if level.strip()]
    if by is not None and (len(levels) < 2 or len(set(levels)) < len(levels)):
        raise StudyError(
            f"--by {by!r} needs a factor and two different levels or more, the reference first:"
            " memory=global,shared"
        )
    factor = factor.strip()
    called = [f"{factor} {level}" for level in levels] or run_names(runs, names)

    def pair(one: int, two: int) -> Comparison:
        if levels:
            asked = levels[one], levels[two]
            return compare_levels(runs[0], factor, asked, margin=margin, value=value)
        own = called[one], called[two]
        return compare_runs(runs[one], runs[two], own, margin=margin, value=value)

    found = tuple(pair(0, i) for i in range(1, len(called)))
    several = len({run.device for run in runs}) > 1
    answers = _answers(found, value or "")
    return Findings(
        found,
        command,
        answers,
        tuple(_standings(found, pair, ranked=several or by is not None)),
        tuple(ranking for one in found for ranking in changes.ranking(one)),
        tuple(changes.side_by_side(answers, called) if several or by else ()),
        several,
    )


def _answers(comparisons: Sequence[Comparison], value: str) -> tuple[Answer, ...]:
    """What each side says of the points that all of them have."""
    others = [{row.pair.first: row.pair.second for row in c.rows} for c in comparisons]
    shared = [point for point in others[0] if all(point in own for own in others)]
    sides = [shared, *([own[point] for point in shared] for own in others)]
    runs = [comparisons[0].sides[0], *(c.sides[1] for c in comparisons)]
    alone = (replace(run, points=tuple(own)) for run, own in zip(runs, sides, strict=True))
    return tuple(Answer(run, value) for run in alone)


def _standings(
    found: Sequence[Comparison], pair: Callable[[int, int], Comparison], *, ranked: bool
) -> Iterator[Comparison]:
    """Each side against the reference; of alternatives (``ranked``) the fastest against each other,
    the closest first."""
    timed = [c.sections[0].overall for c in found if c.sections[0].quantity.kind == "time"]
    ratios = [1.0, *(r.value for r in timed if r is not None)]
    if len(ratios) <= len(found):
        return
    if not ranked:
        yield from found
        return
    best, *others = sorted(range(len(ratios)), key=lambda i: ratios[i])
    for other in others:
        with suppress(AnalysisError):  # no point that both have
            yield pair(other, best) if other else found[best - 1]


def run_names(runs: Sequence[Dataset], names: Sequence[str]) -> list[str]:
    """What to call each run: its device, in short, if all devices differ, else its own name,
    without the folder that all are in."""
    devices = [run.device_short for run in runs]
    for called in ([run.chip for run in runs], devices):
        if len(set(called)) == len(called):
            return called
    parts = [PurePath(name).parts for name in names]
    shared = takewhile(lambda here: len(set(here)) == 1, zip(*parts, strict=False))
    same = len(list(shared))  # the folder that all of them are in
    own = ["/".join(path[same:]) for path in parts]
    return own or [f"{device} ({i})" for i, device in enumerate(devices, 1)]


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

    def judge(self, findings: Findings) -> tuple[bool, str]:
        """Whether a point breaks it or no longer runs; how many do, and how many are unmatched.

        Raises ``StudyError`` where nothing could ever hit it."""
        for one in findings.comparisons:
            if self._concerned(one):
                continue
            others = " or ".join(f"--fail-on {g}" for g in GATES if Gate(g)._concerned(one))
            shown = ", ".join(s.quantity.label for s in one.sections)
            raise StudyError(
                f"--fail-on {self.verdict} needs {GATES[self.verdict][1]}, but {one.names[1]} and"
                f" {one.names[0]} are compared by {shown}; use {others}"
            )
        hits = sum(len(self.broken(comparison)) for comparison in findings.comparisons)
        missing = [point for comparison in findings.comparisons for point in comparison.missing]
        broke = sum(point.broke for point in missing)
        said = many(hits, "point") if hits else "none"
        if broke:
            said += f", and {broke} that ran before and failed now"
        if missing:
            said += f" ({many(len(missing), 'point')} could not be compared, see above)"
        return bool(hits or broke), said

    def broken(self, comparison: Comparison) -> list[ComparedPoint]:
        """Points that break it."""
        return [
            row
            for row in self._concerned(comparison)
            if row.verdict == self.verdict or (self.verdict == "differs" and row.verdict != "equal")
            if abs(row.ratio.value - 1) >= self.threshold
        ]

    def _concerned(self, comparison: Comparison) -> list[ComparedPoint]:
        rows = [row for row in comparison.rows if row.quantity.kind == GATES[self.verdict][0]]
        return [row for row in rows if row.quantity.better] if self.verdict == "worse" else rows
