"""Which factors a sweep varies, and whether they can be separated."""

from __future__ import annotations

from collections.abc import Sequence

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult


def swept_factors(data: Dataset, sweep: str | None) -> tuple[str, ...]:
    """Factors that a sweep varies at a fixed size, ``system`` included.

    A factor that merely follows another one (its number of words follows its memory) is left out:
    its effect cannot be separated from the other's. The study's own list of factors comes first.
    """
    points = [p for p in data.select(sweep) if not p.cpu]
    varying = _varying(points)
    listed = [f for f in _listed_factors(data, sweep) if f in varying]
    if listed:
        return tuple(listed)
    chosen: list[str] = []
    # Factors with fewer gaps first, then those with more levels: they explain the others.
    ranked = sorted(varying, key=lambda f: (_gaps(points, f), -len(_levels_of(points, f))))
    for factor in ranked:
        if not any(_follows(points, factor, other) for other in chosen):
            chosen.append(factor)
    return tuple(f for f in varying if f in chosen)


def distinct_factors(data: Dataset, sweep: str | None, given: tuple[str, ...]) -> tuple[str, ...]:
    """``given``, and as many of the other factors that vary as distinguish the points (on the CPU
    too); those that the study lists come first."""
    points = data.select(sweep)
    varying = _varying(points)
    chosen, kinds = given, _kinds(points, given)
    for factor in dict.fromkeys([*_listed_factors(data, sweep), *varying]):
        more = _kinds(points, (*chosen, factor))
        if factor in varying and more > kinds:
            chosen, kinds = (*chosen, factor), more
    return chosen


def _kinds(points: Sequence[PointResult], factors: Sequence[str]) -> int:
    """How many points the factors and the size distinguish."""
    return len({(p.n, *(p.level(f) for f in factors)) for p in points})


def _listed_factors(data: Dataset, sweep: str | None) -> list[str]:
    """What the study writes under ``matrix`` and ``zip`` for the sweep."""
    for entry in data.study.get("sweeps") or ():
        if entry.get("name") == sweep:
            matrix, zipped = entry.get("matrix") or {}, entry.get("zip") or {}
            systems = ["system"] if "systems" in entry else []
            return list(dict.fromkeys([*systems, *matrix, *zipped]))
    return []


def _varying(points: Sequence[PointResult]) -> list[str]:
    names = dict.fromkeys(["system", *(f for p in points for f in p.levels)])
    return [f for f in names if _varies(points, f)]


def _varies(points: Sequence[PointResult], factor: str) -> bool:
    by_size: dict[int, set[Level]] = {}
    for p in points:
        by_size.setdefault(p.n, set()).add(p.level(factor))
    return any(len(levels) > 1 for levels in by_size.values())


def _levels_of(points: Sequence[PointResult], factor: str) -> set[Level]:
    return {p.level(factor) for p in points}


def _gaps(points: Sequence[PointResult], factor: str) -> int:
    return sum(p.level(factor) == INAPPLICABLE for p in points)


def _follows(points: Sequence[PointResult], factor: str, other: str) -> bool:
    """Whether the level of ``factor`` is a function of the level of ``other`` (at each size)."""
    seen: dict[tuple[int, Level], Level] = {}
    for p in points:
        if seen.setdefault((p.n, p.level(other)), p.level(factor)) != p.level(factor):
            return False
    return True
