"""The points that ``nqbench check`` and ``nqbench explain`` run: of a system or of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Final

from nqbench.errors import InfeasibleError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Level, Point, text
from nqbench.study.expand import expand
from nqbench.study.load import load_study
from nqbench.study.variants import level_of
from nqbench.system.suggest import listing, suggestion
from nqbench.workloads import find_system, with_systems
from nqbench.workloads.base import Workload

SMALL_SIZES: Final = (8, 12, 32, 128, 4096)
"""Sizes tried for a system, in this order: what goes wrong in a kernel does so at small ones."""
SYSTEM, SWEEP = "system", "sweep"


def chosen_points(
    subject: str,
    facts: DeviceFacts,
    conditions: Sequence[str] = (),
    sizes: Sequence[int] = (),
    warn: Callable[[str], object] | None = None,
) -> list[Point]:
    """Points of a named system, or of a study (a file, or the name of a packaged one).

    ``conditions`` are ``factor=level`` words: levels of a system, or what the points of a study
    must have (``system`` and ``sweep`` too); ``factor=a,b`` takes both levels. Without ``sizes``
    (and a condition on ``n``) each configuration is taken at its smallest size.

    Raises ``StudyError`` and ``InfeasibleError``.
    """
    named = any(subject in workload.systems for workload in with_systems())
    if named and not Path(subject).exists():
        return _of_system(subject, facts, conditions, sizes)
    points = expand(load_study(Path(subject)), facts, warn=warn)
    wanted = dict(_condition(word) for word in conditions)
    if sizes:
        points = [point for point in points if point.n in sizes]
    chosen = [p for p in points if all(_level(p, name) in v for name, v in wanted.items())]
    if not chosen:
        raise StudyError(_nothing(subject, expand(load_study(Path(subject)), facts), wanted, sizes))
    return chosen if sizes or "n" in wanted else _smallest(chosen)


def _of_system(
    name: str, facts: DeviceFacts, conditions: Sequence[str], sizes: Sequence[int]
) -> list[Point]:
    workload, _ = find_system(name)
    if name in workload.cpu_systems:
        raise InfeasibleError(f"{name} runs on the CPU: there is no kernel to look into")
    wanted = dict(_condition(word) for word in conditions)
    given = [*sizes, *(_size(word) for word in wanted.pop("n", ()))]
    words = [
        [level_of(f"{factor}={v}", [(name, workload)]) for v in vs] for factor, vs in wanted.items()
    ]
    points = []
    for levels in map(dict, product(*words)):
        points += _sized(name, workload, levels, facts, given)
    return points


def _sized(
    name: str,
    workload: Workload,
    levels: Mapping[str, Level],
    facts: DeviceFacts,
    sizes: Sequence[int],
) -> list[Point]:
    """A system with these levels at the sizes given, or at the smallest that it takes."""
    if sizes:
        return [_point(name, workload, {**levels, "n": n}, facts) for n in sizes]
    refusals = []
    for n in SMALL_SIZES:
        try:
            return [_point(name, workload, {**levels, "n": n}, facts)]
        except (InfeasibleError, StudyError) as error:
            refusals.append(error)
    raise refusals[0]


def _point(name: str, workload: Workload, levels: Mapping[str, Level], facts: DeviceFacts) -> Point:
    resolved = workload.resolve(levels, name, facts)
    workload.plan(resolved.factors, name, facts)
    return Point(name, SYSTEM, workload.name, name, resolved.factors, resolved.derived)


def _condition(word: str) -> tuple[str, list[str]]:
    name, equals, level = word.partition("=")
    if not equals or not name or not level:
        raise StudyError(f"--point {word}: write FACTOR=LEVEL, for example --point block_size=64")
    return name, level.split(",")


def _size(word: str) -> int:
    if not word.isdecimal():
        raise StudyError(f"--point n={word}: a size is a whole number")
    return int(word)


def _level(point: Point, name: str) -> str | None:
    if name in (SYSTEM, SWEEP):
        return point.system if name == SYSTEM else point.sweep
    return text(point.factors[name]) if name in point.factors else None


def _nothing(
    subject: str, points: Sequence[Point], wanted: Mapping[str, Sequence[str]], sizes: Sequence[int]
) -> str:
    """Why no point is left: the first condition that none fulfils, or all of them together."""
    known = list(dict.fromkeys(name for p in points for name in (SYSTEM, SWEEP, *p.factors)))
    for name, wanted_levels in wanted.items():
        said = f"--point {name}={','.join(wanted_levels)}"
        if name not in known:
            return f"{said}: no point of {subject} has {name}; {suggestion(name, known)}"
        levels = list(dict.fromkeys(found for p in points if (found := _level(p, name))))
        if not set(levels).intersection(wanted_levels):
            return f"{said}: {subject} has {name} {listing(levels)}"
    if sizes:
        found_sizes = sorted({p.n for p in points})
        return f"--n {sizes[0]}: {subject} has n {listing(list(map(str, found_sizes)))}"
    said = ", ".join(f"{name}={','.join(levels)}" for name, levels in wanted.items())
    return f"no point of {subject} has all of {said}"


def _smallest(points: Sequence[Point]) -> list[Point]:
    """Of points that differ in n alone, the smallest; where points are skipped, others count.
    Factors that follow from n (one level for each n of a system) do not tell points apart."""
    families: dict[object, list[Point]] = {}
    for point in points:
        families.setdefault((point.sweep, point.system), []).append(point)
    kept = []
    for family in families.values():
        names = [name for name in family[0].factors if name != "n" and not _follows(name, family)]
        groups: dict[object, list[Point]] = {}
        for point in family:
            groups.setdefault(tuple(_level(point, name) for name in names), []).append(point)
        for group in groups.values():
            least = min(p.n for p in ([p for p in group if not p.skip] or group))
            kept += [point for point in group if point.n == least]
    return kept


def _follows(name: str, points: Sequence[Point]) -> bool:
    """Whether a factor has one level for each n."""
    levels = {(point.n, _level(point, name)) for point in points}
    return len(levels) == len({point.n for point in points})
