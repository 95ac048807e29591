"""What limits a kernel, judged from the times of its variants (Brodtkorb et al., section 6.5).

The variants without memory accesses (``math_only``) and without arithmetic (``memory_only``) are
compared with the full kernel, paired by round. Memory accesses and arithmetic overlap on a GPU:
with good overlap the full kernel takes about as long as the slower variant, without any as long as
both together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from nqbench.analysis.data.dataset import Dataset, Level, PointResult
from nqbench.analysis.data.estimate import EVENT_STEP_S, Estimate, paired
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.wording import time as time_text
from nqbench.errors import AnalysisError
from nqbench.point import PART
from nqbench.workloads.base import VARIANTS, Variant

BottleneckWord = Literal["memory bound", "arithmetic bound", "balanced", "latency bound", "unclear"]

NEAR: Final = 0.8
"""A variant that takes at least this share of the full kernel's time is what limits the kernel:
speeding up the rest could gain a fifth at most. The paper prints no number."""
BEYOND: Final = 1.1
"""A variant that takes longer than the full kernel by more than this does not represent a part of
it: leaving something out has changed the rest (its order of accesses, its unrolling, its
clocks)."""

EMPTY_S: Final = 3e-6
"""What an empty kernel takes between two events (3.1 us on an H100). It is in the times of the full
kernel and of each variant, so that the variants of a short kernel seem closer to it."""
SHORT_S: Final = 10 * EMPTY_S
"""Below this it is over a tenth of the time, and the verdict says so."""


class Judged(NamedTuple):
    """A verdict and, in words, what it rests on."""

    word: BottleneckWord
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Bottleneck:
    """One kernel with its variants.

    ``points``  the points of the variants that were measured
    ``math``, ``memory``, ``both``  time over that of the full kernel: of one variant, or the sum
                of both; ``None`` if one has no time
    ``matched`` whether all variants ran at the occupancy of the full kernel
    """

    system: str
    n: int
    levels: Mapping[str, Level]
    points: Mapping[Variant, PointResult]
    math: Estimate | None
    memory: Estimate | None
    both: Estimate | None
    matched: bool
    judged: Judged

    @property
    def total(self) -> Estimate | None:
        """Time of the full kernel."""
        return self.points["full"].estimate(TIME)


def bottlenecks(data: Dataset) -> list[Bottleneck]:
    """The kernels of a run that were measured as variants, in its order.

    Raises ``AnalysisError`` for a run that has none.
    """
    groups: dict[tuple[object, ...], dict[Variant, PointResult]] = {}
    for point in data.points:
        part = point.levels.get(PART)
        if part in VARIANTS:
            rest = tuple(sorted((k, str(v)) for k, v in point.levels.items() if k != PART))
            groups.setdefault((point.sweep, point.system, point.n, rest), {})[part] = point
    full = [points for points in groups.values() if "full" in points]
    if not full:
        raise AnalysisError(
            f"run {data.name!r} has no variants of a kernel; `nqbench bottleneck SYSTEM` measures"
            " them"
        )
    return [_bottleneck(points) for points in full]


def verdict_text(found: Bottleneck) -> str:
    """The verdict in words."""
    return f"{found.system} at N = {found.n}: {found.judged.word}: {found.judged.reason}"


def _bottleneck(points: Mapping[Variant, PointResult]) -> Bottleneck:
    full, total = points["full"], points["full"].estimate(TIME)
    math, memory = _ratio(points, "math_only"), _ratio(points, "memory_only")
    both = _ratio(points, "math_only", "memory_only")
    if math is None or memory is None or both is None:
        judged = Judged("unclear", _why_missing(points))
    else:
        judged = judge(math, memory, both)
        if total is not None and total.value < SHORT_S:
            of = f"{time_text(EMPTY_S, 1)} of its {time_text(total.value, 3)}"
            short = f"an empty launch takes {of}: judge it at a larger N too"
            judged = Judged(judged.word, f"{judged.reason}; {short}")
    levels = {k: v for k, v in full.levels.items() if k != PART}
    matched = all(p.detail("occupancy_matched") in (None, 1) for p in points.values())
    return Bottleneck(full.name, full.n, levels, points, math, memory, both, matched, judged)


def _ratio(points: Mapping[Variant, PointResult], *parts: Variant) -> Estimate | None:
    """Summed time of variants over that of the full kernel, paired by round; ``None`` where no
    round has all of them."""
    names: tuple[Variant, ...] = ("full", *parts)
    times = [points[name].values(TIME) if name in points else {} for name in names]
    shared = set.intersection(*(set(values) for values in times))
    if not shared:
        return None
    full, sums = ({r: sum(v[r] for v in some) for r in shared} for some in (times[:1], times[1:]))
    return paired(full, sums, step_s=EVENT_STEP_S).estimate()


def _why_missing(points: Mapping[Variant, PointResult]) -> str:
    for part in VARIANTS:
        point = points.get(part)
        if point is None:
            return f"{part} was not planned"
        if not point.timed:
            return "the simulator counts and does not time: a verdict needs a GPU"
        if not point.ok:
            return f"{part}: {point.status}: {point.reason}"
    return "no round has all variants"


def judge(math: Estimate, memory: Estimate, both: Estimate) -> Judged:
    """The verdict on a kernel from the shares of its time that its variants take.

    A share counts as close to 1, or as clearly below it, only with its whole interval.
    """
    parts = f"without memory {math.value:.0%} of the time, without arithmetic {memory.value:.0%}"
    if not (math.bounded and memory.bounded):
        return Judged("unclear", f"{parts}; one round gives no interval: measure more rounds")
    for name, part in (("arithmetic", math), ("memory", memory)):
        assert part.low is not None
        if part.low > BEYOND:
            return Judged("unclear", f"{parts}: the {name} alone exceeds the full kernel")
    # Whether each takes about as long as the full kernel; ``None`` if that is open.
    sides = [
        None if part.low < NEAR <= part.high else part.low >= NEAR
        for part in (math, memory)
        if part.low is not None and part.high is not None
    ]
    if None in sides:
        unsure = "arithmetic" if sides[0] is None else "memory"
        return Judged("unclear", f"{parts}: the interval of {unsure} contains the limit {NEAR:.0%}")
    if any(sides):
        bound: BottleneckWord = "arithmetic bound" if sides[0] else "memory bound"
        return Judged("balanced" if all(sides) else bound, parts)
    # Shorter than the full kernel even added up: dependences between the two, or barriers.
    waits = "they overlap little"
    if both.high is not None and both.high < NEAR:
        waits = "even added up they take less: it waits for something else"
    return Judged("latency bound", f"{parts}, together {both.value:.0%}: {waits}")
