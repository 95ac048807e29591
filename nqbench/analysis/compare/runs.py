"""Comparison of points: ``faster``, ``slower``, ``same`` or ``unclear`` for times, with intervals.
Deterministic counters compare exactly: ``equal``, else ``better`` or ``worse``, or ``more`` or
``fewer`` where neither direction is good by itself.

Ratios are second over first: below 1 the second side takes less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from nqbench.analysis import wording
from nqbench.analysis.answer import MODELLED
from nqbench.analysis.compare import match
from nqbench.analysis.data import estimate
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import ALPHA, DEFAULT_MARGIN, Contrast, Estimate
from nqbench.analysis.data.quantities import CPU_TIME, CYCLES, OFF_CHIP, TIME, Quantity, quantity
from nqbench.analysis.wording import Difference
from nqbench.errors import AnalysisError, StudyError
from nqbench.system.suggest import many
from nqbench.vocabulary import COUNTERS
from nqbench.workloads import phases

TIME_VERDICTS: Final = ("faster", "slower", "same", "unclear")
JUDGED_COUNTS: Final = ("equal", "better", "worse")
PLAIN_COUNTS: Final = ("equal", "fewer", "more")
"""Of counters that have a good direction, and of those that have none (``Quantity.better``)."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedPoint:
    """One quantity of one pair of points.

    ``ratio``   second over first
    ``p``       corrected for all points; NaN for counts and where there is no interval
    ``reason``  why a verdict is ``unclear``
    """

    pair: match.Matched
    quantity: Quantity
    first: Estimate
    second: Estimate
    ratio: Estimate
    verdict: str
    p: float = math.nan
    reason: str = ""

    @property
    def difference(self) -> Difference:
        """The second side against the first, for people."""
        word = self.verdict if self.verdict in ("same", "unclear") else ""
        gap = self.second.value - self.first.value
        if gap and self.ratio.exact and 1 / wording.SAME < self.ratio.value < wording.SAME:
            word = f"{gap:+,.3g}" if abs(gap) < 1 else f"{gap:+,.0f}"
        return Difference(self.ratio, self.quantity, (self.first.value, self.second.value), word)

    @property
    def weight(self) -> float:
        """How much the difference says."""
        return wording.weight(self.ratio, self.quantity, (self.first.value, self.second.value))


@dataclass(frozen=True, slots=True, eq=False)
class ComparedQuantity:
    """All points under one quantity, with the geometric mean over them (``None``: undefined)."""

    quantity: Quantity
    rows: tuple[ComparedPoint, ...]
    overall: Estimate | None

    @property
    def counts(self) -> dict[str, int]:
        """Number of points per verdict, the verdicts that occur not at all included."""
        counts = JUDGED_COUNTS if self.quantity.better else PLAIN_COUNTS
        names = counts if self.quantity.kind == "counter" else TIME_VERDICTS
        return {name: sum(row.verdict == name for row in self.rows) for name in names}

    @property
    def difference(self) -> Difference:
        """The second side against the first over all points: the mean of the ratios, else the
        ratio of the means."""
        pairs = [(row.first.value, row.second.value) for row in self.rows]
        first, second = (math.fsum(side) / len(pairs) for side in zip(*pairs, strict=True))
        value = second / first if first else math.inf if second else math.nan
        ratio = self.overall or Estimate(value, exact=self.quantity.exact)
        return Difference(ratio, self.quantity, (first, second))

    @property
    def differing(self) -> list[ComparedPoint]:
        """The points that a reader in a hurry looks at, those that changed most first."""
        found = [row for row in self.rows if row.verdict not in ("same", "equal", "unclear")]
        return sorted(found, key=lambda row: -row.weight)

    @property
    def equal_everywhere(self) -> bool:
        """Whether every point has the same count on both sides: nothing is left to test."""
        return all(row.verdict == "equal" for row in self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two runs, or two levels of one factor in one run.

    ``sides``   the runs (the same one twice, for two levels)
    ``cycles``  a sentence: whether the differences in time stand in cycles
    """

    names: match.Names
    sides: tuple[Dataset, Dataset]
    margin: float
    sections: tuple[ComparedQuantity, ...]
    missing: tuple[match.Missing, ...]
    notes: tuple[str, ...]
    cycles: str = ""

    @property
    def rows(self) -> Iterable[ComparedPoint]:
        """Every compared quantity of every pair."""
        return (row for section in self.sections for row in section.rows)

    @property
    def equal_everywhere(self) -> bool:
        """Whether every count is the same on both sides."""
        counts = [s for s in self.sections if s.quantity.kind == "counter"]
        return bool(counts) and all(section.equal_everywhere for section in counts)


def compare_runs(
    first: Dataset,
    second: Dataset,
    names: match.Names,
    *,
    margin: float = DEFAULT_MARGIN,
    value: str | None = None,
) -> Comparison:
    """Compare two runs, the first being the reference.

    ``value`` names a quantity; by default kernel times, and the usual counters where kernels were
    simulated. Raises ``StudyError`` for runs that must not share a column, ``AnalysisError`` where
    nothing matches.
    """
    _check_kinds((first, second), names)
    return _compare(match.match_runs(first, second, names), (first, second), names, margin, value)


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
    matching = match.match_levels(data, factor, levels)
    names = (f"{factor} {levels[0]}", f"{factor} {levels[1]}")
    return _compare(matching, (data, data), names, margin, value)


def _check_kinds(sides: tuple[Dataset, Dataset], names: match.Names) -> None:
    """Raise ``StudyError`` where times and counts, or real and synthetic ones, would mix."""
    kinds, workloads = [], []
    for data in sides:
        made = "synthetic" if data.synthetic else "simulated" if data.simulated else "measured"
        kinds.append(f"{made} ({'counters' if data.simulated else 'times'})")
        # What was computed is not known of a file that nvbench wrote.
        known = "statistic" not in data.manifest and data.study.get("workload")
        workloads.append(known or "")
    if kinds[0] != kinds[1]:
        raise StudyError(
            f"{names[0]} is {kinds[0]}, but {names[1]} is {kinds[1]}: these never share a column;"
            " compare runs of one kind (results of the other kind are reported on their own)"
        )
    if all(workloads) and workloads[0] != workloads[1]:
        raise StudyError(
            f"{names[0]} is a run of {workloads[0]}, but {names[1]} one of {workloads[1]}: they"
            " have no point in common, and equal factors would mean different things"
        )


def judge(contrasts: Sequence[Contrast], margin: float) -> list[tuple[str, float]]:
    """Verdict and corrected p of each contrast, corrected for all of them together.

    ``same`` goes first: a significant difference within the margin is one that the user has called
    irrelevant.
    """
    different = estimate.adjusted([c.p_different() for c in contrasts])
    outside = estimate.adjusted([c.p_outside(margin) for c in contrasts])
    found: list[tuple[str, float]] = []
    for c, p, beyond in zip(contrasts, different, outside, strict=True):
        verdict = "unclear"
        if beyond <= ALPHA:  # never true of NaN
            verdict = "same"
        elif p <= ALPHA:
            verdict = "slower" if c.log_ratio > 0 else "faster"
        found.append((verdict, p))
    return found


def _compare(
    matching: match.Matching,
    sides: tuple[Dataset, Dataset],
    names: match.Names,
    margin: float,
    value: str | None,
) -> Comparison:
    if not 0 <= margin < 1:
        said = f"a margin of {100 * margin:g}% makes no sense; it is at least 0% and below 100%"
        raise StudyError(said)
    asked = list(sides[0].quantities(value))
    if not value and sides[0].simulated:  # where a run was asked for them
        asked = [quantity(MODELLED), *asked, quantity("dram_bytes")]
    if value and asked[0].measured:
        raise AnalysisError(f"{value!r} follows from the time: compare the time itself")
    if not value and sides[0].simulated and any(p.first.timed for p in matching.pairs):
        asked.append(TIME)  # baselines on the CPU, timed also in a simulated run
    sections: list[ComparedQuantity] = []
    for what in asked:
        usable = [pair for pair in matching.pairs if _both_have(pair, what)]
        if what.kind == "counter":
            sections += [_counts(usable, what)] if usable else []
            continue
        # Kernels and, separately, CPU programs: another GPU does not change what those take. Each
        # of the two is a family: its verdicts are corrected for all of its points together.
        on_cpu = [what == TIME and pair.first.cpu and pair.second.cpu for pair in usable]
        for part, wanted in ((what, False), (CPU_TIME, True)):
            own = [pair for pair, cpu in zip(usable, on_cpu, strict=True) if cpu == wanted]
            sections += [_times(own, sides, part, margin)] if own else []
    if not sections and matching.pairs:
        every = ("time", *phases(), *COUNTERS, OFF_CHIP.name)
        known = [n for n in every if any(_both_have(p, quantity(n)) for p in matching.pairs)]
        raise AnalysisError(
            f"no point of {names[0]} and {names[1]} has {value or 'a time'} on both sides; they"
            f" have {', '.join(known) or 'nothing else'}"
        )
    if not sections:
        first = [f"; e.g. {m.label} in {m.where}: {m.reason}" for m in matching.missing[:1]]
        said = f"{' and '.join(names)} have no finished point in common{''.join(first)}"
        raise AnalysisError(said)
    notes = (*matching.notes, *_notes(sides, {section.quantity.kind for section in sections}))
    missing = (*matching.missing, *(m for q in asked for m in _instant(matching.pairs, q, names)))
    cycles = _in_cycles(sections, sides, margin)
    return Comparison(names, sides, margin, tuple(sections), missing, notes, cycles)


def _in_cycles(
    sections: Sequence[ComparedQuantity], sides: tuple[Dataset, Dataset], margin: float
) -> str:
    """Whether the differences in kernel time stand in cycles; empty where there are none, or a side
    has no clock."""
    rows = [r for s in sections if s.quantity is TIME for r in s.rows]
    rows = [r for r in rows if _both_have(r.pair, CYCLES)]
    if not any(row.verdict in ("faster", "slower") for row in rows):
        return ""
    again = _times([row.pair for row in rows], sides, CYCLES, margin).rows
    pairs = [p for p in zip(rows, again, strict=True) if p[0].verdict in ("faster", "slower")]
    lost = [(row, other) for row, other in pairs if row.verdict != other.verdict]
    told = many(len(pairs), "difference")
    if not lost:
        return f"In cycles (time x SM clock) all of {told} stand."
    row, other = max(lost, key=lambda p: p[0].weight)
    name = match.labels([row.pair.first])[row.pair.first]
    mhz = " and ".join(f"{_mhz(point):,.0f}" for point in row.pair)
    return (
        f"In cycles (time x SM clock) {len(lost)} of {told} do not stand: {name} is"
        f" {wording.effect(row.ratio, TIME)} in time, {wording.effect(other.ratio, TIME)} in"
        f" cycles, at {mhz} MHz."
    )


def _mhz(point: PointResult) -> float:
    """Its SM clock over the rounds."""
    clocks = [row["sm_mhz"] for row in point.measurements.values() if row.get("sm_mhz")]
    return math.fsum(clocks) / len(clocks)


def _instant(
    pairs: Sequence[match.Matched], what: Quantity, names: match.Names
) -> Iterable[match.Missing]:
    """The points that have no ratio because a phase took no time on a side."""
    named = match.labels([pair.first for pair in pairs])
    for pair in pairs if what.kind == "time" else ():
        lowest = [min(point.values(what).values(), default=math.nan) for point in pair]
        zero = [name for name, value in zip(names, lowest, strict=True) if value == 0]
        if zero and not any(map(math.isnan, lowest)):
            where = "both" if len(zero) > 1 else zero[0]
            yield match.Missing(named[pair.first], where, f"its {what.label} is 0 s")


def _both_have(pair: match.Matched, what: Quantity) -> bool:
    """Whether a quantity of both points can be compared: a phase that took no time cannot."""
    values = [point.values(what).values() for point in pair]
    return all(values) and (what.kind == "counter" or min(map(min, values)) > 0)


def _times(
    pairs: Sequence[match.Matched], sides: tuple[Dataset, Dataset], what: Quantity, margin: float
) -> ComparedQuantity:
    step_s = max(data.event_step_s for data in sides)
    test = partial(estimate.paired if sides[0] is sides[1] else estimate.welch, step_s=step_s)
    values = [(p.first.values(what), p.second.values(what)) for p in pairs]
    contrasts = [test(one, two) for one, two in values]
    rows = []
    for pair, c, (verdict, p) in zip(pairs, contrasts, judge(contrasts, margin), strict=True):
        reason = _why_unclear(c, margin) if verdict == "unclear" else ""
        both = _estimates(pair, what)
        rows.append(ComparedPoint(pair, what, *both, c.estimate(), verdict, p, reason))
    firsts, seconds = zip(*values, strict=True)
    whole = estimate.overall(firsts, seconds, test)
    return ComparedQuantity(what, tuple(rows), whole.estimate() if whole else None)


def _why_unclear(c: Contrast, margin: float) -> str:
    if not c.known:
        return "fewer than two rounds on a side"
    if c.p_different() <= ALPHA:
        return "the interval excludes 1, but not after correction for the number of points"
    if c.p_outside(margin) <= ALPHA:
        return "within the margin, but not after correction for the number of points"
    return "the interval contains 1 and exceeds the margin; more rounds would narrow it"


def _counts(pairs: Sequence[match.Matched], what: Quantity) -> ComparedQuantity:
    rows = []
    for pair in pairs:
        one, two = _estimates(pair, what)
        value = two.value / one.value if one.value else math.inf
        verdict = "more" if two.value > one.value else "fewer"
        if one.value == two.value:
            value, verdict = 1.0, "equal"
        elif what.better:
            verdict = "better" if (verdict == "fewer") == (what.better == "lower") else "worse"
        rows.append(ComparedPoint(pair, what, one, two, Estimate(value, exact=True), verdict))
    logs = [math.log(r.ratio.value) for r in rows if 0 < r.ratio.value < math.inf]
    mean = Estimate(math.exp(math.fsum(logs) / len(logs)), exact=True) if logs else None
    # A count of zero has no geometric mean.
    return ComparedQuantity(what, tuple(rows), mean if len(logs) == len(rows) else None)


def _estimates(pair: match.Matched, what: Quantity) -> tuple[Estimate, Estimate]:
    one, two = (point.estimate(what) for point in pair)
    assert one is not None  # pairs without values were left out
    assert two is not None
    return one, two


def _notes(sides: tuple[Dataset, Dataset], kinds: set[str]) -> Iterable[str]:
    if "time" in kinds:
        if sides[0] is sides[1]:
            yield "Paired by round: what a round does to both sides cancels."
        else:
            yield (
                "Between runs: Welch's t on logarithms of the rounds' medians. What differs between"
                " the two sessions (temperature, clocks, driver state) was sampled once each and is"
                " not in the intervals; measure both sides in one run for a finer comparison."
            )
        means = [d.name for d in sides if d.manifest.get("statistic") == "mean"]
        if means and len(means) < len(sides):
            yield (
                f"{means[0]} reports means of its samples, the other run medians: outliers make"
                " the former larger."
            )
    if "counter" in kinds:
        yield "Counters are deterministic: they are equal or they differ, and have no intervals."
