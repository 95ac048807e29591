"""Which factors a sweep varies, and whether they can be separated."""

from __future__ import annotations

from collections.abc import Sequence

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult


def swept_factors(data: Dataset, sweep: str | None) -> tuple[str, ...]:
    """Factors that a sweep varies at a fixed size, ``system`` included.

    A factor that merely follows another one (its number of words follows its memory) is left out:
    its effect cannot be separated from the other's. The study's own list of factors comes first.
    """
    points = data.select(sweep, cpu=False)
    varying = _varying(points)
    listed = [f for f in _listed_factors(data, sweep) if f in varying]
    if listed:
        return tuple(listed)
    levels = {f: [p.level(f) for p in points] for f in varying}
    # Factors with fewer gaps first, then those with more levels: they explain the others.
    ranked = sorted(varying, key=lambda f: (levels[f].count(INAPPLICABLE), -len(set(levels[f]))))
    chosen: list[str] = []
    for factor in ranked:
        if not any(_follows(points, factor, other) for other in chosen):
            chosen.append(factor)
    return tuple(f for f in varying if f in chosen)


def distinct_factors(data: Dataset, sweep: str | None, given: tuple[str, ...]) -> tuple[str, ...]:
    """``given``, and as many of the other factors that vary as distinguish the points (on the CPU
    too); those that the study lists come first."""
    points = data.select(sweep)

    def kinds(factors: Sequence[str]) -> int:
        return len({(p.n, *(p.level(f) for f in factors)) for p in points})

    varying, chosen = _varying(points), given
    for factor in dict.fromkeys([*_listed_factors(data, sweep), *varying]):
        if factor in varying and kinds((*chosen, factor)) > kinds(chosen):
            chosen = (*chosen, factor)
    return chosen


def _listed_factors(data: Dataset, sweep: str | None) -> list[str]:
    """What the study writes under ``matrix`` and ``zip`` for the sweep."""
    for entry in data.study.get("sweeps") or ():
        if entry.get("name") == sweep:
            matrix, zipped = entry.get("matrix") or {}, entry.get("zip") or {}
            systems = ["system"] if "systems" in entry else []
            return list(dict.fromkeys([*systems, *matrix, *zipped]))
    return []


def _varying(points: Sequence[PointResult]) -> list[str]:
    """Factors that have several levels at one size."""
    found: dict[str, dict[int, set[Level]]] = {}
    for factor in dict.fromkeys(["system", *(f for p in points for f in p.levels)]):
        for p in points:
            found.setdefault(factor, {}).setdefault(p.n, set()).add(p.level(factor))
    return [f for f, levels in found.items() if any(len(own) > 1 for own in levels.values())]


def _follows(points: Sequence[PointResult], factor: str, other: str) -> bool:
    """Whether the level of ``factor`` is a function of the level of ``other`` (at each size)."""
    seen: dict[tuple[int, Level], Level] = {}
    return all(
        seen.setdefault((p.n, p.level(other)), p.level(factor)) == p.level(factor) for p in points
    )
