"""Comparison of points: ``faster``, ``slower``, ``same`` or ``unclear`` for times, with intervals.
Deterministic counters compare exactly: ``equal``, else ``better`` or ``worse``, or ``more`` or
``fewer`` where neither direction is good by itself.

Ratios are second over first: below 1 the second side takes less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nqbench.analysis.compare.match import Matched, Matching, Missing, match_levels, match_runs
from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import CPU_TIME, OFF_CHIP, TIME, Quantity, quantity
from nqbench.analysis.data.statistics import (
    ALPHA,
    DEFAULT_MARGIN,
    EVENT_STEP_S,
    Contrast,
    adjusted,
    check_margin,
    contrast,
    overall,
)
from nqbench.errors import AnalysisError, StudyError
from nqbench.vocabulary import COUNTERS
from nqbench.workloads import phases

EVENT_DEVICES: Final = ("cuda", "nvbench")
"""Devices whose kernel times come from CUDA events."""
Verdict = Literal[
    "faster", "slower", "same", "unclear", "equal", "better", "worse", "fewer", "more"
]
TIME_VERDICTS: Final[tuple[Verdict, ...]] = ("faster", "slower", "same", "unclear")
JUDGED_COUNTS: Final[tuple[Verdict, ...]] = ("equal", "better", "worse")
PLAIN_COUNTS: Final[tuple[Verdict, ...]] = ("equal", "fewer", "more")
"""Of counters that have a good direction, and of those that have none (``Quantity.better``)."""
SOME: Final = 20
"""Pairs that are looked at for what they have, after a request for what none of them has."""
GROUPED_BY: Final = ("system", "memory")
"""Factors whose levels get a geometric mean each."""


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """One quantity of one pair of points.

    ``ratio``   second over first
    ``p``       corrected for all points; NaN for counts and where there is no interval
    ``reason``  why a verdict is ``unclear``
    """

    pair: Matched
    quantity: Quantity
    first: Estimate
    second: Estimate
    ratio: Estimate
    verdict: Verdict
    p: float = math.nan
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The points of a section with one level of a factor, and their geometric mean.

    ``verdict``  on that mean, corrected for the groups of the factor; ``None`` for counts
    """

    factor: str
    level: str
    points: int
    ratio: Estimate | None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """All points under one quantity, with the geometric mean over them (``None``: undefined).

    ``groups``  means by system and by class of memory, where the points have several
    """

    quantity: Quantity
    rows: tuple[Compared, ...]
    overall: Estimate | None
    groups: tuple[Group, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Number of points per verdict, the verdicts that occur not at all included."""
        names = TIME_VERDICTS
        if self.quantity.kind == "counter":
            names = JUDGED_COUNTS if self.quantity.better else PLAIN_COUNTS
        return {name: sum(row.verdict == name for row in self.rows) for name in names}

    @property
    def equal_everywhere(self) -> bool:
        """Whether every point has the same count on both sides: nothing is left to test."""
        return all(row.verdict == "equal" for row in self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two runs, or two levels of one factor in one run.

    ``names``   what the two sides are called, the reference first
    ``sides``   the runs (the same one twice, for two levels)
    ``design``  ``paired`` by round within one run, ``welch`` between runs
    """

    names: tuple[str, str]
    sides: tuple[Dataset, Dataset]
    design: Literal["paired", "welch"]
    margin: float
    sections: tuple[Section, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> Iterable[Compared]:
        """Every compared quantity of every pair."""
        return (row for section in self.sections for row in section.rows)

    @property
    def matched(self) -> int:
        """Pairs of points that were compared."""
        return len({id(row.pair) for row in self.rows})

    @property
    def unmatched(self) -> int:
        """Points that were not compared, each counted once."""
        return sum(not entry.again for entry in self.missing)


def compare_runs(
    first: Dataset,
    second: Dataset,
    names: tuple[str, str],
    *,
    margin: float = DEFAULT_MARGIN,
    value: str | None = None,
) -> Comparison:
    """Compare two runs, the first being the reference.

    ``value`` names a quantity; by default kernel times, and the usual counters where kernels were
    simulated. Raises ``StudyError`` for runs that must not share a column, ``AnalysisError`` where
    nothing matches.
    """
    check_kinds([first, second], names)
    matching = match_runs(first, second, names)
    return _compare(matching, (first, second), names, "welch", margin, value)


def compare_levels(
    data: Dataset,
    factor: str,
    levels: tuple[str, str],
    *,
    margin: float = DEFAULT_MARGIN,
    value: str | None = None,
) -> Comparison:
    """Compare two levels of a factor within one run, paired by round; the first is the reference.

    Raises ``StudyError`` for an unknown factor or level, ``AnalysisError`` where nothing matches.
    """
    matching = match_levels(data, factor, levels)
    names = (f"{factor} {levels[0]}", f"{factor} {levels[1]}")
    return _compare(matching, (data, data), names, "paired", margin, value)


def check_kinds(runs: Sequence[Dataset], names: Sequence[str]) -> None:
    """Raise ``StudyError`` where times and counts, or real and synthetic ones, would mix."""
    kinds = [_kind(data) for data in runs]
    for kind, name in zip(kinds[1:], names[1:], strict=True):
        if kind != kinds[0]:
            raise StudyError(
                f"{names[0]} is {kinds[0]}, but {name} is {kind}: these never share a column;"
                " compare runs of one kind (results of the other kind are reported on their own)"
            )
    workloads = [_workload(data) for data in runs]
    for workload, name in zip(workloads[1:], names[1:], strict=True):
        if workload and workloads[0] and workload != workloads[0]:
            raise StudyError(
                f"{names[0]} is a run of {workloads[0]}, but {name} one of {workload}: they have no"
                " point in common, and equal factors would mean different things"
            )


def _workload(data: Dataset) -> str:
    """What was computed; empty where that is not known, as of a file that nvbench wrote."""
    return "" if "statistic" in data.manifest else str(data.study.get("workload") or "")


def judge(contrasts: Sequence[Contrast], margin: float) -> list[tuple[Verdict, float]]:
    """Verdict and corrected p of each contrast, corrected for all of them together.

    ``same`` goes first: a significant difference within the margin is one that the user has called
    irrelevant.
    """
    check_margin(margin)
    different = adjusted([c.p_different() for c in contrasts])
    outside = adjusted([c.p_outside(margin) for c in contrasts])
    found: list[tuple[Verdict, float]] = []
    for c, p, beyond in zip(contrasts, different, outside, strict=True):
        verdict: Verdict = "unclear"
        if beyond <= ALPHA:  # never true of NaN
            verdict = "same"
        elif p <= ALPHA:
            verdict = "slower" if c.log_ratio > 0 else "faster"
        found.append((verdict, p))
    return found


def _compare(
    matching: Matching,
    sides: tuple[Dataset, Dataset],
    names: tuple[str, str],
    design: Literal["paired", "welch"],
    margin: float,
    value: str | None,
) -> Comparison:
    check_margin(margin)
    sections = []
    for what in _quantities(sides, matching.pairs, value):
        usable = [p for p in matching.pairs if p.first.values(what) and p.second.values(what)]
        if usable and what.kind == "time":
            sections += _times(usable, sides, what, design, margin)
        elif usable:
            sections.append(_counts(usable, what))
    if not sections:
        why = f"; e.g. {_example(matching.missing[0])}" if matching.missing else ""
        if matching.pairs:
            known = ", ".join(_both_have(matching.pairs)) or "nothing else"
            raise AnalysisError(
                f"no point of {names[0]} and {names[1]} has {value or 'a time'} on both sides; they"
                f" have {known}"
            )
        raise AnalysisError(f"{names[0]} and {names[1]} have no finished point in common{why}")
    notes = (*matching.notes, *_notes(sides, design, sections))
    return Comparison(names, sides, design, margin, tuple(sections), matching.missing, notes)


def _both_have(pairs: Sequence[Matched]) -> list[str]:
    """Names of the quantities that some point has on both sides."""
    asked = ("time", *phases(), *COUNTERS, OFF_CHIP.name)
    return [
        name
        for name in asked
        if any(
            p.first.values(quantity(name)) and p.second.values(quantity(name)) for p in pairs[:SOME]
        )
    ]


def _example(missing: Missing) -> str:
    return f"{missing.label} in {missing.where}: {missing.reason}"


def _quantities(
    sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], value: str | None
) -> list[Quantity]:
    if value:
        what = sides[0].quantity(value)
        if what.measured:
            raise AnalysisError(f"{value!r} follows from the time: compare the time itself")
        return [what]
    shown = list(sides[0].quantities())
    if sides[0].simulated and any(p.first.timed for p in pairs):
        shown.append(TIME)  # baselines on the CPU, timed also in a simulated run
    return shown


def _times(
    pairs: Sequence[Matched],
    sides: tuple[Dataset, Dataset],
    what: Quantity,
    design: Literal["paired", "welch"],
    margin: float,
) -> list[Section]:
    """Kernels and, separately, CPU programs: another GPU does not change what those take.

    Each of the two is a family of its own: verdicts are corrected for all of its points together.
    """
    parts = {
        what: [pair for pair in pairs if not _on_cpu(pair, what)],
        CPU_TIME: [pair for pair in pairs if _on_cpu(pair, what)],
    }
    return [_timed(own, sides, part, design, margin) for part, own in parts.items() if own]


def _timed(
    pairs: Sequence[Matched],
    sides: tuple[Dataset, Dataset],
    what: Quantity,
    design: Literal["paired", "welch"],
    margin: float,
) -> Section:
    same_run = design == "paired"
    step_s = max(event_step_s(data) for data in sides)
    values = [(p.first.values(what), p.second.values(what)) for p in pairs]
    contrasts = [contrast(one, two, same_run=same_run, step_s=step_s) for one, two in values]
    rows = tuple(
        Compared(
            pair,
            what,
            _estimate(pair.first, what),
            _estimate(pair.second, what),
            c.estimate(),
            verdict,
            p,
            _why_unclear(c, margin) if verdict == "unclear" else "",
        )
        for pair, c, (verdict, p) in zip(pairs, contrasts, judge(contrasts, margin), strict=True)
    )

    def mean(own: Sequence[int]) -> Contrast | None:
        firsts, seconds = zip(*(values[i] for i in own), strict=True)
        return overall(firsts, seconds, same_run=same_run, step_s=step_s)

    whole = mean(range(len(rows)))
    groups: list[Group] = []
    for factor, levels in _levels(pairs):
        means = {level: found for level, own in levels.items() if (found := mean(own))}
        for (level, one), (verdict, _) in zip(
            means.items(), judge(list(means.values()), margin), strict=True
        ):
            groups.append(Group(factor, level, len(levels[level]), one.estimate(), verdict))
    return Section(what, rows, whole.estimate() if whole else None, tuple(groups))


def _levels(pairs: Sequence[Matched]) -> Iterable[tuple[str, dict[str, list[int]]]]:
    """Of each factor of ``GROUPED_BY`` that has several levels, which pairs have which."""
    for factor in GROUPED_BY:
        levels: dict[str, list[int]] = {}
        for i, pair in enumerate(pairs):
            level = str(pair.first.level(factor))
            if level != INAPPLICABLE:
                levels.setdefault(level, []).append(i)
        if len(levels) > 1:
            yield factor, levels


def _on_cpu(pair: Matched, what: Quantity) -> bool:
    return what == TIME and pair.first.cpu and pair.second.cpu


def event_step_s(data: Dataset) -> float:
    """Resolution in seconds of the clock behind a run's kernel times."""
    return EVENT_STEP_S if data.spec.partition(":")[0] in EVENT_DEVICES else 0.0


def _why_unclear(c: Contrast, margin: float) -> str:
    if not c.known:
        return "fewer than two rounds on a side" if c.design == "none" else "no interval"
    if c.p_different() <= ALPHA:
        return "the interval excludes 1, but not after correction for the number of points"
    if c.p_outside(margin) <= ALPHA:
        return "within the margin, but not after correction for the number of points"
    return "the interval contains 1 and exceeds the margin; more rounds would narrow it"


def _counts(pairs: Sequence[Matched], what: Quantity) -> Section:
    rows = []
    for pair in pairs:
        one, two = _estimate(pair.first, what), _estimate(pair.second, what)
        verdict = _counted(one.value, two.value, what)
        rows.append(Compared(pair, what, one, two, _exact_ratio(one, two), verdict))
    groups = [
        Group(factor, level, len(own), _exact_mean([rows[i] for i in own]))
        for factor, levels in _levels(pairs)
        for level, own in levels.items()
    ]
    return Section(what, tuple(rows), _exact_mean(rows), tuple(groups))


def _counted(one: float, two: float, what: Quantity) -> Verdict:
    if one == two:
        return "equal"
    if not what.better:
        return "more" if two > one else "fewer"
    return "better" if (two < one) == (what.better == "lower") else "worse"


def _exact_mean(rows: Sequence[Compared]) -> Estimate | None:
    """Geometric mean of exact ratios; a count of zero has none."""
    logs = [math.log(r.ratio.value) for r in rows if 0 < r.ratio.value < math.inf]
    if len(logs) < len(rows):
        return None
    return Estimate(math.exp(math.fsum(logs) / len(logs)), exact=True)


def _exact_ratio(one: Estimate, two: Estimate) -> Estimate:
    if one.value == two.value:
        return Estimate(1.0, exact=True)
    return Estimate(two.value / one.value if one.value else math.inf, exact=True)


def _estimate(point: PointResult, what: Quantity) -> Estimate:
    found = point.estimate(what)
    assert found is not None  # pairs without values were left out
    return found


def _kind(data: Dataset) -> str:
    what = "counters" if data.simulated else "times"
    if data.synthetic:
        return f"synthetic ({what})"
    return f"simulated ({what})" if data.simulated else f"measured ({what})"


def _notes(
    sides: tuple[Dataset, Dataset], design: str, sections: Sequence[Section]
) -> tuple[str, ...]:
    notes = []
    if any(section.quantity.kind == "time" for section in sections):
        if design == "paired":
            notes.append("Paired by round: what a round does to both sides cancels.")
        else:
            notes.append(
                "Between runs: Welch's t on logarithms of the rounds' medians. What differs between"
                " the two sessions (temperature, clocks, driver state) was sampled once each and is"
                " not in the intervals; measure both sides in one run for a finer comparison."
            )
        means = [d.name for d in sides if d.manifest.get("statistic") == "mean"]
        if means and len(means) < len(sides):
            notes.append(
                f"{means[0]} reports means of its samples, the other run medians: outliers make"
                " the former larger."
            )
    if any(section.quantity.kind == "counter" for section in sections):
        notes.append(
            "Counters are deterministic: they are equal or they differ, and have no intervals."
        )
    return tuple(notes)
