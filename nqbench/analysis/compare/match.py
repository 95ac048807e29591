"""Which point of one run is which of another: by factors, since keys differ between devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, PointResult
from nqbench.errors import StudyError
from nqbench.system.suggest import suggestion

Names = tuple[str, str]
"""What the two sides of a comparison are called, the reference first."""
LEFT_OUT: Final = ("skipped", "unfinished", "throttled")
"""Statuses of points without a value that do not mean that the code failed."""


class Matched(NamedTuple):
    """Two points that are the same, or that differ only in the factor that is compared."""

    first: PointResult
    second: PointResult


@dataclass(frozen=True, slots=True)
class Missing:
    """A point that cannot be compared: ``where`` it lacks a value, and why.

    ``broke``  the first side has a value and the second failed (not left out, not unfinished)
    """

    label: str
    where: str
    reason: str
    broke: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """Pairs in the order of the first side, points that have none, and remarks."""

    pairs: tuple[Matched, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...] = ()


def match_runs(first: Dataset, second: Dataset, names: Names) -> Matching:
    """Match the points of two runs. ``names`` say in words which run is which."""
    sides = (first.points, second.points)
    known = [_recorded(points) for points in sides]
    shared = [f for f in known[0] if f in known[1]]
    notes = tuple(
        f"{name} does not record {', '.join(lacking)}: not used to match points"
        for name, own, other in ((names[0], *known), (names[1], *known[::-1]))
        if (lacking := [f for f in other if f not in own])
    )
    return Matching(*_match(sides, shared, names), notes)


def match_levels(data: Dataset, factor: str, levels: tuple[str, str]) -> Matching:
    """Match the points of one run that have one level of a factor with those that have another.

    A factor that merely follows the compared one within a sweep (the memory of a system) does not
    separate pairs there. Raises ``StudyError`` for a factor or level that the run does not have.
    """
    recorded = _recorded(data.points)
    _check_recorded(data, factor, levels, recorded)
    factors = [f for f in recorded if f != factor]
    pairs: list[Matched] = []
    missing: list[Missing] = []
    following: dict[str, None] = {}
    for sweep in [None] if factor == "sweep" else data.sweeps:
        here = data.select(sweep)
        one, two = ([p for p in here if _text(p, factor) == level] for level in levels)
        changing = [f for f in factors if _follows(f, one, two)]
        found = _match((one, two), [f for f in factors if f not in changing], levels)
        pairs += found[0]
        missing += found[1]
        if found[0]:
            following |= dict.fromkeys(changing)
    told = following and factor not in ("system", "sweep")
    notes = (f"with {factor} also {', '.join(following)} change",) if told else ()
    return Matching(tuple(pairs), tuple(missing), notes)


def _check_recorded(
    data: Dataset, factor: str, levels: Sequence[str], recorded: Sequence[str]
) -> None:
    if factor not in ("sweep", *recorded):
        said = suggestion(factor, ["sweep", *(f for f in recorded if f != "n")])
        raise StudyError(f"by {factor}: {data.name} varies no such factor; {said}")
    present = list(dict.fromkeys(_text(p, factor) for p in data.points))
    for level in levels:
        if level not in present:
            said = suggestion(level, present)
            raise StudyError(f"by {factor}: {data.name} has no level {level!r}; {said}")


def label(point: PointResult, factors: Sequence[str] = ()) -> str:
    """A point in words: system or sweep, size, and the factors asked for."""
    levels = [f"{f}={point.level(f)}" for f in factors if point.level(f) != INAPPLICABLE]
    return " ".join([point.name, f"N={point.n}", *levels])


def labels(points: Sequence[PointResult]) -> dict[PointResult, str]:
    """Each point in words that distinguish it from the others of its system, or of its sweep if it
    has none; by its sweep too if need be."""
    groups: dict[str, list[PointResult]] = {}
    for point in points:
        groups.setdefault(point.name, []).append(point)
    shown = {name: distinguishing(group) for name, group in groups.items()}
    plain = {point: label(point, shown[point.name]) for point in points}
    often = Counter(plain.values())
    return {p: f"{text} ({p.sweep})" if often[text] > 1 else text for p, text in plain.items()}


def variants(points: Sequence[PointResult]) -> dict[PointResult, str]:
    """Each of several points of one size by what distinguishes it: its system, or its levels."""
    full = {
        point: [part.replace("=", " ") for part in text.split() if not part.startswith("N=")]
        for point, text in labels(points).items()
    }
    # Levels say it without the name of a sweep, unless two sweeps have the same ones.
    bare = {p: parts if p.system else parts[1:] or parts for p, parts in full.items()}
    often = Counter(map(tuple, bare.values()))
    told = ((p, full[p] if often[tuple(parts)] > 1 else parts) for p, parts in bare.items())
    return {p: ", ".join(parts) for p, parts in told}


def distinguishing(points: Sequence[PointResult]) -> tuple[str, ...]:
    """Factors that distinguish points of the same system (or sweep) and size.

    A factor that follows an earlier one (the allocation of a memory) adds nothing.
    """
    groups: dict[tuple[str, int], list[PointResult]] = {}
    for point in points:
        groups.setdefault((point.name, point.n), []).append(point)
    found: list[str] = []
    for f in dict.fromkeys(f for p in points for f in p.levels):
        varies = any(len({p.level(f) for p in group}) > 1 for group in groups.values())
        # It follows an earlier one where each level of that comes with one of its own.
        levels = ({(p.level(g), p.level(f)) for p in points} for g in found)
        if varies and all(len({g for g, _ in pairs}) < len(pairs) for pairs in levels):
            found.append(f)
    return tuple(found)


def _match(
    sides: tuple[Sequence[PointResult], Sequence[PointResult]], factors: Sequence[str], names: Names
) -> tuple[tuple[Matched, ...], tuple[Missing, ...]]:
    """The pairs of points that agree in ``factors``, and the points without one."""
    shown = distinguishing([*sides[0], *sides[1]])
    groups: dict[tuple[str, ...], tuple[list[PointResult], list[PointResult]]] = {}
    for i, points in enumerate(sides):
        for point in points:
            groups.setdefault(tuple(_text(point, f) for f in factors), ([], []))[i].append(point)
    pairs: list[Matched] = []
    missing: list[Missing] = []
    for both in groups.values():
        by_sweep: list[Sequence[list[PointResult]]] = [both]
        if [len(side) for side in both] != [1, 1]:  # a study holds a point twice
            sweeps = dict.fromkeys(p.sweep for side in both for p in side)
            by_sweep = [[[p for p in side if p.sweep == s] for side in both] for s in sweeps]
        for here in by_sweep:
            if [len(side) for side in here] == [1, 1]:
                pair = Matched(here[0][0], here[1][0])
                if pair.first.ok and pair.second.ok:
                    pairs.append(pair)
                else:
                    missing.append(_unfinished(pair, names, shown))
                continue
            for i in (0, 1):
                why = "no such point"
                if here[1 - i]:
                    why = "several points share these factors"
                elif both[1 - i]:
                    why += f" in sweep {here[i][0].sweep}"
                missing += [Missing(label(point, shown), names[1 - i], why) for point in here[i]]
    return tuple(pairs), tuple(missing)


def _unfinished(pair: Matched, names: Names, shown: Sequence[str]) -> Missing:
    """What is wrong with the points of a pair of which at least one has no value."""
    reasons = {
        name: f"{p.status}: {p.reason}" if p.reason else p.status
        for p, name in zip(pair, names, strict=True)
        if not p.ok
    }
    why, broke = [*reasons.values()], pair.first.ok and pair.second.status not in LEFT_OUT
    where = "both" if len(reasons) > 1 else next(iter(reasons))
    if len(set(why)) > 1:
        why = [f"{text} ({name})" for name, text in reasons.items()]
    return Missing(label(pair.first, shown), where, "; ".join(dict.fromkeys(why)), broke)


def _text(point: PointResult, factor: str) -> str:
    return point.sweep if factor == "sweep" else str(point.level(factor))


def _recorded(points: Sequence[PointResult]) -> list[str]:
    """Factors that some point has a level of."""
    names = dict.fromkeys(["system", "n", *(f for p in points for f in p.levels)])
    lacking = {"n": 0}  # a foreign file may know no size
    return [f for f in names if any(p.level(f) != lacking.get(f, INAPPLICABLE) for p in points)]


def _follows(factor: str, ones: Sequence[PointResult], twos: Sequence[PointResult]) -> bool:
    """Whether each side has one level of the factor at each size, and the two differ somewhere."""
    differs = False
    for n in {p.n for p in (*ones, *twos)}:
        levels = [{p.level(factor) for p in side if p.n == n} for side in (ones, twos)]
        if any(len(found) > 1 for found in levels):
            return False
        differs = differs or levels[0] != levels[1]
    return differs
