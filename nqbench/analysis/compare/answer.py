"""What a comparison of two runs answers: the best variant on each side, where the order of variants
changes, which effect differs most, and which recorded facts agree with that.

A fact agrees where it would change the time in the direction that was measured. This is no proof:
the sentences say "consistent with", and what was not recorded is not named.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from nqbench.analysis.compare.devices import Change, Differing, most_differing
from nqbench.analysis.compare.match import Matched, variants
from nqbench.analysis.compare.runs import Comparison, Section, event_step_s
from nqbench.analysis.data.dataset import Dataset, PointResult, missing
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import CPU_TIME, TIME, Quantity
from nqbench.analysis.data.statistics import ALPHA, Contrast, adjusted, paired
from nqbench.analysis.factorial.effects import NOTEWORTHY
from nqbench.analysis.limits.ceilings import bytes_per_s, multiprocessors
from nqbench.point import PART

AGREES: Final = 1.01
"""Smallest ratio that a fact must predict to count as a cause: below it clocks differ anyway."""
OFF_CHIP: Final = ("global", "local", "shared_stack")
"""Levels of ``memory`` that keep working data behind the caches; ``shared_stack`` only a part."""

OF_EFFECT: Final = "That difference of the effects"
CAPABILITY: Final = "compute capability"
NVRTC: Final = "NVRTC"
SOURCES: Final = "sources of nqbench"
BANDWIDTH: Final = "bandwidth of device memory (data sheets)"


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """The fastest of several variants on one side, and the next.

    ``lead``   time of the next over that of the fastest
    ``clear``  whether its interval, widened for the number of variants, excludes 1
    """

    point: PointResult
    value: Estimate
    next: PointResult
    lead: Estimate
    clear: bool


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The fastest of ``variants`` that compute the same answer, on each side.

    ``same``   whether it is the same variant
    ``called`` what the variants are called, on both sides
    """

    n: int
    variants: int
    leaders: tuple[Leader, Leader]
    same: bool
    called: Mapping[PointResult, str]


@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """Two variants whose order clearly changes: ``ratios`` of ``other``'s time to ``one``'s."""

    one: PointResult
    other: PointResult
    ratios: tuple[Estimate, Estimate]


@dataclass(frozen=True, slots=True)
class Order:
    """Pairs of variants of one sweep and size: how many, and which change their order.

    ``unsure``  pairs whose values change order, within their intervals or by too little to report
    """

    pairs: int
    swaps: tuple[Swap, ...]
    unsure: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A recorded fact on each side.

    ``predicted``  what it alone would multiply the ratio by, at most; ``None`` where the fact says
                   nothing about a direction
    """

    name: str
    values: tuple[str, str]
    predicted: float | None = None


@dataclass(frozen=True, slots=True)
class Causes:
    """Recorded facts about a ratio of times: those that agree with it, those that differ besides,
    and the names of those that are equal on both sides. ``about`` says in words what the ratio is.
    """

    about: str
    observed: float
    agreeing: tuple[Fact, ...]
    others: tuple[Fact, ...]
    equal: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The answers of one comparison under one quantity, a time.

    ``causes``  of the effect that differs most, of the classes of memory that differ, or of the
                difference of all points: the first with an agreeing fact, else the first of them
    """

    comparison: Comparison
    section: Section
    best: tuple[Best, ...]
    order: Order
    differing: Differing | None
    causes: Causes | None


def answer(comparison: Comparison) -> Answer | None:
    """The answers about the kernels of two runs; ``None`` without times of kernels."""
    timed = (s for s in comparison.sections if s.quantity.kind == "time")
    section = next((s for s in timed if s.quantity is not CPU_TIME), None)
    if section is None:
        return None
    pairs = [r.pair for r in section.rows if r.pair.first.levels.get(PART, "full") == "full"]
    what, sides = section.quantity, comparison.sides
    differing = most_differing(sides, pairs, what)
    # The facts are about the GPU; the CPU has a part in every time but that of the kernel.
    explained = _explained(comparison, section, pairs, differing) if what is TIME else ()
    known = [c for c in explained if c.agreeing or c.others or c.equal]
    return Answer(
        comparison,
        section,
        tuple(_best(sides, pairs, what)),
        order_of(sides, pairs, what),
        differing,
        next((c for c in known if c.agreeing), known[0] if known else None),
    )


def _explained(
    comparison: Comparison,
    section: Section,
    pairs: Sequence[Matched],
    differing: Differing | None,
) -> Iterable[Causes]:
    """The facts about everything that clearly differs, the most particular first."""
    sides = comparison.sides
    if differing is not None and differing.clear:
        ends = differing.change.base, differing.change.level
        base, level = ([p for p in pairs if _at(p, differing.change, end)] for end in ends)
        yield causes_of(OF_EFFECT, sides, level, base, differing.ratio.value)
    for verdict in ("faster", "slower"):
        own = [g for g in section.groups if (g.factor, g.verdict) == ("memory", verdict)]
        levels = [g.level for g in own]
        if levels:
            logs = [g.points * math.log(g.ratio.value) for g in own if g.ratio]
            mean = math.exp(math.fsum(logs) / sum(g.points for g in own))
            points = [p for p in pairs if str(p.first.level("memory")) in levels]
            about = f"The ratio of the points with memory {' and '.join(levels)}"
            yield causes_of(about, sides, points, (), mean)
    if section.overall is not None and not _within(section.overall, comparison.margin):
        yield causes_of("The ratio of all points", sides, pairs, (), section.overall.value)


def _at(pair: Matched, change: Change, level: Any) -> bool:
    point = pair.first
    return (point.sweep, point.n) == (change.sweep, change.n) and point.level(
        change.factor
    ) == level


def _within(mean: Estimate, margin: float) -> bool:
    """Whether a mean may be 1, or lies within the margin."""
    return not mean.differs_from(1) or abs(math.log(mean.value)) <= math.log1p(margin)


def _same_work(pairs: Iterable[Matched], *, by_sweep: bool) -> list[list[Matched]]:
    """Pairs that compute the same: of one size and answer, and in one sweep if asked for.

    Where no answer was recorded nothing says that two points do the same.
    """
    groups: dict[tuple[Any, ...], list[Matched]] = {}
    for pair in pairs:
        answer_ = pair.first.detail("answer")
        if answer_ is not None:
            sweep = pair.first.sweep if by_sweep else ""
            groups.setdefault((pair.first.n, answer_, sweep), []).append(pair)
    return [group for group in groups.values() if len(group) > 1]


def _best(
    sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], what: Quantity
) -> Iterable[Best]:
    """Of each size (and answer) that has several variants, the largest size first."""
    for group in sorted(_same_work(pairs, by_sweep=False), key=lambda g: (-g[0].first.n, -len(g))):
        seen: dict[tuple[Any, ...], Matched] = {}
        for pair in group:  # a configuration may stand in several sweeps: it is one variant
            levels = tuple(sorted((k, str(v)) for k, v in pair.first.levels.items()))
            seen.setdefault((pair.first.system, levels), pair)
        if len(seen) < 2:
            continue
        found: list[tuple[Matched, Leader]] = []
        for side, data in enumerate(sides):
            ranked = sorted(seen.values(), key=lambda p: _side(p, side).value(what))
            first, second = (_side(p, side) for p in ranked[:2])
            lead = paired(
                first.values(what), second.values(what), step_s=event_step_s(data)
            ).estimate()
            value = first.estimate(what)
            assert value is not None
            clear = lead.differs_from(1, len(seen))
            found.append((ranked[0], Leader(first, value, second, lead, clear)))
        (one, left), (two, right) = found
        called = variants([p.first for p in seen.values()])
        called |= {p.second: called[p.first] for p in seen.values()}
        yield Best(group[0].first.n, len(seen), (left, right), one is two, called)


def _side(pair: Matched, side: int) -> PointResult:
    return pair.second if side else pair.first


def order_of(sides: tuple[Dataset, Dataset], pairs: Sequence[Matched], what: Quantity) -> Order:
    """Which variants of one sweep and size change places between the two sides.

    Both ratios of such a pair must be clear and large enough to report, in opposite directions. Its
    p is the larger of the two (an intersection-union test), corrected for the number of pairs.
    """
    tested: list[tuple[Matched, Matched, tuple[Contrast, Contrast]]] = []
    p_values: list[float] = []
    count = unsure = 0
    for group in _same_work(pairs, by_sweep=True):
        times = [[_side(p, side).value(what) for p in group] for side in (0, 1)]
        for i, j in combinations(range(len(group)), 2):
            count += 1
            if (times[0][j] - times[0][i]) * (times[1][j] - times[1][i]) >= 0:
                continue
            contrasts = [
                paired(
                    _side(group[i], side).values(what),
                    _side(group[j], side).values(what),
                    step_s=event_step_s(data),
                )
                for side, data in enumerate(sides)
            ]
            if min(abs(c.log_ratio) for c in contrasts) < math.log(NOTEWORTHY):
                unsure += 1
                continue
            tested.append((group[i], group[j], (contrasts[0], contrasts[1])))
            p_values.append(max(c.p_different() for c in contrasts))
    # Pairs in the same order on both sides count as tests too: each could have been reported.
    p_values = adjusted([*p_values, *[1.0] * (count - len(p_values))])
    swaps = []
    for (one, other, (first, second)), p in zip(tested, p_values, strict=False):
        if p <= ALPHA:
            ratios = (first.estimate(), second.estimate())
            swaps.append(Swap(one.first, other.first, ratios))
        else:
            unsure += 1
    swaps.sort(key=lambda s: -min(abs(math.log(r.value)) for r in s.ratios))
    return Order(count, tuple(swaps), unsure)


def causes_of(
    about: str,
    sides: tuple[Dataset, Dataset],
    points: Sequence[Matched],
    base: Sequence[Matched],
    observed: float,
) -> Causes:
    """The recorded facts about ``observed``: the ratio of times of the second side to the first of
    ``points``, over that of ``base`` where there is one.
    """
    agreeing, others, equal = [], [], []
    for fact in _facts(sides, points, base):
        if fact.values[0] == fact.values[1]:
            equal.append(f"{fact.name} ({fact.values[0]})")
        elif fact.predicted is not None and _agrees(fact.predicted, observed):
            agreeing.append(fact)
        else:
            others.append(fact)
    return Causes(about, observed, tuple(agreeing), tuple(others), tuple(equal))


def _agrees(predicted: float, observed: float) -> bool:
    same_way = math.log(predicted) * math.log(observed) > 0
    return same_way and abs(math.log(predicted)) >= math.log(AGREES)


def _facts(
    sides: tuple[Dataset, Dataset], points: Sequence[Matched], base: Sequence[Matched]
) -> Iterable[Fact]:
    """What was recorded on both sides, in the order in which to suspect it."""

    def predicted(factor: Callable[[Matched], float | None]) -> float | None:
        """Geometric mean of what a fact does to the time of each pair, over that of the base."""
        means = []
        for own in (points, base):
            logs = [math.log(v) for p in own if (v := factor(p))]
            if len(logs) < len(own):
                return None
            means.append(math.fsum(logs) / len(logs) if logs else 0.0)
        return math.exp(means[0] - means[1])

    every = [*points, *base]
    slower, faster = (bytes_per_s(data) for data in sides)
    if slower and faster:
        gain = slower / faster
        yield Fact(
            BANDWIDTH,
            (f"{slower / 1e12:.2f} TB/s", f"{faster / 1e12:.2f} TB/s"),
            predicted(lambda p: gain if _off_chip(p.first) else 1.0),
        )
    yield from _recorded(every, "memory clock", "memory_mhz", " MHz")
    for fact in _recorded(every, "SM clock", "sm_mhz", " MHz"):
        yield Fact(fact.name, fact.values, predicted(lambda p: _inverse(p, "sm_mhz")))
    one, two = (multiprocessors(data) for data in sides)
    if one and two:
        share, larger = one / two, max(one, two)
        yield Fact(
            "multiprocessors",
            (f"{one:.0f}", f"{two:.0f}"),
            predicted(lambda p: _by_units(p, share, larger)),
        )
    for fact in _recorded(every, "occupancy", "occupancy", ""):
        limits = [_texts(every, side, "occupancy_limiter") for side in (0, 1)]
        left, right = (
            f"{v}, limited by {w}" if w else v for v, w in zip(fact.values, limits, strict=True)
        )
        yield Fact(fact.name, (left, right), predicted(lambda p: _inverse(p, "occupancy")))
    yield from _recorded(every, "registers per thread", "registers", "")
    yield from _code(sides)


def _code(sides: tuple[Dataset, Dataset]) -> Iterable[Fact]:
    """What decides the PTX and the SASS; none of it has a direction."""
    known = [
        {
            CAPABILITY: _device(data).get("compute_capability"),
            NVRTC: _device(data).get("nvrtc"),
            SOURCES: (data.manifest.get("environment") or {}).get("source_sha256"),
        }
        for data in sides
    ]
    for name in known[0]:
        one, two = (values[name] for values in known)
        if one and two:
            yield Fact(name, (str(one), str(two)))


def _recorded(pairs: Sequence[Matched], name: str, column: str, unit: str) -> Iterable[Fact]:
    values = [_texts(pairs, side, column) for side in (0, 1)]
    if all(values):
        yield Fact(name, (f"{values[0]}{unit}", f"{values[1]}{unit}"))


def _texts(pairs: Sequence[Matched], side: int, column: str) -> str:
    """The distinct values of a column, or their range; empty where a point has none."""
    found = [_typical(_side(pair, side), column) for pair in pairs]
    if any(missing(value) for value in found):
        return ""
    distinct = list(dict.fromkeys(found))
    if len(distinct) > 2 and all(isinstance(v, int | float) for v in distinct):
        return f"{min(distinct):.4g} to {max(distinct):.4g}"
    return " and ".join(f"{v:.4g}" if isinstance(v, int | float) else str(v) for v in distinct)


def _typical(point: PointResult, column: str) -> Any:
    """What was recorded of a point; of a number the median of its measurements."""
    recorded = (row.get(column) for row in point.measurements.values())
    found = [value for value in recorded if not missing(value)]
    numbers = [value for value in found if isinstance(value, int | float)]
    return statistics.median(numbers) if numbers else next(iter(found), None)


def _inverse(pair: Matched, column: str) -> float | None:
    """What a larger number would do to the time, if that went down in proportion."""
    one, two = (_typical(_side(pair, side), column) for side in (0, 1))
    return None if missing(one) or missing(two) or not two else float(one) / float(two)


def _off_chip(point: PointResult) -> bool:
    """Whether the kernel keeps working data behind the caches, as far as was recorded."""
    kept = (point.detail(c) for c in ("scratch_bytes", "local_bytes"))
    return point.level("memory") in OFF_CHIP or any(not missing(b) and float(b) > 0 for b in kept)


def _by_units(pair: Matched, share: float, units: float) -> float | None:
    """``share`` if the launch has a block for every multiprocessor on both sides, else 1; ``None``
    where the threads were not recorded."""
    blocks = []
    for side in (0, 1):
        threads, size = (_typical(_side(pair, side), c) for c in ("threads", "block_size"))
        if not isinstance(threads, int | float) or not isinstance(size, int | float):
            return None
        blocks.append(threads / size)
    return share if min(blocks) >= units else 1.0


def _device(data: Dataset) -> dict[str, Any]:
    return data.manifest.get("device", {}).get("identity") or {}
